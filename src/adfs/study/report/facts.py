"""Facts about a problem, a graph, the parameters of a method, and the machine, as text."""

from typing import Any

import numpy as np

from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.study.numbers import count, number, number_range
from adfs.study.report.render import Table, formula
from adfs.study.run_folder import describe_machine
from adfs.theory.description import Description, Fact

Facts = list[tuple[str, str]]

CHEAP = 2e9  # multiplications for a condition number that the run did not need: about a second
LARGEST_GRAPH = 3_000  # nodes for which eigenvalues and diameter are computed for a page


def problem_facts(problem: Problem, data: str) -> Facts:
    """What is minimised; names may contain subscripts."""
    sigma, loss = problem.sigma, problem.loss
    facts = [("data", data)] if data else []
    facts += [
        ("samples", number(problem.n_samples)),
        ("features", number(problem.n_features)),
        ("nodes", number(problem.n_nodes)),
    ]
    offsets = getattr(problem, "offsets", None)
    if offsets is not None and problem.n_nodes > 1 and offsets[-1] == problem.n_samples:
        sizes = np.diff(offsets)
        facts.append(("samples per node", number_range(int(sizes.min()), int(sizes.max()))))
    rows = getattr(problem, "rows", None)
    if rows is not None:
        facts.append(("storage", "dense" if len(rows) == 1 else _sparsity(problem)))
    return [
        *facts,
        ("loss", f"{loss.name}, {'' if loss.smooth else 'not '}smooth"),
        ("σ of a node", number_range(float(sigma.min()), float(sigma.max()))),
        ("C = 1 / Σ σ_i", number(1.0 / problem.total_sigma)),
    ]


def _sparsity(problem: Any) -> str:
    share = problem.n_numbers / max(1, problem.n_samples * problem.n_features)
    return f"sparse, {number(100.0 * share, 3)} % of the entries"


def condition_facts(problem: Problem) -> Facts:
    """What the rates depend on: condition numbers and the graph."""
    if not problem.loss.smooth:
        return [("condition number", "none: the loss is not smooth"), *_graph(problem.topology)]
    return [
        ("κ_s, stochastic: max_i (1 + Σ_j L_ij / σ_i)", number(problem.conditioning.kappa_s)),
        ("κ_b, batch: max_i (1 + λ_max(B_i) / σ_i)", _kappa_b(problem)),
        *_graph(problem.topology),
    ]


def _kappa_b(problem: Problem) -> str:
    """It takes one eigenvalue per node: shown if the run computed it or if it costs little."""
    cheap = problem.n_samples * problem.n_features**2 <= CHEAP
    if problem.conditioning.batches_are_known or (cheap and problem.network.is_whole):
        return number(problem.conditioning.kappa_b())
    return "not computed: the run did not need it"


def _graph(topology: Topology) -> Facts:
    facts = [("graph", topology.name), ("edges", number(topology.n_edges))]
    if topology.n_edges:
        degrees = topology.degrees
        facts.append(("neighbours of a node", number_range(int(degrees.min()), int(degrees.max()))))
    if topology.n_nodes <= LARGEST_GRAPH or "spectrum" in vars(topology):
        facts.append(("γ, eigengap of the graph", number(topology.spectrum.gamma)))
    if 1 < topology.n_nodes <= LARGEST_GRAPH:
        facts.append(("diameter", count(topology.diameter, "edge")))
    return facts


def parameter_facts(parameters: Any, rule: str) -> dict[str, Any]:
    """A table, a closing sentence and the meaning of letters; or the text of the parameters."""
    if not hasattr(parameters, "description"):
        return {"text": str(parameters)}
    found: Description = parameters.description()
    closing = "".join(part if isinstance(part, str) else number(part) for part in found.closing)
    if any(fact.formula for fact in found.facts):
        rows: list[tuple[object, ...]] = [_row(fact) for fact in found.facts]
        headers: tuple[str, ...] = ("parameter", "value", "formula", "what it is")
        table = Table(f"Parameters by the rule {rule}", headers, rows, "scroll formulas")
    else:
        rows = [(fact.name, fact.text, fact.what) for fact in found.facts]
        table = Table(found.title, ("parameter", "value", "what it is, and its formula"), rows)
    closing = closing[:1].upper() + closing[1:]
    return {"table": table, "closing": closing, "symbols": found.symbols}


def _row(fact: Fact) -> tuple[object, ...]:
    if isinstance(fact.value, tuple):
        value = number_range(*fact.value)
    else:
        value = "" if fact.value is None else number(fact.value)
    texts = (fact.formula, fact.meaning or fact.what)
    return formula(fact.symbol or fact.name), value, *map(formula, texts)


def machine_facts() -> Facts:
    """Versions and hardware, on which wall times and the last bits depend."""
    machine = describe_machine()
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    hardware = f"{machine['cpu']}, {machine['cores']} cores, {machine['platform']}"
    return [("versions", versions), ("machine", hardware)]

"""The problem in numbers: its size, its regularisation, its condition numbers, its graph."""

from typing import Any

import numpy as np

from adfs.graphs.topology import Topology
from adfs.problems.conditioning import Conditioning
from adfs.problems.finite_sum import Problem
from adfs.report.markup import Markup, formula, join, tag
from adfs.report.page import definitions, paragraph
from adfs.report.words import count, number, span

WORK = 2e9  # multiplications for a condition number that the run did not need: about a second
LARGEST_GRAPH = 3_000  # nodes for whose eigenvalues and diameter the page computes by itself

Facts = list[tuple[object, object]]
KAPPA_S = "κ_s, stochastic: max_i (1 + Σ_j L_ij / σ_i)"
KAPPA_B = "κ_b, batch: max_i (1 + λ_max(B_i) / σ_i)"


def describe(problem: Problem, parameters: Any = None, data: str = "") -> Markup:
    """Two tables: what is minimised, and what the rates depend on."""
    sizes = definitions(_sizes(problem, data), "What is minimised")
    conditions = definitions(
        _conditions(problem) + _graph(problem.topology), "What the rates depend on"
    )
    return join([_formula(problem), tag("div", sizes, conditions, class_="columns")])


def _formula(problem: Problem) -> Markup:
    return paragraph(
        tag(
            "span",
            formula("F(θ) = Σ_i [ Σ_j w_ij ℓ(x_ij · θ, y_ij) + (σ_i / 2) |θ|² ]"),
            class_="formula",
        ),
        f", sums over nodes i and their samples j, with the loss ℓ(s, y) = {problem.loss.formula}.",
    )


def _sizes(problem: Problem, data: str) -> Facts:
    sigma = problem.sigma
    facts: Facts = [("data", data)] if data else []
    facts += [
        ("samples", number(problem.n_samples)),
        ("features", number(problem.n_features)),
        ("nodes", number(problem.n_nodes)),
    ]
    offsets = getattr(problem, "offsets", None)
    if offsets is not None and problem.n_nodes > 1 and offsets[-1] == problem.n_samples:
        each = np.diff(offsets)
        facts.append(("samples a node", span(int(each.min()), int(each.max()))))
    rows = getattr(problem, "rows", None)
    if rows is not None:
        facts.append(("storage", "dense" if len(rows) == 1 else _filled(problem)))
    facts += [
        ("loss", f"{problem.loss.name}, {'' if problem.loss.smooth else 'not '}smooth"),
        ("σ of a node", span(float(sigma.min()), float(sigma.max()))),
        (formula("C = 1 / Σ σ_i"), number(1.0 / problem.total_sigma)),
    ]
    return facts


def _filled(problem: Any) -> str:
    share = problem.n_numbers / max(1, problem.n_samples * problem.n_features)
    return f"sparse, {number(100.0 * share, 3)} % of the entries"


def _conditions(problem: Problem) -> Facts:
    if not problem.loss.smooth:
        return [("condition number", "none: the loss is not smooth")]
    found = problem.conditioning
    return [
        (formula(KAPPA_S), number(found.kappa_s)),
        (formula(KAPPA_B), _kappa_b(problem, found)),
    ]


def _kappa_b(problem: Problem, conditioning: Conditioning) -> str:
    """An eigenvalue per node, so only if the run computed it or it costs little here."""
    cheap = problem.n_samples * problem.n_features**2 <= WORK
    if conditioning.batches_are_known or (cheap and problem.network.is_whole):
        return number(conditioning.kappa_b())
    return "not computed: the run did not need it"


def _graph(topology: Topology) -> Facts:
    facts: Facts = [("graph", topology.name), ("edges", number(topology.n_edges))]
    if topology.n_edges:
        degrees = topology.degrees
        facts.append(("neighbours of a node", span(int(degrees.min()), int(degrees.max()))))
    if topology.n_nodes <= LARGEST_GRAPH or "spectrum" in vars(topology):
        facts.append(("γ, eigengap of the graph", number(topology.spectrum.gamma)))
    if 1 < topology.n_nodes <= LARGEST_GRAPH:
        facts.append(("diameter", count(topology.diameter, "edge")))
    return facts

"""What a training run tells: one record, as JSON or in words."""

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adfs.cli import layout
from adfs.cli.metrics import measure, phrase, summed
from adfs.problems.finite_sum import Problem
from adfs.problems.shards import slice_rows
from adfs.runtime import model as models
from adfs.runtime.model import Model, finite
from adfs.runtime.solve import Result
from adfs.threads import one_blas_thread

if TYPE_CHECKING:
    from adfs.runtime.execution import Execution

ROWS_AT_ONCE = 1 << 14
Measured = dict[str, float | None]  # the measure that fits the loss, by its name


def record(
    args: argparse.Namespace, problem: Problem, result: Result, model: Model, train: Measured,
    test: Any,
) -> dict[str, Any]:  # fmt: skip
    """Everything about the run in plain values; what is not known is None."""
    last = result.trace.last()
    return {
        "status": result.status,
        "objective": finite(result.objective),
        "duality_gap": finite(result.duality_gap),
        "relative_gap": finite(result.relative_gap),
        "tol": args.tol,
        "iterations": result.iterations,
        "idealized_time": result.idealized_time,
        "wall_time": result.wall_time,
        "setup_time": result.setup_time,
        **{name: last[name] for name in ("n_prox", "n_grad", "n_comm", "bytes")},
        "consensus_error": finite(float(last["consensus_error"] or 0.0)),
        "n_nodes": problem.n_nodes,
        "n_samples": problem.n_samples,
        "n_features": model.n_features,
        "seed": result.seed,
        "data": args.data,
        "loss": problem.loss.name,
        "sigma": float(problem.sigma[0]),
        "C": finite(1.0 / problem.total_sigma),
        "intercept": model.intercept,
        "graph": problem.topology.name,
        "algorithm": result.algorithm,
        "schedule": result.schedule,
        "tau": args.tau,
        "clock": args.clock,
        "parameters": models.summary(result),
        "train": train,
        "test": None if test is None else _on_test_data(model, *test),
        "resumed": result.resumed,
        "out": args.out,
        "trace": args.trace,
        "report": args.report,
    }


def on_training_data(problem: Problem, model: Model) -> Measured:
    """How well a model fits the samples of all nodes; called on all ranks."""
    with one_blas_thread():  # the same bits, however many cores a process may use
        found = [_on_node(problem, model, node) for node in problem.nodes.tolist()]
    totals = np.array([[total, count] for _, total, count in found])
    total, n_samples = problem.network.sum_rows(totals, 2).tolist()
    return {found[0][0]: finite(total / n_samples)}


def _on_node(problem: Problem, model: Model, node: int) -> tuple[str, float, int]:
    """Name of the measure, its sum over a node's samples, and how many these are."""
    mine = problem.node_rows(node)
    scores = np.empty(mine.stop - mine.start)
    for first in range(mine.start, mine.stop, ROWS_AT_ONCE):
        last = min(mine.stop, first + ROWS_AT_ONCE)
        rows = slice_rows(problem.rows, problem.n_features, first, last)
        scores[first - mine.start : last - mine.start] = rows @ model.coef
    labels = problem.labels[mine]
    if problem.classes is not None:
        labels = problem.classes[(labels > 0).astype(int)]
    return *summed(model, scores, labels), len(labels)


def _on_test_data(model: Model, rows: list[Any], labels: Any) -> Measured:
    scores = np.concatenate([model.decision(X) for X in rows])
    name, value = measure(model, scores, labels)
    return {name: finite(value)}


def summary(args: argparse.Namespace, record: dict[str, Any]) -> str:
    """The record in a few lines for people."""
    lines = [
        (record["status"], f"relative gap {_number(record['relative_gap'], '.2g')}, "
         f"asked for {args.tol:g}"),
        ("objective", _number(record["objective"], ".12g")),
        ("problem", f"{record['loss']}, {record['n_samples']:,} samples x "
         f"{record['n_features']:,} features{' and an intercept' if record['intercept'] else ''}, "
         f"sigma {record['sigma']:g} a node (C = {_number(record['C'], 'g')})"),
        ("training", _measure(record["train"])),
        ("iterations", f"{record['iterations']:,} ({_costs(record)})"),
        ("time", f"{record['idealized_time']:,.6g} idealized, in proximal steps (tau = "
         f"{record['tau']:g}, {record['clock']}); {record['wall_time']:.3g} s here, after "
         f"{record['setup_time']:.3g} s of set-up"),
        ("parameters", parameters_line(record)),
    ]  # fmt: skip
    if record["test"] is not None:
        lines.insert(4, ("test", _measure(record["test"])))
    if record.get("ranks"):
        lines.append(("ranks", ranks_line(record["ranks"])))
    if record["resumed"] is not None:
        lines.append(("resumed", f"went on from position {record['resumed']}"))
    written = [
        path for path in (args.out, args.trace, args.report, args.timeline) if path is not None
    ]
    if written:
        lines.append(("wrote", ", ".join(written)))
    return layout.facts(lines)


def parameters_line(record: dict[str, Any]) -> str:
    """How the parameters were chosen and, where that is known, what it gained."""
    chosen = record["parameters"]
    facts = []
    if chosen["rho"] is not None:
        facts.append(f"rho {chosen['rho']:.3g}")
    if chosen["p_comm"] is not None:
        facts.append(f"p_comm {chosen['p_comm']:.3g}")
    if chosen["gain_over_paper"] is not None:
        facts.append(f"predicted {chosen['gain_over_paper']:.2f} times as fast as the paper's")
    return f"{record['algorithm']}, {chosen['how']} on {record['graph']}: {', '.join(facts)}"


def _costs(record: dict[str, Any]) -> str:
    """What the iterations cost; kinds of work that the algorithm does not do are left out."""
    kinds = {"n_prox": "proximal steps", "n_grad": "sample gradients"}
    words = [f"{record[name]:,} {kind}" for name, kind in kinds.items() if record[name]]
    return ", ".join([*words, f"{record['n_comm']:,} messages"])


def _measure(values: dict[str, float | None]) -> str:
    ((name, value),) = values.items()
    return phrase(name, math.nan if value is None else value)


def _number(value: float | None, form: str) -> str:
    return "not finite" if value is None else format(value, form)


def ranks_line(ranks: list[dict[str, Any]]) -> str:
    """How many there were, and what their time was spent on."""
    from adfs.plots.ranks import percent

    kinds = list(ranks[0]["seconds"])
    total = {kind: sum(each["seconds"][kind] for each in ranks) for kind in kinds}
    whole = sum(total.values()) or 1.0
    shares = [f"{kind} {percent(spent / whole)}" for kind, spent in total.items() if spent > 0.0]
    cut, most = ranks[0]["cut_edges"], max(each["peak_memory"] for each in ranks)
    between = f", {_count(cut, 'edge')} between them" if len(ranks) > 1 else ""
    memory = f", at most {most / 1e6:,.0f} MB each" if most else ""
    return f"{len(ranks)}{between}{memory}: {', '.join(shares)}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def ranks_record(ranks: "Sequence[Execution]") -> list[dict[str, Any]]:
    """What each rank did, in plain values."""
    return [
        {
            "rank": each.rank, "nodes": each.nodes, "seconds": each.seconds,
            "cut_edges": each.cut_edges, "peak_memory": each.peak_memory,
            "bytes_sent": each.bytes_sent,
        }
        for each in ranks
    ]  # fmt: skip

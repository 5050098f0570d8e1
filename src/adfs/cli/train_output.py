"""The end of `adfs train`: measures, files, the summary or JSON, the exit code."""

import argparse
import math
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adfs import model as models
from adfs.cli import files, output
from adfs.cli.metrics import measure, phrase, summed
from adfs.data.shards import slice_rows
from adfs.model import Model, finite
from adfs.problem.finite_sum import Problem
from adfs.solver import Result
from adfs.threads import one_blas_thread

if TYPE_CHECKING:
    from adfs.engine.execution import Execution

ROWS_AT_ONCE = 1 << 14
Measured = dict[str, float | None]  # the measure that suits the loss, by its name
NOT_CONVERGED, FAILED = 3, 1

WAYS_OUT = {
    "max_iter": "give a larger --max-iter, or a larger --tol",
    "time_limit": "give a larger --time-limit, or a larger --tol",
    "interrupted": "what exists was kept",
    "diverged": "scale the features or the targets, or raise --sigma",
}
BEYOND_DEFAULT = (
    "the default limit was reached: scale the features, raise --sigma, choose another --algorithm, "
    "or give --max-iter"
)


def record(
    args: argparse.Namespace, problem: Problem, result: Result, model: Model, train: Measured,
    test: Any,
) -> dict[str, Any]:  # fmt: skip
    """The run as plain values; unknown ones are None."""
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
    """Name of the measure, its sum over a node's samples, and the number of samples."""
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


def summary(args: argparse.Namespace, record: dict[str, Any], gap_text: str) -> str:
    """The record as a few lines of text."""
    lines = [
        (record["status"], f"relative gap {gap_text}, asked for {args.tol:g}"),
        ("objective", _number(record["objective"], ".12g")),
        ("problem", f"{record['loss']}, {record['n_samples']:,} samples x "
         f"{record['n_features']:,} features{' and an intercept' if record['intercept'] else ''}, "
         f"sigma {record['sigma']:g} per node (C = {_number(record['C'], 'g')})"),
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
        lines.append(("resumed", f"continued from position {record['resumed']}"))
    if written := [path for path in (args.out, args.trace, args.report, args.timeline) if path]:
        lines.append(("wrote", ", ".join(written)))
    return output.facts(lines)


def parameters_line(record: dict[str, Any]) -> str:
    """How the parameters were chosen and, where it is known, the predicted gain."""
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
    """The cost of the iterations, without the kinds of work that the algorithm does not do."""
    kinds = {"n_prox": "proximal steps", "n_grad": "sample gradients"}
    costs = [f"{record[name]:,} {kind}" for name, kind in kinds.items() if record[name]]
    return ", ".join([*costs, f"{record['n_comm']:,} messages"])


def _measure(values: dict[str, float | None]) -> str:
    ((name, value),) = values.items()
    return phrase(name, math.nan if value is None else value)


def _number(value: float | None, form: str) -> str:
    return "not finite" if value is None else format(value, form)


def ranks_line(ranks: list[dict[str, Any]]) -> str:
    """The number of ranks, and how they spent their time."""
    from adfs.study.numbers import count, percent

    kinds = list(ranks[0]["seconds"])
    total = {kind: sum(each["seconds"][kind] for each in ranks) for kind in kinds}
    whole = sum(total.values()) or 1.0
    shares = [f"{kind} {percent(spent / whole)}" for kind, spent in total.items() if spent > 0.0]
    cut, most = ranks[0]["cut_edges"], max(each["peak_memory"] for each in ranks)
    between = f", {count(cut, 'edge')} between them" if len(ranks) > 1 else ""
    memory = f", at most {most / 1e6:,.0f} MB each" if most else ""
    return f"{len(ranks)}{between}{memory}: {', '.join(shares)}"


def ranks_record(ranks: "Sequence[Execution]") -> list[dict[str, Any]]:
    """What each rank did, as plain values."""
    names = ("rank", "nodes", "seconds", "cut_edges", "peak_memory", "bytes_sent")
    return [{name: getattr(each, name) for name in names} for each in ranks]


def finish(
    args: argparse.Namespace, problem: Problem, result: Result, model: Model,
    record: dict[str, Any], ranks: "Sequence[Execution]" = (),
) -> int:  # fmt: skip
    """Write and print; the exit code."""
    failures = _write(args, problem, result, model, record, ranks)
    if ranks:
        record["ranks"] = ranks_record(ranks)
    if args.json:
        output.emit_json(record)
    elif not args.quiet:
        text = summary(args, record, result.gap_text)
        style = "good" if result.status == "converged" else "warning"
        status = output.paint(result.status, style, sys.stdout)
        output.emit(status + text.removeprefix(result.status))
    for failure in failures:
        output.complain(failure, FAILED)
    return FAILED if failures else exit_code(args, result)


def _write(
    args: argparse.Namespace, problem: Problem, result: Result, model: Model,
    record: dict[str, Any], ranks: "Sequence[Execution]",
) -> list[Exception]:  # fmt: skip
    """Write all files asked for; if one fails, the others are still written."""

    def save_timeline(path: str) -> None:
        # The suffix of the given name decides, also where a symbolic link has another one.
        files.save_ranks(ranks, path, files.timeline_kind("--timeline", args.timeline))

    def save_report(path: str) -> None:
        from adfs.study.report import train_page

        page = train_page(
            problem, result, tol=args.tol, data=args.data, measures=_measures(record), ranks=ranks,
            command=shlex.join(["adfs", *args.command_line]),
        )  # fmt: skip
        files.write(path, page.encode())

    writers = (
        (args.out, model.save), (args.trace, result.trace.to_csv), (args.timeline, save_timeline),
        (args.report, save_report),
    )  # fmt: skip
    failures: list[Exception] = []
    for path, save in writers:
        try:
            if path is not None:
                with files.writing(path) as place:
                    save(place)
        except output.OutputError as error:
            failures.append(error)
    return failures


def _measures(record: dict[str, Any]) -> dict[str, str]:
    """How well the model fits the training samples and those of ``--test``, as text."""
    found = {}
    for which, label in (("train", "training"), ("test", "test")):
        for name in record[which] or {}:
            title = name.replace("_", " ")
            found[f"{title}, {label}"] = _measure(record[which]).removeprefix(f"{title} ")
    return found


def exit_code(args: argparse.Namespace, result: Result, prints: bool = True) -> int:
    """The exit code, after a line with the reason if the run stopped early."""
    if result.status == "converged":
        return 0
    by_default = result.status == "max_iter" and args.max_iter is None
    message = (
        f"{result.status} at relative gap {result.gap_text}, before --tol {args.tol:g}; "
        f"{BEYOND_DEFAULT if by_default else WAYS_OUT[result.status]}."
    )
    code = NOT_CONVERGED
    if result.status == "interrupted" and result.signal is not None:
        code = 128 + result.signal
    return output.complain(message, code) if prints else code

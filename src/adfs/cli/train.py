"""`adfs train`: from samples to a certified model, its files and its summary."""

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from adfs.agreement import Alone, attempt
from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import MethodSetting, get_algorithm, require_schedule
from adfs.cli import files, output
from adfs.cli.main import SIGNALS
from adfs.cli.on_ranks import Finish, check_engine, run_on_engine
from adfs.cli.predict import measure, phrase, summed
from adfs.cli.problem_arguments import build_problem, load_all, shell_command
from adfs.data.shards import slice_rows
from adfs.engine.checkpointer import Checkpoints
from adfs.engine.execution import Execution, gather_executions
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import run_display
from adfs.engine.stopping import Stopping
from adfs.errors import DataError, ParameterError
from adfs.model import Model, Vector, finite
from adfs.mpi.communicator import Communicator
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.solver import Result, RunOptions
from adfs.solver import run as solve
from adfs.study.numbers import count, percent
from adfs.threads import one_blas_thread

ROWS_AT_ONCE = 1 << 14
Measured = dict[str, float | None]  # the measure that suits the loss, by its name
Record = dict[str, Any]
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


def run(args: argparse.Namespace) -> int:
    """Check, load, train, write, print: the same in one process and on ranks."""
    return run_on_engine(args, _train, resumable=args.checkpoint is not None)


def _train(
    args: argparse.Namespace, world: Communicator | None, stack: contextlib.ExitStack
) -> Finish:
    peers = world or Alone()
    first = peers.rank == 0
    attempt(peers, lambda: _check(args))
    start = attempt(
        peers, lambda: Model.load(args.warm_start) if args.warm_start and first else None
    )
    problem = build_problem(args, world)
    network, width = problem.network, problem.n_features
    test = attempt(network.peers, lambda: _load_test(args, width) if first else None)
    # Rank 0 reads the model; the others need no access to its file.
    theta = network.gather(
        attempt(network.peers, lambda: None if start is None else _start_from(start, args, width))
    )[0]
    # From here to the end: a late signal must not discard what other ranks have saved.
    interrupts = stack.enter_context(Interrupts(SIGNALS))
    result = _solve(args, problem, theta, interrupts)
    model = Model.from_result(result, problem, args.intercept, shell_command(args))
    fit = _on_training_data(problem, model)
    assert result.execution is not None
    ranks = [] if world is None else gather_executions(network, result.execution)
    facts = record(args, problem, result, model, fit, test)
    if first:
        return lambda: _finish(args, problem, result, model, facts, ranks)
    return lambda: _exit_code(args, result, prints=False)


def _check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a sample is read."""
    if args.algorithm != "auto":
        get_algorithm(args.algorithm)
        require_schedule(args.algorithm, args.schedule)
    Stopping(args.tol, args.max_iter, args.time_limit)
    Delays(tau=args.tau)
    check_engine(args)
    if args.timeline is not None and args.engine != "mpi":
        raise ParameterError(
            "--timeline shows what ranks did, so it needs --engine mpi; for idealized time use "
            "`adfs schedule timeline`."
        )
    if args.checkpoint is None and (args.resume or args.checkpoint_every is not None):
        flag = "--resume" if args.resume else "--checkpoint-every"
        raise ParameterError(f"{flag} needs the folder of the checkpoints; add --checkpoint DIR.")
    if args.timeline is not None:
        files.picture_kind("--timeline", args.timeline, or_trace=True)
    files.check_report(args.report)


def _load_test(args: argparse.Namespace, width: int) -> Any:
    """Rows and labels of ``--test``, None without; the training data has ``width`` columns."""
    if args.test is None:
        return None
    rows, labels = load_all(args.test)
    if labels is None:
        raise DataError(f"--test {args.test} must hold the labels y, but has none; save them too.")
    found, known = max(X.shape[1] for X in rows), width - args.intercept
    if found > known:
        raise DataError(
            f"--test {args.test} has {found} features but the training data has {known}; give "
            f"--n-features {found}, or check the files."
        )
    return rows, labels


def _start_from(model: Model, args: argparse.Namespace, width: int) -> Vector:
    """A model's coefficients in this problem's ``width`` columns; zero for new columns."""
    known = width - args.intercept
    if model.n_features > known:
        raise DataError(
            f"--warm-start {args.warm_start} has {model.n_features} features but the data has "
            f"{known}; give --n-features {model.n_features}, or another model."
        )
    theta = np.zeros(width)
    theta[: model.n_features] = model.coef[: model.n_features]
    if args.intercept and model.intercept:
        theta[-1] = model.coef[-1]
    return theta


def _solve(
    args: argparse.Namespace, problem: Problem, theta: Vector | None, interrupts: Interrupts
) -> Result:
    limits = Stopping(args.tol, args.max_iter, args.time_limit)
    setting = MethodSetting(
        args.parameters, args.tau, args.clock, Delays(tau=args.tau), args.seed, args.schedule
    )
    has_curve = args.trace is not None or args.report is not None
    checkpoints = None
    if args.checkpoint is not None:
        checkpoints = Checkpoints(
            args.checkpoint, args.checkpoint_every, args.resume, output.note, output.note
        )
    alone = args.engine == "local"  # mpiexec passes stderr on, so it is not a terminal
    wanted = not args.quiet and problem.network.rank == 0
    with run_display(wanted, has_bars=alone) as watcher:
        options = RunOptions(
            theta,
            args.evaluate_every or ("curve" if has_curve else None),
            (args.leaving.repeat,),
            checkpoints,
            args.timeout,
            keep_spans=args.timeline is not None or (not alone and args.report is not None),
            gather_thetas=args.out is not None or alone,
            watcher=watcher,
        )
        return solve(problem, args.algorithm, setting, limits, options, interrupts)


def record(
    args: argparse.Namespace, problem: Problem, result: Result, model: Model, train: Measured,
    test: Any,
) -> Record:  # fmt: skip
    """The run as plain values; unknown ones are None."""
    last, about_file = result.trace.last(), ("format", "adfs", "classes", "command")
    return {
        "status": result.status,
        **{name: value for name, value in model.meta.items() if name not in about_file},
        "relative_gap": finite(result.relative_gap),
        **output.values(result, "idealized_time", "wall_time", "setup_time", "resumed"),
        **{name: last[name] for name in ("n_prox", "n_grad", "n_comm", "bytes")},
        "consensus_error": finite(float(last["consensus_error"] or 0.0)),
        "C": finite(1.0 / problem.total_sigma),
        "train": train,
        "test": None if test is None else _on_test_data(model, *test),
        **output.values(args, "tol", "data", "tau", "clock", "out", "trace", "report"),
    }


def _on_training_data(problem: Problem, model: Model) -> Measured:
    """How well a model fits the samples of all nodes; called on all ranks."""
    with one_blas_thread():  # the same bits, however many cores a process may use
        found = [_on_node(problem, model, node) for node in problem.nodes.tolist()]
    totals = np.array([[total, n_samples] for _, total, n_samples in found])
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
    name, value = measure(model, np.concatenate([model.decision(X) for X in rows]), labels)
    return {name: finite(value)}


def _finish(
    args: argparse.Namespace, problem: Problem, result: Result, model: Model, facts: Record,
    ranks: Sequence[Execution],
) -> int:  # fmt: skip
    """Write all files asked for, even if one of them fails, and print; the exit code."""

    def save_timeline(path: str) -> None:
        # The suffix of the given name decides, also where a symbolic link has another one.
        kind = files.picture_kind("--timeline", args.timeline, or_trace=True)
        files.save_ranks(ranks, path, kind)

    def save_report(path: str) -> None:
        from adfs.study.report import train_page

        page = train_page(
            problem, result, tol=args.tol, data=args.data, measures=_measures(facts), ranks=ranks,
            command=shell_command(args),
        )  # fmt: skip
        files.write(path, page.encode())

    failures = files.write_each(
        (args.out, model.save),
        (args.trace, result.trace.to_csv),
        (args.timeline, save_timeline),
        (args.report, save_report),
    )
    if ranks:
        facts["ranks"] = ranks_record(ranks)
    text = _summary(args, facts, result.gap_text)
    style = "good" if result.status == "converged" else "warning"
    status = output.paint(result.status, style, sys.stdout)
    output.show(args, facts, status + text.removeprefix(result.status))
    for failure in failures:
        output.complain(failure, FAILED)
    return FAILED if failures else _exit_code(args, result)


def _exit_code(args: argparse.Namespace, result: Result, prints: bool = True) -> int:
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


def _summary(args: argparse.Namespace, facts: Record, gap_text: str) -> str:
    kinds = {"n_prox": "proximal steps", "n_grad": "sample gradients"}
    costs = [f"{facts[name]:,} {kind}" for name, kind in kinds.items() if facts[name]]
    costs.append(f"{facts['n_comm']:,} messages")
    intercept = " and an intercept" if facts["intercept"] else ""
    lines = [
        (facts["status"], f"relative gap {gap_text}, asked for {args.tol:g}"),
        ("objective", _number(facts["objective"], ".12g")),
        ("problem", f"{facts['loss']}, {facts['n_samples']:,} samples x {facts['n_features']:,} "
         f"features{intercept}, sigma {facts['sigma']:g} per node "
         f"(C = {_number(facts['C'], 'g')})"),
        ("training", _measure(facts["train"])),
        *([] if facts["test"] is None else [("test", _measure(facts["test"]))]),
        ("iterations", f"{facts['iterations']:,} ({', '.join(costs)})"),
        ("time", f"{facts['idealized_time']:,.6g} idealized, in proximal steps (tau = "
         f"{facts['tau']:g}, {facts['clock']}); {facts['wall_time']:.3g} s here, after "
         f"{facts['setup_time']:.3g} s of set-up"),
        ("parameters", _parameters_line(facts)),
    ]  # fmt: skip
    if facts.get("ranks"):
        lines.append(("ranks", ranks_line(facts["ranks"])))
    if facts["resumed"] is not None:
        lines.append(("resumed", f"continued from position {facts['resumed']}"))
    if written := [path for path in (args.out, args.trace, args.report, args.timeline) if path]:
        lines.append(("wrote", ", ".join(written)))
    return output.facts(lines)


def _parameters_line(facts: Record) -> str:
    """How the parameters were chosen and, where it is known, the predicted gain."""
    chosen = facts["parameters"]
    texts = {
        "rho": "rho {:.3g}",
        "p_comm": "p_comm {:.3g}",
        "gain_over_paper": "predicted {:.2f} times as fast as the paper's",
    }
    known = [text.format(chosen[name]) for name, text in texts.items() if chosen[name] is not None]
    return f"{facts['algorithm']}, {chosen['how']} on {facts['graph']}: {', '.join(known)}"


def _measure(values: Measured) -> str:
    ((name, value),) = values.items()
    return phrase(name, math.nan if value is None else value)


def _measures(facts: Record) -> dict[str, str]:
    """How well the model fits the training samples and those of ``--test``, as text."""
    found = {}
    for which, label in (("train", "training"), ("test", "test")):
        for name in facts[which] or {}:
            title = name.replace("_", " ")
            found[f"{title}, {label}"] = _measure(facts[which]).removeprefix(f"{title} ")
    return found


def _number(value: float | None, form: str) -> str:
    return "not finite" if value is None else format(value, form)


def ranks_line(ranks: list[Record]) -> str:
    """The number of ranks, and how they spent their time."""
    kinds = list(ranks[0]["seconds"])
    total = {kind: sum(each["seconds"][kind] for each in ranks) for kind in kinds}
    whole = sum(total.values()) or 1.0
    shares = [f"{kind} {percent(spent / whole)}" for kind, spent in total.items() if spent > 0.0]
    cut, most = ranks[0]["cut_edges"], max(each["peak_memory"] for each in ranks)
    between = f", {count(cut, 'edge')} between them" if len(ranks) > 1 else ""
    memory = f", at most {most / 1e6:,.0f} MB each" if most else ""
    return f"{len(ranks)}{between}{memory}: {', '.join(shares)}"


def ranks_record(ranks: Sequence[Execution]) -> list[Record]:
    names = ("rank", "nodes", "seconds", "cut_edges", "peak_memory", "bytes_sent")
    return [output.values(each, *names) for each in ranks]

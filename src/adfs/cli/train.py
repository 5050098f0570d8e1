"""`adfs train`: from samples to a certified model, its files and its summary."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adfs.agreement import Alone, attempt
from adfs.algorithms.base import MethodSetting
from adfs.cli import files, output
from adfs.cli.advice import advise, faster_method
from adfs.cli.main import SIGNALS
from adfs.cli.on_ranks import Finish, check_engine, run_on_engine
from adfs.cli.predict import judge
from adfs.cli.problem_arguments import (
    Loaded,
    load_all,
    load_problem,
    model_of,
    read_setting,
    shell_command,
)
from adfs.costs import Costs, agreed_costs
from adfs.engine.checkpointer import Checkpoints
from adfs.engine.execution import Execution, gather_executions
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import RunBars, RunLines, named, run_display
from adfs.engine.run_controller import Callback
from adfs.engine.run_identity import data_fingerprint
from adfs.engine.stopping import Stopping
from adfs.errors import DataError, ParameterError, shortened
from adfs.model import Model, Vector, finite, worst
from adfs.mpi.communicator import Communicator
from adfs.problem.finite_sum import Problem
from adfs.quality import Quality, phrase, quality_of_rows
from adfs.run import Result, RunOptions
from adfs.solver import run_named as solve
from adfs.storage import csv_bytes, json_value, write_whole
from adfs.study.numbers import count, percent

Record = dict[str, Any]
NOT_CONVERGED = 3
LEAST_TIME = 1e-9  # seconds
ABOUT_DATA = ("columns", "scaler")
TIMES = ("idealized_time", "wall_time", "setup_time")
COUNTS = ("n_prox", "n_grad", "n_comm", "bytes")

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
    loaded = load_problem(args, world)
    network = loaded.problem.network
    test = attempt(network.peers, lambda: _load_test(args, loaded) if first else None)
    # Rank 0 reads the model; the others need no access to its file.
    starts = network.gather(
        attempt(network.peers, lambda: None if start is None else _start_from(start, args, loaded))
    )[0]
    costs = agreed_costs(network.peers, args.costs)
    # From here to the end: a late signal must not discard what other ranks have saved.
    interrupts = stack.enter_context(Interrupts(SIGNALS))
    # mpiexec passes stderr on, so it is not a terminal.
    wanted, has_bars = not args.quiet and first, args.engine == "local"
    n_runs = loaded.n_problems if loaded.n_problems > 1 else None
    with run_display(wanted, n_runs, has_bars=has_bars) as display:
        results = _solve_each(args, loaded, costs, starts, interrupts, display)
    advise(args, loaded)  # not before: a run that is refused has one line
    model = model_of(args, loaded, results, loaded.problem)
    fit = quality_of_rows(
        model, loaded.problem, results, loaded.labels, with_curves=args.report is not None
    )
    result = worst(results)
    assert result.execution is not None
    ranks = [] if world is None else gather_executions(network, result.execution)
    digest = "" if args.report is None else data_fingerprint(loaded.problem, loaded.codes)
    facts = record(args, loaded, results, model, fit, test)
    problem = loaded.problem_of([each is result for each in results].index(True))
    if first:
        return lambda: _finish(args, problem, results, model, facts, ranks, digest)
    return lambda: _exit_code(args, result, prints=False)


def _check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a sample is read."""
    read_setting(args)
    Stopping(args.tol, args.max_iter, args.time_limit)
    check_engine(args)
    if args.timeline is not None and args.engine != "mpi":
        raise ParameterError(
            "--timeline shows what ranks did, so it needs --engine mpi; for idealized time use "
            "`adfs schedule timeline`."
        )
    if args.checkpoint == "":
        raise ParameterError("--checkpoint '' must name a folder; give one.")
    if args.checkpoint is None and (args.resume or args.checkpoint_every is not None):
        flag = "--resume" if args.resume else "--checkpoint-every"
        raise ParameterError(f"{flag} needs the folder of the checkpoints; add --checkpoint DIR.")
    if args.timeline is not None:
        files.picture_kind("--timeline", args.timeline, or_trace=True)
    files.check_report(args.report)


def _load_test(args: argparse.Namespace, loaded: Loaded) -> Any:
    """What `judge` takes of ``--test``, None without; at most the training data's columns."""
    if args.test is None:
        return None
    rows, labels = load_all(args.test, loaded.columns)
    if labels is None:
        raise DataError(f"--test {args.test} must hold the labels y, but has none; save them too.")
    found, known = max(X.shape[1] for X in rows), loaded.problem.n_features - args.intercept
    if found > known:
        raise DataError(
            f"--test {args.test} has {found} features but the training data has {known}; give "
            f"--n-features {found}, or check the files."
        )
    return rows, labels, args.report is not None


def _start_from(model: Model, args: argparse.Namespace, loaded: Loaded) -> Vector:
    """A model's coefficients in this problem's columns, one row per class; zero for new columns."""
    known = loaded.problem.n_features - args.intercept
    if model.n_features > known:
        raise DataError(
            f"--warm-start {args.warm_start} has {model.n_features} features but the data has "
            f"{known}; give --n-features {model.n_features}, or another model."
        )
    coef = np.atleast_2d(model.coef)
    if len(coef) != loaded.n_problems:
        raise DataError(
            f"--warm-start {args.warm_start} has {max(2, len(coef))} classes but the data has "
            f"{max(2, loaded.n_problems)}; take a model of the same classes."
        )
    starts = np.zeros((len(coef), loaded.problem.n_features))
    places: Any = slice(model.n_features)
    if loaded.columns is not None and model.columns is not None:
        names = loaded.columns.feature_names
        if missing := [name for name in model.feature_names if name not in names]:
            raise DataError(
                f"--warm-start {args.warm_start} has the feature {shortened(missing[0], 40)!r}, "
                "which the data has not; take another model."
            )
        places = [names.index(name) for name in model.feature_names]
    starts[:, places] = coef[:, : model.n_features]
    constants = coef[:, -1] if model.intercept else np.zeros(len(coef))
    if loaded.scaler is not None:
        starts[:, :known], constants = loaded.scaler.from_units(starts[:, :known], constants)
    if args.intercept:
        starts[:, -1] = constants
    return starts


def _solve_each(
    args: argparse.Namespace, loaded: Loaded, costs: Costs, starts: Vector | None,
    interrupts: Interrupts, display: RunBars | RunLines | None,
) -> list[Result]:  # fmt: skip
    """One result; with more than two classes one per class, after an interruption at its start."""
    results: list[Result] = []
    for number in range(loaded.n_problems):
        limits = Stopping(args.tol, args.max_iter, args.time_limit)
        folder = args.checkpoint
        if loaded.n_problems > 1:
            folder = folder and os.path.join(folder, f"class-{number}")
            if args.time_limit is not None:
                spent = sum(result.wall_time for result in results)
                limits = replace(limits, time_limit=max(args.time_limit - spent, LEAST_TIME))
        if results and results[-1].status == "interrupted":
            limits, folder = replace(limits, max_iter=0, time_limit=None), None
        start = None if starts is None else starts[number]
        problem, setting = loaded.problem_of(number), read_setting(args, costs)
        # Problems that differ in their labels only have the same parameters.
        if results and hasattr(results[-1].parameters, "belongs_to"):
            last = results[-1].parameters
            setting = setting._replace(rule=last) if last.belongs_to(problem) else setting
        key = "", args.seed
        watcher: Callback | None = display
        if loaded.classes is not None and loaded.n_problems > 1:
            key = f"class {shortened(str(loaded.classes[number]), 20)}", args.seed
            watcher = named(display, *key)
        results.append(_solve(args, problem, setting, limits, folder, start, interrupts, watcher))
        if display is not None:
            display.finish(key)
    return results


def _solve(
    args: argparse.Namespace, problem: Problem, setting: MethodSetting, limits: Stopping,
    folder: str | None, theta: Vector | None, interrupts: Interrupts, watcher: Any,
) -> Result:  # fmt: skip
    has_curve = args.trace is not None or args.report is not None
    checkpoints = None
    if folder is not None:
        checkpoints = Checkpoints(
            folder, args.checkpoint_every, args.resume, output.note, output.note
        )
    is_alone = args.engine == "local"
    options = RunOptions(
        theta,
        args.evaluate_every or ("curve" if has_curve else None),
        (args.leaving.repeat,),
        checkpoints,
        args.timeout,
        keep_spans=args.timeline is not None or (not is_alone and args.report is not None),
        gather_thetas=args.out is not None or is_alone,
        watcher=watcher,
    )
    return solve(problem, args.algorithm, setting, limits, options, interrupts)


def record(
    args: argparse.Namespace, loaded: Loaded, results: Sequence[Result], model: Model,
    train: Quality, test: Any,
) -> Record:  # fmt: skip
    """The run as plain values; unknown ones are None.

    With more than two classes, gap and status are those of the worst one, and costs are sums.
    """
    result, about_file = worst(results), ("format", "adfs", "classes", "command", *ABOUT_DATA)
    last = [each.trace.last() for each in results]
    facts = {
        "status": result.status,
        **{name: value for name, value in model.meta.items() if name not in about_file},
        "relative_gap": finite(result.relative_gap),
        **{name: sum(getattr(each, name) for each in results) for name in TIMES},
        "resumed": result.resumed,
        "choice": None if result.choice is None else result.choice._asdict(),
        "faster": faster_method(loaded.problem, args.tau, args.tol, result.costs)
        if args.algorithm == "auto"
        else None,
        "independent_from": result.independent_from,
        "theorem": result.theorem or None,
        **{name: sum(each[name] or 0 for each in last) for name in COUNTS},
        "consensus_error": finite(max(float(each["consensus_error"] or 0.0) for each in last)),
        "C": finite(1.0 / loaded.problem.total_sigma),
        "train": train,
        "test": None if test is None else judge(model, *test),
        **output.values(args, "tol", "data", "tau", "clock", "out", "trace", "report"),
    }
    if len(results) > 1:
        names = ("status", "objective", "duality_gap", "relative_gap", "iterations", "wall_time")
        facts["classes"] = [
            {"class": label, **json_value(output.values(each, *names))}
            for label, each in zip(model.meta["classes"], results, strict=True)
        ]
    return facts


def _finish(
    args: argparse.Namespace, problem: Problem, results: Sequence[Result], model: Model,
    facts: Record, ranks: Sequence[Execution], digest: str,
) -> int:  # fmt: skip
    """Write all files asked for, even if one of them fails, and print; the exit code.

    ``problem`` is the one of the worst class.
    """
    result = worst(results)

    def save_timeline(path: str) -> None:
        # The suffix of the given name decides, also where a symbolic link has another one.
        kind = files.picture_kind("--timeline", args.timeline, or_trace=True)
        files.save_ranks(ranks, path, kind)

    def save_report(path: str) -> None:
        from adfs.study.report import train_page

        page = train_page(
            problem, results, tol=args.tol, data=args.data, ranks=ranks, model=model,
            command=shell_command(args), fingerprint=digest,
            quality={"training": facts["train"], "test": facts["test"]},
        )  # fmt: skip
        files.write(path, page.encode())

    failures = files.write_each(
        (args.out, model.save),
        (args.coefficients, model.to_csv),
        (args.trace, lambda path: _save_traces(path, results, model.meta["classes"])),
        (args.timeline, save_timeline),
        (args.report, save_report),
    )
    if ranks:
        facts["ranks"] = ranks_record(ranks)
    text = _summary(args, facts, result.gap_text)
    style = "good" if result.status == "converged" else "warning"
    status = output.paint(result.status, style, sys.stdout)
    code = output.show(args, facts, status + text.removeprefix(result.status), failures)
    return code or _exit_code(args, result)


def _save_traces(path: str, results: Sequence[Result], labels: Sequence[Any]) -> None:
    """The trace; with more than two classes the traces of all, and a column that says which."""
    if len(results) == 1:
        results[0].trace.to_csv(path)
        return
    rows = [
        (*row, label)
        for label, each in zip(labels, results, strict=True)
        for row in zip(*each.trace.to_dict().values(), strict=True)
    ]
    write_whole(path, csv_bytes([(*results[0].trace.to_dict(), "class"), *rows]))


def _exit_code(args: argparse.Namespace, result: Result, prints: bool = True) -> int:
    """The exit code, after a line with the reason if the run stopped early."""
    if result.status == "converged":
        return 0
    by_default = result.status == "max_iter" and args.max_iter is None
    way_out = BEYOND_DEFAULT if by_default else WAYS_OUT[result.status]
    if result.status == "diverged" and "step=" in args.parameters:
        way_out = "give a smaller step in --parameters"
    message = (
        f"{result.status} at relative gap {result.gap_text}, before --tol {args.tol:g}; {way_out}."
    )
    code = NOT_CONVERGED
    if result.status == "interrupted" and result.signal is not None:
        code = 128 + result.signal
    return output.complain(message, code) if prints else code


def _summary(args: argparse.Namespace, facts: Record, gap_text: str) -> str:
    kinds = {"n_prox": "proximal steps", "n_grad": "sample gradients"}
    costs = [f"{facts[name]:,} {kind}" for name, kind in kinds.items() if facts[name]]
    costs.append(f"{facts['n_comm']:,} messages")
    intercept = " and an intercept" if args.intercept else ""
    measured = "" if args.costs == "paper" else f", {args.costs} costs"
    lines = [
        (facts["status"], f"relative gap {gap_text}, asked for {args.tol:g}{_of_classes(facts)}"),
        ("objective", _number(facts["objective"], ".12g")),
        ("problem", f"{facts['loss']}, {facts['n_samples']:,} samples x {facts['n_features']:,} "
         f"features{intercept}, sigma {facts['sigma']:g} per node "
         f"(C = {_number(facts['C'], 'g')})"),
        ("training", phrase(facts["train"])),
        *([] if facts["test"] is None else [("test", phrase(facts["test"]))]),
        ("iterations", f"{facts['iterations']:,} ({', '.join(costs)})"),
        ("time", f"{facts['idealized_time']:,.6g} idealized, in proximal steps (tau = "
         f"{facts['tau']:g}, {facts['clock']}{measured}); {facts['wall_time']:.3g} s here, after "
         f"{facts['setup_time']:.3g} s of set-up"),
        ("parameters", _parameters_line(facts)),
    ]  # fmt: skip
    if facts["choice"] is not None:
        lines.append(("choice", facts["choice"]["reason"]))
    if facts["faster"] is not None:
        lines.append(("faster", facts["faster"]))
    if facts.get("ranks"):
        lines.append(("ranks", ranks_line(facts["ranks"])))
    if facts["schedule"] == "stratified":
        lines.append(("schedule", _schedule_line(facts["independent_from"])))
    if facts["resumed"] is not None:
        lines.append(("resumed", f"continued from position {facts['resumed']}"))
    paths = (args.out, args.coefficients, args.trace, args.report, args.timeline)
    if written := [path for path in paths if path]:
        lines.append(("wrote", ", ".join(written)))
    return output.facts(lines)


def _schedule_line(switched: int | None) -> str:
    text = "stratified, which no theorem covers (--schedule shared: Theorem 1 or 4)"
    if switched is None:
        return text
    return (
        f"{text}; samples drawn independently from event {switched:,} on, because the gap did not "
        "fall as predicted"
    )


def _of_classes(facts: Record) -> str:
    classes = facts.get("classes", ())
    if not classes:
        return ""
    done = sum(each["status"] == "converged" for each in classes)
    return f"; the worst of {len(classes)} classes, each against the rest, {done} of them converged"


def _parameters_line(facts: Record) -> str:
    """How the parameters were chosen and, where it is known, the predicted gain."""
    chosen = facts["parameters"]
    texts = {
        "rho": "rho {:.3g}",
        "p_comm": "p_comm {:.3g}",
        "gain": "predicted {:.2f} times as fast as the better of paper and exact",
    }
    known = [text.format(chosen[name]) for name, text in texts.items() if chosen[name] is not None]
    return f"{facts['algorithm']}, {chosen['how']} on {facts['graph']}: {', '.join(known)}"


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

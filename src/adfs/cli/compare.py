"""`adfs compare`: the time that each algorithm needs, by accuracy.

In one process, suboptimality is measured against a certified optimum. With ``--engine mpi`` the
algorithms run one after another on the ranks, each to a relative duality gap.
"""

import argparse
import contextlib
import sys
import warnings
from pathlib import Path
from typing import Any

from adfs.agreement import attempt
from adfs.algorithms.base import MethodSetting
from adfs.cli import files, output
from adfs.cli.main import SIGNALS
from adfs.cli.on_ranks import Finish, check_engine, run_on_engine
from adfs.cli.problem_arguments import build_problem, mean_tau, read_delays, shell_command
from adfs.costs import agreed_costs
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import run_display
from adfs.engine.stopping import Stopping
from adfs.errors import ParameterError
from adfs.mpi.communicator import Communicator
from adfs.problem.certificate import certified_text
from adfs.problem.finite_sum import Problem
from adfs.study.compare import UnsavedWarning, compare, time_runs
from adfs.study.comparison import AccuracyTable, Comparison
from adfs.study.contenders import choose_contenders, left_out
from adfs.study.numbers import count, number
from adfs.study.run_folder import check_place

Record = dict[str, Any]
# Options of comparisons in one process, with the only value that --engine mpi takes.
IN_ONE_PROCESS = {"out": None, "report": None, "seeds": 1, "jobs": 1, "axis": "idealized_time"}
DEFAULTS = {"tol": 1e-8, "seeds": 1}
# What a suite leaves to the command line.
WITH_A_SUITE = {
    "suite",
    "algorithms",
    "seeds",
    "seed",
    "tol",
    "jobs",
    "out",
    "json",
    "quiet",
    "plugin",
    "config",
    "save_config",
}


def run(args: argparse.Namespace) -> int:
    if args.suite is not None:
        return _compare_suite(args)
    if args.data is None:
        raise ParameterError("DATA is missing; name a file or a data set, or give --suite.")
    given = {name: value for name, value in vars(args).items() if value is not None}
    args = argparse.Namespace(**{**vars(args), **DEFAULTS, **given})
    if args.engine == "mpi":
        return run_on_engine(args, _compare_on_ranks)
    _check(args)
    problem = build_problem(args)
    comparison = _compare(args, problem)

    def save_report(path: str) -> None:
        from adfs.study.report import compare_page

        command = shell_command(args)
        page = compare_page(problem, comparison, data=args.data, command=command, axis=args.axis)
        files.write(path, page.encode())

    failures = [*comparison.failures, *files.write_each((args.report, save_report))]
    code = output.show(args, _record(args, comparison), _summary(args, comparison), failures)
    if not comparison.interrupted:
        return code
    way = f"they are kept in {args.out}, give the same command again to continue"
    if args.out is None:
        way = "give --out DIR to keep finished runs and continue later"
    n_runs = len(comparison.config["algorithms"]) * len(comparison.config["seeds"])
    statuses = [record.status for record in comparison.records]
    message = f"{_interruption(statuses, n_runs)}; {way}."
    return output.complain(message, 128 + (comparison.signal or 2))


def _interruption(statuses: list[str], n_runs: int) -> str:
    finished = len(statuses) - statuses.count("interrupted")
    return f"interrupted with {finished} of {n_runs} runs finished"


def _check(args: argparse.Namespace, n_ranks: int = 1) -> None:
    """Everything that can be refused before a sample is read."""
    check_engine(args)
    for name, only in IN_ONE_PROCESS.items() if args.engine == "mpi" else ():
        if getattr(args, name) != only:
            raise ParameterError(
                f"--{name} {getattr(args, name)} is for comparisons in one process, which know the "
                "optimum; leave it out with --engine mpi, whose --json has all numbers."
            )
    if args.engine == "mpi" and args.delay_law != "constant":
        raise ParameterError(
            f"--delay-law {args.delay_law} is for --engine local: ranks time pairwise events with "
            "constant delays; leave it out."
        )
    _limits(args)
    read_delays(args)
    choose_contenders(args.algorithms, args.loss, n_ranks=n_ranks)
    if args.out is not None:
        check_place(args.out)
    files.check_report(args.report)


def _limits(args: argparse.Namespace) -> Stopping:
    measure = "suboptimality" if args.engine == "local" else "duality_gap"
    return Stopping(args.tol, args.max_iter, args.time_limit, args.clock_limit, measure)


def _compare(args: argparse.Namespace, problem: Problem) -> Comparison:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsavedWarning)  # printed at the end, as an error
        return compare(
            problem, args.algorithms, args.tol, mean_tau(args), args.clock,
            read_delays(args), args.seed, args.seeds,
            args.clock_limit, args.time_limit, args.max_iter, args.jobs, args.out,
            progress=not args.quiet, callback=args.leaving.repeat,
            signals=SIGNALS, axis=args.axis, command=shell_command(args), costs=args.costs,
        )  # fmt: skip


def _record(args: argparse.Namespace, comparison: Comparison) -> Record:
    return {
        "status": "interrupted" if comparison.interrupted else "finished",
        "axis": args.axis,
        "table": comparison.table(axis=args.axis).to_dict(),
        **comparison.to_dict(),
        "config": comparison.config,
        **output.values(args, "data", "out", "report"),
    }


def _summary(args: argparse.Namespace, comparison: Comparison) -> str:
    text = _table(comparison.table(axis=args.axis)) if comparison.records else ""
    if args.report is not None:
        text += f"report: {args.report}\n"
    if args.out is None:
        return text
    reused = sum(record.reused for record in comparison.records)
    taken = f", {reused} of {len(comparison.records)} runs taken from there" if reused else ""
    text += f"results: {args.out}{taken}\n"
    return text if files.have_matplotlib() else f"{text}no picture: {files.MISSING}\n"


def _table(table: AccuracyTable) -> str:
    """The table, or one block per row where the terminal is too narrow for it."""
    text, room = str(table), output.columns(sys.stdout)
    lines = text.splitlines()[1 : len(table) + 2]
    if room is None or max(map(len, lines)) <= room:
        return text
    notes = "".join(f"{note}\n" for note in table.notes)
    return f"{table.title}\n\n{output.table(table.headers, table.texts)}\n{notes}"


def _compare_on_ranks(
    args: argparse.Namespace, world: Communicator | None, stack: contextlib.ExitStack
) -> Finish:
    assert world is not None  # --engine local is another comparison
    attempt(world, lambda: _check(args, world.size))
    problem = build_problem(args, world)
    network, kind = problem.network, (problem.loss.name, problem.n_features, world.size)
    contenders = attempt(network.peers, lambda: choose_contenders(args.algorithms, *kind))
    setting = attempt(network.peers, lambda: _setting(args, problem))
    setting = setting._replace(costs=agreed_costs(network.peers, args.costs))
    limits, prints = _limits(args), world.rank == 0
    # From here to the end: a late signal must not discard finished runs.
    interrupts = stack.enter_context(Interrupts(SIGNALS))
    pending = [(contender, args.seed) for contender in contenders]
    with run_display(prints and not args.quiet, has_bars=False) as watcher:
        runs = time_runs(
            problem, pending, setting, limits, args.timeout, interrupts, args.leaving.repeat,
            watcher,
        )  # fmt: skip
    absent = {} if args.algorithms else left_out(contenders, *kind)
    record = _record_on_ranks(args, problem, runs, absent)
    record["costs"] = setting.costs.to_dict()

    def finish() -> int:
        if prints:
            output.show(args, record, _table_of_seconds(record))
        if record["status"] != "interrupted":
            return 0
        code = 128 + (runs[-1]["signal"] or 2)
        way = "name the others in --algorithms to run them"
        statuses = [run["status"] for run in runs]
        message = f"{_interruption(statuses, len(contenders))}; {way}."
        return output.complain(message, code) if prints else code

    return finish


def _setting(args: argparse.Namespace, problem: Problem) -> MethodSetting:
    delays = read_delays(args)
    delays.nominal(problem.topology.n_edges, problem.n_nodes)  # refuses too many or too few
    return MethodSetting(tau=mean_tau(args), clock=args.clock, delays=delays)


def _record_on_ranks(
    args: argparse.Namespace, problem: Problem, runs: list[Record], absent: dict[str, str]
) -> Record:
    converged = [run for run in runs if run["status"] == "converged"]
    fastest = min(converged, key=lambda run: run["wall_time"], default={"label": None})
    options = ("tol", "time_limit", "clock_limit", "max_iter", "tau", "clock", "seed", "data")
    cut = any(run["status"] == "interrupted" for run in runs)
    return {
        "status": "interrupted" if cut else "finished",
        "engine": "mpi",
        "n_ranks": problem.network.size,
        "fastest": fastest["label"],
        "runs": runs,
        "left_out": absent,
        "measure": "relative duality gap",
        "loss": problem.loss.name,
        "sigma": float(problem.sigma[0]),
        "graph": problem.topology.name,
        **output.values(problem, "n_nodes", "n_samples", "n_features"),
        **output.values(args, *options),
        "command": shell_command(args),
    }


def _compare_suite(args: argparse.Namespace) -> int:
    from adfs.study.suite import SuiteResult, run_suite

    for option in args.command.options:
        value = getattr(args, option.dest)
        if option.dest not in WITH_A_SUITE and value not in (None, False, option.kind.default):
            raise ParameterError(
                f"{option.flag or option.metavar} is fixed by --suite {args.suite}; leave it out."
            )
    if args.out is not None:
        check_place(args.out)

    def show(result: SuiteResult) -> None:
        if not (args.json or args.quiet):
            print(f"{result}", flush=True)

    with Interrupts(SIGNALS) as interrupts:
        results = run_suite(
            args.suite, args.algorithms, args.tol or 1e-6, args.seeds or 3, args.seed, args.jobs,
            args.out, progress=not args.quiet, interrupts=interrupts, after=show,
        )  # fmt: skip
    record = {"suite": args.suite, "problems": [result.to_dict() for result in results]}
    failures = []
    if args.out is not None:
        page = "\n".join(result.to_markdown() for result in results)
        failures = files.write_each(
            (str(Path(args.out, f"{args.suite}.md")), lambda path: files.write(path, page.encode()))
        )
    text = "" if args.out is None else f"results: {args.out}\n"
    code = output.show(args, record, text, failures)
    if interrupts.received is not None:
        message = f"interrupted with {len(results)} problems finished"
        return output.complain(message, 128 + interrupts.received)
    return code


HEADERS = (
    "algorithm", "seconds", "set-up", "iterations", "idealized time", "messages", "relative gap",
    "status",
)  # fmt: skip


def _table_of_seconds(record: Record) -> str:
    gap = ("relative_gap", "duality_gap", "objective_at_zero")
    rows = [
        [
            run["label"], f"{run['wall_time']:.3g}", f"{run['setup_time']:.3g}",
            f"{run['iterations']:,}", number(run["idealized_time"]), f"{run['n_comm']:,}",
            certified_text(*(run[name] for name in gap)),
            run["status"] + (", fastest" if run["label"] == record["fastest"] else ""),
        ]
        for run in record["runs"]
    ]  # fmt: skip
    title = (
        f"seconds on {count(record['n_ranks'], 'rank')}, until the relative duality gap is "
        f"{record['tol']:g}\n"
    )
    notes = [f"{name} left out: {reason}\n" for name, reason in record["left_out"].items()]
    return title + output.table(HEADERS, rows, right=range(1, 7)) + "".join(notes)

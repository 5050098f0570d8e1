"""`adfs compare`: the time that each algorithm needs, by accuracy.

In one process, suboptimality is measured against a certified optimum. With ``--engine mpi`` the
algorithms run one after another on the ranks, each to a relative duality gap.
"""

import argparse
import contextlib
import shlex
import sys
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from adfs.cli import files, on_ranks, options, output, plain_progress
from adfs.cli.arguments import Command, mean_tau, read_delays
from adfs.cli.early_signals import SIGNALS
from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.mpi.communicator import Communicator
    from adfs.problem.finite_sum import Problem
    from adfs.study.comparison import AccuracyTable, Comparison
    from adfs.study.rank_times import TimedRun

FAILED = 1
# Options of comparisons in one process, with the only value that --engine mpi takes.
IN_ONE_PROCESS = {"out": None, "report": None, "seeds": 1, "jobs": 1, "axis": "idealized_time"}

EXAMPLES = """\
examples:
  adfs compare breast-cancer --nodes 9 --sigma 0.1 --algorithms adfs,adfs:paper
  adfs compare breast-cancer --algorithms adfs,msda,dsba:theory --seeds 3 --jobs 2 --out results
  adfs compare breast-cancer --nodes 4 --speed 1,1,1,10 --delay-law pareto --delay-shape 1.5
  mpiexec -n 2 adfs compare breast-cancer --engine mpi --algorithms adfs,newton,lbfgs --tol 1e-6

Suboptimality is measured against an optimum that is certified by its duality gap, never against
the best curve. In the table, '> x' means that a run ended at x without reaching the accuracy, and
'-' that runs stopped at --tol before it. With --out, finished runs are kept: the same command
continues after an interruption, and computes nothing twice.

With --engine mpi the algorithms run one after another on the ranks that mpiexec started, each to
the relative duality gap --tol: no rank has all rows, so the optimum is not known. The table shows
the seconds of each run and of its set-up. Exit codes: 0 done, whether or not tol was reached, 2 bad
input, 1 the program or its environment failed, 130 and 143 interrupted."""


def run(args: argparse.Namespace) -> int:
    """Check, load, compare, print."""
    if args.engine == "mpi":
        return on_ranks.run_on_engine(
            args,
            lambda world, stack: _compare_on_ranks(args, world, stack),
            lambda outcome: _finish_on_ranks(args, outcome),
        )
    from adfs.cli.problem_arguments import build_problem

    _check(args)
    problem = build_problem(args)
    comparison = _compare(args, problem)
    failures = [*comparison.failures, *_save_report(args, problem, comparison)]
    if args.json:
        output.emit_json(_record(args, comparison))
    elif not args.quiet:
        output.emit(_summary(args, comparison))
    for failure in failures:
        output.complain(failure, FAILED)
    if comparison.interrupted:
        return output.complain(_how_to_continue(args, comparison), 128 + (comparison.signal or 2))
    return FAILED if failures else 0


def _command(args: argparse.Namespace) -> str:
    return shlex.join(["adfs", *args.command_line])


def _check(args: argparse.Namespace, n_ranks: int = 1) -> None:
    """Everything that can be refused before a sample is read."""
    from adfs.engine.stopping import Stopping
    from adfs.study.contenders import choose_contenders
    from adfs.study.run_folder import check_place

    on_ranks.check_engine(args)
    if args.engine == "mpi":
        _refuse_on_ranks(args)
    Stopping(args.tol, args.max_iter, args.time_limit, args.clock_limit, _measure(args))
    read_delays(args)
    choose_contenders(args.algorithms, args.loss, n_ranks=n_ranks)
    if args.out is not None:
        check_place(args.out)
    files.check_report(args.report)


def _measure(args: argparse.Namespace) -> str:
    return "suboptimality" if args.engine == "local" else "duality_gap"


def _refuse_on_ranks(args: argparse.Namespace) -> None:
    """Refuse options of comparisons in one process."""
    for name, default in IN_ONE_PROCESS.items():
        if getattr(args, name) != default:
            raise ParameterError(
                f"--{name} {getattr(args, name)} is for comparisons in one process, which know the "
                "optimum; leave it out with --engine mpi, whose --json has all numbers."
            )
    if args.delay_law != "constant":
        raise ParameterError(
            f"--delay-law {args.delay_law} is for --engine local: ranks time pairwise events with "
            "constant delays; leave it out."
        )


def _compare(args: argparse.Namespace, problem: Any) -> "Comparison":
    from adfs.engine.stopping import Stopping
    from adfs.study.compare import UnsavedWarning, compare

    limits = Stopping(args.tol, args.max_iter, args.time_limit, measure="suboptimality")
    lines = plain_progress.ProgressLines(limits) if plain_progress.are_lines_wanted(args) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsavedWarning)  # printed at the end, as an error
        return compare(
            problem, args.algorithms, args.tol, mean_tau(args), args.clock,
            read_delays(args), args.seed, args.seeds,
            args.clock_limit, args.time_limit, args.max_iter, args.jobs, args.out,
            progress=False if args.quiet else None,
            callback=plain_progress.both(args.leaving.repeat, lines),
            signals=SIGNALS, axis=args.axis, command=_command(args),
        )  # fmt: skip


def _save_report(
    args: argparse.Namespace, problem: "Problem", comparison: "Comparison"
) -> list[str]:
    """Write the page, if one is wanted; errors as messages."""
    if args.report is None:
        return []
    from adfs.study.report import compare_page

    page = compare_page(problem, comparison, data=args.data, command=_command(args), axis=args.axis)
    try:
        files.write(args.report, page.encode())
    except output.OutputError as error:
        return [str(error)]
    return []


def _record(args: argparse.Namespace, comparison: "Comparison") -> dict[str, Any]:
    """The comparison as plain values."""
    return {
        "status": "interrupted" if comparison.interrupted else "finished",
        "axis": args.axis,
        "table": comparison.table(axis=args.axis).to_dict(),
        **comparison.to_dict(),
        "config": comparison.config,
        "data": args.data,
        "out": args.out,
        "report": args.report,
    }


def _summary(args: argparse.Namespace, comparison: "Comparison") -> str:
    """The table, and where the files are."""
    text = _table(comparison.table(axis=args.axis)) if comparison.records else ""
    if args.report is not None:
        text += f"report: {args.report}\n"
    if args.out is None:
        return text
    reused = sum(record.reused for record in comparison.records)
    taken = f", {reused} of {len(comparison.records)} runs taken from there" if reused else ""
    text += f"results: {args.out}{taken}\n"
    return text if files.have_matplotlib() else f"{text}no picture: {files.MISSING}\n"


def _table(table: "AccuracyTable") -> str:
    """The table, or one block per row where the terminal is too narrow for it."""
    text, room = str(table), output.columns(sys.stdout)
    lines = text.splitlines()[1 : len(table) + 2]
    if room is None or max(map(len, lines)) <= room:
        return text
    notes = "".join(f"{note}\n" for note in table.notes)
    return f"{table.title}\n\n{output.table(table.headers, table.texts)}\n{notes}"


def _how_to_continue(args: argparse.Namespace, comparison: "Comparison") -> str:
    finished = sum(record.status != "interrupted" for record in comparison.records)
    total = len(comparison.config["algorithms"]) * len(comparison.config["seeds"])
    if args.out is None:
        way = "give --out DIR to keep finished runs and continue later"
    else:
        way = f"they are kept in {args.out}, give the same command again to continue"
    return f"interrupted with {finished} of {total} runs finished; {way}."


class CompareOutcome(NamedTuple):
    """The result of a rank when all algorithms have run; only rank 0 prints it."""

    rank: int
    record: dict[str, Any]
    runs: "list[TimedRun]"
    n_contenders: int


def _compare_on_ranks(
    args: argparse.Namespace, world: "Communicator | None", stack: contextlib.ExitStack
) -> CompareOutcome:
    from adfs.agreement import attempt
    from adfs.cli.problem_arguments import build_problem
    from adfs.engine.interrupts import Interrupts
    from adfs.engine.stopping import Stopping
    from adfs.study.contenders import choose_contenders, left_out
    from adfs.study.rank_times import time_runs

    assert world is not None  # --engine local is another comparison
    attempt(world, lambda: _check(args, world.size))
    problem = build_problem(args, world)
    network, kind = problem.network, (problem.loss.name, problem.n_features, world.size)
    contenders = attempt(network.peers, lambda: choose_contenders(args.algorithms, *kind))
    setting = attempt(network.peers, lambda: _setting(args, problem))
    limits = Stopping(args.tol, args.max_iter, args.time_limit, args.clock_limit)
    lines = None if args.quiet or world.rank else plain_progress.ProgressLines(limits)
    # From here to the end: a late signal must not discard finished runs.
    interrupts = stack.enter_context(Interrupts(SIGNALS))
    runs = time_runs(
        problem, contenders, setting, limits, args.timeout, interrupts,
        plain_progress.both(args.leaving.repeat, lines),
    )  # fmt: skip
    absent = {} if args.algorithms else left_out(contenders, *kind)
    record = _record_on_ranks(args, problem, runs, absent)
    return CompareOutcome(world.rank, record, runs, len(contenders))


def _setting(args: argparse.Namespace, problem: "Problem") -> Any:
    from adfs.algorithms.base import MethodSetting

    delays = read_delays(args)
    delays.nominal(problem.topology.n_edges, problem.n_nodes)  # refuses too many or too few
    return MethodSetting(tau=mean_tau(args), clock=args.clock, delays=delays, seed=args.seed)


def _record_on_ranks(
    args: argparse.Namespace, problem: "Problem", runs: "list[TimedRun]", absent: dict[str, str]
) -> dict[str, Any]:
    """The comparison as plain values."""
    from adfs.study.rank_times import fastest

    cut = any(run.status == "interrupted" for run in runs)
    names = ("tol", "time_limit", "clock_limit", "max_iter", "tau", "clock", "seed", "data")
    return {
        "status": "interrupted" if cut else "finished",
        "engine": "mpi",
        "n_ranks": problem.network.size,
        "fastest": fastest(runs),
        "runs": [run._asdict() for run in runs],
        "left_out": absent,
        "measure": "relative duality gap",
        "loss": problem.loss.name,
        "sigma": float(problem.sigma[0]),
        "graph": problem.topology.name,
        "n_nodes": problem.n_nodes,
        "n_samples": problem.n_samples,
        "n_features": problem.n_features,
        **{name: getattr(args, name) for name in names},
        "command": _command(args),
    }


def _finish_on_ranks(args: argparse.Namespace, outcome: CompareOutcome) -> int:
    prints, runs = outcome.rank == 0, outcome.runs
    if prints and args.json:
        output.emit_json(outcome.record)
    elif prints and not args.quiet:
        output.emit(_table_of_seconds(outcome.record, runs))
    if outcome.record["status"] != "interrupted":
        return 0
    finished = sum(run.status != "interrupted" for run in runs)
    message = (
        f"interrupted with {finished} of {outcome.n_contenders} runs finished; name the others in "
        "--algorithms to run them."
    )
    code = 128 + (runs[-1].signal or 2)
    return output.complain(message, code) if prints else code


HEADERS = (
    "algorithm", "seconds", "set-up", "iterations", "idealized time", "messages", "relative gap",
    "status",
)  # fmt: skip


def _table_of_seconds(record: dict[str, Any], runs: "list[TimedRun]") -> str:
    """One row per run, and the algorithms that did not take part."""
    from adfs.problem.certificate import certified_text
    from adfs.study.numbers import number

    rows = [
        [
            run.label, f"{run.wall_time:.3g}", f"{run.setup_time:.3g}", f"{run.iterations:,}",
            number(run.idealized_time), f"{run.n_comm:,}",
            certified_text(run.relative_gap, run.duality_gap, run.objective_at_zero),
            run.status + (", fastest" if run.label == record["fastest"] else ""),
        ]
        for run in runs
    ]  # fmt: skip
    title = (
        f"seconds on {record['n_ranks']} rank{'s' * (record['n_ranks'] > 1)}, until the relative "
        f"duality gap is {record['tol']:g}\n"
    )
    notes = [f"{name} left out: {reason}\n" for name, reason in record["left_out"].items()]
    return title + output.table(HEADERS, rows, right=range(1, 7)) + "".join(notes)


COMMAND = Command(
    "compare",
    "compare algorithms on one problem, by time to accuracy",
    "Run several algorithms on one problem and one network, and print how long each takes to come "
    "within 1e-2, 1e-4, 1e-6 and 1e-8 of the certified optimum: in the idealized time of the "
    "network, or in iterations, passes, messages, bytes or seconds.",
    EXAMPLES,
    run,
    (options.DATA,),
    options.COMPARE,
)

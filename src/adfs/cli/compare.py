"""`adfs compare`: how long each algorithm takes to come how close to the optimum."""

import argparse
import shlex
import sys
import warnings
from typing import TYPE_CHECKING, Any

from adfs.cli import (
    delays,
    html_report,
    layout,
    options,
    output,
    pictures,
    progress,
    ranks,
    terminal,
)
from adfs.cli.kinds import Whole, names
from adfs.cli.parser import add_command
from adfs.cli.settings import add_settings
from adfs.cli.signals import SIGNALS

if TYPE_CHECKING:
    from adfs.bench.comparison import Comparison
    from adfs.bench.table import Table

FAILED = 1

EXAMPLE = """\
examples:
  adfs compare breast-cancer --nodes 9 --sigma 0.1 --algorithms adfs,adfs:paper
  adfs compare breast-cancer --algorithms adfs,msda,dsba:theory --seeds 3 --jobs 2 --out results
  adfs compare breast-cancer --nodes 4 --speed 1,1,1,10 --delay-law pareto --delay-shape 1.5
  mpiexec -n 2 adfs compare breast-cancer --engine mpi --algorithms adfs,newton,lbfgs --tol 1e-6

Suboptimality is measured against an optimum that is certified by its duality gap, never against
the best curve. In the table, '> x' says that a run ended at x without reaching the accuracy, and
'-' that runs stopped at --tol before trying. With --out, what is finished is kept: the same
command again goes on where it was interrupted, and computes nothing twice.

With --engine mpi the algorithms run one after another on the ranks that mpiexec started, each to
the relative duality gap --tol: no rank has all rows, so none knows the optimum. The table has the
seconds that each took here, and its set-up. Exit codes: 0 done, whether or not tol was reached, 2
bad input, 1 the program or its surroundings failed, 130 and 143 interrupted."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands, "compare", run, help="compare algorithms on one problem, by time to accuracy",
        description="Run several algorithms on one problem and one network, and print how long "
        "each takes to come within 1e-2, 1e-4, 1e-6 and 1e-8 of the certified optimum: in the "
        "idealized time of the network, or in iterations, passes, messages, bytes or seconds.",
        epilog=EXAMPLE,
    )  # fmt: skip
    parser.add_argument("data", metavar="DATA", help=options.DATA_HELP)
    options.add_problem(parser)
    delays.add_delays(parser)
    _add_runs(parser)
    _add_files(parser)
    add_settings(parser)


def _add_runs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the runs")
    group.add_argument(
        "--algorithms",
        type=names,
        metavar="A,B,C",
        help="names from `adfs info`, with a rule for the parameters as in dsba:theory if it is "
        "not to be tuned (default: all that take the problem; the table says which do not)",
    )
    group.add_argument(
        "--seeds",
        type=Whole(1),
        default=1,
        metavar="K",
        help="number of seeds, from --seed on; the table shows medians (default 1)",
    )
    options.add_seed(group)
    group.add_argument(
        "--tol",
        type=float,
        default=1e-8,
        metavar="TOL",
        help="stop a run at this suboptimality, mean over nodes of F(theta_i) - F*, over "
        "max(1, |F*|); with --engine mpi, at this relative duality gap (default 1e-8)",
    )
    group.add_argument(
        "--clock-limit",
        type=float,
        metavar="X",
        help="most idealized time of a run (default: 5 times what adfs needs, if it takes part; no "
        "limit with --engine mpi)",
    )
    group.add_argument(
        "--time-limit",
        type=float,
        metavar="S",
        help="most seconds of a run in its loop (default: no limit)",
    )
    group.add_argument(
        "--max-iter",
        type=Whole(0),
        metavar="N",
        help="most events of a run, or rounds of a synchronous method (default: well beyond what "
        "theory needs for --tol)",
    )
    group.add_argument(
        "--jobs",
        type=Whole(1),
        default=1,
        metavar="N",
        help="runs at a time; wall times are only clean with 1, since runs that share a machine "
        "slow each other down; all else is the same to the bit (default 1)",
    )
    ranks.add_ranks(group)


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files and words")
    group.add_argument(
        "--out",
        metavar="DIR",
        help="folder for config, traces, tables and pictures; finished runs in it are not "
        "computed again",
    )
    html_report.add_report(group)
    group.add_argument(
        "--axis",
        choices=options.AXES,
        default="idealized_time",
        metavar="NAME",
        help=f"of table and picture: {', '.join(options.AXES)} (default idealized_time)",
    )
    options.add_json(group)
    group.add_argument("--quiet", action="store_true", help="no progress and no table")


def run(args: argparse.Namespace) -> int:
    """Check, load, compare, print."""
    if args.engine == "mpi":
        from adfs.cli import compare_ranks

        return compare_ranks.run(args)
    from adfs.cli.data import build_problem

    _check(args)
    problem = build_problem(args)
    comparison = _compare(args, problem)
    unwritten = html_report.save_comparison(args, problem, comparison)
    if args.json:
        output.emit_json(_record(args, comparison))
    elif not args.quiet:
        output.emit(_summary(args, comparison))
    for failure in (*comparison.failures, *unwritten):
        output.complain(failure, FAILED)
    if comparison.interrupted:
        return output.complain(_how_to_go_on(args, comparison), 128 + (comparison.signal or 2))
    return FAILED if comparison.failures or unwritten else 0


def _check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a sample is read."""
    from adfs.bench.contenders import choose_contenders
    from adfs.bench.folder import check_place
    from adfs.runtime.stopping import Stopping

    ranks.check_engine(args)
    Stopping(args.tol, args.max_iter, args.time_limit, args.clock_limit, "suboptimality")
    delays.read_delays(args)
    choose_contenders(args.algorithms, args.loss)
    if args.out is not None:
        check_place(args.out)
    html_report.check_comparison(args)


def _compare(args: argparse.Namespace, problem: Any) -> "Comparison":
    from adfs.bench.compare import UnsavedWarning, compare
    from adfs.runtime.stopping import Stopping

    limits = Stopping(args.tol, args.max_iter, args.time_limit, measure="suboptimality")
    lines = progress.RunLines(limits) if progress.are_lines_wanted(args) else None
    look = progress.both(args.leaving.repeat, lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsavedWarning)  # said at the end, as complaints
        return compare(
            problem, args.algorithms, args.tol, delays.mean_tau(args), args.clock,
            delays.read_delays(args), args.seed, args.seeds,
            args.clock_limit, args.time_limit, args.max_iter, args.jobs, args.out,
            progress=False if args.quiet else None, callback=look,
            signals=SIGNALS, axis=args.axis, command=shlex.join(["adfs", *args.command_line]),
        )  # fmt: skip


def _record(args: argparse.Namespace, comparison: "Comparison") -> dict[str, Any]:
    """Everything about the comparison in plain values."""
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
    """The table, and where the rest is."""
    text = _table(comparison.table(axis=args.axis)) if comparison.records else ""
    if args.report is not None:
        text += f"report: {args.report}\n"
    if args.out is None:
        return text
    reused = sum(record.reused for record in comparison.records)
    taken = f", {reused} of {len(comparison.records)} runs taken from there" if reused else ""
    text += f"results: {args.out}{taken}\n"
    if not pictures.have_matplotlib():
        text += f"no picture: {pictures.MISSING}\n"
    return text


def _table(table: "Table") -> str:
    """The table as it prints itself, or a block a row where a terminal is too narrow for it."""
    text, room = str(table), terminal.columns(sys.stdout)
    title, *lines = text.splitlines()
    if room is None or max(map(len, lines[: len(table) + 1])) <= room:
        return text
    headers = ["algorithm", *(f"{accuracy:.0e}" for accuracy in table.accuracies), "status"]
    rows = [[row.label, *(cell.text for cell in row.cells), row.status] for row in table]
    notes = "".join(f"{note}\n" for note in table.notes)
    return f"{title}\n\n{layout.table(headers, rows)}\n{notes}"


def _how_to_go_on(args: argparse.Namespace, comparison: "Comparison") -> str:
    finished = sum(record.status != "interrupted" for record in comparison.records)
    total = len(comparison.config["algorithms"]) * len(comparison.config["seeds"])
    if args.out is None:
        way = "give --out DIR to keep what is finished and go on later"
    else:
        way = f"they are kept in {args.out}, give the same command again to go on"
    return f"interrupted with {finished} of {total} runs finished; {way}."

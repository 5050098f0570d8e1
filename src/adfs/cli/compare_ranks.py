"""`adfs compare --engine mpi`: seconds of each algorithm on ranks, to a relative duality gap."""

import argparse
import contextlib
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from adfs.cli import delays, layout, output, progress, ranks
from adfs.cli.signals import SIGNALS
from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.bench.timing import TimedRun
    from adfs.launch.world import World
    from adfs.problems.finite_sum import Problem

IN_ONE_PROCESS = {"out": None, "report": None, "seeds": 1, "jobs": 1, "axis": "idealized_time"}


class Outcome(NamedTuple):
    """What a rank has when all algorithms have run; only the first one prints."""

    rank: int
    record: dict[str, Any]
    runs: "list[TimedRun]"
    n_contenders: int


def run(args: argparse.Namespace) -> int:
    """Check, load, run one after another, print."""
    return ranks.run_on_engine(
        args,
        lambda world, stack: _compare(args, world, stack),
        lambda outcome: _finish(args, outcome),
    )


def _check(args: argparse.Namespace, n_ranks: int) -> None:
    """Everything that can be refused before a sample is read."""
    from adfs.bench.contenders import choose_contenders
    from adfs.runtime.stopping import Stopping

    ranks.check_engine(args)
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
    Stopping(args.tol, args.max_iter, args.time_limit, args.clock_limit)
    delays.read_delays(args)
    choose_contenders(args.algorithms, args.loss, n_ranks=n_ranks)


def _compare(
    args: argparse.Namespace, world: "World | None", stack: contextlib.ExitStack
) -> Outcome:
    from adfs.bench.contenders import choose_contenders, left_out
    from adfs.bench.timing import time_runs
    from adfs.cli.data import build_problem
    from adfs.launch.peers import attempt
    from adfs.runtime.signals import Interrupts
    from adfs.runtime.stopping import Stopping

    assert world is not None  # --engine local is another comparison
    attempt(world, lambda: _check(args, world.size))
    problem = build_problem(args, world)
    network, kind = problem.network, (problem.loss.name, problem.n_features, world.size)
    contenders = network.attempt(lambda: choose_contenders(args.algorithms, *kind))
    setting = network.attempt(lambda: _setting(args, problem))
    limits = Stopping(args.tol, args.max_iter, args.time_limit, args.clock_limit)
    lines = None if args.quiet or world.rank else progress.RunLines(limits)
    # From here to the end: a signal that comes late must not cost what is finished.
    interrupts = stack.enter_context(Interrupts(SIGNALS))
    runs = time_runs(
        problem, contenders, setting, limits, args.timeout, interrupts,
        progress.both(args.leaving.repeat, lines),
    )  # fmt: skip
    absent = {} if args.algorithms else left_out(contenders, *kind)
    record = _record(args, problem, runs, absent)
    return Outcome(world.rank, record, runs, len(contenders))


def _setting(args: argparse.Namespace, problem: "Problem") -> Any:
    from adfs.algorithms.base import Setting

    found = delays.read_delays(args)
    found.nominal(problem.topology.n_edges, problem.n_nodes)  # refuses too many or too few
    tau = delays.mean_tau(args)
    return Setting(tau=tau, clock=args.clock, delays=found, seed=args.seed)


def _record(
    args: argparse.Namespace, problem: "Problem", runs: "list[TimedRun]", absent: dict[str, str]
) -> dict[str, Any]:
    """Everything about the comparison in plain values."""
    from adfs.bench.timing import fastest

    cut = any(run.status == "interrupted" for run in runs)
    return {
        "status": "interrupted" if cut else "finished",
        "engine": "mpi",
        "n_ranks": problem.network.size,
        "fastest": fastest(runs),
        "runs": [run._asdict() for run in runs],
        "left_out": absent,
        "measure": "relative duality gap",
        "tol": args.tol,
        "time_limit": args.time_limit,
        "clock_limit": args.clock_limit,
        "max_iter": args.max_iter,
        "loss": problem.loss.name,
        "sigma": float(problem.sigma[0]),
        "graph": problem.topology.name,
        "n_nodes": problem.n_nodes,
        "n_samples": problem.n_samples,
        "n_features": problem.n_features,
        "tau": args.tau,
        "clock": args.clock,
        "seed": args.seed,
        "data": args.data,
        "command": shlex.join(["adfs", *args.command_line]),
    }


def _finish(args: argparse.Namespace, outcome: Outcome) -> int:
    speaks, runs = outcome.rank == 0, outcome.runs
    if speaks and args.json:
        output.emit_json(outcome.record)
    elif speaks and not args.quiet:
        output.emit(_table(outcome.record, runs))
    if outcome.record["status"] != "interrupted":
        return 0
    finished = sum(run.status != "interrupted" for run in runs)
    message = (
        f"interrupted with {finished} of {outcome.n_contenders} runs finished; name the others in "
        "--algorithms to run them."
    )
    code = 128 + (runs[-1].signal or 2)
    return output.complain(message, code) if speaks else code


HEADERS = (
    "algorithm", "seconds", "set-up", "iterations", "idealized time", "messages", "relative gap",
    "status",
)  # fmt: skip


def _table(record: dict[str, Any], runs: "list[TimedRun]") -> str:
    """A row for each run, and who did not take part."""
    from adfs.bench.table import number

    rows = [
        [
            run.label, f"{run.wall_time:.3g}", f"{run.setup_time:.3g}", f"{run.iterations:,}",
            number(run.idealized_time), f"{run.n_comm:,}", f"{run.relative_gap:.2g}",
            run.status + (", fastest" if run.label == record["fastest"] else ""),
        ]
        for run in runs
    ]  # fmt: skip
    title = (
        f"seconds on {record['n_ranks']} rank{'s' * (record['n_ranks'] > 1)}, until the relative "
        f"duality gap is {record['tol']:g}\n"
    )
    notes = [f"{name} left out: {reason}\n" for name, reason in record["left_out"].items()]
    return title + layout.table(HEADERS, rows, right=range(1, 7)) + "".join(notes)

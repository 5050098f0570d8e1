"""`adfs train`: samples to a certified model."""

import argparse
import contextlib
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from adfs.cli import options, progress, ranks, train_options
from adfs.cli.parser import add_command
from adfs.cli.settings import add_settings
from adfs.cli.signals import SIGNALS

if TYPE_CHECKING:
    from adfs.launch.world import World
    from adfs.problems.finite_sum import Problem
    from adfs.runtime.execution import Execution
    from adfs.runtime.model import Model, Vector
    from adfs.runtime.signals import Interrupts
    from adfs.runtime.solve import Result

EXAMPLE = """\
examples:
  adfs train breast-cancer --nodes 9 --sigma 0.1 --tol 1e-8 --out model.npz --trace trace.csv
  adfs train train.txt.gz --C 1 --intercept --class-weight balanced --test test.txt
  adfs train 'part-{node}.txt' --graph ring --tau 0.5 --json
  adfs train --config run.toml --seed 1

What is minimised is F(theta) = sum over nodes of [ sum of losses + sigma/2 |theta|^2 ]: sums, not
means. Exit codes: 0 converged, 2 bad input, 3 stopped before tol, 1 the program or a rank failed,
130 and 143 interrupted (what exists is kept)."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands, "train", run, help="train a model to a certified duality gap",
        description="Train a regularised linear model with ADFS (Algorithm 1 of the paper; "
        "Algorithm 3 for losses that are not smooth), or with one of the algorithms it is compared "
        "with. The samples are dealt to the nodes of a network, or lie there already; the run ends "
        "when a duality gap proves that no model is better by more than --tol.",
        epilog=EXAMPLE,
    )  # fmt: skip
    parser.add_argument("data", metavar="DATA", help=options.DATA_HELP)
    options.add_problem(parser)
    options.add_time(parser)
    train_options.add_run(parser)
    train_options.add_files(parser)
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Check, load, train, write, print: the same on one process and on ranks."""
    return ranks.run_on_engine(
        args,
        lambda world, listening: _train(args, world, listening),
        lambda outcome: _finish(args, outcome),
        resumable=args.checkpoint is not None,
    )


class Outcome(NamedTuple):
    """What a process has when the work is done; only the first one writes and prints."""

    rank: int
    problem: "Problem"
    result: "Result"
    model: "Model"
    record: dict[str, Any]
    executions: "list[Execution]"


def _finish(args: argparse.Namespace, outcome: Outcome) -> int:
    from adfs.cli.train_end import exit_code, finish

    if outcome.rank > 0:
        return exit_code(args, outcome.result, speak=False)
    return finish(
        args, outcome.problem, outcome.result, outcome.model, outcome.record, outcome.executions
    )


def _train(
    args: argparse.Namespace, world: "World | None", listening: contextlib.ExitStack
) -> Outcome:
    from adfs.cli import report
    from adfs.cli.data import build_problem
    from adfs.cli.train_checks import check, check_outputs
    from adfs.cli.train_start import load_test, theta_of
    from adfs.launch.peers import Alone, attempt
    from adfs.runtime.execution import gather_executions
    from adfs.runtime.model import Model
    from adfs.runtime.signals import Interrupts

    peers = world or Alone()
    first = peers.rank == 0
    attempt(peers, lambda: check(args))
    attempt(peers, lambda: check_outputs(args) if first else None)
    start = attempt(
        peers, lambda: Model.load(args.warm_start) if args.warm_start and first else None
    )
    problem = build_problem(args, world)
    network, known = problem.network, problem.n_features - args.intercept
    test = network.attempt(lambda: load_test(args, known) if first else None)
    # The first rank reads the model; the others need not see its file.
    theta = network.gather(
        network.attempt(
            lambda: None if start is None else theta_of(start, args, problem.n_features)
        )
    )[0]
    # From here to the end: a signal that comes late must not cost what others have saved.
    interrupts = listening.enter_context(Interrupts(SIGNALS))
    result = _solve(args, problem, theta, interrupts)
    model = Model.from_result(
        result, problem, args.intercept, shlex.join(["adfs", *args.command_line])
    )
    fit = report.on_training_data(problem, model)
    assert result.execution is not None
    executions = [] if world is None else gather_executions(network, result.execution)
    record = report.record(args, problem, result, model, fit, test)
    return Outcome(peers.rank, problem, result, model, record, executions)


def _solve(
    args: argparse.Namespace, problem: "Problem", theta: "Vector | None", interrupts: "Interrupts"
) -> "Result":
    from adfs.algorithms.base import Setting
    from adfs.cli.train_start import checkpoints_of, readings
    from adfs.runtime.progress import terminal_progress
    from adfs.runtime.solve import Options, run
    from adfs.runtime.stopping import Stopping
    from adfs.schedule.delays import Delays

    limits = Stopping(args.tol, args.max_iter, args.time_limit)
    setting = Setting(
        args.parameters, args.tau, args.clock, Delays(tau=args.tau), args.seed, args.schedule
    )
    alone = args.engine == "local"  # what mpiexec passes on is no terminal
    wanted = not args.quiet and problem.network.rank == 0
    lines = wanted and (progress.are_lines_wanted(args) or not alone)
    with terminal_progress(None if wanted and alone else False, limits) as show:
        callbacks = [args.leaving.repeat, show, progress.Lines(limits) if lines else None]
        return run(
            problem, args.algorithm, setting, limits,
            Options(
                theta, readings(args), tuple(each for each in callbacks if each is not None),
                checkpoints_of(args), args.timeout,
                keep_spans=args.timeline is not None or (not alone and args.report is not None),
                gather_thetas=args.out is not None or alone,
            ),
            interrupts,
        )  # fmt: skip

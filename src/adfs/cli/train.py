"""`adfs train`: samples to a certified model."""

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from adfs.cli import options, progress, train_options
from adfs.cli.parser import add_command
from adfs.cli.settings import add_settings
from adfs.cli.signals import SIGNALS

if TYPE_CHECKING:
    from adfs.problems.finite_sum import Problem
    from adfs.runtime.model import Vector
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
    """Check, load, train, write, print."""
    if args.engine == "mpi":
        from adfs.cli import train_mpi

        return train_mpi.run(args)
    from adfs.cli import report
    from adfs.cli.data import build_problem
    from adfs.cli.train_checks import check, check_outputs
    from adfs.cli.train_end import finish
    from adfs.cli.train_start import load_test, theta_of
    from adfs.runtime.model import Model

    check(args)
    check_outputs(args)
    start = Model.load(args.warm_start) if args.warm_start else None
    problem = build_problem(args)
    test = load_test(args, problem.n_features - args.intercept)
    theta = None if start is None else theta_of(start, args, problem.n_features)
    result = _solve(args, problem, theta)
    command = shlex.join(["adfs", *args.command_line])
    model = Model.from_result(result, problem, args.intercept, command)
    train = report.on_training_data(problem, model)
    record = report.record(args, problem, result, model, train, test)
    return finish(args, problem, result, model, record)


def _solve(args: argparse.Namespace, problem: "Problem", theta: "Vector | None") -> "Result":
    from adfs.cli.train_start import checkpoints_of, readings
    from adfs.runtime.solve import solve
    from adfs.runtime.stopping import Stopping

    limits = Stopping(args.tol, args.max_iter, args.time_limit)
    lines = progress.Lines(limits) if progress.are_lines_wanted(args) else None
    return solve(
        problem, args.algorithm, args.tol, args.max_iter, args.time_limit, args.tau, args.clock,
        args.parameters, args.seed, progress.both(args.leaving.repeat, lines),
        progress=False if args.quiet else None, signals=SIGNALS, warm_start=theta,
        evaluate_every=readings(args), schedule=args.schedule,
        checkpoints=checkpoints_of(args),
    )  # fmt: skip

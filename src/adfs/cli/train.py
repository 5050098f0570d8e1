"""`adfs train`: from samples to a certified model."""

import argparse
import contextlib
import shlex
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from adfs.cli import files, on_ranks, options, output, plain_progress
from adfs.cli.arguments import Command
from adfs.cli.early_signals import SIGNALS
from adfs.errors import DataError, ParameterError

if TYPE_CHECKING:
    from adfs.engine.checkpointer import Checkpoints
    from adfs.engine.execution import Execution
    from adfs.engine.interrupts import Interrupts
    from adfs.model import Model, Vector
    from adfs.mpi.communicator import Communicator
    from adfs.problem.finite_sum import Problem
    from adfs.solver import Result

EXAMPLES = """\
examples:
  adfs train breast-cancer --nodes 9 --sigma 0.1 --tol 1e-8 --out model.npz --trace trace.csv
  adfs train train.txt.gz --C 1 --intercept --class-weight balanced --test test.txt
  adfs train 'part-{node}.txt' --graph ring --tau 0.5 --json
  adfs train --config run.toml --seed 1

The objective is F(theta) = sum over nodes of [ sum of losses + sigma/2 |theta|^2 ]: sums, not
means. Exit codes: 0 converged, 2 bad input, 3 stopped before tol, 1 the program or a rank failed,
130 and 143 interrupted (what exists is kept)."""


class TrainOutcome(NamedTuple):
    """The result of a process; only rank 0 writes and prints it."""

    rank: int
    problem: "Problem"
    result: "Result"
    model: "Model"
    record: dict[str, Any]
    executions: "list[Execution]"


def run(args: argparse.Namespace) -> int:
    """Check, load, train, write, print: the same in one process and on ranks."""
    return on_ranks.run_on_engine(
        args,
        lambda world, stack: _train(args, world, stack),
        lambda outcome: _finish(args, outcome),
        resumable=args.checkpoint is not None,
    )


def _finish(args: argparse.Namespace, outcome: TrainOutcome) -> int:
    from adfs.cli.train_output import exit_code, finish

    if outcome.rank > 0:
        return exit_code(args, outcome.result, prints=False)
    return finish(
        args, outcome.problem, outcome.result, outcome.model, outcome.record, outcome.executions
    )


def _train(
    args: argparse.Namespace, world: "Communicator | None", stack: contextlib.ExitStack
) -> TrainOutcome:
    from adfs.agreement import Alone, attempt
    from adfs.cli import train_output
    from adfs.cli.problem_arguments import build_problem
    from adfs.engine.execution import gather_executions
    from adfs.engine.interrupts import Interrupts
    from adfs.model import Model

    peers = world or Alone()
    first = peers.rank == 0
    attempt(peers, lambda: _check(args))
    start = attempt(
        peers, lambda: Model.load(args.warm_start) if args.warm_start and first else None
    )
    problem = build_problem(args, world)
    network, known = problem.network, problem.n_features - args.intercept
    test = attempt(network.peers, lambda: _load_test(args, known) if first else None)
    # Rank 0 reads the model; the others need no access to its file.
    theta = network.gather(
        attempt(
            network.peers,
            lambda: None if start is None else _start_from(start, args, problem.n_features),
        )
    )[0]
    # From here to the end: a late signal must not discard what other ranks have saved.
    interrupts = stack.enter_context(Interrupts(SIGNALS))
    result = _solve(args, problem, theta, interrupts)
    model = Model.from_result(
        result, problem, args.intercept, shlex.join(["adfs", *args.command_line])
    )
    fit = train_output.on_training_data(problem, model)
    assert result.execution is not None
    executions = [] if world is None else gather_executions(network, result.execution)
    record = train_output.record(args, problem, result, model, fit, test)
    return TrainOutcome(peers.rank, problem, result, model, record, executions)


def _check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a sample is read."""
    from adfs.algorithms import registered  # noqa: F401  (fills the registry)
    from adfs.algorithms.base import get_algorithm, require_schedule
    from adfs.engine.stopping import Stopping
    from adfs.schedule.delays import Delays

    if args.algorithm != "auto":
        get_algorithm(args.algorithm)
        require_schedule(args.algorithm, args.schedule)
    Stopping(args.tol, args.max_iter, args.time_limit)
    Delays(tau=args.tau)
    on_ranks.check_engine(args)
    if args.timeline is not None and args.engine != "mpi":
        raise ParameterError(
            "--timeline shows what ranks did, so it needs --engine mpi; for idealized time use "
            "`adfs schedule timeline`."
        )
    if args.checkpoint is None and (args.resume or args.checkpoint_every is not None):
        flag = "--resume" if args.resume else "--checkpoint-every"
        raise ParameterError(f"{flag} needs the folder of the checkpoints; add --checkpoint DIR.")
    if args.timeline is not None:
        files.timeline_kind("--timeline", args.timeline)
    files.check_report(args.report)


def _load_test(args: argparse.Namespace, known: int) -> Any:
    """Rows and labels of ``--test``, None without; the training data has ``known`` features."""
    from adfs.cli.problem_arguments import load_all

    if args.test is None:
        return None
    rows, labels = load_all(args.test)
    if labels is None:
        raise DataError(f"--test {args.test} must hold the labels y, but has none; save them too.")
    width = max(X.shape[1] for X in rows)
    if width > known:
        raise DataError(
            f"--test {args.test} has {width} features but the training data has {known}; give "
            f"--n-features {width}, or check the files."
        )
    return rows, labels


def _start_from(model: "Model", args: argparse.Namespace, width: int) -> "Vector":
    """A model's coefficients in this problem's ``width`` columns; zero for new columns."""
    import numpy as np

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


def _evaluate_every(args: argparse.Namespace) -> int | Literal["curve"] | None:
    """How often to evaluate; a trace or a report needs enough points for a curve."""
    has_curve = args.trace is not None or args.report is not None
    return args.evaluate_every or ("curve" if has_curve else None)


def _checkpoints(args: argparse.Namespace) -> "Checkpoints | None":
    from adfs.engine.checkpointer import Checkpoints

    if args.checkpoint is None:
        return None
    return Checkpoints(
        args.checkpoint, args.checkpoint_every, args.resume, output.note, output.note
    )


def _solve(
    args: argparse.Namespace, problem: "Problem", theta: "Vector | None", interrupts: "Interrupts"
) -> "Result":
    from adfs.algorithms.base import MethodSetting
    from adfs.engine.progress import terminal_progress
    from adfs.engine.stopping import Stopping
    from adfs.schedule.delays import Delays
    from adfs.solver import RunOptions, run

    limits = Stopping(args.tol, args.max_iter, args.time_limit)
    setting = MethodSetting(
        args.parameters, args.tau, args.clock, Delays(tau=args.tau), args.seed, args.schedule
    )
    alone = args.engine == "local"  # mpiexec passes stderr on, so it is not a terminal
    wanted = not args.quiet and problem.network.rank == 0
    lines = wanted and (plain_progress.are_lines_wanted(args) or not alone)
    with terminal_progress(None if wanted and alone else False, limits) as show:
        callbacks = [
            args.leaving.repeat,
            show,
            plain_progress.ProgressLines(limits) if lines else None,
        ]
        return run(
            problem, args.algorithm, setting, limits,
            RunOptions(
                theta, _evaluate_every(args), tuple(each for each in callbacks if each is not None),
                _checkpoints(args), args.timeout,
                keep_spans=args.timeline is not None or (not alone and args.report is not None),
                gather_thetas=args.out is not None or alone,
            ),
            interrupts,
        )  # fmt: skip


COMMAND = Command(
    "train",
    "train a model to a certified duality gap",
    "Train a regularised linear model with ADFS (Algorithm 1 of the paper; Algorithm 3 for losses "
    "that are not smooth), or with one of the algorithms it is compared with. The samples are "
    "distributed to the nodes of a network, or are there already. The run ends when a duality gap "
    "proves that no model is better by more than --tol.",
    EXAMPLES,
    run,
    (options.DATA,),
    options.TRAIN,
)

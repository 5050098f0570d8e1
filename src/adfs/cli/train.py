"""`adfs train`: samples to a certified model."""

import argparse
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adfs.cli import options, output
from adfs.cli.signals import SIGNALS
from adfs.errors import DataError, ParameterError

if TYPE_CHECKING:
    from adfs.distributed.execution import Execution
    from adfs.problems.finite_sum import Problem
    from adfs.runtime.keeping import Checkpoints
    from adfs.runtime.model import Model, Vector
    from adfs.runtime.solve import Result

NOT_CONVERGED, FAILED = 3, 1

EXAMPLE = """\
examples:
  adfs train a9a --nodes 9 --sigma 0.1 --tol 1e-8 --out model.npz --trace trace.csv
  adfs train train.txt.gz --C 1 --intercept --class-weight balanced --test test.txt
  adfs train 'part-{node}.txt' --graph ring --tau 0.5 --json

F(theta) = sum over nodes of [ sum of losses + sigma/2 |theta|^2 ]: sums, not means.
exit codes: 0 converged, 2 bad input, 3 stopped before tol, 130 and 143 interrupted."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands, "train", run, help="train a model to a certified duality gap",
        description="Train a regularised linear model with ADFS (Algorithm 1 of the paper; "
        "Algorithm 3 for losses that are not smooth), or with one of the algorithms it is compared "
        "with.",
        epilog=EXAMPLE,
    )  # fmt: skip
    parser.add_argument("data", metavar="DATA", help=options.DATA_HELP)
    options.add_problem(parser)
    options.add_time(parser)
    _add_run(parser)
    _add_files(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the run")
    group.add_argument(
        "--algorithm",
        default="auto",
        metavar="NAME",
        help="one of the names that `adfs info` lists; auto takes adfs, or ns-adfs where the loss "
        "is not smooth (default auto)",
    )
    options.add_rule(group)  # type: ignore[arg-type]
    group.add_argument(
        "--schedule",
        choices=("shared", "poisson"),
        default="shared",
        metavar="NAME",
        help="shared: one sequence of events, of which every node draws all; poisson: a clock for "
        "each edge and node, of which a node draws its own (default shared)",
    )
    group.add_argument(
        "--tol",
        type=float,
        default=1e-6,
        metavar="TOL",
        help="stop at this relative duality gap, gap / max(1, |F|) (default 1e-6)",
    )
    group.add_argument("--max-iter", type=options.whole(0), metavar="N", help="most events")
    group.add_argument(
        "--time-limit",
        type=float,
        metavar="S",
        help="most seconds in the loop, those before a --resume included",
    )
    group.add_argument(
        "--evaluate-every",
        type=options.whole(1),
        metavar="N",
        help="events between evaluations, for a fine trace (default: as few as the stop needs)",
    )
    options.add_seed(group)  # type: ignore[arg-type]
    group.add_argument(
        "--engine",
        choices=("local", "mpi"),
        default="local",
        metavar="NAME",
        help="local: all nodes in this process; mpi: nodes on the ranks that mpiexec started, each "
        "with its own rows; the same bits (default local)",
    )
    group.add_argument(
        "--mapping",
        choices=("contiguous", "graph"),
        default="contiguous",
        metavar="NAME",
        help="nodes to ranks by their numbers, or so that few edges are cut (default contiguous)",
    )
    group.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds a rank waits for another before the job ends; more than reading the rows of "
        "one rank, or saving them, takes (default 60)",
    )
    group.add_argument("--warm-start", metavar="MODEL", help="start from this model file")


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files and words")
    group.add_argument("--test", metavar="FILE", help="a DATA on which to judge the model")
    group.add_argument("--out", metavar="FILE", help="write the model here (.npz)")
    group.add_argument("--trace", metavar="FILE", help="write one row an evaluation here (.csv)")
    group.add_argument(
        "--checkpoint", metavar="DIR", help="keep the run in this folder, so that it can go on"
    )
    group.add_argument(
        "--checkpoint-every",
        type=options.whole(1),
        metavar="N",
        help="events between two checkpoints (default: ten passes, at least 5,000,000)",
    )
    group.add_argument(
        "--resume", action="store_true", help="go on from the newest whole checkpoint, if any"
    )
    group.add_argument(
        "--timeline",
        metavar="FILE",
        help="what each rank did when, as a Chrome trace (.json) or a picture (.png, .svg, .pdf); "
        "needs --engine mpi",
    )
    options.add_json(group)  # type: ignore[arg-type]
    group.add_argument("--quiet", action="store_true", help="no progress and no summary")


def run(args: argparse.Namespace) -> int:
    """Check, load, train, write, print."""
    if args.engine == "mpi":
        from adfs.cli import train_mpi

        return train_mpi.run(args)
    from adfs.cli import report
    from adfs.cli.data import build_problem
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
    return finish(args, result, model, record)


def finish(
    args: argparse.Namespace, result: "Result", model: "Model | None",
    record: dict[str, Any] | None, ranks: "Sequence[Execution]" = (),
) -> int:  # fmt: skip
    """Write and print, where there is a model to write; the exit code."""
    from adfs.cli import report

    if model is None or record is None:
        return _exit_code(args, result, speak=False)
    failures = _write(args, result, model, ranks)
    if ranks:
        record["ranks"] = report.ranks_record(ranks)
    if args.json:
        output.emit_json(record)
    elif not args.quiet:
        output.emit(report.summary(args, record))
    for failure in failures:
        output.complain(failure, FAILED)
    return FAILED if failures else _exit_code(args, result)


def check(args: argparse.Namespace) -> None:
    """Everything that can be refused before a sample is read."""
    from adfs.algorithms import registered  # noqa: F401  (fills the registry)
    from adfs.algorithms.base import get_algorithm, require_schedule
    from adfs.cli.rank_timeline import timeline_kind
    from adfs.runtime.stopping import Stopping
    from adfs.schedule.delays import Delays

    if args.algorithm != "auto":
        get_algorithm(args.algorithm)
        require_schedule(args.algorithm, args.schedule)
    Stopping(args.tol, args.max_iter, args.time_limit)
    Delays(tau=args.tau)
    _check_engine(args)
    if args.timeline is not None:
        timeline_kind("--timeline", args.timeline)


def check_outputs(args: argparse.Namespace) -> None:
    """Refuse places where nothing can be written; only who writes has to look."""
    from adfs.cli.data import input_files

    outputs = {"--out": args.out, "--trace": args.trace, "--timeline": args.timeline}
    for flag, path in outputs.items():
        output.check_writable(flag, path)
    output.check_distinct(outputs, input_files(args.data, args.test))


def _check_engine(args: argparse.Namespace) -> None:
    """Refuse options that need an engine or a folder which was not asked for."""
    from adfs.launch.launcher import rank_by_environment, size_by_environment

    if args.engine == "local" and (size_by_environment() or 1) > 1:
        error = ParameterError(
            f"{size_by_environment()} processes were started, each of which would do the whole "
            "work; add --engine mpi, or start one."
        )
        error.spoken_by_another = bool(rank_by_environment())  # type: ignore[attr-defined]
        raise error
    if args.timeline is not None and args.engine != "mpi":
        raise ParameterError(
            "--timeline shows what ranks did, so it needs --engine mpi; for idealized time use "
            "`adfs schedule timeline`."
        )
    if args.checkpoint is None and (args.resume or args.checkpoint_every is not None):
        flag = "--resume" if args.resume else "--checkpoint-every"
        raise ParameterError(f"{flag} needs the folder of the checkpoints; add --checkpoint DIR.")
    if not 0 < args.timeout < float("inf"):
        raise ParameterError(f"--timeout {args.timeout:g} must be a finite number of seconds > 0.")


def load_test(args: argparse.Namespace, known: int) -> Any:
    """Rows and labels of ``--test``, None without; the training data has ``known`` features."""
    from adfs.cli.data import load_all

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


def theta_of(model: "Model", args: argparse.Namespace, width: int) -> "Vector":
    """A model's coefficients in this problem's ``width`` columns; what it does not know is zero."""
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


def checkpoints_of(args: argparse.Namespace) -> "Checkpoints | None":
    """What the arguments say about checkpoints."""
    from adfs.runtime.keeping import Checkpoints

    if args.checkpoint is None:
        return None
    return Checkpoints(
        args.checkpoint, args.checkpoint_every, args.resume, output.note, output.note
    )  # fmt: skip


def _solve(args: argparse.Namespace, problem: "Problem", theta: "Vector | None") -> "Result":
    from adfs.runtime.solve import solve

    return solve(
        problem, args.algorithm, args.tol, args.max_iter, args.time_limit, args.tau, args.clock,
        args.parameters, args.seed, args.leaving.repeat,
        progress=False if args.quiet else None, signals=SIGNALS, warm_start=theta,
        evaluate_every=args.evaluate_every, schedule=args.schedule,
        checkpoints=checkpoints_of(args),
    )  # fmt: skip


def _write(
    args: argparse.Namespace, result: "Result", model: "Model", ranks: "Sequence[Execution]"
) -> list[Exception]:
    """Model, trace and timeline; one that fails does not keep the others from being written."""
    from adfs.cli.rank_timeline import save_ranks, timeline_kind

    def save_timeline(path: str) -> None:
        # The kind is that of the name given, whatever a symbolic link points to.
        save_ranks(ranks, path, timeline_kind("--timeline", args.timeline))

    writers = (
        (args.out, model.save), (args.trace, result.trace.to_csv), (args.timeline, save_timeline)
    )  # fmt: skip
    failures: list[Exception] = []
    for path, save in writers:
        try:
            if path is not None:
                with output.writing(path) as place:
                    save(place)
        except output.OutputError as error:
            failures.append(error)
    return failures


def _exit_code(args: argparse.Namespace, result: "Result", speak: bool = True) -> int:
    if result.status == "converged":
        return 0
    message = (
        f"{result.status} at relative gap {result.relative_gap:.2g}, before tol={args.tol:g}; "
        f"{WAYS_OUT[result.status]}."
    )
    code = NOT_CONVERGED
    if result.status == "interrupted" and result.signal is not None:
        code = 128 + result.signal
    return output.complain(message, code) if speak else code


WAYS_OUT = {
    "max_iter": "give a larger --max-iter, or a larger --tol",
    "time_limit": "give a larger --time-limit, or a larger --tol",
    "interrupted": "what exists was kept",
    "diverged": "scale the features, or raise --sigma",
}

"""Commands that run in one process or on the ranks that mpiexec started."""

import argparse
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.launch.world import World

T = TypeVar("T")


def add_ranks(group: Any) -> None:
    """``--engine``, and what only matters between ranks."""
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


def check_engine(args: argparse.Namespace) -> None:
    """Refuse processes that would all do the same work, and a timeout that is none."""
    from adfs.launch.launcher import size_by_environment

    if args.engine == "local" and (size_by_environment() or 1) > 1:
        error = ParameterError(
            f"{size_by_environment()} processes were started, each of which would do the whole "
            "work; add --engine mpi, or start one."
        )
        error.before_ranks = True  # type: ignore[attr-defined]
        raise error
    if not 0 < args.timeout < float("inf"):
        raise ParameterError(f"--timeout {args.timeout:g} must be a finite number of seconds > 0.")


def run_on_engine(
    args: argparse.Namespace,
    work: "Callable[[World | None, contextlib.ExitStack], T]",
    finish: Callable[[T], int],
    resumable: bool = False,
) -> int:
    """Do the work in this process or as a rank, then finish it; returns the exit code.

    Ranks are supervised, and if one fails, all stop with one message. The finish comes after MPI
    has ended; what the work has put on the stack (its handlers of signals) stays until then.
    """
    if args.engine == "local":
        with contextlib.ExitStack() as stack:
            return finish(work(None, stack))
    from adfs.launch.supervisor import is_supervised, supervise

    if not is_supervised():
        return supervise(args.command_line)
    with contextlib.ExitStack() as stack:
        return finish(_work_as_a_rank(args, work, stack, resumable))


def _work_as_a_rank(
    args: argparse.Namespace,
    work: "Callable[[World | None, contextlib.ExitStack], T]",
    stack: contextlib.ExitStack,
    resumable: bool,
) -> T:
    from adfs.launch.watch import Watch
    from adfs.launch.world import World

    with Watch() as watch:
        watch.tell(timeout=args.timeout, resumable=resumable)
        with World.open(watch) as world:
            return work(world, stack)

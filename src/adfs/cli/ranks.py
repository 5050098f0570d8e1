"""Commands that run in one process or on the ranks that mpiexec started."""

import argparse
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from adfs.errors import BeforeRanks, ParameterError

if TYPE_CHECKING:
    from adfs.launch.world import World

T = TypeVar("T")
FILES = ("FILE", "DIR", "MODEL")  # what help calls the value of an option that names a file


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
        raise ParameterError(
            f"{size_by_environment()} processes were started, each of which would do the whole "
            "work; add --engine mpi, or start one."
        ) from BeforeRanks()
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
    from adfs.agreement import require_same, require_same_rounding, require_same_versions
    from adfs.launch.watch import Watch
    from adfs.launch.world import World

    with Watch() as watch:
        watch.tell(timeout=args.timeout, resumable=resumable)
        with World.open(watch) as world:
            require_same_versions(world)
            require_same(world, shared_by_ranks(args))
            require_same_rounding(world)
            return work(world, stack)


def shared_by_ranks(args: argparse.Namespace) -> dict[str, str]:
    """Every option as it is typed, in words that have to be the same on all ranks.

    Files may have other paths on other hosts, so of them only the presence counts.
    """
    from adfs.agreement import words

    found = {"DATA": _kind_of_data(args.data)}
    for action in args.parser._actions:
        is_shown = action.option_strings and action.help != argparse.SUPPRESS
        if not is_shown or action.dest == "help":
            continue
        value = getattr(args, action.dest)
        if value is None or value is False:
            shown = "not given"
        else:
            shown = "given" if value is True or action.metavar in FILES else words(value)
        found[action.option_strings[-1]] = shown
    return found


def _kind_of_data(name: str) -> str:
    from adfs.problems.datasets import DATASETS
    from adfs.problems.files import NODE

    if NODE in name:
        return f"a pattern with {NODE}"
    return f"the data set {name}" if name in DATASETS else "a file"

"""Commands that run in one process or on the ranks that mpiexec started."""

import argparse
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from adfs import checks
from adfs.errors import BeforeRanks, ParameterError

if TYPE_CHECKING:
    from adfs.mpi.communicator import Communicator

T = TypeVar("T")


def acts_for_the_job() -> bool:
    """Whether this process checks files for the whole job: the only one, or that of rank 0."""
    from adfs.mpi.launcher import rank_by_environment
    from adfs.mpi.supervisor import is_supervised

    return not is_supervised() and not rank_by_environment()


def check_engine(args: argparse.Namespace) -> None:
    """Refuse several processes without --engine mpi, and a timeout that is not positive."""
    from adfs.mpi.launcher import size_by_environment

    if args.engine == "local" and (size_by_environment() or 1) > 1:
        raise ParameterError(
            f"{size_by_environment()} processes were started, each of which would do the whole "
            "work; add --engine mpi, or start one."
        ) from BeforeRanks()
    checks.positive("timeout", args.timeout, "it is in seconds")


def run_on_engine(
    args: argparse.Namespace,
    work: "Callable[[Communicator | None, contextlib.ExitStack], T]",
    finish: Callable[[T], int],
    resumable: bool = False,
) -> int:
    """Do the work in this process or as a rank, then finish it; returns the exit code.

    Ranks are supervised, and if one fails, all stop with one message. No rank leaves before all
    have finished. What the work has put on the stack (signal handlers) stays until then.
    """
    if args.engine == "local":
        with contextlib.ExitStack() as stack:
            return finish(work(None, stack))
    from adfs.mpi.supervisor import is_supervised, supervise

    if not is_supervised():
        return supervise(args.command_line)
    with contextlib.ExitStack() as stack:
        return _run_as_a_rank(args, work, finish, stack, resumable)


def _run_as_a_rank(
    args: argparse.Namespace,
    work: "Callable[[Communicator | None, contextlib.ExitStack], T]",
    finish: Callable[[T], int],
    stack: contextlib.ExitStack,
    resumable: bool,
) -> int:
    from adfs.agreement import require_same, require_same_software
    from adfs.mpi.communicator import Communicator
    from adfs.mpi.supervisor import SupervisorLink

    with SupervisorLink() as link:
        link.report(timeout=args.timeout, resumable=resumable)
        with Communicator.open(link) as world:
            require_same_software(world)
            require_same(world, shared_by_ranks(args))
            outcome = work(world, stack)
            code, error = 1, None
            try:
                code = finish(outcome)
            except Exception as failure:  # reported after MPI has ended, as in one process
                error = failure
            world.timeout = None  # the first rank may have much to write
            world.gather("finished")
    if error is not None:
        raise error
    return code


def shared_by_ranks(args: argparse.Namespace) -> dict[str, str]:
    """Every option as text that must be the same on all ranks.

    Files may have other paths on other hosts, so for them only their presence is compared.
    """
    from adfs.agreement import as_text

    found = {"DATA": _kind_of_data(args.data)}
    for option in args.command.options:
        value = getattr(args, option.dest)
        if value is None or value is False:
            shown = "not given"
        else:
            shown = "given" if value is True or option.kind.role else as_text(value)
        if option.flag:
            found[option.flag] = shown
    return found


def _kind_of_data(name: str) -> str:
    from adfs.data.datasets import DATASETS
    from adfs.data.files import NODE

    if NODE in name:
        return f"a pattern with {NODE}"
    return f"the data set {name}" if name in DATASETS else "a file"

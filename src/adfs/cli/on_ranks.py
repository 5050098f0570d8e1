"""Commands that run in one process or on the ranks that mpiexec started."""

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path

from adfs import checks
from adfs.agreement import as_text, require_same, require_same_software
from adfs.data.datasets import DATASETS
from adfs.data.files import NODE
from adfs.errors import BeforeRanks, ParameterError
from adfs.mpi.communicator import Communicator
from adfs.mpi.launcher import size_by_environment
from adfs.mpi.supervisor import SupervisorLink
from adfs.storage import digest

Finish = Callable[[], int]  # writes and prints; the exit code
Work = Callable[[argparse.Namespace, Communicator | None, contextlib.ExitStack], Finish]


def check_engine(args: argparse.Namespace) -> None:
    """Refuse several processes without --engine mpi, and a timeout that is not positive."""
    if args.engine == "local" and (size_by_environment() or 1) > 1:
        raise ParameterError(
            f"{size_by_environment()} processes were started, each of which would do the whole "
            "work; add --engine mpi, or start one."
        ) from BeforeRanks()
    checks.positive("timeout", args.timeout, "it is in seconds")


def run_on_engine(args: argparse.Namespace, work: Work, resumable: bool = False) -> int:
    """Do the work in this process or as a supervised rank, then finish it; the exit code.

    If one rank fails, all stop with one message. No rank leaves before all have finished. What the
    work has put on the stack (signal handlers) stays until then.
    """
    with contextlib.ExitStack() as stack:
        if args.engine == "local":
            return work(args, None, stack)()
        with SupervisorLink() as link:
            link.report(timeout=args.timeout, resumable=resumable)
            with Communicator.open(link) as world:
                require_same_software(world)
                require_same(world, shared_by_ranks(args))
                finish = work(args, world, stack)
                code, error = 1, None
                try:
                    code = finish()
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
    known = f"the data set {args.data}" if args.data in DATASETS else "a file"
    found = {"DATA": f"a pattern with {NODE}" if NODE in (args.data or "") else known}
    for option in args.command.options:
        value = getattr(args, option.dest)
        given = "given" if value is True or option.kind.role else as_text(value)
        if option.flag:
            found[option.flag] = "not given" if value is None or value is False else given
    if args.plugin is not None:
        found["--plugin"] = f"a file with digest {digest(Path(args.plugin).read_bytes())[:12]}"
    return found

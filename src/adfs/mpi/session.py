"""Ranks in a program of a user, which calls `adfs` on all ranks together.

The command line opens a `Communicator` and ends MPI when it is done. A program of a user continues,
may use MPI itself, and may call again: so one world per process is left open.
"""

import atexit
import contextlib
import multiprocessing
import sys
import threading
from collections.abc import Iterator

from adfs.agreement import LEAVING, require_same_rounding, require_same_versions
from adfs.errors import ParameterError, is_agreed
from adfs.mpi.communicator import Communicator

_worlds: list[Communicator] = []  # at most one
_busy = threading.Lock()


@contextlib.contextmanager
def session() -> Iterator[Communicator]:
    """The world of this process, while all its ranks do something together.

    An error on which the ranks agreed is raised on all of them. Any other ends the job with a
    message, because the other ranks would wait forever.
    """
    if not _busy.acquire(blocking=False):
        raise ParameterError(
            "engine='mpi' makes one fit at a time, and another thread makes one; use n_jobs=1."
        )
    try:
        world = open_world()
        world.timeout = None  # ranks may be late, because they read their data
        try:
            yield world
        except BaseException as error:
            if world.size > 1 and not is_agreed(error):
                world.fail_with(error)
            raise
    finally:
        _busy.release()


def open_world() -> Communicator:
    """The one world of this process; MPI is started where it is not, and then ended at exit.

    Ranks with different versions, or processors that round differently, are refused.
    """
    _require_a_rank()
    if not _worlds:
        started = is_started()
        _worlds.append(Communicator.open())
        atexit.register(_leave, _worlds[0], not started)
    world = _worlds[0]
    if not world.is_compared:
        require_same_versions(world)
        require_same_rounding(world)
        world.is_compared = True
    return world


def is_started() -> bool:
    """Whether this program uses MPI already; one that has ended it is refused."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized():
        return False
    if mpi.Is_finalized():
        raise ParameterError("This program has ended MPI (MPI_Finalize); fit before it does.")
    return True


def _require_a_rank() -> None:
    """Refuse a worker of a pool: it is not a rank, but has the environment of one."""
    name = multiprocessing.current_process().name
    if name != "MainProcess":
        raise ParameterError(
            f"engine='mpi' works between processes that mpiexec started, and {name} is a worker of "
            "one of them; use n_jobs=1, or engine='local'."
        )


def _leave(world: Communicator, ours: bool) -> None:
    """End MPI with the program, if we have started it.

    A rank that ends by an error of its own ends the job. One that ends otherwise sends `LEAVING`
    where other ranks would begin their next fit; if one does, the job ends too.
    """
    if world.mpi.Is_finalized():  # by the program itself
        return
    error = getattr(sys, "last_value", None)
    if error is not None and world.size > 1 and not is_agreed(error):
        world.abort(
            f"rank {world.rank} ended with {type(error).__name__} while others may wait for it: "
            "the job ends."
        )
    world.timeout = None  # others may have much to do after their last fit
    fitting = [rank for rank, item in enumerate(world.gather(LEAVING)) if item != LEAVING]
    if fitting:
        world.abort(
            f"rank {world.rank} has ended while rank {fitting[0]} fits and waits for it: the job "
            "ends; make the same fits on all ranks."
        )
    world.close()
    if ours:
        world.mpi.Finalize()

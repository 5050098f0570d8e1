"""Ranks in a program that is not ours: it calls us now and then, on all ranks together.

The command line owns its process: it opens a `World` and ends MPI when it leaves. Here the program
goes on after us, may use MPI itself, and may call again: one world a process is left open.
"""

import atexit
import contextlib
import multiprocessing
import sys
import threading
from collections.abc import Iterator

from adfs.agreement import require_same_rounding, require_same_versions
from adfs.errors import ParameterError, is_agreed
from adfs.launch.peers import LEAVING
from adfs.launch.world import World

_worlds: list[World] = []  # at most one
_busy = threading.Lock()


@contextlib.contextmanager
def session() -> Iterator[World]:
    """The world of this process, while all its ranks do something together.

    An error on which the ranks agreed leaves on all of them. Any other would leave the peers of
    this rank waiting for ever: it ends the job, with a sentence.
    """
    if not _busy.acquire(blocking=False):
        raise ParameterError(
            "engine='mpi' makes one fit at a time, and another thread is at one; use n_jobs=1."
        )
    try:
        world = open_world()
        world.timeout = None  # ranks may come late, from reading their data
        try:
            yield world
        except BaseException as error:
            if world.size > 1 and not is_agreed(error):
                world.__exit__(type(error), error, error.__traceback__)  # does not return
            raise
    finally:
        _busy.release()


def open_world() -> World:
    """The one world of this process; MPI is started if nobody has, and then ended at exit.

    Ranks with other versions, or processors that round otherwise, are refused.
    """
    _require_a_rank()
    if not _worlds:
        started = is_started()
        _worlds.append(World.open())
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
    """Refuse a worker of a pool: it is no rank, and the launcher would take it for one."""
    name = multiprocessing.current_process().name
    if name != "MainProcess":
        raise ParameterError(
            f"engine='mpi' works between processes that mpiexec started, and {name} is a worker of "
            "one of them; use n_jobs=1, or engine='local'."
        )


def _leave(world: World, ours: bool) -> None:
    """End MPI with the program, if it is ours to end.

    A rank that ends by an error of its own takes the others along. One that ends otherwise says so
    where the others would begin their next fit; those that do wait for it in vain.
    """
    if world.mpi.Is_finalized():  # the program did so itself
        return
    error = getattr(sys, "last_value", None)
    if error is not None and world.size > 1 and not is_agreed(error):
        world.abort(
            f"rank {world.rank} ended with {type(error).__name__} while others may wait for it: "
            "the job ends."
        )
    world.timeout = None  # others may have much to do after their last fit
    told = world.gather(LEAVING)
    fitting = [rank for rank, word in enumerate(told) if word != LEAVING]
    if fitting:
        world.abort(
            f"rank {world.rank} has ended while rank {fitting[0]} fits and waits for it: the job "
            "ends; make the same fits on all ranks."
        )
    world.close()
    if ours:
        world.mpi.Finalize()

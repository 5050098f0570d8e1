"""All ranks of a job: they meet, tell each other values, and leave together."""

import os
import signal
import time
import traceback
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from adfs.errors import AdfsError, CheckpointError, ParameterError
from adfs.launch.casualty import sentence, who
from adfs.launch.envelope import pack, unpack
from adfs.launch.launcher import end_job, rank_by_environment
from adfs.launch.library import library_of, start_mpi
from adfs.launch.watch import Watch

BAD_INPUT, FAILED = 2, 1
PATIENCE = 0.1  # seconds of polling, after which a rank that waits leaves the core to others
NAP = 0.001


class World:
    """The ranks that mpiexec started, this one among them; a context that ends MPI.

    ``MPI_Finalize`` waits for all ranks, so it is called only where all ranks come to it: when the
    context is left without an error, or with one on which they agreed. Any other error ends the
    whole job with one sentence: the peers of this rank would wait for ever.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    watch : Watch
        Holds what is known of this rank, for the sentence.

    Attributes
    ----------
    rank, size : int
    comm : mpi4py.MPI.Comm
        A duplicate of the world's communicator: our messages meet no other's.
    library : str
        Name and version of the MPI library.
    limit : float or None
        Seconds that a gather may take before the job ends; None while ranks read their data.

    Examples
    --------
    >>> with World.open() as world:  # doctest: +SKIP
    ...     world.gather({"rank": world.rank, "theta": np.zeros(2)})
    [{'rank': 0, 'theta': array([0., 0.])}]
    """

    def __init__(self, mpi: Any, watch: Watch) -> None:
        self.mpi, self.watch = mpi, watch
        self.comm = mpi.COMM_WORLD.Dup()
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)
        self.library = library_of(mpi)
        self.limit: float | None = None
        watch.tell(rank=self.rank, size=self.size)

    @classmethod
    def open(cls, watch: Watch | None = None) -> "World":
        """Load MPI and meet the other ranks; if this fails, it fails on all, and rank 0 says so."""
        try:
            mpi = start_mpi()
        except ParameterError as error:
            error.spoken_by_another = bool(rank_by_environment())  # type: ignore[attr-defined]
            raise
        return cls(mpi, Watch() if watch is None else watch)

    def gather(self, item: Any) -> list[Any]:
        """What every rank gave, rank 0 first; the same on all ranks, which all have to call.

        An item is whatever JSON knows, with NumPy arrays in it, which keep their bits and may
        differ in size from rank to rank.
        """
        mine = pack(item)
        sizes = np.empty(self.size, np.int64)
        self.wait(self.comm.Iallgather(np.array([mine.size]), sizes))
        ends = np.cumsum(sizes)
        everything = np.empty(ends[-1], np.uint8)
        target = [everything, sizes, ends - sizes, self.mpi.BYTE]
        self.wait(self.comm.Iallgatherv([mine, self.mpi.BYTE], target))
        return [unpack(part) for part in np.split(everything, ends[:-1])]

    def wait(self, request: Any) -> None:
        """Poll a request until it is done, so that signals are heard meanwhile."""
        since = time.monotonic()
        while not request.Test():
            waited = time.monotonic() - since
            if self.limit is not None and waited > self.limit:
                what = f"has waited {self.limit:g} s for the other ranks; one of them hangs"
                self.abort(sentence(self.watch.facts, what))
            if waited < PATIENCE:
                give_way()
            else:
                time.sleep(NAP)

    def abort(self, text: str, code: int = FAILED) -> NoReturn:
        """Say one sentence and end all ranks of the job."""
        self.watch.say(text)
        end_job(code)
        self.mpi.COMM_WORLD.Abort(code)
        os._exit(code)  # should the library return

    def __enter__(self) -> "World":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or self.size == 1 or is_agreed(error):
            self.comm.Free()
            self.mpi.Finalize()
        elif isinstance(error, Exception):
            self._fall(error)
        else:
            self.abort(str(error) or type(error).__name__, _exit_code(error))

    def _fall(self, error: Exception) -> NoReturn:
        """End the job because of an error that only this rank has met."""
        if isinstance(error, OSError) and error.strerror:
            what = f"{error.filename or 'a file'} cannot be used: {error.strerror}; check the path."
            self.abort(f"{who(self.watch.facts)}: {what}", BAD_INPUT)
        if isinstance(error, AdfsError | CheckpointError):
            code = BAD_INPUT if isinstance(error, AdfsError) else FAILED
            self.abort(f"{who(self.watch.facts)}: {error}", code)
        if not isinstance(error, MemoryError):
            traceback.print_exception(error)
        what = f"met {type(error).__name__}, for which nothing was prepared"
        self.abort(sentence(self.watch.facts, what))


def _exit_code(stop: BaseException) -> int:
    """Of `Interrupted` by a signal, which has a ``number``; of Ctrl-C; of ``sys.exit``."""
    if isinstance(stop, SystemExit):
        return stop.code if isinstance(stop.code, int) else FAILED
    return 128 + int(getattr(stop, "number", signal.SIGINT))


def is_agreed(error: BaseException) -> bool:
    """Whether all ranks know of the error (`adfs.launch.peers.agree`), so that all leave."""
    return bool(getattr(error, "agreed", False) or getattr(error, "spoken_by_another", False))


def give_way() -> None:
    """Let another process have this core, if one wants it."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(0)

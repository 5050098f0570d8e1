"""All ranks of a job: they meet, tell each other values, and leave together."""

import os
import signal
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from adfs.errors import AdfsError, AllRanksRaise, CheckpointError, ParameterError, is_agreed
from adfs.launch.casualty import sentence, who
from adfs.launch.envelope import pack, unpack
from adfs.launch.launcher import end_job, rank_by_environment
from adfs.launch.library import library_of, start_mpi
from adfs.launch.watch import Watch

BAD_INPUT, FAILED = 2, 1
SPINNING = 0.1  # seconds of polling, after which a rank that waits leaves the core to others
WORK = 0.1  # seconds of a poll, beyond which this rank was at work itself
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
    sums, beats, messages : mpi4py.MPI.Comm
        Three more, for sums over all nodes, heartbeats, and messages between nodes.
    timeout : float or None
        Seconds that a wait may take before the job ends; None while ranks read their data.
    is_compared : bool
        Whether the ranks are known to have the same software and rounding (`adfs.agreement`).

    Examples
    --------
    >>> with World.open() as world:  # doctest: +SKIP
    ...     world.gather({"rank": world.rank, "theta": np.zeros(2)})
    [{'rank': 0, 'theta': array([0., 0.])}]
    """

    def __init__(self, mpi: Any, watch: Watch) -> None:
        self.mpi, self.watch = mpi, watch
        self.comm = mpi.COMM_WORLD.Dup()
        self.sums, self.beats, self.messages = (self.comm.Dup() for _ in range(3))
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)
        self.library = library_of(mpi)
        self.timeout: float | None = None
        self.is_compared = False
        watch.tell(rank=self.rank, size=self.size)

    @classmethod
    def open(cls, watch: Watch | None = None) -> "World":
        """Load MPI and meet the other ranks; if this fails, it fails on all, and rank 0 says so."""
        try:
            mpi = start_mpi()
        except ParameterError as error:
            raise error from AllRanksRaise(0, not rank_by_environment())
        return cls(mpi, Watch() if watch is None else watch)

    def gather(self, item: Any) -> list[Any]:
        """What every rank gave, rank 0 first; the same on all ranks, which all have to call.

        An item is whatever JSON knows, with NumPy arrays in it, which keep their bits and may
        differ in size from rank to rank.
        """
        if self.size == 1:
            return [unpack(pack(item))]
        mine = pack(item)
        sizes = np.empty(self.size, np.int64)
        self._complete(self.comm.Iallgather(np.array([mine.size]), sizes))
        ends = np.cumsum(sizes)
        everything = np.empty(ends[-1], np.uint8)
        target = [everything, sizes, ends - sizes, self.mpi.BYTE]
        self._complete(self.comm.Iallgatherv([mine, self.mpi.BYTE], target))
        return [unpack(part) for part in np.split(everything, ends[:-1])]

    def _complete(self, request: Any) -> None:
        self.wait(lambda: bool(request.Test()), lambda: "the other ranks; one of them hangs")

    def wait(
        self,
        there: Callable[[], bool],
        what: Callable[[], str],
        progress: Callable[[], int] | None = None,
    ) -> None:
        """Poll until something is there: the one place where a rank waits for others.

        Signals are noticed between two polls. The job ends with a message when ``timeout`` seconds
        have passed without ``progress``; a poll that took long was work of this rank, no waiting.
        """
        since = before = time.monotonic()
        seen = None if progress is None else progress()
        while not there():
            now = time.monotonic()
            moved = progress is not None and progress() != seen
            if moved or now - before > WORK:
                since, seen = now, None if progress is None else progress()
            if self.timeout is not None and now - since > self.timeout:
                words = f"has waited {self.timeout:g} s for {what()}"
                self.abort(sentence(self.watch.facts, words))
            if now - since < SPINNING:
                give_way()
            else:
                time.sleep(NAP)
            before = time.monotonic()

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
            self.close()
            self.mpi.Finalize()
        elif isinstance(error, Exception):
            self.fall(error)
        else:
            self.abort(str(error) or type(error).__name__, _exit_code(error))

    def close(self) -> None:
        """Give the communicators back."""
        for comm in (self.sums, self.beats, self.messages, self.comm):
            comm.Free()

    def fall(self, error: Exception) -> NoReturn:
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


def give_way() -> None:
    """Let another process have this core, if one wants it."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(0)

"""All ranks of a job: they start, gather values, wait for each other, and end together."""

import os
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from adfs.agreement import Peers
from adfs.errors import AdfsError, AllRanksRaise, CheckpointError, ParameterError, is_agreed
from adfs.mpi.encoding import pack, unpack
from adfs.mpi.failure_message import failure_message, rank_name
from adfs.mpi.launcher import end_job, rank_by_environment
from adfs.mpi.library import library_of, start_mpi
from adfs.mpi.supervisor import SupervisorLink

BAD_INPUT, FAILED = 2, 1
SPINNING = 0.1  # seconds of polling, after which a rank that waits sleeps between two polls
WORK = 0.1  # seconds of a poll, beyond which this rank was working itself
SLEEP = 0.001


class Communicator(Peers):
    """The ranks that mpiexec started, this one included; a context that ends MPI.

    ``MPI_Finalize`` waits for all ranks, so it is called only where all ranks call it: when the
    context is left without an error, or with one on which they agreed. Any other error ends the
    whole job with one message: the other ranks would wait forever.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    link : SupervisorLink
        Holds the facts about this rank, for that message.

    Attributes
    ----------
    rank, size : int
    comm : mpi4py.MPI.Comm
        A duplicate of the world's communicator: our messages are separate from all others.
    library : str
        Name and version of the MPI library.
    sums, beats, messages : mpi4py.MPI.Comm
        Three more, for sums over all nodes, heartbeats, and messages between nodes.
    timeout : float or None
        Seconds that a wait may take before the job ends; None while ranks read their data.
    is_compared : bool
        Whether the ranks were found to have the same software and rounding (`adfs.agreement`).

    Examples
    --------
    >>> with Communicator.open() as world:  # doctest: +SKIP
    ...     world.gather({"rank": world.rank, "theta": np.zeros(2)})
    [{'rank': 0, 'theta': array([0., 0.])}]
    """

    def __init__(self, mpi: Any, link: SupervisorLink) -> None:
        self.mpi, self.link = mpi, link
        self.comm = mpi.COMM_WORLD.Dup()
        self.sums, self.beats, self.messages = (self.comm.Dup() for _ in range(3))
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)
        self.library = library_of(mpi)
        self.timeout: float | None = None
        self.is_compared = False
        link.report(rank=self.rank, size=self.size)

    @classmethod
    def open(cls, link: SupervisorLink | None = None) -> "Communicator":
        """Load MPI and connect all ranks; if this fails, it fails on all, and rank 0 prints it."""
        try:
            mpi = start_mpi()
        except ParameterError as error:
            raise error from AllRanksRaise(0, not rank_by_environment())
        return cls(mpi, SupervisorLink() if link is None else link)

    def gather(self, item: Any) -> list[Any]:
        """The items of all ranks, rank 0 first; all ranks have to call it.

        An item is a value that JSON can hold, with NumPy arrays in it, which keep their bits and
        may differ in size from rank to rank.
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
        progress: Callable[[], int] = lambda: 0,
    ) -> None:
        """See `adfs.agreement.Peers`; a poll that took long was work of this rank, no waiting."""
        since = before = time.monotonic()
        seen = progress()
        while not there():
            now = time.monotonic()
            if now - before > WORK or progress() != seen:
                since, seen = now, progress()
            if self.timeout is not None and now - since > self.timeout:
                self.fail(f"has waited {self.timeout:g} s for {what()}")
            if now - since < SPINNING:
                yield_core()
            else:
                time.sleep(SLEEP)
            before = time.monotonic()

    def fail(self, what: str) -> NoReturn:
        """End the job because of what happened to this rank."""
        self.abort(failure_message(self.link.facts, what))

    def fail_with(self, error: BaseException) -> NoReturn:
        """End the job because of an error that only this rank has."""
        name = rank_name(self.link.facts)
        if not isinstance(error, Exception):
            self.abort(str(error) or type(error).__name__, _exit_code(error))
        if isinstance(error, OSError) and error.strerror:
            what = f"{error.filename or 'a file'} cannot be used: {error.strerror}; check the path."
            self.abort(f"{name}: {what}", BAD_INPUT)
        if isinstance(error, AdfsError | CheckpointError):
            self.abort(f"{name}: {error}", BAD_INPUT if isinstance(error, AdfsError) else FAILED)
        kind = type(error).__name__
        if isinstance(error, MemoryError):
            self.fail(f"failed with {kind}")
        traceback.print_exception(error)
        self.fail(f"failed with an unexpected {kind} (a bug; traceback above)")

    def abort(self, text: str, code: int = FAILED) -> NoReturn:
        """Print one message and end all ranks of the job."""
        self.link.print_failure(text)
        end_job(code)
        self.mpi.COMM_WORLD.Abort(code)
        os._exit(code)  # should the library return

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None and self.size > 1 and not is_agreed(error):
            self.fail_with(error)
        self.close()
        self.mpi.Finalize()

    def close(self) -> None:
        """Free the communicators."""
        for comm in (self.sums, self.beats, self.messages, self.comm):
            comm.Free()


def _exit_code(stop: BaseException) -> int:
    """For ``sys.exit``, for Ctrl-C, and for `Interrupted`, which has the ``number`` of a signal."""
    if isinstance(stop, SystemExit):
        return stop.code if isinstance(stop.code, int) else FAILED
    return 128 + int(getattr(stop, "number", signal.SIGINT))


def yield_core() -> None:
    """Let another process run on this core, if one is ready."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(0)

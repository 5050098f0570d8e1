"""All ranks of a job: they start, gather values, wait for each other, and end together.

The MPI library is loaded only here, late, and only with the launcher that it belongs to.

The command line opens a `Communicator` and ends MPI when it is done. A program of a user continues,
may use MPI itself, and may call again: so `open_world` leaves one world per process open.
"""

import atexit
import contextlib
import ctypes
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import LEAVING, Peers, require_same_software
from adfs.errors import AdfsError, AllRanksRaise, CheckpointError, ParameterError, is_agreed
from adfs.mpi.launcher import rank_by_environment, signal_at_end_of_parent, size_by_environment
from adfs.mpi.supervisor import SupervisorLink, failure_message, rank_name

BAD_INPUT, FAILED = 2, 1
SPINNING = 0.1  # seconds of polling, after which a rank that waits sleeps between two polls
WORK = 0.1  # seconds of a poll, beyond which this rank was working itself
SLEEP = 0.001
ARRAY = "__array__"
LENGTH = 8  # bytes that hold the length of the JSON text

NAMES = ("MPI_Irecv", "MPI_Isend", "MPI_Testall", "MPI_Wtime")  # that compiled code calls
INSTALL = "pip install '.[mpi]' in the folder of adfs's source brings mpi4py and an MPI library"

# Lets another process run on this core, if one is ready.
yield_core: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


def register_mpi_symbols(mpi: Any) -> bool:
    """Register MPI's functions with the compiler; False where this platform does not allow it."""
    from llvmlite import binding  # type: ignore[import-untyped]
    from numba import config

    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return False
    try:
        library = ctypes.CDLL(mpi.__file__)
        functions = {name: getattr(library, name) for name in NAMES}
        functions["sched_yield"] = ctypes.CDLL(None).sched_yield
    except (OSError, AttributeError, TypeError):
        return False
    for name, function in functions.items():
        binding.add_symbol(f"adfs_{name}", ctypes.cast(function, ctypes.c_void_p).value)
    return True


def library_of(mpi: Any) -> str:
    """Name and version of the MPI library, such as ``MPICH 5.0.2``."""
    name, version = mpi.get_vendor()
    return f"{name} {'.'.join(str(part) for part in version)}"


def load_mpi() -> Any:
    """Load the library without starting it, which may end the process."""
    try:
        import mpi4py
    except ImportError:
        text = f"MPI needs the package mpi4py, which is not installed; {INSTALL}."
        raise ParameterError(text) from None
    # MPI_Finalize waits for all ranks, and mpi4py would call it for one that failed alone.
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        why = "; ".join(str(error).splitlines())
        raise ParameterError(
            f"mpi4py cannot load an MPI library ({why}); {INSTALL}, or set MPI4PY_LIBMPI to the "
            "path of yours."
        ) from None
    return MPI


def start_mpi() -> Any:
    """``mpi4py.MPI`` with MPI started and all ranks in one world; for the main thread only."""
    mpi = load_mpi()
    library = library_of(mpi)
    if not mpi.Is_initialized():
        ours = "PMI_RANK" in os.environ or "OMPI_COMM_WORLD_SIZE" not in os.environ
        if library.startswith("MPICH") and not ours:  # it would end the process itself
            raise _foreign("Open MPI started this rank", library)
        with warnings.catch_warnings(), _ending_with_parent():
            warnings.filterwarnings("ignore", "suspicious MPI", RuntimeWarning)  # checked below
            mpi.Init_thread(mpi.THREAD_FUNNELED)
    asked, size = size_by_environment(), mpi.COMM_WORLD.size
    if asked not in (None, size):  # jobs of size 1, each of which would write the same files
        raise _foreign(f"The launcher started {asked} ranks but this one finds {size}", library)
    return mpi


def _foreign(what: str, library: str) -> ParameterError:
    return ParameterError(
        f"{what}: mpiexec belongs to another MPI than mpi4py's library, {library}; start with the "
        "mpiexec of that library (with srun, give --mpi=pmi2 or --mpi=pmix)."
    )


@contextlib.contextmanager
def _ending_with_parent() -> Iterator[None]:
    """Inside, this process is killed when its parent ends, where the system supports that.

    ``MPI_Init`` waits for all ranks in compiled code that holds Python's lock: if another rank dies
    before, no signal handler and no thread can run here, and we would wait forever.
    """
    parent = os.getppid()
    signal_at_end_of_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the request
        os._exit(1)
    try:
        yield
    finally:
        signal_at_end_of_parent(signal.SIGCONT)  # as `SupervisorLink` wants it


class Communicator(Peers):
    """The ranks that mpiexec started, this one included; a context that ends MPI.

    ``MPI_Finalize`` waits for all ranks, so it is called only where all ranks call it: when the
    context is left without an error, or with one on which they agreed. Any other error ends the
    whole job with one message: the other ranks would wait forever.

    ``comm`` is a duplicate of the world's communicator: our messages are separate from all others.
    ``sums``, ``beats`` and ``messages`` are three more, for sums over all nodes, heartbeats, and
    messages between nodes.
    """

    def __init__(self, mpi: Any, link: SupervisorLink) -> None:
        self.mpi, self.link = mpi, link
        self.comm = mpi.COMM_WORLD.Dup()
        self.sums, self.beats, self.messages = (self.comm.Dup() for _ in range(3))
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)
        self.library = library_of(mpi)
        self.has_same_software = False  # whether the ranks were compared
        link.report(rank=self.rank)

    @classmethod
    def open(cls, link: SupervisorLink | None = None) -> "Communicator":
        """Load MPI and connect all ranks; if this fails, it fails on all, and rank 0 prints it."""
        try:
            mpi = start_mpi()
        except ParameterError as error:
            raise error from AllRanksRaise(0, not rank_by_environment())
        return cls(mpi, SupervisorLink() if link is None else link)

    def gather(self, item: Any) -> list[Any]:
        mine = pack(item)
        if self.size == 1:
            return [unpack(mine)]
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
        self, there: Callable[[], bool], what: Callable[[], str], progress: Callable[[], int] = int
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
        name, kind = rank_name(self.link.facts), type(error).__name__
        if isinstance(error, SystemExit):
            self.abort(str(error) or kind, error.code if isinstance(error.code, int) else FAILED)
        if not isinstance(error, Exception):  # Ctrl-C, or `Interrupted` by a signal
            self.abort(str(error) or kind, 128 + int(getattr(error, "number", signal.SIGINT)))
        if isinstance(error, OSError) and error.strerror:
            what = f"{error.filename or 'a file'} cannot be used: {error.strerror}; check the path."
            self.abort(f"{name}: {what}", BAD_INPUT)
        if isinstance(error, AdfsError | CheckpointError):
            self.abort(f"{name}: {error}", BAD_INPUT if isinstance(error, AdfsError) else FAILED)
        if isinstance(error, MemoryError):
            self.fail(f"failed with {kind}")
        traceback.print_exception(error)
        self.fail(f"failed with an unexpected {kind} (a bug; traceback above)")

    def abort(self, text: str, code: int = FAILED) -> NoReturn:
        """Print one message and end all ranks of the job."""
        self.link.fail(text, code)
        self.mpi.COMM_WORLD.Abort(code)
        os._exit(code)  # should the library return

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.end_with(error)
        self.close()
        self.mpi.Finalize()

    def end_with(self, error: BaseException | None) -> None:
        if error is not None and self.size > 1 and not is_agreed(error):
            self.fail_with(error)

    def close(self) -> None:
        for comm in (self.sums, self.beats, self.messages, self.comm):
            comm.Free()


def pack(item: Any) -> NDArray[np.uint8]:
    """Bytes of a value: a length, a JSON text, and the arrays in it; nothing is pickled.

    Examples
    --------
    >>> unpack(pack({"node": 3, "theta": np.arange(2.0)}))
    {'node': 3, 'theta': array([0., 1.])}
    """
    arrays: list[bytes] = []

    def place(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray) or value.dtype.hasobject:
            raise TypeError(f"{type(value).__name__} is neither JSON nor an array of numbers")
        arrays.append(value.tobytes())
        return {ARRAY: [value.dtype.str, list(value.shape)]}

    text = json.dumps(item, default=place).encode()
    length = len(text).to_bytes(LENGTH, "little")
    return np.frombuffer(b"".join([length, text, *arrays]), np.uint8)


def unpack(packed: NDArray[np.uint8]) -> Any:
    """The value in its bytes; arrays are new and may be written, tuples have become lists."""
    at = LENGTH + int.from_bytes(packed[:LENGTH].tobytes(), "little")
    text = packed[LENGTH:at].tobytes()

    def fetch(value: dict[str, Any]) -> Any:
        nonlocal at
        if ARRAY not in value:
            return value
        kind, shape = value[ARRAY]
        array = np.empty(shape, kind)
        array.ravel().view(np.uint8)[:] = packed[at : at + array.nbytes]
        at += array.nbytes
        return array

    return json.loads(text, object_hook=fetch)


_worlds: list[Communicator] = []  # at most one
_busy = threading.Lock()


@contextlib.contextmanager
def session() -> Iterator[Communicator]:
    """The world of this process; an error on which its ranks do not agree ends the job."""
    if not _busy.acquire(blocking=False):
        raise ParameterError(
            "engine='mpi' makes one fit at a time, and another thread makes one; use n_jobs=1."
        )
    try:
        world = open_world()
        try:
            yield world
        except BaseException as error:
            world.end_with(error)
            raise
    finally:
        _busy.release()


def open_world() -> Communicator:
    """The one world of this process; MPI is started where it is not, and then ended at exit."""
    name = multiprocessing.current_process().name
    if name != "MainProcess":  # it has the environment of a rank
        raise ParameterError(
            f"engine='mpi' works between processes that mpiexec started, and {name} is a worker of "
            "one of them; use n_jobs=1, or engine='local'."
        )
    if not _worlds:
        mpi = sys.modules.get("mpi4py.MPI")
        started = mpi is not None and mpi.Is_initialized()
        if mpi is not None and started and mpi.Is_finalized():
            raise ParameterError("This program has ended MPI (MPI_Finalize); fit before it does.")
        _worlds.append(Communicator.open())
        atexit.register(_leave, _worlds[0], not started)
    world = _worlds[0]
    if not world.has_same_software:
        require_same_software(world)
        world.has_same_software = True
    world.timeout = None  # ranks may be late, because they read their data
    return world


def _leave(world: Communicator, ours: bool) -> None:
    """End MPI with the program, if we have started it.

    A rank sends `LEAVING` where others would begin their next fit; if one does, the job ends.
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

"""Loading the MPI library: only here, late, and only with the launcher that it belongs to."""

import contextlib
import ctypes
import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any

from adfs.errors import ParameterError
from adfs.mpi.launcher import size_by_environment

NAMES = ("MPI_Irecv", "MPI_Isend", "MPI_Testall", "MPI_Wtime")


def register_mpi_symbols(mpi: Any) -> bool:
    """Register MPI's functions with the compiler; False where this platform does not allow it."""
    from llvmlite import binding  # type: ignore[import-untyped]
    from numba import config

    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return False
    try:
        library = ctypes.CDLL(mpi.__file__)
        found = {name: _address(getattr(library, name)) for name in NAMES}
        found["sched_yield"] = _address(ctypes.CDLL(None).sched_yield)
    except (OSError, AttributeError, TypeError):
        return False
    for name, address in found.items():
        binding.add_symbol(f"adfs_{name}", address)
    return True


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise AttributeError("no address")
    return address


SET_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
INSTALL = "pip install '.[mpi]' in the folder of adfs's source brings mpi4py and an MPI library"


def start_mpi() -> Any:
    """``mpi4py.MPI`` with MPI started and all ranks in one world.

    All calls are to come from the main thread. We call ``MPI_Finalize`` ourselves: it waits for all
    ranks, and mpi4py would call it at the end of a rank that failed alone.
    """
    mpi = load_mpi()
    if not mpi.Is_initialized():
        _check_family(library_of(mpi))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "suspicious MPI", RuntimeWarning)  # see _check_size
            with ending_with_parent():
                mpi.Init_thread(mpi.THREAD_FUNNELED)
    _check_size(mpi.COMM_WORLD.size, library_of(mpi))
    return mpi


@contextlib.contextmanager
def ending_with_parent() -> Iterator[None]:
    """Inside, this process is killed when its parent ends, where the system supports that.

    ``MPI_Init`` waits for all ranks in compiled code that holds Python's lock: if another rank dies
    before, no signal handler and no thread can run here, and we would wait forever.
    """
    parent = os.getppid()
    if not _follow_parent(signal.SIGKILL):
        yield
        return
    if os.getppid() != parent:  # it ended before the request
        os._exit(1)
    try:
        yield
    finally:
        _follow_parent(0)


def _follow_parent(number: int) -> bool:
    """Request this signal for when our parent ends; False where the system does not support it."""
    try:
        return bool(ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def library_of(mpi: Any) -> str:
    """Name and version of the MPI library, such as ``MPICH 5.0.2``."""
    name, version = mpi.get_vendor()
    return f"{name} {'.'.join(str(part) for part in version)}"


def load_mpi() -> Any:
    """Load the library without starting it, which may end the process."""
    try:
        import mpi4py
    except ImportError:
        raise ParameterError(
            f"MPI needs the package mpi4py, which is not installed; {INSTALL}."
        ) from None
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "suspicious MPI", RuntimeWarning)
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        why = "; ".join(str(error).splitlines())
        raise ParameterError(
            f"mpi4py cannot load an MPI library ({why}); {INSTALL}, or set MPI4PY_LIBMPI to the "
            "path of yours."
        ) from None
    return MPI


def _check_family(library: str) -> None:
    """Refuse MPICH's library under Open MPI's launcher, where it would end the process itself."""
    ours = "PMI_RANK" in os.environ or "OMPI_COMM_WORLD_SIZE" not in os.environ
    if library.startswith("MPICH") and not ours:
        raise _foreign("Open MPI started this rank", library)


def _check_size(size: int, library: str) -> None:
    """Refuse a world that has not the size that the launcher gives.

    The mpiexec of one MPI with the library of another starts ranks that do not connect: several
    jobs of size 1, each of which would write the same files.
    """
    asked = size_by_environment()
    if asked is not None and asked != size:
        raise _foreign(f"The launcher started {asked} ranks but this one finds {size}", library)


def _foreign(what: str, library: str) -> ParameterError:
    return ParameterError(
        f"{what}: mpiexec belongs to another MPI than mpi4py's library, {library}; start with the "
        "mpiexec of that library (with srun, give --mpi=pmi2 or --mpi=pmix)."
    )

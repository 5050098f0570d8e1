"""Loading the MPI library: alone here, late, and only together with the launcher it belongs to."""

import contextlib
import ctypes
import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any

from adfs.errors import ParameterError
from adfs.launch.launcher import size_by_environment

SET_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
INSTALL = "pip install 'adfs[mpi]' brings mpi4py together with an MPI library"


def start_mpi() -> Any:
    """``mpi4py.MPI`` with MPI under way and all ranks in one world.

    All calls are to come from the main thread. ``MPI_Finalize`` is left to us: it waits for all
    ranks, and mpi4py would call it at the end of a rank that failed alone.
    """
    mpi = load_mpi()
    if not mpi.Is_initialized():
        _check_family(library_of(mpi))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "suspicious MPI", RuntimeWarning)  # we say it better
            with dying_with_parent():
                mpi.Init_thread(mpi.THREAD_FUNNELED)
    _check_size(mpi.COMM_WORLD.size, library_of(mpi))
    return mpi


@contextlib.contextmanager
def dying_with_parent() -> Iterator[None]:
    """While inside, the end of the process that started us is ours too, where the system can.

    ``MPI_Init`` waits for all ranks in compiled code that holds Python's lock: should one die
    before it came, neither a signal's handler nor a thread would be heard, and we would spin on.
    """
    parent = os.getppid()
    if not _follow_parent(signal.SIGKILL):
        yield
        return
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)
    try:
        yield
    finally:
        _follow_parent(0)


def _follow_parent(number: int) -> bool:
    """Ask for this signal when our parent dies; False where the system does not know how."""
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
    """Refuse a world that is not as large as its launcher says.

    The mpiexec of one MPI with the library of another starts ranks that do not find each other:
    several jobs of size 1, each of which would write the same files.
    """
    asked = size_by_environment()
    if asked is not None and asked != size:
        raise _foreign(f"The launcher started {asked} ranks but this one finds {size}", library)


def _foreign(what: str, library: str) -> ParameterError:
    return ParameterError(
        f"{what}: mpiexec belongs to another MPI than mpi4py's library, {library}; start with the "
        "mpiexec of that library (with srun, give --mpi=pmi2 or --mpi=pmix)."
    )

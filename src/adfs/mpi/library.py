"""Loading the MPI library: only here, late, and only with the launcher that it belongs to."""

import contextlib
import ctypes
import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any

from adfs.errors import ParameterError
from adfs.mpi.launcher import signal_at_end_of_parent, size_by_environment

NAMES = ("MPI_Irecv", "MPI_Isend", "MPI_Testall", "MPI_Wtime")
INSTALL = "pip install '.[mpi]' in the folder of adfs's source brings mpi4py and an MPI library"


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
    if asked not in (
        None,
        size,
    ):  # several jobs of size 1, each of which would write the same files
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

"""MPI's C functions for compiled code: the symbols of the library that mpi4py has loaded."""

import ctypes
from typing import Any

NAMES = ("MPI_Irecv", "MPI_Isend", "MPI_Testall", "MPI_Wtime")


def register(mpi: Any) -> bool:
    """Make the functions known to the compiler; False where this platform does not allow it."""
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

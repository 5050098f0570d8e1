"""Holding BLAS to one thread, so that sums have one order on every machine and rank."""

import functools
from contextlib import AbstractContextManager
from typing import Any


def one_blas_thread() -> AbstractContextManager[object]:
    """Context in which BLAS uses one thread: ranks with different numbers agree to the bit."""
    limits: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limits


@functools.cache
def _controller() -> Any:
    """Looking for the libraries reads the whole memory map, so it is done once."""
    import scipy.linalg  # noqa: F401  (a library loaded later would escape the limit)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

"""Holding BLAS to one thread, so that sums have one order on every machine and rank."""

from contextlib import AbstractContextManager


def one_blas_thread() -> AbstractContextManager[object]:
    """Context in which BLAS uses one thread: ranks with different numbers agree to the bit."""
    import scipy.linalg  # noqa: F401  (a library loaded later would escape the limit)
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits

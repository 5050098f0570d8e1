"""One interface to a sample's features, dense or CSR; the compiler picks by type, no twin kernels.

Sums have a fixed order (partial sums, then a fixed tree), so the same row gives the same bits in
every engine. Matrices come with a row number instead of a view of the row: making a view counts
references, which costs more than a short row's arithmetic.
"""

import inspect
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from adfs.kernels.memory import CACHE_LINE, prefetch
from adfs.kernels.row_updates import csr_two_axpys, csr_two_dots, dense_two_axpys, dense_two_dots


class DenseRows(NamedTuple):
    """Features as an (N, d) array, C-contiguous."""

    values: np.ndarray


class CsrRows(NamedTuple):
    """Features in compressed sparse rows."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


def _dense_two_dots(rows, row, pairs, node):
    return dense_two_dots(rows.values, row, pairs, node)


def _csr_two_dots(rows, row, pairs, node):
    first, last = rows.indptr[row], rows.indptr[row + 1]
    return csr_two_dots(rows.values, rows.indices, first, last, pairs, node)


def _dense_two_axpys(rows, row, alpha, beta, pairs, node):
    dense_two_axpys(rows.values, row, alpha, beta, pairs, node)


def _csr_two_axpys(rows, row, alpha, beta, pairs, node):
    first, last = rows.indptr[row], rows.indptr[row + 1]
    csr_two_axpys(rows.values, rows.indices, first, last, alpha, beta, pairs, node)


def _dense_dot(rows, row, a):
    values = rows.values
    d = values.shape[1]
    a0 = a1 = a2 = a3 = 0.0
    full = d - d % 4
    for k in range(0, full, 4):
        a0 += np.float64(values[row, k]) * a[k]
        a1 += np.float64(values[row, k + 1]) * a[k + 1]
        a2 += np.float64(values[row, k + 2]) * a[k + 2]
        a3 += np.float64(values[row, k + 3]) * a[k + 3]
    for k in range(full, d):
        a0 += np.float64(values[row, k]) * a[k]
    return (a0 + a1) + (a2 + a3)


def _csr_dot(rows, row, a):
    values, indices = rows.values, rows.indices
    first, last = rows.indptr[row], rows.indptr[row + 1]
    a0 = a1 = a2 = a3 = 0.0
    full = last - (last - first) % 4
    for k in range(first, full, 4):
        a0 += np.float64(values[k]) * a[indices[k]]
        a1 += np.float64(values[k + 1]) * a[indices[k + 1]]
        a2 += np.float64(values[k + 2]) * a[indices[k + 2]]
        a3 += np.float64(values[k + 3]) * a[indices[k + 3]]
    for k in range(full, last):
        a0 += np.float64(values[k]) * a[indices[k]]
    return (a0 + a1) + (a2 + a3)


def _dense_axpy(rows, row, alpha, a):
    values = rows.values
    for k in range(values.shape[1]):
        a[k] += alpha * np.float64(values[row, k])


def _csr_axpy(rows, row, alpha, a):
    for k in range(rows.indptr[row], rows.indptr[row + 1]):
        a[rows.indices[k]] += alpha * np.float64(rows.values[k])


def _dense_norm2(rows, row):
    values = rows.values
    total = 0.0
    for k in range(values.shape[1]):
        total += np.float64(values[row, k]) ** 2
    return total


def _csr_norm2(rows, row):
    total = 0.0
    for k in range(rows.indptr[row], rows.indptr[row + 1]):
        total += np.float64(rows.values[k]) ** 2
    return total


def _dense_max_norm(rows, row):
    values = rows.values
    largest = 0.0
    for k in range(values.shape[1]):
        largest = max(largest, abs(np.float64(values[row, k])))
    return largest


def _csr_max_norm(rows, row):
    largest = 0.0
    for k in range(rows.indptr[row], rows.indptr[row + 1]):
        largest = max(largest, abs(np.float64(rows.values[k])))
    return largest


def _dense_prefetch(rows, row):
    values = rows.values
    width = values.shape[1] * values.itemsize
    address = values.ctypes.data + row * width
    for byte in range(0, min(width, 1024), CACHE_LINE):
        prefetch(np.uintp(address + byte))
    prefetch(np.uintp(address + width - 1))


def _csr_prefetch(rows, row):
    # The first lines only: the processor follows a stream by itself once it has begun, and a loop
    # over a row's own length would cost a mispredicted branch.
    first = rows.indptr[row]
    values = rows.values.ctypes.data + first * rows.values.itemsize
    indices = rows.indices.ctypes.data + first * rows.indices.itemsize
    for line in range(3):
        prefetch(np.uintp(values + line * CACHE_LINE))
    for line in range(2):
        prefetch(np.uintp(indices + line * CACHE_LINE))


def _by_layout(dense, csr, doc):
    """Make one function of the two: chosen by type, when compiled and when not."""

    def function(rows, *args):
        return (dense if isinstance(rows, DenseRows) else csr)(rows, *args)

    def choose(rows, *args):
        return dense if len(rows) == len(DenseRows._fields) else csr

    function.__doc__ = doc
    function.__signature__ = choose.__signature__ = inspect.signature(dense)
    overload(function, jit_options={"_nrt": False, "forceinline": True})(choose)
    return function


dot = _by_layout(_dense_dot, _csr_dot, "``x . a`` for the row ``x``.")
axpy = _by_layout(_dense_axpy, _csr_axpy, "``a += alpha x``, touching only the non-zeros.")
norm2 = _by_layout(_dense_norm2, _csr_norm2, "``|x|^2``, zero where all squares underflow.")
max_norm = _by_layout(_dense_max_norm, _csr_max_norm, "The largest ``|x_k|``.")
two_dots = _by_layout(
    _dense_two_dots, _csr_two_dots, "``(x . s, x . delta)`` for the pairs ``(s, delta)`` of a node."
)
two_axpys = _by_layout(
    _dense_two_axpys, _csr_two_axpys, "``s += alpha x`` and ``delta += beta x``, in place."
)
prefetch_row = _by_layout(
    _dense_prefetch, _csr_prefetch, "Ask for the row's memory before it is needed."
)

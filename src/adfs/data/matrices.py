"""Matrices of samples, dense or CSR, and what is checked about them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack, issparse

from adfs.errors import DataError

Matrix: TypeAlias = "NDArray[Any] | csr_matrix[Any]"
Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]

LARGEST_INDEX = np.iinfo(np.int32).max
MOST_COLUMNS = 2**40 - 1  # one vector of so many numbers takes 8 TB
CHECK_BLOCK = 1 << 20


class Samples(NamedTuple):
    """Rows ``X``, an array or a ``scipy.sparse.csr_matrix``, and their labels ``y``."""

    X: Matrix
    y: NDArray[Any]


def csr_of(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> csr_matrix[Any]:
    """The CSR matrix of three arrays, with int32 indices where they fit, else int64."""
    index_type: Any = np.int32 if max(len(data), *shape) <= LARGEST_INDEX else np.int64
    indices, indptr = (part.astype(index_type, copy=False) for part in (indices, indptr))
    return csr_matrix((data, indices, indptr), shape=shape)


def row_view(X: Matrix, start: int, stop: int) -> Matrix:
    """Rows ``start`` to ``stop`` that share memory with ``X``.

    SciPy's constructor copies a slice smaller than half of its base, so the slices are put into an
    empty matrix by hand.
    """
    if isinstance(X, np.ndarray):
        return X[start:stop]
    first, last = X.indptr[start], X.indptr[stop]
    view = csr_matrix((stop - start, X.shape[1]), dtype=X.dtype)
    view.data, view.indices = X.data[first:last], X.indices[first:last]
    view.indptr = X.indptr[start : stop + 1] - first
    view.has_canonical_format = True
    return view


def with_constant(X: Matrix, height: float = 1.0) -> Matrix:
    """``X`` with a last column of ``height``, in its own layout and type of number."""
    column = np.full((X.shape[0], 1), height, dtype=X.dtype)
    if isinstance(X, np.ndarray):
        return np.hstack([X, column])
    return hstack([csr_matrix(X), csr_matrix(column)], format="csr")


def as_matrix(source: Any, where: str, finite: bool = True, merge: bool = True) -> Any:
    """``source`` as a C-contiguous array, or in CSR with sorted indices; float32 or float64.

    What already is so is not copied. ``where`` is its name in messages; ``finite`` refuses NaN and
    infinity; ``merge`` adds up the values of an index that a row gives twice, else it is refused.
    """
    if issparse(source):
        matrix = checked_csr(source, where)
    else:
        try:
            matrix = np.asarray(source)
        except ValueError as error:
            raise DataError(f"{where} is not a rectangular array: {error}.") from None
    check_kind(matrix.shape, matrix.dtype, where)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if not issparse(matrix):
        matrix = np.require(matrix, requirements=("C", "A"))
    if finite:
        _require_finite(matrix.data if issparse(matrix) else matrix.reshape(-1), where)
    if not issparse(matrix):
        return matrix
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    if not matrix.has_canonical_format:
        if not merge:
            raise DataError(f"{where} must give an index once per row; merge what is double.")
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def check_kind(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
    """Refuse rows of this shape and type."""
    if len(shape) != 2:
        raise DataError(
            f"{where} must have two dimensions, rows and features, not shape {shape}; reshape it."
        )
    if 0 in shape:
        raise DataError(
            f"{where} must have at least one row and one feature, but is empty: its shape is "
            f"{shape}; give every node a row."
        )
    if dtype.kind not in "fiub":
        raise DataError(f"{where} must hold real numbers, not {dtype}; convert it.")


def as_vector(values: Any, n_rows: int, where: str, numbers: bool = True) -> NDArray[Any]:
    """One value per row, finite: float64, or anything else unless ``numbers``."""
    try:
        vector = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{where} must be one-dimensional: {error}.") from None
    if vector.shape != (n_rows,):
        raise DataError(
            f"{where} must be one-dimensional with one entry per row, {n_rows} in all, but has "
            f"shape {vector.shape}; flatten or complete it."
        )
    if vector.dtype.kind in "fiub":
        _require_finite(vector, where)
        return vector.astype(np.float64, copy=False) if numbers else vector
    if numbers or vector.dtype.kind == "c":
        raise DataError(f"{where} must hold real numbers, not {vector.dtype}; convert it.")
    return vector


def _require_finite(values: NDArray[Any], where: str) -> None:
    for start in range(0, len(values), CHECK_BLOCK):
        if not np.isfinite(values[start : start + CHECK_BLOCK]).all():
            raise DataError(
                f"{where} must be finite, but holds NaN or infinity; remove or repair the row."
            )


def checked_csr(matrix: Any, where: str) -> Any:
    """A sparse matrix in CSR, once all its indices are known to be within its shape.

    SciPy's constructors do not check indices, and its conversions write where they point, so they
    are checked before a conversion, too.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> checked_csr(csr_matrix(([1.0], [5], [0, 1]), shape=(1, 4)), "X")
    Traceback (most recent call last):
    adfs.errors.DataError: X must be a sparse matrix whose indices fit its shape (1, 4), but index \
5 must be >= 0 and < 4; build it again from rows, columns and values.
    """
    if matrix.ndim != 2:
        raise DataError(f"{where} must have two dimensions, not shape {matrix.shape}; reshape it.")
    fault = _fault(matrix)
    if fault is None:
        matrix = _signed(matrix).tocsr()
        fault = _fault(matrix)
    if fault:
        raise DataError(
            f"{where} must be a sparse matrix whose indices fit its shape {matrix.shape}, but "
            f"{fault}; build it again from rows, columns and values."
        )
    return matrix


def _signed(matrix: Any) -> Any:
    """The same matrix with signed indices: SciPy's compiled code takes no others."""
    if matrix.format not in ("csr", "csc", "bsr") or matrix.indices.dtype.kind != "u":
        return matrix
    parts = (matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64))
    return type(matrix)(parts, shape=matrix.shape)


def _fault(matrix: Any) -> str | None:
    """The error in the indices of a matrix whose conversion to CSR follows them."""
    n_rows, n_columns = matrix.shape
    if n_columns > MOST_COLUMNS:
        return f"there may be at most {MOST_COLUMNS} columns"
    if matrix.format == "coo":
        return index_fault(matrix.row, n_rows) or index_fault(matrix.col, n_columns)
    if matrix.format == "bsr":
        n_rows, n_columns = n_rows // matrix.blocksize[0], n_columns // matrix.blocksize[1]
    if matrix.format == "csc":
        n_rows, n_columns = n_columns, n_rows
    if matrix.format not in ("csr", "csc", "bsr"):
        return None
    n_entries = min(len(matrix.indices), len(matrix.data))
    return indptr_fault(matrix.indptr, n_rows, n_entries) or index_fault(
        matrix.indices[: matrix.indptr[-1]], n_columns
    )


def indptr_fault(indptr: NDArray[Any], n_rows: int, n_entries: int) -> str | None:
    """What is wrong with the array that says where each row begins and ends."""
    if indptr.dtype.kind not in "iu" or indptr.shape != (n_rows + 1,):
        return f"indptr must hold {n_rows + 1} whole numbers, not {indptr.dtype} of {indptr.shape}"
    if indptr[0] != 0 or indptr[-1] > n_entries:
        return f"indptr must go from 0 to at most {n_entries}, not from {indptr[0]} to {indptr[-1]}"
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        return f"indptr must not fall, but does after row {falls[0]}"
    return None


def index_fault(indices: NDArray[Any], size: int) -> str | None:
    """What is wrong with the first index that is outside ``size`` columns or rows."""
    if indices.dtype.kind not in "iu":
        return f"indices must be whole numbers, not {indices.dtype}"
    if not len(indices) or (indices.min() >= 0 and indices.max() < size):
        return None
    wrong = indices[(indices < 0) | (indices >= size)]
    return f"index {wrong[0]} must be >= 0 and < {size}"

"""From what a person hands over to flat arrays: checked shards, joined without a copy."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adfs.errors import DataError
from adfs.kernels.rows import CsrRows, DenseRows

Vector = NDArray[np.float64]
Rows = DenseRows | CsrRows
Part = tuple[Any, NDArray[Any], Vector | None]  # features, labels, weights of a shard

CHECK_BLOCK = 1 << 20


class Joined(NamedTuple):
    """All nodes' rows one after another; node ``i`` owns ``offsets[i]`` to ``offsets[i + 1]``."""

    rows: Rows
    targets: NDArray[Any]
    weights: Vector
    offsets: NDArray[np.int64]
    n_features: int


def join_shards(shards: Sequence[Any]) -> Joined:
    """Check the shards one by one and against each other, then lay them end to end."""
    if len(shards) == 0:
        raise DataError("There are no shards; a problem needs at least one node with data.")
    parts = [_checked(shard, node) for node, shard in enumerate(shards)]
    _same_width(parts)
    counts = np.array([len(targets) for _, targets, _ in parts], dtype=np.int64)
    targets = _end_to_end([targets for _, targets, _ in parts])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    weights = np.ones(int(offsets[-1]))
    for node, (_, _, given) in enumerate(parts):
        if given is not None:
            weights[offsets[node] : offsets[node + 1]] = given
    matrices = [matrix for matrix, _, _ in parts]
    return Joined(_join_matrices(matrices), targets, weights, offsets, matrices[0].shape[1])


def as_rows(matrix: Any) -> Rows:
    """Kernel view of a dense array or a CSR matrix."""
    return _join_matrices([_matrix(matrix, "X")])


def slice_rows(rows: Rows, n_features: int, first: int, last: int) -> Any:
    """Rows of a range as a dense array or a CSR matrix, float64, as they are stored."""
    if isinstance(rows, DenseRows):
        return np.asarray(rows.values[first:last], dtype=np.float64)
    start, stop = rows.indptr[first], rows.indptr[last]
    return sp.csr_matrix(
        (rows.values[start:stop].astype(np.float64), rows.indices[start:stop],
         rows.indptr[first : last + 1] - start),
        shape=(last - first, n_features),
    )  # fmt: skip


def _checked(shard: Any, node: int) -> Part:
    where = f"The shard of node {node}"
    if not isinstance(shard, tuple | list) or len(shard) not in (2, 3):
        raise DataError(f"{where} must be (X, y) or (X, y, weights), not {type(shard).__name__}.")
    matrix = _matrix(shard[0], where)
    targets = np.asarray(shard[1])
    if targets.ndim != 1 or len(targets) != matrix.shape[0]:
        raise DataError(
            f"{where} has {matrix.shape[0]} rows but labels of shape {targets.shape}; "
            "give one label a row."
        )
    if matrix.shape[0] == 0:
        raise DataError(f"{where} is empty (zero samples); give every node at least one row.")
    if targets.dtype.kind in "fc" and not np.isfinite(targets).all():
        raise DataError(f"{where} has a label that is NaN or infinite; remove or repair the row.")
    weights = shard[2] if len(shard) == 3 else None
    return matrix, targets, _weights(weights, len(targets), where)


def _weights(weights: Any, count: int, where: str) -> Vector | None:
    if weights is None:
        return None
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} has weights that are not numbers: {error}.") from None
    if values.shape != (count,):
        raise DataError(f"{where} has {count} rows but weights of shape {values.shape}.")
    if not np.isfinite(values).all() or (values < 0).any():
        worst = values[~(np.isfinite(values) & (values >= 0))][0]
        raise DataError(f"{where} has the sample weight {worst}; weights are finite and >= 0.")
    return values


def _matrix(matrix: Any, where: str) -> Any:
    """Dense C-contiguous or CSR with sorted indices, float32 or float64, finite."""
    if sp.issparse(matrix):
        matrix = matrix.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values = matrix.data
    else:
        try:
            matrix = np.asarray(matrix)
        except ValueError as error:
            raise DataError(f"{where} is not a rectangular array: {error}.") from None
        values = matrix
    if matrix.ndim != 2:
        raise DataError(f"{where} must be two-dimensional, not of shape {matrix.shape}.")
    if matrix.shape[1] == 0:
        raise DataError(f"{where} has no features; give at least one column.")
    if values.dtype.kind not in "fiub":
        raise DataError(f"{where} has features of type {values.dtype}; give real numbers.")
    if values.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if not sp.issparse(matrix):
        matrix = np.ascontiguousarray(matrix)
    _require_finite(matrix.data if sp.issparse(matrix) else matrix.reshape(-1), where)
    return matrix


def _require_finite(values: NDArray[Any], where: str) -> None:
    for start in range(0, len(values), CHECK_BLOCK):
        if not np.isfinite(values[start : start + CHECK_BLOCK]).all():
            raise DataError(f"{where} has a NaN or an infinity; remove or repair its row.")


def _same_width(parts: list[Part]) -> None:
    width = parts[0][0].shape[1]
    for node, (matrix, _, _) in enumerate(parts):
        if matrix.shape[1] != width:
            raise DataError(
                f"The shard of node {node} has {matrix.shape[1]} features but that of node 0 has "
                f"{width}; all shards need the same columns (pad with zeros, or use --n-features)."
            )


def _join_matrices(matrices: list[Any]) -> Rows:
    if all(not sp.issparse(matrix) for matrix in matrices):
        return DenseRows(_end_to_end(matrices))
    # csr_matrix(slice) would copy a slice of a larger array, so what is CSR stays as it is.
    matrices = [m if sp.issparse(m) else sp.csr_matrix(m) for m in matrices]
    counts = np.concatenate([np.diff(matrix.indptr) for matrix in matrices])
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    values = _end_to_end([matrix.data for matrix in matrices])
    indices = _end_to_end([matrix.indices for matrix in matrices])
    if indices.dtype != np.int32 and matrices[0].shape[1] <= np.iinfo(np.int32).max:
        indices = indices.astype(np.int32)
    return CsrRows(values, indices, indptr)


def _end_to_end(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate along the first axis; neighbouring views of one array are joined in place."""
    if len(parts) == 1:
        return parts[0]
    width = parts[0].shape[1:]
    follows = all(
        left.dtype == right.dtype
        and left.flags.c_contiguous
        and right.flags.c_contiguous
        and left.ctypes.data + left.nbytes == right.ctypes.data
        and _owner(left) is _owner(right)
        for left, right in itertools.pairwise(parts)
    )
    if not follows:
        return np.ascontiguousarray(np.concatenate(parts))
    # A part of one row may carry any stride, so the strides are made anew.
    shape = (sum(len(part) for part in parts), *width)
    itemsize = parts[0].itemsize
    strides = (itemsize * int(np.prod(width)), *(itemsize for _ in width))
    return np.lib.stride_tricks.as_strided(parts[0], shape, strides)


def _owner(array: NDArray[Any]) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array

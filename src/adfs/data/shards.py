"""From the arrays of a user to flat arrays: checked shards, joined without a copy; coded labels."""

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adfs.agreement import Peers, attempt
from adfs.data.matrices import Vector, as_matrix, as_vector
from adfs.data.partition import Shards
from adfs.errors import DataError, shortened
from adfs.kernels.rows import CsrRows, DenseRows
from adfs.losses import Loss

Rows = DenseRows | CsrRows
Part = tuple[Any, NDArray[Any], Vector | None]  # features, labels, weights of a shard


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
    if isinstance(shards, Shards) and np.diff(shards.offsets).all():
        with contextlib.suppress(DataError):  # said below with the number of the node
            return _joined([shards.whole])._replace(offsets=shards.offsets)
    return _joined(shards)


def _joined(shards: Sequence[Any]) -> Joined:
    parts = [_checked(shard, node) for node, shard in enumerate(shards)]
    width = parts[0][0].shape[1]
    for node, (matrix, _, _) in enumerate(parts):
        if matrix.shape[1] != width:
            raise DataError(
                f"The shard of node {node} has {matrix.shape[1]} features but that of node 0 has "
                f"{width}; all shards need the same columns (pad with zeros, or use --n-features)."
            )
    labels = [targets for _, targets, _ in parts]
    try:
        targets = _end_to_end(labels)
    except TypeError:
        kinds = ", ".join(sorted({str(part.dtype) for part in labels}))
        raise DataError(f"Labels of all shards must be of one kind, not {kinds}.") from None
    offsets = np.cumsum([0, *map(len, labels)])
    weights = np.ones(int(offsets[-1]))
    for node, (_, _, given) in enumerate(parts):
        if given is not None:
            weights[offsets[node] : offsets[node + 1]] = given
    rows = _join_matrices([matrix for matrix, _, _ in parts])
    return Joined(rows, targets, weights, offsets, width)


def as_rows(matrix: Any) -> Rows:
    """Kernel view of a dense array or a CSR matrix."""
    return _join_matrices([as_matrix(matrix, "X")])


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
    matrix = as_matrix(shard[0], f"{where}: X")
    targets = as_vector(shard[1], matrix.shape[0], f"{where}: y", numbers=False)
    if len(shard) == 2 or shard[2] is None:
        return matrix, targets, None
    weights = as_vector(shard[2], len(targets), f"{where}: weights")
    if (weights < 0).any():
        raise DataError(f"{where}: weights must be >= 0, but one is {weights.min()}; remove it.")
    return matrix, targets, weights


def _join_matrices(matrices: list[Any]) -> Rows:
    if all(not sp.issparse(matrix) for matrix in matrices):
        return DenseRows(_end_to_end(matrices))
    # csr_matrix(slice) would copy a slice of a larger array, so what is CSR stays as it is.
    matrices = [m if sp.issparse(m) else sp.csr_matrix(m) for m in matrices]
    counts = np.concatenate([np.diff(matrix.indptr) for matrix in matrices])
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    values = _end_to_end([matrix.data[: matrix.indptr[-1]] for matrix in matrices])
    indices = _end_to_end([matrix.indices[: matrix.indptr[-1]] for matrix in matrices])
    if indices.dtype != np.int32 and matrices[0].shape[1] <= np.iinfo(np.int32).max:
        indices = indices.astype(np.int32)
    return CsrRows(values, indices, indptr)


def _follow(parts: list[NDArray[Any]]) -> bool:
    """Whether these are neighbouring views of one array."""
    first, end = parts[0], parts[0].ctypes.data
    owner = _owner(first)
    for part in parts:
        follows = (
            part.dtype == first.dtype
            and part.flags.c_contiguous
            and part.__array_interface__["data"][0] == end
            and _owner(part) is owner
        )
        if not follows:
            return False
        end += part.nbytes
    return True


def _end_to_end(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate along the first axis; neighbouring views of one array are joined in place."""
    if len(parts) == 1:
        return parts[0]
    width = parts[0].shape[1:]
    if not _follow(parts):
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


def classes_of(
    targets: NDArray[Any], loss: Loss, peers: Peers, most: int = 2
) -> NDArray[Any] | None:
    """The classes over all processes, two or up to ``most``, in order; None for a regression."""
    if not loss.binary:
        return None
    classes = attempt(peers, lambda: _distinct(targets))
    gathered = peers.gather(classes.tolist() if classes.dtype.kind == "O" else classes)
    if peers.size > 1:
        of_all = [np.asarray(each) for each in gathered]
        classes = attempt(peers, lambda: _distinct(np.concatenate(of_all)))
    attempt(peers, lambda: _require_classes(classes, loss, most))
    return classes


def encode(targets: NDArray[Any], loss: Loss, classes: NDArray[Any] | None) -> NDArray[np.float64]:
    """Labels as the kernels need them: -1 and 1 for classes, else the targets as they are."""
    if classes is not None:
        return np.where(targets == classes[1], 1.0, -1.0)
    if targets.dtype.kind not in "fiub":
        raise DataError(
            f"loss {loss.name!r} needs numbers as targets, not {targets.dtype}; "
            "for classes use a loss such as logistic."
        )
    coded, (low, high) = targets.astype(np.float64), loss.targets
    outside = coded[(coded < low) | (coded > high)]
    if outside.size:
        raise DataError(
            f"loss {loss.name!r} is made for targets from {low:g} to {high:g}, and one is "
            f"{outside[0]:g}; correct the targets, or choose another loss."
        )
    return coded


def _distinct(targets: NDArray[Any]) -> NDArray[Any]:
    """The different labels in order; two numbers are found without a sorted copy of all of them."""
    if targets.dtype.kind in "fiub":
        ends = np.array([targets.min(), targets.max()])
        if ends[0] != ends[1] and ((targets == ends[0]) | (targets == ends[1])).all():
            return ends
    try:
        return np.unique(targets)
    except TypeError:
        raise DataError(
            "Labels of different kinds are mixed, for example words and numbers or None; "
            "give two values of one kind."
        ) from None


def _require_classes(classes: NDArray[Any], loss: Loss, most: int) -> None:
    if len(classes) == 1:
        raise DataError(
            f"All labels are {shortened(str(classes[0]), 40)} (one class); loss {loss.name!r} "
            "needs two classes over all shards. Check the labels, or use a regression loss such as "
            "squared."
        )
    are_measures = classes.dtype.kind == "f" and (classes % 1 != 0).any()
    if len(classes) > most or (len(classes) > 2 and are_measures):
        shown = ", ".join(shortened(str(value), 20) for value in classes[:4])
        raise DataError(
            f"There are {len(classes)} different labels ({shown}, ...); loss {loss.name!r} needs "
            f"{'exactly two' if most == 2 else f'at most {most:,} classes, numbered or named'}. "
            "Train one class against the rest, or use a regression loss such as squared."
        )

"""Cuts samples into one shard a node.

The rows are copied once, into one array in the order of the nodes (not at all where they already
stand so), and the shards are consecutive views of it: whoever needs all rows again can join
neighbours without a copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.errors import DataError, ParameterError
from adfs.problems.libsvm import Matrix, csr_of
from adfs.randomness import generator

HOW = ("even", "contiguous", "draw", "sorted")


class Shard(NamedTuple):
    """One node's samples: rows, labels, and weights or None where all weigh one."""

    X: Matrix
    y: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None


def partition(
    X: Any,
    y: ArrayLike,
    n_nodes: int,
    how: str = "even",
    seed: int = 0,
    m: int | None = None,
    weights: ArrayLike | None = None,
) -> list[Shard]:
    """Deal samples to nodes.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        float32 stays float32, other numbers become float64, sparse formats become ``csr_matrix``.
    y : array of shape (n_samples,)
        Labels or targets.
    n_nodes : int
        Number of shards.
    how : {"even", "contiguous", "draw", "sorted"}
        Which rows each node gets; see `partition_rows`.
    seed : int
        Seed of ``even`` and ``draw``.
    m : int, optional
        Rows a node, for ``draw`` only.
    weights : array of shape (n_samples,), optional
        Weight of each sample; it follows its row.

    Returns
    -------
    list of Shard
        Consecutive views of one array (dense: row slices of a C-contiguous array; CSR: slices of
        one ``data`` and one ``indices``).

    Examples
    --------
    >>> shards = partition([[1.0], [2.0], [3.0]], [1, -1, 1], n_nodes=2, how="contiguous")
    >>> [shard.X.ravel().tolist() for shard in shards]
    [[1.0, 2.0], [3.0]]
    """
    X, labels = _rows(X), _labels(y)
    heavy = None if weights is None else _column("weights", weights)
    for name, column in (("y", labels), ("weights", heavy)):
        if column is not None and len(column) != X.shape[0]:
            raise DataError(
                f"{name} must have one entry a row of X, but there are {len(column)} for "
                f"{X.shape[0]} rows; pass arrays of one length."
            )
    order, cuts = _dealt(X.shape[0], n_nodes, how, seed, m, labels)
    if how != "contiguous":
        X, labels = X[order], labels[order]
        heavy = None if heavy is None else heavy[order]
    return [
        Shard(row_view(X, a, b), labels[a:b], None if heavy is None else heavy[a:b])
        for a, b in itertools.pairwise(cuts)
    ]


def partition_rows(
    n_samples: int,
    n_nodes: int,
    how: str = "even",
    seed: int = 0,
    m: int | None = None,
    y: ArrayLike | None = None,
    nodes: Sequence[int] | None = None,
) -> list[NDArray[np.int64]]:
    """The row numbers of each node, from sizes and a seed alone (``sorted`` needs ``y`` too).

    - ``even``: a random permutation cut in ``n_nodes``; sizes differ by at most one.
    - ``contiguous``: the rows in their order, cut the same way.
    - ``draw``: ``m`` distinct rows a node, drawn by each node from all rows, so that nodes may
      overlap; the paper's Appendix on the experimental setting. Node ``i`` has its own stream.
    - ``sorted``: the rows in stable order of their labels, cut the same way (not iid).

    Within a node, ``even`` and ``draw`` list rows in ascending order: a stream of the samples can
    then be filtered into shards as it passes. Where only some ``nodes`` are asked for, ``draw`` and
    ``contiguous`` take no memory for the others.

    Examples
    --------
    >>> [part.tolist() for part in partition_rows(5, 2, "contiguous")]
    [[0, 1, 2], [3, 4]]
    """
    _check(n_samples, n_nodes, how, m)
    wanted = range(n_nodes) if nodes is None else nodes
    if how == "draw":
        return [_draw(n_samples, m or 0, seed, node) for node in wanted]
    if how == "contiguous":
        cuts = _cuts(n_samples, n_nodes)
        return [np.arange(cuts[node], cuts[node + 1]) for node in wanted]
    order, cuts = _dealt(n_samples, n_nodes, how, seed, m, y)
    return [order[cuts[node] : cuts[node + 1]] for node in wanted]


def partition_counts(
    n_samples: int, n_nodes: int, how: str = "even", m: int | None = None
) -> NDArray[np.int64]:
    """How many rows each node gets.

    Examples
    --------
    >>> partition_counts(5, 2).tolist()
    [3, 2]
    """
    _check(n_samples, n_nodes, how, m)
    return np.full(n_nodes, m) if how == "draw" else np.diff(_cuts(n_samples, n_nodes))


def _dealt(
    n_samples: int, n_nodes: int, how: str, seed: int, m: int | None, y: ArrayLike | None
) -> tuple[NDArray[np.int64], list[int]]:
    """All nodes' row numbers in one array, and where each node's begin and end."""
    _check(n_samples, n_nodes, how, m)
    if how == "draw":
        rows = [_draw(n_samples, m or 0, seed, node) for node in range(n_nodes)]
        return np.concatenate(rows), list(range(0, n_nodes * (m or 0) + 1, m or 1))
    cuts = _cuts(n_samples, n_nodes)
    if how == "contiguous":
        return np.arange(n_samples), cuts
    if how == "sorted":
        if y is None:
            raise ParameterError("how='sorted' needs the labels, but y is None; pass y.")
        return np.argsort(np.asarray(y), kind="stable"), cuts
    order = generator(seed, "partition/even").permutation(n_samples)
    for a, b in itertools.pairwise(cuts):
        order[a:b].sort()
    return order, cuts


def _cuts(n_samples: int, n_nodes: int) -> list[int]:
    """Where each node's rows begin and end, as np.array_split cuts: the first get one row more."""
    share, more = divmod(n_samples, n_nodes)
    return [node * share + min(node, more) for node in range(n_nodes + 1)]


def _check(n_samples: int, n_nodes: int, how: str, m: int | None) -> None:
    """Refuse what cannot be dealt."""
    if how not in HOW:
        raise ParameterError(f"how={how!r} must be one of {', '.join(HOW)}; pick one of them.")
    if n_samples < 1:
        raise DataError("a partition needs at least one sample, but there are 0; pass some rows.")
    if not isinstance(n_nodes, Integral) or n_nodes < 1:
        raise ParameterError(f"n_nodes={n_nodes!r} must be a whole number >= 1; try n_nodes=4.")
    if how == "draw":
        if m is None:
            raise ParameterError("how='draw' needs m, the rows a node, but m is None; pass m=.")
        if not isinstance(m, Integral) or not 1 <= m <= n_samples:
            raise ParameterError(
                f"m={m!r} must be a whole number from 1 to n_samples={n_samples}, since a node "
                "draws without replacement; lower m."
            )
    elif m is not None:
        raise ParameterError(f"m={m} is for how='draw' only, not {how!r}; leave m out.")
    elif n_nodes > n_samples:
        raise ParameterError(
            f"n_nodes={n_nodes} must not exceed n_samples={n_samples}, so that each node has a "
            "sample; lower n_nodes, or take how='draw'."
        )


def _draw(n_samples: int, m: int, seed: int, node: int) -> NDArray[np.int64]:
    """``m`` distinct rows, ascending, from the stream of one node."""
    random = generator(seed, f"partition/draw/{node}")
    return np.sort(random.choice(n_samples, m, replace=False, shuffle=False))


def _rows(source: Any) -> Matrix:
    """``source`` as a C-contiguous array or a CSR matrix of floats, copied only where needed."""
    sparse: bool = issparse(source)
    X: Any = csr_matrix(source) if sparse else np.asarray(source)
    if X.ndim != 2:
        raise DataError(
            f"X must have two dimensions, rows and features, but has {X.ndim}; reshape it."
        )
    if X.dtype not in (np.float32, np.float64):
        X = _as_float(X, "X")
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return csr_of(X.data, X.indices, X.indptr, X.shape)


def _column(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """``values`` as a vector of float64."""
    column: NDArray[np.float64] = _as_float(np.asarray(values), name)
    return _vector(name, column)


def _labels(y: ArrayLike) -> NDArray[Any]:
    """Targets as float64; words may be labels too and stay as they are."""
    values = np.asarray(y)
    return _column("y", values) if values.dtype.kind in "fiubc" else _vector("y", values)


def _vector(name: str, column: NDArray[Any]) -> NDArray[Any]:
    """``column``, which must have one dimension."""
    if column.ndim != 1:
        raise DataError(f"{name} must have one dimension, but has {column.ndim}; flatten it.")
    return column


def _as_float(values: Any, name: str) -> Any:
    """``values`` in float64; complex numbers, words and objects are refused."""
    if values.dtype.kind not in "fiub":
        raise DataError(f"{name} must hold real numbers, not {values.dtype}; convert it first.")
    return values.astype(np.float64, copy=False)


def row_view(X: Matrix, start: int, stop: int) -> Matrix:
    """Rows ``start`` to ``stop`` that share memory with ``X``.

    Scipy's constructor copies a slice smaller than half of its base, so the slices are put into an
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

"""Divides samples into one shard per node.

The rows are copied once, into one array in the order of the nodes (not at all where they are in
this order already), and the shards are consecutive views of it: neighbours can be joined again
without a copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from adfs import checks
from adfs.data.matrices import Matrix, as_matrix, as_vector, csr_of, row_view
from adfs.errors import DataError, ParameterError
from adfs.randomness import generator

HOW = ("even", "contiguous", "draw", "sorted")


class Shard(NamedTuple):
    """One node's samples: rows, labels, and weights or None where all weigh one."""

    X: Matrix
    y: NDArray[Any]
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
    """Divide samples among nodes.

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
        Rows per node, for ``draw`` only.
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
    X = as_matrix(X, "X", finite=False)
    if issparse(X):
        X = csr_of(X.data, X.indices, X.indptr, X.shape)
    labels = np.asarray(y)
    labels = as_vector(labels, X.shape[0], "y", numbers=labels.dtype.kind in "fiubc")
    heavy = None if weights is None else as_vector(weights, X.shape[0], "weights")
    parts = partition_rows(X.shape[0], n_nodes, how, seed, m, labels)
    sizes = [len(part) for part in parts]
    if how != "contiguous":
        order = np.concatenate(parts)
        X, labels = X[order], labels[order]
        heavy = None if heavy is None else heavy[order]
    return cut_rows(X, labels, sizes, heavy)


def cut_rows(
    X: Matrix, y: NDArray[Any], sizes: list[int],
    weights: NDArray[np.float64] | None = None,
) -> list[Shard]:  # fmt: skip
    """Consecutive views of all rows, of these sizes."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [
        Shard(row_view(X, a, b), y[a:b], None if weights is None else weights[a:b])
        for a, b in itertools.pairwise(ends)
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
    - ``draw``: ``m`` distinct rows per node, drawn by each node from all rows, so that nodes may
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
    n_nodes, m = _checked(n_samples, n_nodes, how, m)
    wanted = range(n_nodes) if nodes is None else nodes
    if how == "draw":
        streams = [generator(seed, f"partition/draw/{node}") for node in wanted]
        return [np.sort(own.choice(n_samples, m, replace=False, shuffle=False)) for own in streams]
    cuts = _cuts(n_samples, n_nodes)
    if how == "contiguous":
        return [np.arange(cuts[node], cuts[node + 1]) for node in wanted]
    if how == "even":
        order = generator(seed, "partition/even").permutation(n_samples)
        return [np.sort(order[cuts[node] : cuts[node + 1]]) for node in wanted]
    if y is None:
        raise ParameterError("how='sorted' needs the labels, but y is None; pass y.")
    order = np.argsort(np.asarray(y), kind="stable")
    return [order[cuts[node] : cuts[node + 1]] for node in wanted]


def _cuts(n_samples: int, n_nodes: int) -> list[int]:
    """Where each node's rows begin and end, as np.array_split cuts."""
    share, more = divmod(n_samples, n_nodes)
    return [node * share + min(node, more) for node in range(n_nodes + 1)]


def _checked(n_samples: int, n_nodes: int, how: str, m: int | None) -> tuple[int, int | None]:
    """``n_nodes`` and ``m`` as whole numbers that allow a partition."""
    checks.choice("how", how, HOW)
    if n_samples < 1:
        raise DataError("a partition needs at least one sample, but there are 0; pass some rows.")
    n_nodes = checks.whole("n_nodes", n_nodes, least=1, hint="try n_nodes=4")
    if how == "draw":
        if m is None:
            raise ParameterError("how='draw' needs m=, the number of rows per node; give it.")
        way_out = "a node draws without replacement from all samples, so lower it"
        m = checks.whole("m", m, 1, n_samples, way_out)
    elif m is not None:
        raise ParameterError(f"m={m} is for how='draw' only, not {how!r}; leave it out.")
    elif n_nodes > n_samples:
        raise ParameterError(
            f"n_nodes={n_nodes} must not exceed {n_samples}, the number of samples, so that each "
            "node has one; lower it, or take how='draw'."
        )
    return n_nodes, m

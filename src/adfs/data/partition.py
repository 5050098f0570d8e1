"""Divides samples into one shard per node.

The rows are copied once, into one array in the order of the nodes (not at all where they are in
this order already), and the shards are consecutive views of it: neighbours can be joined again
without a copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from adfs import checks
from adfs.data.matrices import Matrix, as_matrix, as_vector, csr_of, row_view
from adfs.errors import DataError, ParameterError
from adfs.randomness import generator

HOW = ("even", "contiguous", "draw", "sorted")
DIRICHLET = "dirichlet:"  # with a concentration behind it
MOST_CLASSES = 1_000  # that ``dirichlet`` divides


class Shard(NamedTuple):
    """One node's samples: rows, labels, and weights or None where all weigh one."""

    X: Matrix
    y: NDArray[Any]
    weights: NDArray[np.float64] | None = None


class Shards(Sequence[Shard]):
    """One shard per node: views of one array with all nodes' rows, made when they are asked for.

    Node ``i`` has the rows ``offsets[i]`` to ``offsets[i + 1]`` of ``whole``.
    """

    def __init__(self, whole: Shard, offsets: NDArray[np.int64]) -> None:
        self.whole, self.offsets = whole, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, node: int) -> Shard: ...
    @overload
    def __getitem__(self, node: slice) -> list[Shard]: ...
    def __getitem__(self, node: int | slice) -> Shard | list[Shard]:
        if isinstance(node, slice):
            return [self[each] for each in range(*node.indices(len(self)))]
        place = range(len(self))[node]
        first, last = int(self.offsets[place]), int(self.offsets[place + 1])
        X, y, weights = self.whole
        return Shard(
            row_view(X, first, last), y[first:last],
            None if weights is None else weights[first:last],
        )  # fmt: skip

    def __repr__(self) -> str:
        n_rows, width = self.whole.X.shape
        return f"Shards({len(self)} nodes, {n_rows} x {width})"


def partition(
    X: Any,
    y: ArrayLike,
    n_nodes: int,
    how: str = "even",
    seed: int = 0,
    m: int | None = None,
    weights: ArrayLike | None = None,
) -> Shards:
    """Divide samples among nodes.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        float32 stays float32, other numbers become float64, sparse formats become ``csr_matrix``.
    y : array of shape (n_samples,)
        Labels or targets.
    n_nodes : int
        Number of shards.
    how : {"even", "contiguous", "draw", "sorted", "dirichlet:A"}
        Which rows each node gets; see `partition_rows`.
    seed : int
        Seed of ``even``, ``draw`` and ``dirichlet``.
    m : int, optional
        Rows per node, for ``draw`` only.
    weights : array of shape (n_samples,), optional
        Weight of each sample; it follows its row.

    Returns
    -------
    sequence of Shard
        Consecutive views of one array (dense: row slices of a C-contiguous array; CSR: slices of
        one ``data`` and one ``indices``); ``list(shards)`` is a list whose entries can be replaced.

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
    order, offsets = _in_order_of_nodes(X.shape[0], n_nodes, how, seed, m, labels)
    if order is not None:
        X, labels = X[order], labels[order]
        heavy = None if heavy is None else heavy[order]
    return Shards(Shard(X, labels, heavy), offsets)


def partition_rows(
    n_samples: int,
    n_nodes: int,
    how: str = "even",
    seed: int = 0,
    m: int | None = None,
    y: ArrayLike | None = None,
    nodes: Sequence[int] | None = None,
) -> list[NDArray[np.int64]]:
    """The row numbers of each node, from sizes and a seed, and for some ways ``y``.

    - ``even``: a random permutation cut in ``n_nodes``; sizes differ by at most one.
    - ``contiguous``: the rows in their order, cut the same way.
    - ``draw``: ``m`` distinct rows per node, drawn by each node from all rows, so that nodes may
      overlap; the paper's Appendix on the experimental setting. Node ``i`` has its own stream.
    - ``sorted``: the rows in stable order of their labels, cut the same way (not iid).
    - ``dirichlet:A``: the rows of each class are divided in shares from Dirichlet's law with
      concentration ``A`` (Hsu, Qi, Brown 2019): the smaller, the less alike are the nodes, in
      labels and in size. A node that would have no row gets one of the largest node.

    Within a node, ``even``, ``draw`` and ``dirichlet`` list rows in ascending order: a stream of
    the samples can then be filtered into shards as it passes. Where only some ``nodes`` are asked
    for, ``draw`` and ``contiguous`` take no memory for the others.

    Examples
    --------
    >>> [part.tolist() for part in partition_rows(5, 2, "contiguous")]
    [[0, 1, 2], [3, 4]]
    """
    if how == "draw":
        n_nodes, m = _checked(n_samples, n_nodes, how, m)
        wanted = range(n_nodes) if nodes is None else nodes
        streams = [generator(seed, f"partition/draw/{node}") for node in wanted]
        return [np.sort(own.choice(n_samples, m, replace=False, shuffle=False)) for own in streams]
    order, cuts = _in_order_of_nodes(n_samples, n_nodes, how, seed, m, y)
    wanted = range(len(cuts) - 1) if nodes is None else nodes
    if order is None:
        return [np.arange(cuts[node], cuts[node + 1]) for node in wanted]
    return [order[cuts[node] : cuts[node + 1]] for node in wanted]


def _in_order_of_nodes(
    n_samples: int, n_nodes: int, how: str, seed: int, m: int | None, y: ArrayLike | None
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
    """Rows of all nodes one after another (None: as they are), and where those of each begin."""
    if how == "draw":
        parts = partition_rows(n_samples, n_nodes, how, seed, m)
        return np.concatenate(parts), np.cumsum([0, *map(len, parts)])
    n_nodes, _ = _checked(n_samples, n_nodes, how, m)
    share, more = divmod(n_samples, n_nodes)  # as np.array_split cuts
    places = np.arange(n_nodes + 1)
    cuts = places * share + np.minimum(places, more)
    if how == "contiguous":
        return None, cuts
    if needs_labels(how) and y is None:
        raise ParameterError(f"how={how!r} needs the labels, but y is None; pass y.")
    if how.startswith(DIRICHLET):
        return _by_shares(np.asarray(y), n_nodes, how, seed)
    if how == "even":
        order = generator(seed, "partition/even").permutation(n_samples)
        first = np.repeat(places[:-1] * n_samples, np.diff(cuts))
        return np.sort(order + first) - first, cuts
    return np.argsort(np.asarray(y), kind="stable"), cuts


def needs_labels(how: str) -> bool:
    """Whether rows are divided by their labels."""
    return how == "sorted" or how.startswith(DIRICHLET)


def check_how(how: str) -> None:
    """Refuse what is no way to divide rows."""
    if not how.startswith(DIRICHLET):
        checks.choice("how", how, (*HOW, f"{DIRICHLET}0.1"))
        return
    try:
        concentration = float(how.removeprefix(DIRICHLET))
    except ValueError:
        concentration = math.nan
    if not 1e-3 <= concentration <= 1e6:
        raise ParameterError(
            f"how={how!r} must have a number from 0.001 to 1e6 behind the colon, as in "
            f"{DIRICHLET}0.1; the smaller it is, the less alike are the nodes."
        )


def _by_shares(
    y: NDArray[Any], n_nodes: int, how: str, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in the order of nodes that have random shares of each class."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > MOST_CLASSES:
        raise ParameterError(
            f"how={how!r} divides classes, but there are {len(classes):,} different labels; take "
            "how='sorted'."
        )
    concentration = np.full(n_nodes, float(how.removeprefix(DIRICHLET)))
    node_of = np.empty(len(y), np.int64)
    for code in range(len(classes)):
        random = generator(seed, f"partition/dirichlet/{code}")
        rows = random.permutation(np.flatnonzero(codes == code))
        shares = np.cumsum(random.dirichlet(concentration))
        ends = np.rint(shares[:-1] * len(rows)).astype(np.int64)
        node_of[rows] = np.repeat(np.arange(n_nodes), np.diff([0, *ends, len(rows)]))
    sizes = np.bincount(node_of, minlength=n_nodes)
    for node in np.flatnonzero(sizes == 0):
        largest = int(np.argmax(sizes))
        node_of[np.flatnonzero(node_of == largest)[-1]] = node
        sizes[largest] -= 1
        sizes[node] = 1
    return np.argsort(node_of, kind="stable"), np.cumsum([0, *sizes])


def _checked(n_samples: int, n_nodes: int, how: str, m: int | None) -> tuple[int, int | None]:
    """``n_nodes`` and ``m`` as whole numbers that allow a partition."""
    check_how(how)
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

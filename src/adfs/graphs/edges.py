"""The edge array: the checks every graph passes, and what is computed from it without spectra."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs import checks
from adfs.errors import GraphError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Sparse: TypeAlias = "csr_array[np.float64, tuple[int, int]]"
Edges = NDArray[np.int32]
LARGEST = 2**31 - 1  # node and edge numbers are int32 wherever they are stored


def whole(name: str, value: Any, least: int) -> int:
    hint = f"pass for example {name}={max(least, 4)}"
    return checks.whole(name, value, least, LARGEST, hint, GraphError)


def canonical(n_nodes: int, edges: ArrayLike) -> Edges:
    """Read-only copy of the pairs with ``k < l`` in each row and rows in order, once checked.

    Examples
    --------
    >>> canonical(3, [(2, 1), (0, 1)]).tolist()
    [[0, 1], [1, 2]]
    """
    pairs = _integer_pairs(edges)
    low, high = np.minimum(*pairs.T), np.maximum(*pairs.T)
    outside = np.flatnonzero((low < 0) | (high >= n_nodes))
    if outside.size:
        k, l = pairs[outside[0]]
        raise GraphError(
            f"An edge joins two of the nodes 0 to {n_nodes - 1}, but ({k}, {l}) is an edge; "
            "renumber the nodes from 0 or raise the number of nodes."
        )
    loops = low[low == high]
    if loops.size:
        raise GraphError(
            f"An edge joins two different nodes, but ({loops[0]}, {loops[0]}) is an edge; remove "
            "the self loop."
        )
    keys = low.astype(np.int64) * n_nodes + high
    if not np.all(keys[1:] > keys[:-1]):
        order = np.argsort(keys, kind="stable")
        low, high, keys = low[order], high[order], keys[order]
        repeats = np.flatnonzero(keys[1:] == keys[:-1])
        if repeats.size:
            k, l = low[repeats[0]], high[repeats[0]]
            raise GraphError(
                f"Each edge is listed once, but ({k}, {l}) appears twice, in this or in the "
                "reverse direction; remove the repeats."
            )
    result = np.empty((len(low), 2), dtype=np.int32)
    result[:, 0], result[:, 1] = low, high
    count, labels = components(n_nodes, result)
    if count > 1:
        stranger = int(np.flatnonzero(labels != labels[0])[0])
        raise GraphError(
            f"The graph must be connected, but it has {count} components: node {stranger} "
            "cannot be reached from node 0. Add an edge between them or solve each part alone."
        )
    result.setflags(write=False)
    return result


def _integer_pairs(edges: ArrayLike) -> NDArray[np.integer[Any]]:
    rule = "edges must be pairs of node numbers, an integer array of shape (n_edges, 2)"
    try:
        pairs = np.asarray(edges)
    except ValueError as error:
        raise GraphError(f"{rule}; got rows of unequal length. Give two ends a row.") from error
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise GraphError(f"{rule}; got shape {pairs.shape}. Give two ends a row.")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise GraphError(f"{rule}; got {pairs.dtype}. Number the nodes from 0.")
    return pairs


def components(n_nodes: int, edges: Edges) -> tuple[int, NDArray[np.int32]]:
    """Number of connected components, and the component of each node."""
    if n_nodes == 1 or len(edges) > (n_nodes - 1) * (n_nodes - 2) // 2:
        # One node, or more edges than a complete graph that leaves one out: no search is needed.
        return 1, np.zeros(n_nodes, dtype=np.int32)
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(adjacency(n_nodes, edges), directed=False)
    return int(count), labels


def degrees(n_nodes: int, edges: Edges) -> NDArray[np.int64]:
    return np.bincount(edges.ravel(), minlength=n_nodes).astype(np.int64, copy=False)


def adjacency(n_nodes: int, edges: Edges) -> Sparse:
    """Symmetric matrix with a one for each edge, in compressed rows."""
    from scipy.sparse import csr_array

    k, l = edges.T
    ends = np.concatenate([k, l]), np.concatenate([l, k])
    return csr_array((np.ones(2 * len(edges)), ends), shape=(n_nodes, n_nodes))


def laplacian(n_nodes: int, edges: Edges) -> Sparse:
    """Laplacian with unit edge weights: degrees minus adjacency."""
    from scipy.sparse import csr_array

    k, l = edges.T
    nodes = np.arange(n_nodes, dtype=np.int32)
    rows, columns = np.concatenate([k, l, nodes]), np.concatenate([l, k, nodes])
    values = np.concatenate([np.full(2 * len(edges), -1.0), degrees(n_nodes, edges)])
    return csr_array((values, (rows, columns)), shape=(n_nodes, n_nodes))

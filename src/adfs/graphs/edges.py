"""The edge array: the checks every graph passes, and the matrices made from it."""

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.errors import GraphError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Sparse: TypeAlias = "csr_array[np.float64, tuple[int, int]]"
Edges = NDArray[np.int32]
LARGEST = 2**31 - 1  # node and edge numbers are int32 wherever they are stored


class Incidence(NamedTuple):
    """Who touches whom, in compressed rows.

    Entries ``starts[k]`` to ``starts[k + 1]`` of ``neighbours`` are the neighbours of node ``k``
    in increasing order; the same entries of ``edges`` are the numbers of the edges to them.
    """

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    edges: NDArray[np.int32]


def whole(name: str, value: Any, least: int) -> int:
    """``value`` as an int at least ``least``, or an error."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= LARGEST:
        raise GraphError(
            f"{name}={value!r} must be a whole number from {least} to {LARGEST}; "
            f"pass for example {name}={max(least, 4)}."
        )
    return number


def canonical(n_nodes: int, edges: ArrayLike) -> Edges:
    """Read-only copy of the pairs with ``k < l`` in each row and rows in order, once checked.

    Examples
    --------
    >>> canonical(3, [(2, 1), (0, 1)]).tolist()
    [[0, 1], [1, 2]]
    """
    pairs = _integer_pairs(edges)
    _refuse_bad_ends(n_nodes, pairs)
    low = np.minimum(pairs[:, 0], pairs[:, 1])
    high = np.maximum(pairs[:, 0], pairs[:, 1])
    keys = low.astype(np.int64) * n_nodes + high
    if not np.all(keys[1:] > keys[:-1]):
        order = np.argsort(keys, kind="stable")
        low, high, keys = low[order], high[order], keys[order]
        _refuse_repeats(low, high, keys)
    result = np.empty((len(low), 2), dtype=np.int32)
    result[:, 0], result[:, 1] = low, high
    _refuse_disconnected(n_nodes, result)
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


def _refuse_bad_ends(n_nodes: int, pairs: NDArray[np.integer[Any]]) -> None:
    if len(pairs) == 0:
        return
    outside = (pairs < 0) | (pairs >= n_nodes)
    if outside.any():
        k, l = pairs[np.flatnonzero(outside.any(axis=1))[0]]
        raise GraphError(
            f"An edge joins two of the nodes 0 to {n_nodes - 1}, but ({k}, {l}) is an edge; "
            "renumber the nodes from 0 or raise the number of nodes."
        )
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        k = pairs[loops[0], 0]
        raise GraphError(
            f"An edge joins two different nodes, but ({k}, {k}) is an edge; remove the self loop."
        )


def _refuse_repeats(
    low: NDArray[np.integer[Any]], high: NDArray[np.integer[Any]], keys: NDArray[np.int64]
) -> None:
    repeats = np.flatnonzero(keys[1:] == keys[:-1])
    if repeats.size:
        k, l = low[repeats[0]], high[repeats[0]]
        raise GraphError(
            f"Each edge is listed once, but ({k}, {l}) appears twice, in this or in the reverse "
            "direction; remove the repeats."
        )


def _refuse_disconnected(n_nodes: int, edges: Edges) -> None:
    count, labels = components(n_nodes, edges)
    if count > 1:
        stranger = int(np.flatnonzero(labels != labels[0])[0])
        raise GraphError(
            f"The graph must be connected, but it has {count} components: node {stranger} "
            "cannot be reached from node 0. Add an edge between them or solve each part alone."
        )


def components(n_nodes: int, edges: Edges) -> tuple[int, NDArray[np.int32]]:
    """Number of connected components, and the component of each node."""
    if n_nodes == 1 or len(edges) > (n_nodes - 1) * (n_nodes - 2) // 2:
        # One node, or more edges than a complete graph that leaves one out: no search is needed.
        return 1, np.zeros(n_nodes, dtype=np.int32)
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(adjacency(n_nodes, edges), directed=False)
    return int(count), labels


def degrees(n_nodes: int, edges: Edges) -> NDArray[np.int64]:
    """Number of neighbours of each node."""
    return np.bincount(edges.ravel(), minlength=n_nodes).astype(np.int64, copy=False)


def incidence(n_nodes: int, edges: Edges) -> Incidence:
    """Compressed rows of canonical edges."""
    # Listing each edge at its higher end first keeps neighbours in order under a stable sort.
    node = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.argsort(node, kind="stable")
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(degrees(n_nodes, edges), out=starts[1:])
    other = np.concatenate([edges[:, 0], edges[:, 1]])[order]
    number = np.tile(np.arange(len(edges), dtype=np.int32), 2)[order]
    for array in (starts, other, number):
        array.setflags(write=False)
    return Incidence(starts, other, number)


def adjacency(n_nodes: int, edges: Edges) -> Sparse:
    """Symmetric matrix with a one for each edge, in compressed rows."""
    from scipy.sparse import csr_array

    table = incidence(n_nodes, edges)
    ones = np.ones(2 * len(edges))
    starts = table.starts.astype(np.int32) if len(ones) <= LARGEST else table.starts
    # SciPy takes these arrays as they are, and must be free to write to them.
    parts = (ones, table.neighbours.copy(), starts.copy())
    return csr_array(parts, shape=(n_nodes, n_nodes))


def laplacian(n_nodes: int, edges: Edges) -> Sparse:
    """Laplacian with unit edge weights: degrees minus adjacency."""
    from scipy.sparse import csr_array

    k, l = edges.T
    nodes = np.arange(n_nodes, dtype=np.int32)
    rows, columns = np.concatenate([k, l, nodes]), np.concatenate([l, k, nodes])
    values = np.concatenate([np.full(2 * len(edges), -1.0), degrees(n_nodes, edges)])
    return csr_array((values, (rows, columns)), shape=(n_nodes, n_nodes))

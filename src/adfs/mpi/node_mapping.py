"""Which rank has which nodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs import checks
from adfs.agreement import Peers, attempt
from adfs.data.files import require_all_nodes, shard_nodes
from adfs.errors import DataError, ParameterError
from adfs.graphs.topology import Topology

MAPPINGS = ("contiguous", "graph")


def cut_edges(topology: Topology, rank_of: NDArray[np.int64]) -> int:
    """Number of edges between two ranks."""
    first, second = rank_of[topology.edges].reshape(-1, 2).T
    return int(np.count_nonzero(first != second))


def map_nodes(topology: Topology, size: int, how: str = "contiguous") -> NDArray[np.int64]:
    """The rank of each node: the nodes divided among ``size`` ranks, as evenly as possible.

    ``contiguous`` cuts their numbers in ``size`` pieces; ``graph`` searches for pieces with few
    edges between them, and takes them if they cut fewer.

    Examples
    --------
    >>> ring = Topology.from_edges(6, [(0, 2), (2, 4), (4, 1), (1, 3), (3, 5), (5, 0)])
    >>> [cut_edges(ring, map_nodes(ring, 2, how)) for how in MAPPINGS]
    [4, 2]
    """
    n = topology.n_nodes
    checks.choice("mapping", how, MAPPINGS)
    if not 1 <= size <= n:
        raise ParameterError(
            f"There are {size} ranks for {n} nodes, but every rank needs a node; start at most {n} "
            "ranks, or raise the number of nodes."
        )
    contiguous = np.repeat(np.arange(size), [len(part) for part in np.array_split(range(n), size)])
    if how == "contiguous":
        return contiguous
    by_graph = np.zeros(n, np.int64)
    _bisect(by_graph, topology.laplacian().tocsr(), np.arange(n), 0, size)
    return min(contiguous, by_graph, key=lambda rank_of: cut_edges(topology, rank_of))


def _bisect(
    rank_of: NDArray[np.int64], laplacian: Any, nodes: NDArray[np.int64], first: int, size: int
) -> None:
    """Recursive spectral bisection: nodes in the order of the Fiedler vector, cut in two."""
    if size == 1:
        rank_of[nodes] = first
        return
    left = size // 2
    # As np.array_split cuts: the first ranks get one node more.
    middle = sum(len(part) for part in np.array_split(nodes, size)[:left])
    ordered = nodes[_spectral_order(laplacian[nodes][:, nodes])]
    _bisect(rank_of, laplacian, np.sort(ordered[:middle]), first, left)
    _bisect(rank_of, laplacian, np.sort(ordered[middle:]), first + left, size - left)


def _spectral_order(laplacian: Any) -> NDArray[np.int64]:
    """Order of nodes along the second eigenvector; ties by number."""
    from scipy.linalg import eigh

    dense = laplacian.toarray()
    # Without the edges that leave the piece.
    np.fill_diagonal(dense, dense.diagonal() - dense.sum(axis=1))
    vectors = eigh(dense, subset_by_index=[1, 1])[1]
    fiedler = np.round(vectors[:, 0] / np.abs(vectors).max(), 9)
    return np.argsort(fiedler, kind="stable")


def find_shards(peers: Peers, pattern: str) -> NDArray[np.bool_]:
    """Which rank sees which node's file, an array of shape (ranks, nodes).

    Hosts need not share a file system: a file exists if some rank sees it.
    """
    nodes = attempt(peers, lambda: sorted(shard_nodes(pattern)))
    seen_by = [set(map(int, seen)) for seen in peers.gather(nodes)]
    union = set().union(*seen_by)
    attempt(peers, lambda: require_all_nodes(pattern, union))
    return np.array([[node in seen for node in range(len(union))] for seen in seen_by])


def place_shards(
    seen: NDArray[np.bool_], owner: Sequence[int] | NDArray[np.int64], pattern: str
) -> NDArray[np.int64]:
    """The rank of each node: ``owner`` where all ranks see all files, else one that sees its file.

    The nodes are then spread as evenly as the files allow, by a matching of least cost in which
    the k-th node of a rank costs k: an optimal semi-matching (Harvey, Ladner, Lovasz and Tamir,
    2006), which also has the smallest maximum.

    Examples
    --------
    >>> seen = np.array([[True, True, True], [True, False, False]])
    >>> place_shards(seen, [0, 0, 1], "part-{node}").tolist()
    [1, 0, 0]
    """
    if seen.all():
        return np.asarray(owner, dtype=np.int64)
    size, n_nodes = seen.shape
    most = -(-n_nodes // size)
    while (ranks := _matched(seen, most)) is None:
        most *= 2
    for rank in np.flatnonzero(np.bincount(ranks, minlength=size) == 0):
        raise DataError(
            f"rank {rank} must see a file of {pattern} that no other rank needs, but there is none "
            "on its host; copy some files there, or start fewer ranks."
        )
    return ranks


def _matched(seen: NDArray[np.bool_], most: int) -> NDArray[np.int64] | None:
    """The rank of each node, at most ``most`` nodes per rank; None where that is impossible."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    allowed = np.repeat(seen.T, most, axis=1)
    nodes, places = np.nonzero(allowed)
    costs = csr_matrix((1.0 + places % most, (nodes, places)), shape=allowed.shape)
    try:
        matched, chosen = min_weight_full_bipartite_matching(costs)
    except ValueError:
        return None
    ranks = np.empty(seen.shape[1], dtype=np.int64)
    ranks[matched] = chosen // most
    return ranks

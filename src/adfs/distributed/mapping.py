"""Which rank has which nodes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.graphs.topology import Topology

MAPPINGS = ("contiguous", "graph")


class Mapping(NamedTuple):
    """``rank_of[i]`` has node ``i``; every rank has a node."""

    rank_of: NDArray[np.int64]
    size: int

    def cut(self, topology: Topology) -> int:
        """Number of edges between two ranks."""
        ends = self.rank_of[topology.edges]
        return int(np.count_nonzero(ends[:, 0] != ends[:, 1])) if len(ends) else 0


def map_nodes(topology: Topology, size: int, how: str = "contiguous") -> Mapping:
    """Nodes dealt to ``size`` ranks, as evenly as can be.

    ``contiguous`` cuts their numbers in ``size`` pieces; ``graph`` looks for pieces with few edges
    between them and takes them if they cut fewer.

    Examples
    --------
    >>> ring = Topology.from_edges(6, [(0, 2), (2, 4), (4, 1), (1, 3), (3, 5), (5, 0)])
    >>> map_nodes(ring, 2).cut(ring), map_nodes(ring, 2, "graph").cut(ring)
    (4, 2)
    """
    n = topology.n_nodes
    if how not in MAPPINGS:
        raise ParameterError(f"mapping={how!r} is unknown; choose one of {', '.join(MAPPINGS)}.")
    if not 1 <= size <= n:
        raise ParameterError(
            f"There are {size} ranks for {n} nodes, but every rank needs a node; start at most {n} "
            "ranks, or raise the number of nodes."
        )
    contiguous = Mapping(_cut(np.arange(n), size), size)
    if how == "contiguous" or size == 1:
        return contiguous
    by_graph = Mapping(_bisected(topology, np.arange(n), size), size)
    return min(contiguous, by_graph, key=lambda mapping: mapping.cut(topology))


def _cut(order: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Ranks of nodes that are dealt in this order, in pieces that differ by at most one."""
    ranks = np.empty(len(order), np.int64)
    for rank, piece in enumerate(np.array_split(order, size)):
        ranks[piece] = rank
    return ranks


def _bisected(topology: Topology, nodes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Recursive spectral bisection: nodes in the order of the Fiedler vector, cut in two."""
    ranks = np.zeros(topology.n_nodes, np.int64)
    stack = [(nodes, 0, size)]
    laplacian = topology.laplacian().tocsr()
    while stack:
        piece, first, count = stack.pop()
        if count == 1:
            ranks[piece] = first
            continue
        # As np.array_split deals: the first ranks get one node more.
        sizes = [len(part) for part in np.array_split(piece, count)]
        left = count // 2
        ordered = piece[_spectral_order(laplacian[piece][:, piece])]
        middle = sum(sizes[:left])
        stack.append((np.sort(ordered[:middle]), first, left))
        stack.append((np.sort(ordered[middle:]), first + left, count - left))
    return ranks


def _spectral_order(laplacian: object) -> NDArray[np.int64]:
    """Order of nodes along the second eigenvector; ties by number."""
    from scipy.linalg import eigh

    dense = laplacian.toarray()  # type: ignore[attr-defined]
    # Edges that left the piece would act as springs to the ground.
    np.fill_diagonal(dense, dense.diagonal() - dense.sum(axis=1))
    vectors = eigh(dense, subset_by_index=[1, 1])[1]
    fiedler = np.round(vectors[:, 0] / np.abs(vectors).max(), 9)
    return np.argsort(fiedler, kind="stable")

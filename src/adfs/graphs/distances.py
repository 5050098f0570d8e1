"""Breadth-first levels: what they say of a graph's length, and resistances through them.

An edge never skips a level, so once nodes are ordered by distance from a root the Laplacian is
block tridiagonal, and the entries of its inverse that sit on edges come from blocks no larger
than the widest level. Nodes off the cycles are peeled away first: their edges have resistance 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.graphs.edges import Edges, Sparse, adjacency, degrees

Block = NDArray[np.float64]
BFS_BLOCK = 256


def diameter(n_nodes: int, edges: Edges) -> int:
    """Largest distance between two nodes, by one breadth-first search a node."""
    if len(edges) == n_nodes * (n_nodes - 1) // 2:
        return min(n_nodes - 1, 1)
    from scipy.sparse.csgraph import breadth_first_order

    graph = adjacency(n_nodes, edges)
    longest = 0
    for start in range(0, n_nodes, BFS_BLOCK):
        roots = np.arange(start, min(start + BFS_BLOCK, n_nodes), dtype=np.int64)
        parents = np.empty((len(roots), n_nodes), dtype=np.int32)
        tips = np.empty(len(roots), dtype=np.int32)
        for row, root in enumerate(roots):
            order, parents[row] = breadth_first_order(graph, int(root), directed=True)
            tips[row] = order[-1]
        longest = max(longest, _longest_climb(parents, tips, roots))
    return longest


def _longest_climb(parents: Edges, tips: Edges, roots: NDArray[np.int64]) -> int:
    """Steps until every search, walked up from the node it reached last, is back at its root."""
    rows, steps = np.arange(len(roots)), 0
    while (away := tips != roots).any():
        rows, roots, tips = rows[away], roots[away], tips[away]
        tips = parents[rows, tips]
        steps += 1
    return steps


@dataclass(frozen=True, eq=False)
class Levels:
    """The cycles of a graph, sorted by distance from a far node.

    Attributes
    ----------
    in_core : (E,) bool
        Edges that remain once leaves have been removed again and again.
    order : (n_core,) int
        Nodes of those edges by level; the root comes first, alone.
    bounds : (n_levels + 1,) int
        Level ``i`` is ``order[bounds[i]:bounds[i + 1]]``.
    """

    in_core: NDArray[np.bool_]
    order: NDArray[np.int64]
    bounds: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Size of the largest level; 0 for a tree."""
        return int(np.diff(self.bounds).max(initial=0))


def find_levels(n_nodes: int, edges: Edges) -> Levels:
    """Peel the leaves, then search from a node as far away as two searches can find."""
    in_core = _core(n_nodes, edges)
    if not in_core.any():
        return Levels(in_core, np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    core = edges[in_core]
    graph = adjacency(n_nodes, core)
    root = int(core[0, 0])
    for _ in range(2):
        root = int(_distances(graph, root).argmax())
    distance = _distances(graph, root)
    order = np.argsort(distance, kind="stable")[np.count_nonzero(distance < 0) :]
    counts = np.bincount(distance[order])
    return Levels(in_core, order, np.concatenate([[0], np.cumsum(counts)]))


def _distances(graph: Sparse, root: int) -> NDArray[np.int64]:
    """Distance of every node from ``root``; -1 for nodes that were removed."""
    from scipy.sparse.csgraph import dijkstra

    distance = dijkstra(graph, indices=[root], unweighted=True)[0]
    return np.where(np.isfinite(distance), distance, -1.0).astype(np.int64)


def _core(n_nodes: int, edges: Edges) -> NDArray[np.bool_]:
    """Edges of the 2-core, in one pass however long the branches are."""
    degree = degrees(n_nodes, edges)
    # A sum over a node's edges is, once it is a leaf, the number of the one edge it has left.
    number = np.zeros(n_nodes, dtype=np.int64)
    np.add.at(number, edges.ravel(), np.repeat(np.arange(len(edges)), 2))
    alive = np.ones(len(edges), dtype=np.bool_)
    leaves = np.flatnonzero(degree == 1).tolist()
    while leaves:
        leaf = leaves.pop()
        if degree[leaf] == 0:  # the last node of a tree
            continue
        edge = number[leaf]
        stem = edges[edge].sum() - leaf
        alive[edge] = False
        degree[leaf] = 0
        degree[stem] -= 1
        number[stem] -= edge
        if degree[stem] == 1:
            leaves.append(int(stem))
    return alive


def resistances(n_nodes: int, edges: Edges, levels: Levels) -> NDArray[np.float64]:
    """Effective resistance of each edge, by block elimination from the last level to the root.

    With the root grounded, block ``i`` of the Laplacian is ``D_i`` and its coupling to level
    ``i + 1`` is ``B_i``. The elimination keeps ``X_i = (D_i - B_i X_{i+1} B_i^T)^{-1}`` and
    ``T_i = B_i X_{i+1}``; going back, the inverse ``G`` has ``G_{i,i+1} = -G_i T_i`` and
    ``G_{i+1} = X_{i+1} + T_i^T G_i T_i``. Then ``R_kl = G_kk + G_ll - 2 G_kl``.
    """
    result = np.ones(len(edges))
    if levels.in_core.any():
        result[levels.in_core] = _Blocks(n_nodes, edges[levels.in_core], levels).resistances()
    return result


def _inverse(block: Block) -> Block:
    return np.asarray(np.linalg.inv(block), dtype=np.float64)


class _Blocks:
    """Dense blocks of the core's Laplacian, cut at the bounds of the levels."""

    def __init__(self, n_nodes: int, core: Edges, levels: Levels) -> None:
        self.bounds = levels.bounds
        self.last = len(levels.bounds) - 2
        self.degree = degrees(n_nodes, core)[levels.order].astype(np.float64)
        place = np.empty(n_nodes, dtype=np.int64)
        place[levels.order] = np.arange(len(levels.order))
        ends = np.sort(place[core], axis=1)
        level = np.searchsorted(self.bounds, ends, side="right") - 1
        # Edges within level i come with key 2i, edges from level i to i + 1 with key 2i + 1.
        key = level.sum(axis=1)
        self.edge_order = np.argsort(key, kind="stable")
        self.edge_bounds = np.searchsorted(key[self.edge_order], np.arange(2 * self.last + 2))
        self.ends = (ends - self.bounds[level])[self.edge_order]

    def edges(self, key: int) -> tuple[slice, NDArray[np.int64], NDArray[np.int64]]:
        """Where the edges with one key are, and their ends counted within their levels."""
        part = slice(self.edge_bounds[key], self.edge_bounds[key + 1])
        return part, self.ends[part, 0], self.ends[part, 1]

    def diagonal(self, i: int) -> Block:
        block = np.diag(self.degree[self.bounds[i] : self.bounds[i + 1]])
        _, k, l = self.edges(2 * i)
        block[k, l] = block[l, k] = -1.0
        return block

    def coupling(self, i: int) -> Block:
        widths = np.diff(self.bounds[i : i + 3])
        block = np.zeros((widths[0], widths[1]))
        _, k, l = self.edges(2 * i + 1)
        block[k, l] = -1.0
        return block

    def eliminate(self) -> tuple[dict[int, Block], dict[int, Block]]:
        """``X_i`` for the levels after the root, and ``T_i`` between them."""
        X: dict[int, Block] = {self.last: _inverse(self.diagonal(self.last))}
        T: dict[int, Block] = {}
        for i in range(self.last - 1, 0, -1):
            B = self.coupling(i)
            T[i] = B @ X[i + 1]
            X[i] = _inverse(self.diagonal(i) - T[i] @ B.T)
        return X, T

    def resistances(self) -> NDArray[np.float64]:
        """``R`` in the order of the core's edges."""
        X, T = self.eliminate()
        sorted_r = np.empty(len(self.ends))
        G = X[1]
        part, _, l = self.edges(1)
        sorted_r[part] = G[l, l]
        for i in range(1, self.last + 1):
            part, k, l = self.edges(2 * i)
            sorted_r[part] = G[k, k] + G[l, l] - 2.0 * G[k, l]
            if i < self.last:
                across = -G @ T[i]
                part, k, l = self.edges(2 * i + 1)
                here = G[k, k]
                G = X[i + 1] - T[i].T @ across
                sorted_r[part] = here + G[l, l] - 2.0 * across[k, l]
        result = np.empty_like(sorted_r)
        result[self.edge_order] = sorted_r
        return result

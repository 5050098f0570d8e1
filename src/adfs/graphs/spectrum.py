"""Laplacian eigenvalues and effective resistances, in n x n algebra only.

An edge never skips a breadth-first level, so once nodes are ordered by distance from a root the
Laplacian is block tridiagonal, and the entries of its inverse that sit on edges come from blocks no
larger than the widest level. Nodes off the cycles are peeled away first: their edges have
resistance 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.graphs.closed_forms import Shape, resistances, shape_facts
from adfs.graphs.edges import Edges, Sparse, adjacency, degrees, laplacian
from adfs.graphs.spectral_bounds import eigenvalue_bounds, resistance_bounds
from adfs.randomness import generator
from adfs.threads import one_blas_thread

Vector = NDArray[np.float64]
Block = NDArray[Any]
SMALL = 512  # nodes up to which all eigenvectors cost less than a factorisation's set-up
NARROW = 16  # a graph is narrow when its levels hold at most 1 node in NARROW
LARGE = 5_000  # nodes up to which there are eigenvalues and resistances, not bounds
MOST_NUMBERS = 1 << 27  # in the blocks of a large graph's levels: 1 GiB
LANCZOS_SIZE = 64
LANCZOS_TOL = 1e-11


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """What the theory reads off a graph; every edge has weight 1.

    Attributes
    ----------
    lambda_min, lambda_max : float
        Smallest positive and largest eigenvalue of the Laplacian. Both are 0 for a single node.
    resistances : (E,) float
        ``R_kl = (e_k - e_l)^T Lap^+ (e_k - e_l)``. They sum to ``n_nodes - 1`` and, times the
        weight, do not change when all weights are multiplied by one number.
    exact : bool
        False where ``lambda_min`` is a lower bound, ``lambda_max`` and ``resistances`` are upper
        bounds: what Theorem 1 promises with them is true, but less than with the exact numbers.

    Examples
    --------
    >>> spectrum = compute_spectrum(3, np.array([[0, 1], [0, 2], [1, 2]], dtype=np.int32))
    >>> spectrum
    Spectrum(lambda_min=3, lambda_max=3, gamma=1)
    >>> spectrum.resistances.round(4).tolist()
    [0.6667, 0.6667, 0.6667]
    """

    lambda_min: float
    lambda_max: float
    resistances: NDArray[np.float64]
    exact: bool = True

    def __post_init__(self) -> None:
        self.resistances.setflags(write=False)

    @property
    def gamma(self) -> float:
        """``lambda_min / lambda_max``, in (0, 1]; 1 for a single node, which always agrees."""
        return self.lambda_min / self.lambda_max if self.lambda_max > 0 else 1.0

    def __repr__(self) -> str:
        low, high = ("=", "=") if self.exact else (">=", "<=")
        return (
            f"Spectrum(lambda_min{low}{self.lambda_min:.6g}, lambda_max{high}{self.lambda_max:.6g},"
            f" gamma{low}{self.gamma:.6g})"
        )


def compute_spectrum(n_nodes: int, edges: Edges, shape: Shape | None = None) -> Spectrum:
    """Spectrum of a connected graph, by the method its size and shape ask for.

    Complete graphs are known, and graphs of a named family with more than 512 nodes have a closed
    form. Of the others, small graphs take all eigenvectors; narrow graphs (trees, anything long)
    sparse factors; the others, where factors would fill up, one dense inverse of ``8 n^2`` bytes
    (0.2 GB at n = 5,000). Where these would take more, bounds have to do. The bits do not depend
    on the number of threads.
    """
    if n_nodes == 1:
        return Spectrum(0.0, 0.0, np.empty(0))
    if len(edges) == n_nodes * (n_nodes - 1) // 2:
        return Spectrum(float(n_nodes), float(n_nodes), np.full(len(edges), 2.0 / n_nodes))
    if shape is not None and n_nodes > SMALL:
        return family_spectrum(edges, shape)
    with one_blas_thread():
        if n_nodes <= SMALL:
            return small_spectrum(n_nodes, edges)
        if n_nodes > LARGE and not _is_long(n_nodes, edges):
            return bounded_spectrum(n_nodes, edges)
        levels = Levels(n_nodes, edges)
        if levels.width * NARROW <= n_nodes:
            return narrow_spectrum(n_nodes, edges, levels)
        return wide_spectrum(n_nodes, edges)


def _is_long(n_nodes: int, edges: Edges) -> bool:
    """Whether a large graph is a tree, or its levels are so narrow that blocks take little."""
    if len(edges) == n_nodes - 1:
        return True
    graph = adjacency(n_nodes, edges)
    counts = np.bincount(_distances(graph, int(_distances(graph, 0).argmax())))
    numbers = 2.0 * float(np.sum(counts.astype(np.float64) ** 2))
    return numbers <= MOST_NUMBERS and int(counts.max()) * NARROW <= n_nodes


def bounded_spectrum(n_nodes: int, edges: Edges) -> Spectrum:
    """Bounds, in time linear in the edges times ``sqrt(1 / gamma)``."""
    low, high = eigenvalue_bounds(n_nodes, edges)
    return Spectrum(low, high, resistance_bounds(n_nodes, edges, low), exact=False)


def family_spectrum(edges: Edges, shape: Shape) -> Spectrum:
    """By the closed forms of a family: no matrix, and linear time but for a transform."""
    facts = shape_facts(shape)
    return Spectrum(facts.lambda_min, facts.lambda_max, resistances(shape, edges))


def small_spectrum(n_nodes: int, edges: Edges) -> Spectrum:
    """All eigenvectors, and the dense inverse."""
    _, vectors = np.linalg.eigh(_dense_laplacian(n_nodes, edges))
    low, high = (_rayleigh(edges, vectors[:, column]) for column in (1, -1))
    return Spectrum(low, high, _inverse_resistances(edges, _shifted_inverse(n_nodes, edges)))


def wide_spectrum(n_nodes: int, edges: Edges) -> Spectrum:
    """Dense inverse, iterated for ``lambda_min``; Laplacian, iterated for ``lambda_max``."""
    from scipy.linalg.blas import dsymv

    lap = laplacian(n_nodes, edges)
    high = _rayleigh(edges, _dominant(lambda x: np.asarray(lap @ x), n_nodes))
    inverse = _shifted_inverse(n_nodes, edges)

    def pseudo_inverse(x: Vector) -> Vector:
        return _centred(dsymv(1.0, inverse, _centred(x), lower=1))

    low = _rayleigh(edges, _dominant(pseudo_inverse, n_nodes))
    return Spectrum(low, high, _inverse_resistances(edges, inverse))


def narrow_spectrum(n_nodes: int, edges: Edges, levels: Levels) -> Spectrum:
    """Sparse factors at both ends of the spectrum; resistances level by level."""
    low = _rayleigh(edges, _dominant(_pseudo_inverse(n_nodes, edges), n_nodes))
    high = _rayleigh(edges, _dominant(_inverse_from_above(n_nodes, edges), n_nodes))
    return Spectrum(low, high, levels.resistances())


def _rayleigh(edges: Edges, vector: Vector) -> float:
    """Rayleigh quotient summed over edges.

    Differences along edges keep all digits of a small eigenvalue, which ``x @ (lap @ x)`` would
    lose; the error is the square of the vector's.
    """
    centred = _centred(vector)
    difference = centred[edges[:, 0]] - centred[edges[:, 1]]
    return float(difference @ difference / (centred @ centred))


def _centred(x: Vector) -> Vector:
    return np.asarray(x - x.mean())


def _dominant(apply: Callable[[Vector], Vector], n_nodes: int) -> Vector:
    """Eigenvector of the largest eigenvalue, by Lanczos from a fixed start."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    start = _centred(generator(0, "graph/spectrum").standard_normal(n_nodes))
    operator = LinearOperator((n_nodes, n_nodes), matvec=apply, dtype=np.float64)
    size = min(n_nodes, LANCZOS_SIZE)
    _, vectors = eigsh(operator, k=1, which="LA", v0=start, ncv=size, tol=LANCZOS_TOL)
    return np.asarray(vectors[:, 0])


def _factor(matrix: Sparse) -> Callable[[Vector], Vector]:
    from scipy.sparse.linalg import splu

    symmetric: Any = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    factor = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", **symmetric)
    return lambda x: factor.solve(x)


def _pseudo_inverse(n_nodes: int, edges: Edges) -> Callable[[Vector], Vector]:
    """Product with ``Lap^+``: ground the busiest node, solve, centre."""
    kept = np.delete(np.arange(n_nodes), degrees(n_nodes, edges).argmax())
    solve = _factor(laplacian(n_nodes, edges)[kept][:, kept])

    def apply(x: Vector) -> Vector:
        solution = np.zeros(n_nodes)
        solution[kept] = solve(_centred(x)[kept])
        return _centred(solution)

    return apply


def _inverse_from_above(n_nodes: int, edges: Edges) -> Callable[[Vector], Vector]:
    """Product with ``(s I - Lap)^{-1}``, ``s`` just above ``max_kl (d_k + d_l) >= lambda_max``.

    In long graphs the largest eigenvalues crowd just under that bound (Anderson and Morley),
    where the inverse separates them.
    """
    degree = degrees(n_nodes, edges)
    bound = degree[edges].sum(axis=1).max() * (1.0 + 1e-8)
    shifted = -laplacian(n_nodes, edges)
    shifted.setdiag(bound - degree)
    return _factor(shifted)


def _dense_laplacian(n_nodes: int, edges: Edges) -> NDArray[np.float64]:
    matrix = np.zeros((n_nodes, n_nodes), order="F")
    k, l = edges.T
    matrix[k, l] = matrix[l, k] = -1.0
    np.fill_diagonal(matrix, degrees(n_nodes, edges))
    return matrix


def _shifted_inverse(n_nodes: int, edges: Edges) -> NDArray[np.float64]:
    """Lower triangle of ``(Lap + 11^T / n)^{-1} = Lap^+ + 11^T / n``, in place of the matrix."""
    from scipy.linalg.lapack import dpotrf, dpotri

    matrix = _dense_laplacian(n_nodes, edges)
    matrix += 1.0 / n_nodes
    factor, _ = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    return np.asarray(inverse)


def _inverse_resistances(edges: Edges, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
    k, l = edges.T
    diagonal = inverse.diagonal()
    return np.asarray(diagonal[k] + diagonal[l] - 2.0 * inverse[l, k])


class Levels:
    """The cycles of a graph, by breadth-first level from a node as far away as two searches find.

    ``in_core`` are the edges that remain once leaves have been removed again and again. Their nodes
    are in ``order``; level ``i`` is ``order[bounds[i]:bounds[i + 1]]``, the first one the root.
    """

    def __init__(self, n_nodes: int, edges: Edges) -> None:
        import networkx as nx

        graph = nx.empty_graph(n_nodes)
        graph.add_edges_from(edges.tolist())
        number = nx.core_number(graph)
        cyclic = np.array([number[node] >= 2 for node in range(n_nodes)])
        self.in_core: NDArray[np.bool_] = np.all(cyclic[edges], axis=1)
        self.core, self.n_nodes = edges[self.in_core], n_nodes
        self.order = self.bounds = np.zeros(1, dtype=np.int64)
        if len(self.core):
            distance, root = np.empty(0, np.int64), int(self.core[0, 0])
            for _ in range(3):
                distance = _distances(adjacency(n_nodes, self.core), root)
                root = int(distance.argmax())
            self.order = np.argsort(distance, kind="stable")[np.count_nonzero(distance < 0) :]
            counts = np.bincount(distance[self.order])
            self.bounds = np.concatenate([[0], np.cumsum(counts)])

    @property
    def width(self) -> int:
        """Size of the largest level; 0 for a tree."""
        return int(np.diff(self.bounds).max(initial=0))

    def resistances(self) -> Vector:
        """Effective resistance of each edge, by block elimination from the last level to the root.

        With the root grounded, block ``i`` of the Laplacian is ``D_i`` and its coupling to level
        ``i + 1`` is ``B_i``. The elimination keeps ``X_i = (D_i - B_i X_{i+1} B_i^T)^{-1}`` and
        ``T_i = B_i X_{i+1}``; going back, the inverse ``G`` has ``G_{i,i+1} = -G_i T_i`` and
        ``G_{i+1} = X_{i+1} + T_i^T G_i T_i``. Then ``R_kl = G_kk + G_ll - 2 G_kl``.
        """
        result = np.ones(len(self.in_core))
        if not len(self.core):
            return result
        self._sort_edges()
        last = len(self.bounds) - 2
        X: dict[int, Block] = {last: np.linalg.inv(self._block(2 * last))}
        T: dict[int, Block] = {}
        for i in range(last - 1, 0, -1):
            B = self._block(2 * i + 1)
            T[i] = B @ X[i + 1]
            X[i] = np.linalg.inv(self._block(2 * i) - T[i] @ B.T)
        sorted_r, G = np.empty(len(self.core)), X[1]
        part, _, l = self._edges(1)
        sorted_r[part] = G[l, l]
        for i in range(1, last + 1):
            part, k, l = self._edges(2 * i)
            sorted_r[part] = G[k, k] + G[l, l] - 2.0 * G[k, l]
            if i < last:
                across = -G @ T[i]
                part, k, l = self._edges(2 * i + 1)
                here = G[k, k]
                G = X[i + 1] - T[i].T @ across
                sorted_r[part] = here + G[l, l] - 2.0 * across[k, l]
        result[np.flatnonzero(self.in_core)[self._edge_order]] = sorted_r
        return result

    def _sort_edges(self) -> None:
        """Edges within level i come with key 2i, edges from level i to i + 1 with key 2i + 1."""
        self._degree = degrees(self.n_nodes, self.core)[self.order].astype(np.float64)
        place = np.empty(self.n_nodes, dtype=np.int64)
        place[self.order] = np.arange(len(self.order))
        ends = np.sort(place[self.core], axis=1)
        level = np.searchsorted(self.bounds, ends, side="right") - 1
        key = level.sum(axis=1)
        self._edge_order = np.argsort(key, kind="stable")
        n_keys = 2 * len(self.bounds) - 2
        self._edge_bounds = np.searchsorted(key[self._edge_order], np.arange(n_keys))
        self._ends = (ends - self.bounds[level])[self._edge_order]

    def _edges(self, key: int) -> tuple[slice, NDArray[np.int64], NDArray[np.int64]]:
        """Where the edges with one key are, and their ends counted within their levels."""
        part = slice(self._edge_bounds[key], self._edge_bounds[key + 1])
        return part, self._ends[part, 0], self._ends[part, 1]

    def _block(self, key: int) -> Block:
        """The block of the Laplacian that holds these edges: ``D_i`` for 2i, ``B_i`` for 2i + 1."""
        first, second = (slice(*self.bounds[i : i + 2]) for i in (key // 2, (key + 1) // 2))
        block = np.zeros((first.stop - first.start, second.stop - second.start))
        _, k, l = self._edges(key)
        block[k, l] = -1.0
        if first == second:
            block[l, k] = -1.0
            np.fill_diagonal(block, self._degree[first])
        return block


def _distances(graph: Sparse, root: int) -> NDArray[np.int64]:
    """Distance of every node from ``root``; -1 for nodes that were removed."""
    from scipy.sparse.csgraph import dijkstra

    distance = dijkstra(graph, indices=[root], unweighted=True)[0]
    return np.where(np.isfinite(distance), distance, -1.0).astype(np.int64)

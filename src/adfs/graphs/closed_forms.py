"""Spectra of the named families by formula: no matrix, and for `family_facts` not even a graph.

Grids and tori are products, so their eigenvalues are sums ``lambda_p + lambda_q`` of those of paths
and rings. Where all edges of a direction are alike, Foster's theorem gives their resistance:
``sum R = sum_pq lambda_q / (lambda_p + lambda_q)``. In a grid they differ, but the squares of its
eigenvectors' differences are cosines again, so that all resistances come from two Fourier
transforms.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.errors import GraphError
from adfs.graphs import graph_names
from adfs.graphs.edges import Edges, whole

Vector = NDArray[np.float64]
BLOCK = 1 << 20  # pairs of eigenvalues at once


class Shape(NamedTuple):
    """A family and its sizes, such as ``("grid", (3, 4))``; paths and rings are grids and tori."""

    family: str
    sizes: tuple[int, ...]


class FamilyFacts(NamedTuple):
    """What theory and a plan read off a graph."""

    n_nodes: int
    n_edges: int
    lambda_min: float
    lambda_max: float
    diameter: int

    @property
    def gamma(self) -> float:
        """``lambda_min / lambda_max``, and 1 for a single node."""
        return self.lambda_min / self.lambda_max if self.lambda_max > 0 else 1.0


SINGLE = FamilyFacts(1, 0, 0.0, 0.0, 0)


def family_facts(text: str, n_nodes: int | None = None) -> FamilyFacts:
    """Facts about the graph that ``text`` names (see `Topology.parse`), without building it.

    Exact for all families but two: those of ``random_regular`` are what holds for almost all such
    graphs as n grows (Friedman 2008 for the eigenvalues), and ``erdos_renyi`` is refused.

    Examples
    --------
    >>> facts = family_facts("hypercube", 2**20)
    >>> facts.n_edges, facts.lambda_min, facts.gamma, facts.diameter
    (10485760, 2.0, 0.05, 20)
    """
    family, sizes, options = graph_names.read(text, n_nodes)
    for size in sizes:
        whole("a size", size, 0 if family == "hypercube" else 1)
    if family == "erdos_renyi":
        raise GraphError(
            f"Graph {text!r} has no closed form; build it with Topology.parse, or ask for "
            "random_regular with the same mean degree."
        )
    if family == "random_regular":
        return _random_regular_facts(sizes[0], int(options["k"]))
    return shape_facts(Shape(family, sizes))


def shape_facts(shape: Shape) -> FamilyFacts:
    """Facts about a graph of a family with a closed form."""
    family, sizes = shape
    alone = 0 if family == "hypercube" else 1
    if all(size == alone for size in sizes):
        return SINGLE
    return FACTS[family](*sizes)


def resistances(shape: Shape, edges: Edges) -> Vector:
    """Effective resistance of each edge of the graph of this family."""
    family, sizes = shape
    if family == "grid" and min(sizes) > 1:
        across, down = grid_resistances(*sizes)
        rows, columns = np.divmod(edges[:, 0], sizes[1])
        same_row = edges[:, 1] < (rows + 1) * sizes[1]
        found = np.empty(len(edges))
        found[same_row] = across[rows[same_row], columns[same_row]]
        found[~same_row] = down[rows[~same_row], columns[~same_row]]
        return found
    if family == "torus":
        across_ring, down_ring = _torus_resistances(*sizes)
        same_row = edges[:, 0] // sizes[1] == edges[:, 1] // sizes[1]
        return np.where(same_row, across_ring, down_ring)
    facts = shape_facts(shape)  # all edges are alike, or bridges
    return np.full(len(edges), (facts.n_nodes - 1) / max(1, facts.n_edges))


def _path_values(n: int) -> Vector:
    return np.asarray(4.0 * np.sin(np.arange(n) * (np.pi / (2 * n))) ** 2)


def _ring_values(n: int) -> Vector:
    """A ring of two nodes is one edge, not two."""
    return np.array([0.0, 2.0]) if n == 2 else 4.0 * np.sin(np.arange(n) * (np.pi / n)) ** 2


def _path_ends(n: int) -> tuple[float, float]:
    """Smallest positive and largest eigenvalue; infinite and 0 for one node."""
    angle = math.pi / (2 * n)
    return (4.0 * math.sin(angle) ** 2, 4.0 * math.cos(angle) ** 2) if n > 1 else (math.inf, 0.0)


def _ring_ends(n: int) -> tuple[float, float]:
    if n <= 2:
        return _path_ends(n)
    return 4.0 * math.sin(math.pi / n) ** 2, 4.0 * math.sin(n // 2 * math.pi / n) ** 2


def _extremes(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Smallest positive and largest eigenvalue of a product of two graphs."""
    return min(first[0], second[0]), first[1] + second[1]


def grid_resistances(a: int, b: int) -> tuple[Vector, Vector]:
    """Resistances of the edges within rows, shape (a, b - 1), and between them, (a - 1, b).

    The edge right of node (i, j) has ``R = sum_pq u_p(i)^2 (w_q(j) - w_q(j + 1))^2 / (lambda_p +
    lambda_q)`` with the eigenvectors ``u_p(i) ~ cos(pi p (i + 1/2) / a)``, and

        u_p(i)^2                = (1 + cos(2 pi p (i + 1/2) / a)) / a    (half of it for p = 0)
        (w_q(j) - w_q(j + 1))^2 = lambda_q (1 - cos(2 pi q (j + 1) / b)) / b.
    """
    across = _resistances_along_rows(a, b)
    return across, across.T if a == b else _resistances_along_rows(b, a).T


def _resistances_along_rows(a: int, b: int) -> Vector:
    ratio = np.add.outer(_path_values(a), _path_values(b))
    ratio[0, 0] = 1.0
    np.divide(_path_values(b), ratio, out=ratio)
    ratio[0] *= 0.5
    twist = np.exp(1j * np.pi / a * np.arange(a))
    by_row = (ratio.sum(axis=0) + a * np.fft.ifft(ratio * twist[:, None], axis=0).real) / a
    half = np.fft.rfft(by_row, axis=1).real
    places = np.arange(1, b)
    cosines = half[:, np.minimum(places, b - places)]
    return np.asarray((by_row.sum(axis=1)[:, None] - cosines) / b)


def _grid_facts(a: int, b: int) -> FamilyFacts:
    low, high = _extremes(_path_ends(a), _path_ends(b))
    return FamilyFacts(a * b, a * (b - 1) + (a - 1) * b, low, high, a + b - 2)


def _ring_edges(n: int) -> int:
    return n if n > 2 else n - 1


def _torus_resistances(a: int, b: int) -> tuple[float, float]:
    """Resistance of the edges within rows and of those between rows, if there are any."""
    if min(a, b) == 1 or a == b:
        alike = (a * b - 1) / (a * _ring_edges(b) + b * _ring_edges(a))
        return alike, alike
    first, second = _ring_values(a), _ring_values(b)
    total, rows = 0.0, max(1, BLOCK // b)
    for start in range(0, a, rows):
        sums = np.add.outer(first[start : start + rows], second)
        sums[sums == 0.0] = 1.0
        total += float((second / sums).sum())
    return total / (a * _ring_edges(b)), (a * b - 1 - total) / (b * _ring_edges(a))


def _torus_facts(a: int, b: int) -> FamilyFacts:
    low, high = _extremes(_ring_ends(a), _ring_ends(b))
    n_edges = a * _ring_edges(b) + b * _ring_edges(a)
    return FamilyFacts(a * b, n_edges, low, high, a // 2 + b // 2)


def _star_facts(n: int) -> FamilyFacts:
    return FamilyFacts(n, n - 1, 1.0 if n > 2 else 2.0, float(n), min(n - 1, 2))


def _complete_facts(n: int) -> FamilyFacts:
    return FamilyFacts(n, n * (n - 1) // 2, float(n), float(n), 1)


def _hypercube_facts(k: int) -> FamilyFacts:
    return FamilyFacts(2**k, k * 2 ** (k - 1), 2.0, 2.0 * k, k)


FACTS: dict[str, Callable[..., FamilyFacts]] = {
    "grid": _grid_facts,
    "path": partial(_grid_facts, 1),
    "torus": _torus_facts,
    "ring": partial(_torus_facts, 1),
    "star": _star_facts,
    "complete": _complete_facts,
    "hypercube": _hypercube_facts,
}


def _random_regular_facts(n: int, k: int) -> FamilyFacts:
    """Estimates: eigenvalues ``k -+ 2 sqrt(k - 1)``, distances as in a tree.

    Two nodes are further apart than t with probability about ``exp(-k (k - 1)^t / ((k - 2) n))``;
    the diameter is where that falls below ``1 / n^2``.
    """
    graph_names.require_regular(n, k)
    if k <= 2 or k == n - 1:  # one node, one edge, a ring, a complete graph
        return shape_facts(Shape("ring" if k == 2 else "complete", (n,)))
    spread = 2.0 * math.sqrt(k - 1.0)
    reach = n * math.log(n) * (k - 2) / k
    diameter = math.ceil(math.log(2.0 * reach, k - 1))
    return FamilyFacts(n, n * k // 2, k - spread, k + spread, diameter)

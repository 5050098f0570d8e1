"""Edge arrays of the named families; `edges.canonical` checks what they return."""

from collections.abc import Callable
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike

from adfs.errors import GraphError
from adfs.graphs.edges import LARGEST, Edges, components, whole
from adfs.randomness import generator, stream_key

ATTEMPTS = 100


def most_square(n: int) -> tuple[int, int]:
    """Factors ``a <= b`` of ``n`` with ``a`` as large as possible.

    Examples
    --------
    >>> most_square(12), most_square(7)
    ((3, 4), (1, 7))
    """
    a = next(a for a in range(isqrt(n), 0, -1) if n % a == 0)
    return a, n // a


def _pairs(k: ArrayLike, l: ArrayLike) -> Edges:
    return np.column_stack([np.ravel(k), np.ravel(l)]).astype(np.int32)


def _refuse_too_many(n_edges: int, way_out: str) -> None:
    if n_edges > LARGEST:
        raise GraphError(
            f"A graph has at most {LARGEST} edges, and this one would have {n_edges}; {way_out}."
        )


def path_edges(n: int) -> Edges:
    """``0 - 1 - ... - (n - 1)``."""
    nodes = np.arange(n, dtype=np.int32)
    return _pairs(nodes[:-1], nodes[1:])


def ring_edges(n: int) -> Edges:
    """A path whose ends meet; with one or two nodes there is nothing to close."""
    return torus_edges(1, n)


def star_edges(n: int) -> Edges:
    """Node 0 joined to all others."""
    leaves = np.arange(1, n, dtype=np.int32)
    return _pairs(np.zeros_like(leaves), leaves)


def complete_edges(n: int) -> Edges:
    """All pairs."""
    n_edges = n * (n - 1) // 2
    _refuse_too_many(n_edges, "take fewer nodes or a sparser graph")
    edges = np.empty((n_edges, 2), dtype=np.int32)
    nodes = np.arange(n, dtype=np.int32)
    edges[:, 0] = np.repeat(nodes, nodes[::-1])
    # Row k holds k + 1, ..., n - 1: a counter that steps back at the start of each row.
    starts = np.concatenate([[0], np.cumsum(nodes[:0:-1], dtype=np.int64)])
    edges[:, 1] = np.arange(n_edges) - (starts - nodes - 1)[edges[:, 0]]
    return edges


def grid_edges(a: int, b: int) -> Edges:
    """``a`` rows of ``b`` nodes, node ``i * b + j`` joined to those right of it and below it."""
    nodes = np.arange(a * b, dtype=np.int32).reshape(a, b)
    right = _pairs(nodes[:, :-1], nodes[:, 1:])
    below = _pairs(nodes[:-1], nodes[1:])
    return np.concatenate([right, below])


def torus_edges(a: int, b: int) -> Edges:
    """A grid whose opposite sides meet; a side of one or two nodes adds no edge."""
    nodes = np.arange(a * b, dtype=np.int32).reshape(a, b)
    seams = [grid_edges(a, b)]
    if b > 2:
        seams.append(_pairs(nodes[:, 0], nodes[:, -1]))
    if a > 2:
        seams.append(_pairs(nodes[0], nodes[-1]))
    return np.concatenate(seams)


def hypercube_edges(k: int) -> Edges:
    """``2**k`` nodes, joined where their numbers differ in one binary digit."""
    _refuse_too_many(k * 2 ** max(k - 1, 0), "lower the dimension")
    nodes, bits = np.arange(2**k), 1 << np.arange(k)
    low, bit = np.nonzero((nodes[:, None] & bits) == 0)
    return _pairs(low, low | bits[bit])


def random_regular_edges(n: int, k: int, seed: int) -> Edges:
    """Every node has ``k`` neighbours, uniform up to networkx's pairing; connected."""
    whole("k", k, 0)
    if k >= n or n * k % 2:
        raise GraphError(
            f"In a regular graph the degree is less than n and n * degree is even, but n={n} "
            f"and k={k}; change k or n by one."
        )

    def draw(attempt: int) -> Edges:
        import networkx as nx

        key = int(stream_key(seed, f"graph/random_regular/{attempt}"))
        graph = nx.random_regular_graph(k, n, seed=key)
        return np.array(list(graph.edges), dtype=np.int32).reshape(-1, 2)

    return _first_connected(n, draw, f"random_regular(n={n}, k={k}, seed={seed})", "raise k")


def erdos_renyi_edges(n: int, p: float, seed: int) -> Edges:
    """Each pair is an edge with probability ``p``, given that the graph is connected."""
    if not 0 < p <= 1:
        raise GraphError(f"p={p!r} must be a probability in (0, 1]; pass for example p=0.5.")

    def draw(attempt: int) -> Edges:
        random = generator(seed, f"graph/erdos_renyi/{attempt}").random
        rows = [np.flatnonzero(random(n - 1 - k) < p) + k + 1 for k in range(n)]
        return _pairs(np.repeat(np.arange(n), [len(row) for row in rows]), np.concatenate(rows))

    name = f"erdos_renyi(n={n}, p={p}, seed={seed})"
    return _first_connected(n, draw, name, f"raise p (log(n) / n = {np.log(n) / n:.2g})")


def _first_connected(n: int, draw: Callable[[int], Edges], name: str, way_out: str) -> Edges:
    for attempt in range(ATTEMPTS):
        edges = draw(attempt)
        if components(n, edges)[0] == 1:
            return edges
    raise GraphError(
        f"The graph must be connected, but {ATTEMPTS} draws of {name} were not; "
        f"{way_out} or take another seed."
    )

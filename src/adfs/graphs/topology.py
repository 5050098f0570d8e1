"""`Topology`: the nodes of a communication graph and the edges between them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.display import html_table, plot_function
from adfs.errors import GraphError
from adfs.graphs import edges as edge_arrays
from adfs.graphs import graph_names, random_draws
from adfs.graphs.closed_forms import Shape, shape_facts
from adfs.graphs.edges import LARGEST, Edges, Sparse, whole
from adfs.graphs.spectrum import Spectrum, compute_spectrum
from adfs.graphs.weights import MixingWeights, mixing_weights
from adfs.randomness import generator, stream_key

ATTEMPTS = 100
BFS_BLOCK = 256


class Incidence(NamedTuple):
    """Who touches whom, in compressed rows.

    Entries ``starts[k]`` to ``starts[k + 1]`` of ``neighbours`` are the neighbours of node ``k``
    in increasing order; the same entries of ``edges`` are the numbers of the edges to them.
    """

    starts: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    edges: NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """A connected simple graph on the nodes ``0, ..., n_nodes - 1``; one node alone is a graph.

    Two topologies are equal when they have the same nodes and the same edges, whatever their
    names. The named families below are constructors; `parse` reads them from text.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 1.
    edges : (E, 2) array of int
        Pairs in any order; kept read-only as int32, ``k < l`` in each row, rows in order.
    name : str
        How the graph is called in messages, such as ``grid:10x10``.

    Examples
    --------
    >>> Topology.grid(2, 2).edges.tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    >>> Topology.grid(2, 2).diameter
    2
    >>> Topology.star(5).spectrum
    Spectrum(lambda_min=1, lambda_max=5, gamma=0.2)
    """

    n_nodes: int
    edges: Edges
    name: str = "custom"
    _shape: ClassVar[Shape | None] = None

    def __post_init__(self) -> None:
        n_nodes = whole("n_nodes", self.n_nodes, 1)
        object.__setattr__(self, "n_nodes", n_nodes)
        object.__setattr__(self, "edges", edge_arrays.canonical(n_nodes, self.edges))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return self.n_nodes == other.n_nodes and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.n_nodes, self.edges.tobytes()))

    def __repr__(self) -> str:
        return f"Topology({self.name}, n_nodes={self.n_nodes}, n_edges={self.n_edges})"

    def _of(self, family: str, *sizes: int) -> "Topology":
        """Remember the family, for closed forms; a copy with other edges does not inherit it."""
        object.__setattr__(self, "_shape", Shape(family, sizes))
        return self

    @classmethod
    def single(cls) -> "Topology":
        """One node and no edge."""
        return cls(1, _grid_edges(1, 1), "single")._of("single")

    @classmethod
    def path(cls, n: int) -> "Topology":
        """``n`` nodes in a row."""
        n = whole("n", n, 1)
        return cls(n, _grid_edges(1, n), f"path:{n}")._of("path", n)

    @classmethod
    def ring(cls, n: int) -> "Topology":
        """``n`` nodes in a circle; ``ring(2)`` is one edge, ``ring(1)`` a single node."""
        n = whole("n", n, 1)
        return cls(n, _torus_edges(1, n), f"ring:{n}")._of("ring", n)

    @classmethod
    def star(cls, n: int) -> "Topology":
        """Node 0 joined to the ``n - 1`` others."""
        n = whole("n", n, 1)
        return cls(n, _pairs(np.zeros(n - 1), np.arange(1, n)), f"star:{n}")._of("star", n)

    @classmethod
    def complete(cls, n: int) -> "Topology":
        """``n`` nodes, each joined to all others."""
        n = whole("n", n, 1)
        _refuse_too_many(n * (n - 1) // 2, "take fewer nodes or a sparser graph")
        return cls(n, _pairs(*np.triu_indices(n, 1)), f"complete:{n}")._of("complete", n)

    @classmethod
    def grid(cls, a: int, b: int) -> "Topology":
        """``a`` rows of ``b`` nodes; node ``i * b + j`` is in row ``i``, column ``j``."""
        n = whole("a * b", whole("a", a, 1) * whole("b", b, 1), 1)
        return cls(n, _grid_edges(a, b), f"grid:{a}x{b}")._of("grid", a, b)

    @classmethod
    def torus(cls, a: int, b: int) -> "Topology":
        """A grid whose opposite sides meet; a side of one or two nodes adds no edge."""
        n = whole("a * b", whole("a", a, 1) * whole("b", b, 1), 1)
        return cls(n, _torus_edges(a, b), f"torus:{a}x{b}")._of("torus", a, b)

    @classmethod
    def hypercube(cls, k: int) -> "Topology":
        """``2**k`` nodes, joined where their numbers differ in one binary digit."""
        k = whole("k", k, 0)
        _refuse_too_many(k * 2 ** max(k - 1, 0), "lower the dimension")
        bits = 1 << np.arange(k)
        low, bit = np.nonzero((np.arange(2**k)[:, None] & bits) == 0)
        return cls(2**k, _pairs(low, low | bits[bit]), f"hypercube:{k}")._of("hypercube", k)

    @classmethod
    def random_regular(cls, n: int, k: int, seed: int = 0) -> "Topology":
        """Connected random graph of ``n`` nodes with ``k`` neighbours each; one graph per seed.

        Uniform up to the pairing of networkx; beyond 20,000 nodes, up to a few exchanged ends.
        """
        n, k = whole("n", n, 1), whole("k", k, 0)
        graph_names.require_regular(n, k)

        def draw(attempt: int) -> Edges:
            if n > random_draws.LARGE and k <= random_draws.MOST_NEIGHBOURS:
                return random_draws.regular_edges(n, k, seed, attempt)
            import networkx as nx

            key = int(stream_key(seed, f"graph/random_regular/{attempt}"))
            graph = nx.random_regular_graph(k, n, seed=key)
            return np.array(list(graph.edges), dtype=np.int32).reshape(-1, 2)

        edges = _first_connected(n, draw, f"random_regular(n={n}, k={k}, seed={seed})", "raise k")
        return cls(n, edges, f"random_regular:{n},k={k},seed={seed}")

    @classmethod
    def erdos_renyi(cls, n: int, p: float, seed: int = 0) -> "Topology":
        """Each pair is an edge with probability ``p``, given that the graph is connected."""
        n = whole("n", n, 1)
        if not 0 < p <= 1:
            raise GraphError(f"p={p!r} must be a probability in (0, 1]; pass for example p=0.5.")

        def draw(attempt: int) -> Edges:
            if n > random_draws.LARGE:
                return random_draws.pair_edges(n, p, seed, attempt)
            random = generator(seed, f"graph/erdos_renyi/{attempt}").random
            rows = [np.flatnonzero(random(n - 1 - k) < p) + k + 1 for k in range(n)]
            return _pairs(np.repeat(np.arange(n), [len(row) for row in rows]), np.concatenate(rows))

        name, least = f"erdos_renyi(n={n}, p={p}, seed={seed})", f"{np.log(n) / n:.2g}"
        edges = _first_connected(n, draw, name, f"raise p (log(n) / n = {least})")
        return cls(n, edges, f"erdos_renyi:{n},p={float(p)!r},seed={seed}")

    @classmethod
    def from_edges(cls, n: int, edges: NDArray[Any] | Iterable[Sequence[int]]) -> "Topology":
        """``n`` nodes and the given pairs, in any order and direction, each once.

        Examples
        --------
        >>> Topology.from_edges(3, [(2, 1), (1, 0)]) == Topology.path(3)
        True
        """
        pairs = edges if hasattr(edges, "__array__") else list(edges)
        return cls(n, cast(Edges, pairs))

    @classmethod
    def from_networkx(cls, G: Any) -> "Topology":
        """The graph ``G``, its nodes numbered in the order of ``G.nodes``; attributes are ignored.

        Examples
        --------
        >>> import networkx as nx
        >>> Topology.from_networkx(nx.Graph([("b", "a"), ("a", "c")])).edges.tolist()
        [[0, 1], [1, 2]]
        """
        if G.is_directed() or G.is_multigraph():
            kind = "directed" if G.is_directed() else "a multigraph"
            raise GraphError(
                f"Edges have no direction and are listed once, but this graph is {kind}; "
                "pass networkx.Graph(G)."
            )
        number = {label: k for k, label in enumerate(G.nodes)}
        return cls.from_edges(len(number), [(number[k], number[l]) for k, l in G.edges])

    @classmethod
    def parse(cls, text: str, n_nodes: int | None = None) -> "Topology":
        """The graph that ``text`` names.

        Written ``single``, ``grid:10x10``, ``torus:4x5``, ``ring:8``, ``path:8``, ``star:8``,
        ``complete:8``, ``hypercube:3`` (the dimension), ``random_regular:100,k=4,seed=0``,
        ``erdos_renyi:100,p=0.1,seed=0`` (the seed may be left out). Where ``n_nodes`` is given
        the size may be left out too: ``ring``, ``random_regular:k=4``, and ``grid`` and ``torus``
        as square as ``n_nodes`` allows. The name of a graph so built parses back to it.

        Examples
        --------
        >>> Topology.parse("grid", n_nodes=12)
        Topology(grid:3x4, n_nodes=12, n_edges=17)
        """
        family, sizes, options = graph_names.read(text, n_nodes)
        graph: Topology = getattr(cls, family)(*sizes, **options)
        return graph

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.edges)

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node."""
        degrees = edge_arrays.degrees(self.n_nodes, self.edges)
        degrees.setflags(write=False)
        return degrees

    @cached_property
    def incidence(self) -> Incidence:
        """Neighbours and edge numbers of each node, in compressed rows for loops.

        Examples
        --------
        >>> starts, neighbours, edges = Topology.path(3).incidence
        >>> neighbours[starts[1] : starts[2]].tolist(), edges[starts[1] : starts[2]].tolist()
        ([0, 2], [0, 1])
        """
        # Listing each edge at its higher end first keeps neighbours in order under a stable sort.
        order = np.argsort(np.concatenate([self.edges[:, 1], self.edges[:, 0]]), kind="stable")
        starts = np.append(0, np.cumsum(self.degrees))
        other = np.concatenate([self.edges[:, 0], self.edges[:, 1]])[order]
        number = np.tile(np.arange(self.n_edges, dtype=np.int32), 2)[order]
        for array in (starts, other, number):
            array.setflags(write=False)
        return Incidence(starts, other, number)

    def neighbours(self, k: int) -> NDArray[np.int32]:
        """Neighbours of node ``k``, in increasing order."""
        starts, neighbours, _ = self.incidence
        return neighbours[starts[k] : starts[k + 1]]

    @cached_property
    def diameter(self) -> int:
        """Largest distance between two nodes, in edges.

        By formula for the named families, else by one breadth-first search per node.
        """
        if self._shape is not None:
            return shape_facts(self._shape).diameter
        if self.n_edges == self.n_nodes * (self.n_nodes - 1) // 2:
            return min(self.n_nodes - 1, 1)
        from scipy.sparse.csgraph import breadth_first_order

        graph = edge_arrays.adjacency(self.n_nodes, self.edges)
        longest = 0
        for start in range(0, self.n_nodes, BFS_BLOCK):
            roots = np.arange(start, min(start + BFS_BLOCK, self.n_nodes), dtype=np.int64)
            parents = np.empty((len(roots), self.n_nodes), dtype=np.int32)
            tips = np.empty(len(roots), dtype=np.int32)
            for row, root in enumerate(roots):
                order, parents[row] = breadth_first_order(graph, int(root), directed=True)
                tips[row] = order[-1]
            longest = max(longest, _longest_climb(parents, tips, roots))
        return longest

    @cached_property
    def spectrum(self) -> Spectrum:
        """Extreme Laplacian eigenvalues and effective resistances; computed once.

        Of large graphs that are of no named family, bounds on them: see `Spectrum.exact`.
        """
        return compute_spectrum(self.n_nodes, self.edges, self._shape)

    def laplacian(self) -> Sparse:
        """Laplacian with unit edge weights, in compressed sparse rows."""
        return edge_arrays.laplacian(self.n_nodes, self.edges)

    @cached_property
    def dense_laplacian(self) -> NDArray[np.float64]:
        """The same as an array, for few nodes; computed once."""
        return np.asarray(self.laplacian().toarray())

    def weights(self, kind: str = "metropolis") -> MixingWeights:
        """A symmetric mixing matrix with its spectrum.

        ``metropolis``: ``1 / (1 + max(degree_k, degree_l))`` on an edge; ``laplacian``: ``I - c
        Lap`` with the best ``c = 2 / (lambda_min + lambda_max)``; ``max-degree``: ``c = 1 / (1 +
        largest degree)``. A node keeps what is missing to 1, which may be negative for
        ``laplacian``.
        """
        return mixing_weights(self, kind)

    def plot(self, ax: Any = None) -> Any:
        """Draw the graph; the matplotlib axes."""
        return plot_function("graph_plot", "draw_topology")(self, ax)

    def _repr_html_(self) -> str:
        rows = [
            ("nodes", self.n_nodes),
            ("edges", self.n_edges),
            ("diameter", self.diameter),
            ("eigengap gamma", f"{self.spectrum.gamma:.4g}"),
        ]
        return html_table(rows, f"Topology {self.name}")

    def to_networkx(self) -> Any:
        """The same graph as a `networkx.Graph` on the nodes ``0, ..., n_nodes - 1``."""
        import networkx as nx

        graph = nx.empty_graph(self.n_nodes)
        graph.add_edges_from(self.edges.tolist())
        return graph


def _longest_climb(parents: Edges, tips: Edges, roots: NDArray[np.int64]) -> int:
    """Steps until every search, walked up from the node it reached last, is back at its root."""
    rows, steps = np.arange(len(roots)), 0
    while (away := tips != roots).any():
        rows, roots, tips = rows[away], roots[away], tips[away]
        tips = parents[rows, tips]
        steps += 1
    return steps


def _pairs(k: ArrayLike, l: ArrayLike) -> Edges:
    return np.column_stack([np.ravel(k), np.ravel(l)]).astype(np.int32)


def _grid_edges(a: int, b: int) -> Edges:
    nodes = np.arange(a * b).reshape(a, b)
    right = _pairs(nodes[:, :-1], nodes[:, 1:])
    return np.concatenate([right, _pairs(nodes[:-1], nodes[1:])])


def _torus_edges(a: int, b: int) -> Edges:
    nodes = np.arange(a * b).reshape(a, b)
    seams = [_grid_edges(a, b)]
    if b > 2:
        seams.append(_pairs(nodes[:, 0], nodes[:, -1]))
    if a > 2:
        seams.append(_pairs(nodes[0], nodes[-1]))
    return np.concatenate(seams)


def _refuse_too_many(n_edges: int, way_out: str) -> None:
    if n_edges > LARGEST:
        raise GraphError(
            f"A graph has at most {LARGEST} edges, and this one would have {n_edges}; {way_out}."
        )


def _first_connected(n: int, draw: Callable[[int], Edges], name: str, way_out: str) -> Edges:
    for attempt in range(ATTEMPTS):
        edges = draw(attempt)
        if edge_arrays.components(n, edges)[0] == 1:
            return edges
    raise GraphError(
        f"The graph must be connected, but {ATTEMPTS} draws of {name} were not; "
        f"{way_out} or take another seed."
    )

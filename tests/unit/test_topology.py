import pickle

import networkx as nx
import numpy as np
import pytest

from adfs.errors import GraphError, ParameterError
from adfs.graphs.graph_names import FAMILIES
from adfs.graphs.topology import Topology


def networkx_grid(a, b, periodic=False):
    graph = nx.grid_2d_graph(a, b, periodic=periodic)
    return nx.relabel_nodes(graph, {(i, j): i * b + j for i in range(a) for j in range(b)})


ORACLES = [
    (Topology.path(1), nx.path_graph(1)),
    (Topology.path(7), nx.path_graph(7)),
    (Topology.ring(7), nx.cycle_graph(7)),
    (Topology.ring(3), nx.complete_graph(3)),
    (Topology.star(6), nx.star_graph(5)),
    (Topology.complete(6), nx.complete_graph(6)),
    (Topology.grid(3, 4), networkx_grid(3, 4)),
    (Topology.grid(1, 5), nx.path_graph(5)),
    (Topology.torus(3, 5), networkx_grid(3, 5, periodic=True)),
    (Topology.torus(2, 4), networkx_grid(2, 4, periodic=True)),
    (Topology.torus(4, 1), nx.cycle_graph(4)),
    (Topology.torus(2, 2), networkx_grid(2, 2)),
    (Topology.hypercube(1), nx.path_graph(2)),
]
NAMED = [graph for graph, _ in ORACLES] + [
    Topology.single(),
    Topology.hypercube(4),
    Topology.random_regular(20, 3, seed=5),
    Topology.erdos_renyi(20, 0.25, seed=5),
]


def label(graph):
    return graph.name


@pytest.mark.parametrize(("graph", "oracle"), ORACLES, ids=lambda value: getattr(value, "name", ""))
def test_families_have_the_edges_that_networkx_gives_them(graph, oracle):
    expected = sorted(tuple(sorted(edge)) for edge in oracle.edges)
    assert [tuple(edge) for edge in graph.edges.tolist()] == expected
    assert graph.n_nodes == len(oracle)


def test_hypercube_joins_numbers_that_differ_in_one_binary_digit():
    pairs = [(k, l) for k in range(16) for l in range(k + 1, 16) if bin(k ^ l).count("1") == 1]
    assert Topology.hypercube(4).edges.tolist() == [list(pair) for pair in pairs]


@pytest.mark.parametrize(
    "graph",
    [
        *(getattr(Topology, family)(1) for family in ("path", "ring", "star", "complete")),
        Topology.grid(1, 1),
        Topology.torus(1, 1),
        Topology.hypercube(0),
        Topology.random_regular(1, 0),
        Topology.erdos_renyi(1, 0.5),
        Topology.from_edges(1, []),
        Topology.from_networkx(nx.empty_graph(1)),
    ],
    ids=label,
)
def test_one_node_is_the_same_graph_in_every_family(graph):
    assert graph == Topology.single()
    assert graph.edges.shape == (0, 2)
    assert graph.diameter == 0
    assert graph.laplacian().toarray().tolist() == [[0.0]]
    assert graph.degrees.tolist() == [0]
    assert graph.neighbours(0).size == 0


def test_two_nodes_are_one_edge_in_every_family():
    families = (Topology.ring, Topology.path, Topology.star, Topology.complete)
    assert all(family(2).edges.tolist() == [[0, 1]] for family in families)
    assert Topology.torus(1, 2) == Topology.hypercube(1) == Topology.random_regular(2, 1)


@pytest.mark.parametrize("graph", NAMED, ids=label)
def test_edges_are_canonical_and_read_only(graph):
    assert graph.edges.dtype == np.int32
    assert graph.edges.shape == (graph.n_edges, 2)
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert graph.edges.tolist() == sorted(graph.edges.tolist())
    assert not graph.edges.flags.writeable


@pytest.mark.parametrize("graph", NAMED, ids=label)
def test_a_name_parses_back_to_its_graph(graph):
    parsed = Topology.parse(graph.name)
    assert parsed == graph
    assert parsed.name == graph.name
    assert Topology.parse(graph.name, n_nodes=graph.n_nodes) == graph


@pytest.mark.parametrize("graph", NAMED, ids=label)
def test_diameter_is_that_of_networkx(graph):
    assert graph.diameter == nx.diameter(graph.to_networkx())


def test_diameter_counts_nodes_beyond_the_first_block_of_searches():
    lollipop = Topology.from_networkx(nx.lollipop_graph(300, 40))
    assert lollipop.diameter == 41


@pytest.mark.parametrize("graph", NAMED, ids=label)
def test_laplacian_degrees_and_neighbours_are_those_of_networkx(graph):
    oracle = graph.to_networkx()
    assert list(oracle.nodes) == list(range(graph.n_nodes))
    assert (graph.laplacian().toarray() == nx.laplacian_matrix(oracle).toarray()).all()
    assert graph.laplacian().format == "csr"
    assert graph.degrees.tolist() == [oracle.degree(k) for k in range(graph.n_nodes)]
    for k in range(graph.n_nodes):
        assert graph.neighbours(k).tolist() == sorted(oracle[k])


@pytest.mark.parametrize("graph", NAMED, ids=label)
def test_incidence_names_the_edge_to_each_neighbour(graph):
    starts, neighbours, edges = graph.incidence
    assert starts[-1] == len(neighbours) == len(edges) == 2 * graph.n_edges
    for k in range(graph.n_nodes):
        for l, edge in zip(
            neighbours[starts[k] : starts[k + 1]], edges[starts[k] : starts[k + 1]], strict=True
        ):
            assert graph.edges[edge].tolist() == sorted([k, l])


def test_networkx_graphs_survive_the_return_trip_with_any_labels():
    graph = nx.Graph()
    graph.add_nodes_from(["z", (1, 2), frozenset()])
    graph.add_edges_from([(frozenset(), "z"), ((1, 2), frozenset())], weight=7.0)
    topology = Topology.from_networkx(graph)
    assert topology.edges.tolist() == [[0, 2], [1, 2]]
    assert Topology.from_networkx(topology.to_networkx()) == topology


def test_equality_and_hash_look_at_nodes_and_edges_only():
    ring = Topology.from_edges(4, np.array([[3, 0], [2, 3], [1, 2], [1, 0]]))
    assert ring == Topology.ring(4)
    assert hash(ring) == hash(Topology.ring(4))
    assert ring.name != Topology.ring(4).name
    assert ring != Topology.path(4)
    assert ring != "ring:4"
    assert pickle.loads(pickle.dumps(ring)) == ring


def test_an_array_passed_in_stays_the_callers_own():
    edges = np.array([[0, 1], [1, 2]], dtype=np.int32)
    topology = Topology.from_edges(3, edges)
    edges[0] = 2
    assert topology == Topology.path(3)


def test_repr_is_one_short_line():
    assert repr(Topology.grid(10, 10)) == "Topology(grid:10x10, n_nodes=100, n_edges=180)"


@pytest.mark.parametrize("seed", range(5))
def test_random_regular_graphs_are_regular_connected_and_fixed_by_the_seed(seed):
    graph = Topology.random_regular(30, 3, seed=seed)
    assert (graph.degrees == 3).all()
    assert nx.is_connected(graph.to_networkx())
    assert graph == Topology.random_regular(30, 3, seed=seed)
    assert graph != Topology.random_regular(30, 3, seed=seed + 1)


def test_random_graphs_are_redrawn_until_connected():
    # A random 2-regular graph on 12 nodes is connected about one time in three.
    assert all(Topology.random_regular(12, 2, seed=s).diameter == 6 for s in range(8))
    assert all(Topology.erdos_renyi(12, 0.2, seed=s).n_edges >= 11 for s in range(8))


def test_erdos_renyi_has_the_expected_number_of_edges():
    n, p = 200, 0.1
    counts = [Topology.erdos_renyi(n, p, seed=seed).n_edges for seed in range(20)]
    n_pairs = n * (n - 1) / 2
    deviation = np.sqrt(n_pairs * p * (1 - p) / len(counts))
    assert abs(np.mean(counts) - n_pairs * p) < 5 * deviation
    assert Topology.erdos_renyi(n, p, seed=3) == Topology.erdos_renyi(n, p, seed=3)


@pytest.mark.parametrize(
    ("text", "n_nodes", "expected"),
    [
        ("grid", 12, Topology.grid(3, 4)),
        ("grid", 7, Topology.path(7)),
        ("grid", 100, Topology.grid(10, 10)),
        ("torus", 12, Topology.torus(3, 4)),
        ("ring", 5, Topology.ring(5)),
        ("hypercube", 8, Topology.hypercube(3)),
        ("random_regular:k=4", 10, Topology.random_regular(10, 4)),
        ("random_regular:10,k=4,seed=2", None, Topology.random_regular(10, 4, seed=2)),
        ("erdos_renyi:p=0.5,seed=3", 10, Topology.erdos_renyi(10, 0.5, seed=3)),
        (" erdos_renyi:10, p = 5e-1 ", None, Topology.erdos_renyi(10, 0.5)),
        ("single", 1, Topology.single()),
        *((family, 1, Topology.single()) for family, rule in FAMILIES.items() if not rule.required),
    ],
)
def test_text_may_leave_out_the_size_when_the_number_of_nodes_is_known(text, n_nodes, expected):
    assert Topology.parse(text, n_nodes=n_nodes) == expected


@pytest.mark.parametrize(
    ("text", "n_nodes", "sentence"),
    [
        ("grid:10x10", 9, r"'grid:10x10' has 100 nodes, but 9 were asked for; change one"),
        ("single", 3, r"'single' has 1 nodes, but 3 were asked for"),
        ("hypercube:3", 9, r"'hypercube:3' has 8 nodes, but 9 were asked for"),
        ("random_regular:10,k=3", 12, r"has 10 nodes, but 12 were asked for"),
        ("hypercube", 6, r"power of two of nodes, but .* asked for 6; take 4 or 8"),
        ("ring", None, r"'ring' does not say its size; write for example 'ring:8'"),
        ("grid:10", None, r"two whole numbers joined by 'x', not '10'. Write .* 'grid:10x10'"),
        ("ring:-3", None, r"it takes one whole number, not '-3'"),
        ("ring:0", None, r"n=0 must be a whole number from 1"),
        ("single:1", None, r"it takes no size, not '1'"),
        ("ring:8,seed=1", None, r"'seed=1' is not one of its options \(none\)"),
        ("erdos_renyi:8,p=0.5,p=0.6", None, r"'p=0.6' is not one of its options .* each once"),
        ("erdos_renyi:8,p=high", None, r"'high' is not a value of p"),
        ("erdos_renyi:8", None, r"it needs p=. Write for example"),
        ("random_regular", 8, r"it needs k="),
        ("mesh:8", None, r"Graph 'mesh:8' is not known; write one of single, grid"),
        ("", 4, r"Graph '' is not known"),
        ("ring", 0, r"n_nodes=0 must be a whole number from 1"),
    ],
)
def test_text_that_names_no_graph_is_answered_with_the_way_out(text, n_nodes, sentence):
    with pytest.raises(GraphError, match=sentence):
        Topology.parse(text, n_nodes=n_nodes)


@pytest.mark.parametrize(
    ("n", "edges", "sentence"),
    [
        (0, [], r"n_nodes=0 must be a whole number from 1"),
        (2.5, [(0, 1)], r"n_nodes=2.5 must be a whole number"),
        (3, [(0, 1), (1, 3)], r"nodes 0 to 2, but \(1, 3\) is an edge; renumber"),
        (3, [(-1, 1), (1, 2)], r"nodes 0 to 2, but \(-1, 1\) is an edge"),
        (3, [(0, 1), (1, 1), (1, 2)], r"\(1, 1\) is an edge; remove the self loop"),
        (3, [(0, 1), (1, 2), (1, 0)], r"\(0, 1\) appears twice.*remove the repeats"),
        (5, [(0, 1), (2, 3)], r"has 3 components: node 2 cannot be reached from node 0"),
        (2, [], r"has 2 components: node 1 cannot be reached"),
        (3, [(0, 1, 2)], r"shape \(n_edges, 2\); got shape \(1, 3\)"),
        (3, [(0, 1), (2,)], r"got rows of unequal length"),
        (3, [(0.0, 1.0)], r"got float64. Number the nodes from 0"),
    ],
)
def test_edges_that_make_no_graph_are_refused_in_a_sentence(n, edges, sentence):
    with pytest.raises(GraphError, match=sentence):
        Topology.from_edges(n, edges)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Topology.ring(0), r"n=0 must be a whole number from 1"),
        (lambda: Topology.grid(3, 0), r"b=0 must be a whole number from 1"),
        (lambda: Topology.grid(2**16, 2**16), r"a \* b=4294967296 must be a whole number"),
        (lambda: Topology.hypercube(-1), r"k=-1 must be a whole number from 0"),
        (lambda: Topology.hypercube(40), r"at most 2147483647 edges.*lower the dimension"),
        (lambda: Topology.complete(100_000), r"would have 4999950000; take fewer nodes"),
        (lambda: Topology.random_regular(5, 3), r"n \* degree is even, but n=5 and k=3"),
        (lambda: Topology.random_regular(4, 4), r"degree is less than n .* n=4 and k=4"),
        (lambda: Topology.random_regular(6, 1), r"100 draws of random_regular\(n=6, k=1, seed=0"),
        (lambda: Topology.erdos_renyi(40, 0.01), r"100 draws of erdos_renyi.*raise p"),
        (lambda: Topology.erdos_renyi(4, 0.0), r"p=0.0 must be a probability in \(0, 1\]"),
        (lambda: Topology.erdos_renyi(4, float("nan")), r"p=nan must be a probability"),
        (lambda: Topology.from_networkx(nx.DiGraph([(0, 1)])), r"this graph is directed; pass"),
        (lambda: Topology.from_networkx(nx.MultiGraph([(0, 1)] * 2)), r"is a multigraph; pass"),
        (lambda: Topology.from_networkx(nx.Graph()), r"n_nodes=0 must be"),
    ],
)
def test_sizes_that_make_no_graph_are_refused_in_a_sentence(build, sentence):
    with pytest.raises(GraphError, match=sentence):
        build()


def test_a_seed_that_is_no_seed_is_refused():
    with pytest.raises(ParameterError, match=r"seed=-1 must be a whole number >= 0"):
        Topology.erdos_renyi(4, 0.5, seed=-1)

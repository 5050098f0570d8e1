import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from adfs.graphs.spectrum import Levels, narrow_spectrum, small_spectrum, wide_spectrum
from adfs.graphs.topology import Topology


def random_tree(n):
    return nx.from_prufer_sequence(np.random.default_rng(3).integers(n, size=n - 2).tolist())


def path_eigenvalues(n):
    return 4 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2


def ring_eigenvalues(n):
    return 4 * np.sin(np.pi * np.arange(n) / n) ** 2


def sums(first, second):
    return np.add.outer(first, second).ravel()


CLOSED_FORMS = [
    (Topology.path(12), path_eigenvalues(12)),
    (Topology.ring(11), ring_eigenvalues(11)),
    (Topology.ring(12), ring_eigenvalues(12)),
    (Topology.star(9), np.array([0.0, *[1.0] * 7, 9.0])),
    (Topology.complete(8), np.array([0.0, *[8.0] * 7])),
    (Topology.grid(5, 7), sums(path_eigenvalues(5), path_eigenvalues(7))),
    (Topology.torus(5, 6), sums(ring_eigenvalues(5), ring_eigenvalues(6))),
    (Topology.hypercube(5), np.repeat(2.0 * np.arange(6), [1, 5, 10, 10, 5, 1])),
]
LARGE_CLOSED_FORMS = [
    (Topology.path(1500), path_eigenvalues(1500)),
    (Topology.ring(10_000), ring_eigenvalues(10_000)),
    (Topology.ring(2001), ring_eigenvalues(2001)),
    (Topology.star(3000), np.array([0.0, 1.0, 3000.0])),
    (Topology.complete(1024), np.array([0.0, 1024.0])),
    (Topology.grid(32, 32), sums(path_eigenvalues(32), path_eigenvalues(32))),
    (Topology.torus(8, 200), sums(ring_eigenvalues(8), ring_eigenvalues(200))),
    (Topology.hypercube(10), 2.0 * np.arange(11)),
]
IRREGULAR = [
    Topology.from_networkx(graph)
    for graph in (
        nx.lollipop_graph(12, 15),
        nx.barbell_graph(9, 6),
        nx.ring_of_cliques(6, 5),
        nx.karate_club_graph(),
        nx.petersen_graph(),
        nx.balanced_tree(2, 4),
        nx.windmill_graph(4, 5),
        nx.tadpole_graph(5, 8),
        nx.complete_bipartite_graph(3, 9),
        random_tree(25),
    )
]
SMALL = [graph for graph, _ in CLOSED_FORMS] + [
    *IRREGULAR,
    Topology.random_regular(40, 3, seed=1),
    Topology.erdos_renyi(40, 0.15, seed=1),
]


def name(value):
    return getattr(value, "name", "")


def narrow(graph):
    return narrow_spectrum(graph.n_nodes, graph.edges, Levels(graph.n_nodes, graph.edges))


def wide(graph):
    return wide_spectrum(graph.n_nodes, graph.edges)


def small(graph):
    return small_spectrum(graph.n_nodes, graph.edges)


def dense_laplacian(graph):
    return nx.laplacian_matrix(graph.to_networkx()).toarray().astype(float)


@pytest.mark.parametrize("method", [small, wide, narrow])
@pytest.mark.parametrize(("graph", "eigenvalues"), CLOSED_FORMS, ids=name)
def test_every_method_finds_the_eigenvalues_of_the_closed_form(method, graph, eigenvalues):
    spectrum = method(graph)
    expected = np.sort(eigenvalues)[1], eigenvalues.max()
    assert (spectrum.lambda_min, spectrum.lambda_max) == pytest.approx(expected, rel=1e-10)
    assert spectrum.gamma == pytest.approx(expected[0] / expected[1], rel=1e-10)


@pytest.mark.parametrize(("graph", "eigenvalues"), LARGE_CLOSED_FORMS, ids=name)
def test_large_graphs_have_the_eigenvalues_of_the_closed_form(graph, eigenvalues):
    spectrum = graph.spectrum
    expected = np.sort(eigenvalues)[1], eigenvalues.max()
    assert (spectrum.lambda_min, spectrum.lambda_max) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("method", [small, wide, narrow])
@pytest.mark.parametrize("graph", SMALL, ids=name)
def test_every_method_agrees_with_the_dense_spectrum_and_pseudo_inverse(method, graph):
    matrix = dense_laplacian(graph)
    eigenvalues = np.linalg.eigvalsh(matrix)
    inverse = np.linalg.pinv(matrix, hermitian=True)
    incidence = np.zeros((graph.n_edges, graph.n_nodes))
    incidence[np.arange(graph.n_edges), graph.edges[:, 0]] = 1.0
    incidence[np.arange(graph.n_edges), graph.edges[:, 1]] = -1.0
    spectrum = method(graph)
    assert spectrum.lambda_min == pytest.approx(eigenvalues[1], rel=1e-10)
    assert spectrum.lambda_max == pytest.approx(eigenvalues[-1], rel=1e-10)
    expected = np.diag(incidence @ inverse @ incidence.T)
    np.testing.assert_allclose(spectrum.resistances, expected, rtol=1e-10)


@pytest.mark.parametrize("graph", IRREGULAR, ids=name)
def test_methods_agree_with_each_other_to_ten_digits(graph):
    first, *others = small(graph), wide(graph), narrow(graph)
    for other in others:
        assert other.lambda_min == pytest.approx(first.lambda_min, rel=1e-10)
        assert other.lambda_max == pytest.approx(first.lambda_max, rel=1e-10)
        np.testing.assert_allclose(other.resistances, first.resistances, rtol=1e-10)


def test_a_small_eigenvalue_keeps_its_digits_beside_a_large_one():
    # eigvalsh is off by 1e-8 here: its error is relative to lambda_max = 401.
    graph = Topology.from_networkx(nx.lollipop_graph(400, 600))
    values = [method(graph).lambda_min for method in (wide, narrow)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize(
    ("graph", "resistance"),
    [
        (Topology.path(2), 1.0),
        (Topology.path(900), 1.0),
        (Topology.star(900), 1.0),
        (Topology.from_networkx(nx.balanced_tree(3, 6)), 1.0),
        (Topology.complete(7), 2 / 7),
        (Topology.complete(1024), 2 / 1024),
        (Topology.ring(9), 8 / 9),
        (Topology.ring(10_000), 9_999 / 10_000),
        (Topology.hypercube(4), 15 / 32),
        (Topology.hypercube(10), 1023 / 5120),
        (Topology.torus(5, 5), 24 / 50),
    ],
    ids=name,
)
def test_resistances_of_edges_that_are_all_alike_are_n_minus_one_over_the_number_of_edges(
    graph, resistance
):
    assert graph.spectrum.resistances == pytest.approx(resistance, rel=1e-10)


def test_resistances_of_a_large_tree_are_exactly_one():
    assert (Topology.from_networkx(random_tree(2000)).spectrum.resistances == 1.0).all()


@pytest.mark.parametrize(
    "graph",
    [
        *SMALL,
        Topology.grid(30, 40),
        Topology.random_regular(700, 4),
        Topology.from_networkx(nx.ring_of_cliques(150, 5)),
        Topology.from_networkx(nx.tadpole_graph(300, 700)),
    ],
    ids=name,
)
def test_resistances_lie_in_zero_one_and_sum_to_n_minus_one(graph):
    resistances = graph.spectrum.resistances
    assert resistances.shape == (graph.n_edges,)
    assert resistances.sum() == pytest.approx(graph.n_nodes - 1, rel=1e-10)
    assert resistances.min() > 0
    assert resistances.max() <= 1 + 1e-10


def test_a_single_node_has_no_eigenvalue_no_edge_and_gamma_one():
    spectrum = Topology.single().spectrum
    assert (spectrum.lambda_min, spectrum.lambda_max, spectrum.gamma) == (0.0, 0.0, 1.0)
    assert spectrum.resistances.shape == (0,)


def test_two_nodes_have_one_eigenvalue():
    spectrum = Topology.path(2).spectrum
    assert (spectrum.lambda_min, spectrum.lambda_max, spectrum.gamma) == (2.0, 2.0, 1.0)


def test_a_spectrum_is_computed_once_read_only_and_short_in_print():
    graph = Topology.star(5)
    assert graph.spectrum is graph.spectrum
    assert not graph.spectrum.resistances.flags.writeable
    assert repr(graph.spectrum) == "Spectrum(lambda_min=1, lambda_max=5, gamma=0.2)"


@pytest.mark.slow
def test_bits_do_not_depend_on_the_number_of_threads():
    code = (
        "from adfs.graphs.topology import Topology\n"
        "for text in ('grid:3x3', 'grid:9x9', 'grid:20x40', 'hypercube:10'):\n"
        "    spectrum = Topology.parse(text).spectrum\n"
        "    print(spectrum.lambda_min.hex(), spectrum.lambda_max.hex())\n"
        "    print(spectrum.resistances.tobytes().hex())\n"
    )
    answers = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_NUM_THREADS": n, "MKL_NUM_THREADS": n},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n in ("1", "2")
    ]
    assert len(answers[0]) > 1000
    assert answers[0] == answers[1]

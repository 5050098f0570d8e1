import dataclasses
import pickle

import networkx as nx
import numpy as np
import pytest

from adfs.errors import GraphError
from adfs.graphs.closed_forms import family_facts, resistances
from adfs.graphs.spectrum import family_spectrum, small_spectrum
from adfs.graphs.topology import Topology

TEXTS = [
    "path:2", "path:9", "ring:2", "ring:3", "ring:8", "ring:9", "star:2", "star:3", "star:10",
    "complete:2", "complete:7", "hypercube:1", "hypercube:4", "grid:1x6", "grid:6x1", "grid:2x2",
    "grid:2x7", "grid:5x3", "grid:6x6", "torus:1x2", "torus:2x2", "torus:2x5", "torus:4x2",
    "torus:3x3", "torus:4x5", "torus:1x7",
]  # fmt: skip
ALONE = ["single", "path:1", "ring:1", "star:1", "complete:1", "hypercube:0", "grid:1x1"]


def distances(graph):
    return nx.floyd_warshall_numpy(graph.to_networkx())


@pytest.mark.parametrize("text", TEXTS)
def test_closed_forms_equal_the_dense_computation(text):
    graph = Topology.parse(text)
    dense = small_spectrum(graph.n_nodes, graph.edges)
    closed = family_spectrum(graph.edges, graph._shape)
    assert closed.lambda_min == pytest.approx(dense.lambda_min, rel=1e-12)
    assert closed.lambda_max == pytest.approx(dense.lambda_max, rel=1e-12)
    np.testing.assert_allclose(closed.resistances, dense.resistances, rtol=1e-12)


@pytest.mark.parametrize("text", TEXTS)
def test_family_facts_are_those_of_the_built_graph(text):
    graph, facts = Topology.parse(text), family_facts(text)
    dense = small_spectrum(graph.n_nodes, graph.edges)
    assert facts[:2] == (graph.n_nodes, graph.n_edges)
    assert facts.gamma == pytest.approx(dense.gamma, rel=1e-12)
    assert facts.diameter == distances(graph).max()


@pytest.mark.parametrize("text", ALONE)
def test_one_node_alone_has_no_edge_and_gamma_one(text):
    facts = family_facts(text)
    assert facts[:2] == (1, 0)
    assert (facts.gamma, facts.diameter) == (1.0, 0)
    graph = Topology.parse(text)
    assert len(resistances(graph._shape, graph.edges)) == 0


@pytest.mark.parametrize("text", ["grid:23x41", "torus:2x300", "torus:40x15", "grid:2x400"])
def test_resistances_of_larger_products_sum_to_n_minus_one(text):
    graph = Topology.parse(text)
    each = resistances(graph._shape, graph.edges)
    assert each.sum() == pytest.approx(graph.n_nodes - 1, rel=1e-12)
    custom = Topology.from_edges(graph.n_nodes, graph.edges).spectrum
    np.testing.assert_allclose(each, custom.resistances, rtol=1e-9)


@pytest.mark.parametrize(
    "text", ["ring", "path", "star", "complete", "grid", "torus", "random_regular:k=8"]
)
def test_facts_of_a_million_nodes_need_no_graph(text):
    n = 10**6
    facts = family_facts(text, n)
    assert facts.n_nodes == n
    assert 0 < facts.lambda_min <= facts.lambda_max <= n


def test_facts_of_a_random_regular_graph_are_estimates():
    graph, facts = Topology.random_regular(400, 6), family_facts("random_regular:k=6", 400)
    assert facts.lambda_min == pytest.approx(graph.spectrum.lambda_min, rel=0.1)
    assert facts.lambda_max == pytest.approx(graph.spectrum.lambda_max, rel=0.05)
    assert abs(facts.diameter - distances(graph).max()) <= 1


@pytest.mark.parametrize(("k", "same"), [(1, "complete:2"), (2, "ring:9"), (7, "complete:8")])
def test_a_regular_graph_of_one_kind_only_is_exact(k, same):
    n = Topology.parse(same).n_nodes
    assert family_facts(f"random_regular:{n},k={k}") == family_facts(same)


@pytest.mark.parametrize("text", ["erdos_renyi:10,p=0.5", "random_regular:5,k=3", "grid:0x3"])
def test_graphs_without_facts_are_refused(text):
    with pytest.raises(GraphError):
        family_facts(text)


def test_a_graph_with_other_edges_forgets_its_family():
    ring = Topology.ring(600)
    cut = dataclasses.replace(ring, edges=ring.edges[1:])
    assert cut.name == ring.name
    assert cut.diameter == 599
    assert (cut.spectrum.resistances == 1.0).all()


def test_a_copied_or_stored_graph_keeps_its_family():
    grid = Topology.grid(30, 31)
    again = pickle.loads(pickle.dumps(grid))
    assert again == grid
    assert again.spectrum.resistances.tobytes() == grid.spectrum.resistances.tobytes()
    assert again._shape == grid._shape

"""Mixing matrices: rows add up to one, symmetric, on edges only, with the spectrum they state."""

import numpy as np
import pytest

import adfs
from adfs.errors import GraphError
from adfs.graphs import weights as module

GRAPHS = ("single", "path:2", "ring:7", "star:6", "grid:3x4", "complete:5", "hypercube:8")
KINDS = ("metropolis", "laplacian", "max-degree")


def literal(graph, kind):
    """From the definition, entry by entry."""
    n, edges = graph.n_nodes, [tuple(edge) for edge in graph.edges.tolist()]
    degree = [sum(i in edge for edge in edges) for i in range(n)]
    laplacian = np.zeros((n, n))
    for k, l in edges:
        laplacian[[k, l], [k, l]] += 1.0
        laplacian[[k, l], [l, k]] -= 1.0
    values = np.sort(np.linalg.eigvalsh(laplacian))
    W = np.eye(n)
    for k, l in edges:
        if kind == "metropolis":
            w = 1.0 / (1.0 + max(degree[k], degree[l]))
        elif kind == "laplacian":
            w = 2.0 / (values[1] + values[-1])
        else:
            w = 1.0 / (1.0 + max(degree))
        W[[k, l], [l, k]] += w
        W[[k, l], [k, l]] -= w
    return W


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_they_are_those_of_the_definition(graph, kind):
    topology = adfs.Topology.parse(graph)
    weights = topology.weights(kind)
    W = weights.matrix.toarray()
    assert np.allclose(W, literal(topology, kind), rtol=0.0, atol=1e-13)
    assert np.allclose(W.sum(axis=1), 1.0, rtol=0.0, atol=1e-14)
    assert (W == W.T).all()
    if topology.n_nodes == 1:
        assert (weights.second, weights.least, weights.gap) == (0.0, 0.0, 1.0)
        return
    values = np.linalg.eigvalsh(W)
    assert weights.second == pytest.approx(values[-2], abs=1e-12)
    assert weights.least == pytest.approx(values[0], abs=1e-12)
    assert weights.slem == pytest.approx(max(values[-2], -values[0]), abs=1e-12)
    lazy = weights.lazy()
    assert np.allclose(lazy.matrix.toarray(), (np.eye(len(W)) + W) / 2.0, rtol=0.0, atol=1e-15)
    assert lazy.least == pytest.approx((1.0 + values[0]) / 2.0, abs=1e-12)
    assert lazy.gap == pytest.approx((1.0 - values[-2]) / 2.0, abs=1e-12)


def test_many_nodes_have_the_same_eigenvalues_by_iteration(monkeypatch):
    topology = adfs.Topology.grid(6, 7)
    exact = topology.weights("metropolis")
    monkeypatch.setattr(module, "DENSE_LIMIT", 10)
    found = module.mixing_weights(topology, "metropolis")
    assert found.second == pytest.approx(exact.second, abs=1e-10)
    assert found.least == pytest.approx(exact.least, abs=1e-10)


def test_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(GraphError, match="weights='best' are not known; choose metropolis, lapl"):
        adfs.Topology.ring(4).weights("best")

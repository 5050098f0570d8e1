"""Lemma 2: R_kl = 1 on virtual edges, whatever the weights; other edges have the graph's R."""

import numpy as np
import pytest

import adfs
from oracles import augmented
from support.problems import literal, make_case

GRAPHS = ("single", "path:4", "star:5", "ring:6", "grid:3x3", "complete:5")


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_projector_is_the_identity_on_virtual_edges(graph):
    for seed in range(3):
        case = make_case(graph, seed=seed)
        edges = case.problem.topology.edges.tolist()
        weights = np.random.default_rng(seed).uniform(0.01, 10.0, len(edges) + 100)
        n_samples = case.problem.n_samples
        a = augmented.incidence(
            case.shards, edges, weights[: len(edges)], weights[len(edges) :][:n_samples]
        )
        projector = augmented.projector(a)
        identity = np.eye(len(projector))
        virtual = slice(len(edges), None)
        np.testing.assert_allclose(projector[:, virtual], identity[:, virtual], atol=1e-12)
        on_edges = np.diag(projector)[: len(edges)]
        assert (on_edges < 1.0 + 1e-12).all()
        assert on_edges.sum() == pytest.approx(case.problem.n_nodes - 1)


@pytest.mark.parametrize("how", ["paper", "exact", "tuned"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_steps_of_adfs_have_r_of_the_augmented_graph(graph, how):
    case = make_case(graph, seed=4)
    chosen = adfs.Parameters.choose(case.problem, how)
    oracle = literal(case, chosen)
    used = np.concatenate([chosen.edge_push, chosen.sample_pushes()]) * oracle.p / chosen.rho
    np.testing.assert_allclose(used, augmented.resistances(oracle.incidence), rtol=1e-9)
    assert augmented.rank(oracle.incidence) == len(oracle.incidence) - 1


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_steps_of_ns_adfs_have_it_too(graph):
    case = make_case(graph, "hinge", seed=4)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "paper")
    edges = case.problem.topology.edges.tolist()
    owner = np.repeat(np.arange(len(case.shards)), [len(y) for _, y, _ in case.shards])
    a = augmented.incidence(case.shards, edges, np.full(len(edges), 0.5), chosen.mu2[owner])
    r = augmented.resistances(a)
    p = np.concatenate([chosen.p_edge, chosen.p_sample[owner]])
    np.testing.assert_allclose(chosen.edge_push * chosen.p_edge, r[: len(edges)], rtol=1e-9)
    assert chosen.p_least == pytest.approx(min(p / r), rel=1e-9)

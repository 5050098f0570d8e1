"""Appendix D.2: gamma~ against gamma, and Appendix B.5's eigenvalue and p_comm."""

import numpy as np
import pytest

import adfs
from adfs.theory.rules import gamma_tilde
from oracles import augmented, theory
from support.problems import EDGE_MU2, make_case

GRAPHS = (
    "path:2", "path:9", "ring:8", "ring:9", "star:12", "grid:3x3", "grid:4x7", "torus:4x5",
    "hypercube:4", "complete:12",
)  # fmt: skip


class Graph:
    """gamma, gamma~, C_gamma and degrees of a graph, all dense."""

    def __init__(self, text):
        topology = self.topology = adfs.Topology.parse(text)
        self.n, self.edges = topology.n_nodes, topology.edges.tolist()
        weights = np.full(len(self.edges), EDGE_MU2)
        lap = theory.laplacian(self.n, self.edges, weights)
        self.lambda_min, self.gamma = theory.lambda_min_plus(lap), theory.gamma(lap)
        self.gamma_tilde = theory.gamma_tilde(self.n, self.edges, weights)
        shards = [(np.ones((1, 1)), [1.0], [1.0])] * self.n
        a = augmented.incidence(shards, self.edges, weights, np.ones(self.n))
        # R_kl <= C_gamma n / E: the least such C_gamma.
        worst = augmented.resistances(a)[: len(self.edges)].max()
        self.c_gamma = worst * len(self.edges) / self.n
        degrees = np.bincount(np.ravel(self.edges))
        self.unevenness = degrees.max() / degrees.mean()


@pytest.mark.parametrize("text", GRAPHS)
def test_gamma_tilde_is_at_least_2_gamma_over_c_gamma(text):
    graph = Graph(text)
    found, gamma = gamma_tilde(graph.topology), graph.topology.spectrum.gamma
    assert found == pytest.approx(graph.gamma_tilde, rel=1e-10)
    assert gamma == pytest.approx(graph.gamma, rel=1e-10)
    assert found >= 2.0 * gamma / graph.c_gamma * (1.0 - 1e-12)
    assert graph.c_gamma <= max(1.0, len(graph.edges) / graph.n) * (1.0 + 1e-12)


def test_that_bound_is_nearly_reached_by_large_complete_graphs():
    graph = adfs.Topology.complete(60)
    assert gamma_tilde(graph) / (2.0 * graph.spectrum.gamma) == pytest.approx((60 / 59) ** 2)


@pytest.mark.parametrize("text", ["complete:5", "complete:30", "ring:5", "ring:40", "hypercube:4"])
def test_symmetric_graphs_are_regular_with_c_gamma_below_one(text):
    # All edges have the mean R = (n - 1) / E.
    graph = Graph(text)
    assert graph.c_gamma == pytest.approx(1.0 - 1.0 / graph.n)


@pytest.mark.parametrize("text", GRAPHS)
def test_gamma_tilde_is_at_most_4_gamma_where_degrees_are_even(text):
    # max R >= (n - 1) / E and lambda_max <= 2 max degree: what "gamma~ = gamma" needs besides.
    graph = Graph(text)
    bound = 4.0 * graph.topology.spectrum.gamma * graph.unevenness * graph.n / (graph.n - 1)
    assert gamma_tilde(graph.topology) <= bound * (1.0 + 1e-12)
    if text == "ring:8":  # even rings reach it
        assert gamma_tilde(graph.topology) == pytest.approx(bound)


def test_on_a_star_gamma_tilde_stays_while_gamma_falls_as_1_over_n():
    # A star is regular in the paper's sense (R = 1 <= n / E), and gamma~ is not near gamma.
    for n in (5, 50, 500):
        star = adfs.Topology.star(n)
        assert gamma_tilde(star) == pytest.approx((n / (n - 1)) ** 2)
        assert star.spectrum.gamma == pytest.approx(1.0 / n)


def families():
    """The same graph at growing sizes."""
    yield [f"ring:{n}" for n in (8, 32, 128)]
    yield [f"grid:{n}x{n}" for n in (3, 6, 12)]
    yield [f"hypercube:{n}" for n in (3, 5, 7)]
    yield [f"complete:{n}" for n in (6, 20, 60)]


def test_within_a_family_their_ratio_stays_bounded_as_it_grows():
    for family in families():
        graphs = [adfs.Topology.parse(text) for text in family]
        ratios = [gamma_tilde(graph) / graph.spectrum.gamma for graph in graphs]
        assert max(ratios) < 1.8 * min(ratios)


SIZES = (1, 3, 20)


@pytest.mark.parametrize("text", GRAPHS)
@pytest.mark.parametrize("m", SIZES)
def test_b5_the_eigenvalue_is_at_least_lambda_min_over_2_plus_2m(text, m):
    graph = Graph(text)
    for sizes in ([m] * graph.n, [m] + [1 + k % m for k in range(graph.n - 1)]):
        case = make_case(text, "hinge", sizes=sizes)
        chosen = adfs.NonSmoothParameters.choose(case.problem, "paper")
        a = augmented.incidence(
            case.shards, graph.edges, np.full(len(graph.edges), EDGE_MU2),
            np.repeat(chosen.mu2, sizes),
        )  # fmt: skip
        eigenvalue = augmented.sigma_a(a, np.eye(len(a)))
        bound = graph.lambda_min / (2.0 * (1.0 + m))
        assert eigenvalue >= bound * (1.0 - 1e-12)
        if m == 20 and len(set(sizes)) == 1:  # 1 - sqrt(1 - x) is x / 2 (1 + x / 4 + ...)
            assert eigenvalue <= 1.015 * bound


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("text", GRAPHS)
def test_b5_its_p_comm_makes_both_kinds_of_edges_equally_hard(text, m):
    case = make_case(text, "hinge", sizes=[m] * adfs.Topology.parse(text).n_nodes, sigma=0.7)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "paper")
    edges, samples = chosen.edge_roots.max(), chosen.node_roots.max()
    if chosen.p_comm < 0.5 - 1e-9:
        assert edges == pytest.approx(samples, rel=1e-9)
    else:
        assert edges >= samples * (1.0 - 1e-9)

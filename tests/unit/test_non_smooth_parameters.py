"""Parameters of NS-ADFS: the paper's formulas, Theorem 4's conditions, and what cannot be built."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import MethodSetting
from adfs.algorithms.ns_adfs import prepare
from adfs.errors import AdfsError, ParameterError
from adfs.problem.certificate import certify
from adfs.schedule.delays import Delays
from adfs.theory.non_smooth_parameters import Flow
from oracles import augmented, theory
from support.problems import EDGE_MU2, all_duals, homogeneous_shards, make_case

GRAPHS = ("path:2", "grid:3x3", "star:5", "ring:6", "complete:5")
RULES = ("paper", "tuned")


def augmented_graph(case, chosen):
    """Incidence matrix, probabilities and smoothness of all edges, from the raw shards."""
    edges = [(int(k), int(l)) for k, l in chosen.edges]
    owner = np.repeat(np.arange(len(case.shards)), [len(labels) for _, labels, _ in case.shards])
    mu2 = np.concatenate([np.full(len(edges), EDGE_MU2), chosen.mu2[owner]])
    a = augmented.incidence(case.shards, edges, mu2[: len(edges)], mu2[len(edges) :])
    p = np.concatenate([chosen.p_edge, (chosen.p_node / np.bincount(owner))[owner]])
    sigma = case.problem.sigma
    smooth = [EDGE_MU2 * (1 / sigma[k] + 1 / sigma[l]) for k, l in edges]
    smooth += [chosen.mu2[node] / sigma[node] for node in owner]
    return a, p, np.array(smooth)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_paper_is_a_transcription_of_appendix_b(graph, loss):
    case = make_case(graph, loss, sizes=None, seed=2)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "paper")
    edges = [(int(k), int(l)) for k, l in chosen.edges]
    n, mu2 = len(case.shards), np.full(len(edges), EDGE_MU2)
    m = max(len(labels) for _, labels, _ in case.shards)
    lambda_min = theory.lambda_min_plus(theory.laplacian(n, edges, mu2))
    gamma = theory.gamma_tilde(n, edges, mu2)
    p_comm = min(0.5, 1 / (1 + math.sqrt(gamma * m**2 / (2 * (1 + m)))))
    assert chosen.p_comm == pytest.approx(p_comm, rel=1e-12)
    np.testing.assert_allclose(chosen.p_edge, p_comm / len(edges), rtol=1e-12)
    np.testing.assert_allclose(chosen.mu2, lambda_min / (1 + m), rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_s_and_the_start_are_theorem_4s_on_the_dense_augmented_graph(graph, rule):
    case = make_case(graph, "hinge", seed=3)
    chosen = adfs.NonSmoothParameters.choose(case.problem, rule)
    a, p, smooth = augmented_graph(case, chosen)
    r = augmented.resistances(a)
    assert p.sum() == pytest.approx(1.0, rel=1e-12)
    assert chosen.smoothness == pytest.approx(np.max(smooth * r / p**2), rel=1e-8)
    assert chosen.smoothness >= np.max(smooth * r / p**2) * (1 - 1e-12), "S may not be too small"
    assert chosen.p_least == pytest.approx(np.min(p / r), rel=1e-9)
    first = (1 + math.sqrt(1 + 4 * chosen.smoothness * chosen.start)) / (2 * chosen.smoothness)
    alpha = first / (chosen.start + first)
    assert np.all(alpha * r <= p), "the condition of Theorem 4 at its first iteration"
    assert np.all(3 * alpha * r > p * chosen.p_least / np.max(p / r)), "and not by an A_0 too large"


@pytest.mark.parametrize("graph", ["grid:2x2", "grid:4x4", "ring:9"])
def test_the_papers_p_comm_makes_both_kinds_of_edges_bind(graph):
    n = adfs.Topology.parse(graph).n_nodes
    case = make_case(graph, shards=homogeneous_shards(n, 400), loss="hinge", sigma=np.ones(n))
    chosen = adfs.NonSmoothParameters.choose(case.problem, "paper")
    assert chosen.p_comm < 0.5
    assert np.max(chosen.edge_roots) == pytest.approx(np.max(chosen.node_roots), rel=1e-9)


@pytest.mark.parametrize("graph", GRAPHS)
def test_tuned_has_every_edge_at_its_limit(graph):
    case = make_case(graph, "absolute", seed=4)
    chosen = adfs.NonSmoothParameters.choose(case.problem, "tuned")
    a, p, smooth = augmented_graph(case, chosen)
    limits = np.sqrt(smooth * augmented.resistances(a)) / p
    np.testing.assert_allclose(limits, math.sqrt(chosen.smoothness), rtol=1e-6)


def samples(n_samples):
    """Two classes and a constant feature: sorted by label, nodes disagree on its weight."""
    X, y = adfs.generators.two_gaussians(n_samples, 5, seed=1)
    return np.hstack([X, np.ones((n_samples, 1))]), y


def time_to(problem, rule, tau, how_close=1e-5):
    """Idealized time to a relative gap, looked at four times a pass."""
    delays = Delays(tau=tau)
    method = prepare(problem, MethodSetting(rule=rule, tau=tau, delays=delays))
    state = method.algorithm.init()
    every = max(50, problem.n_samples // 4)
    for first in itertools.count(0, every):
        events = method.source.draw(first, first + every)
        state = method.algorithm.step(state, events)
        method.clock.advance(events)
        theta = problem.sigma @ method.algorithm.output(state) / problem.total_sigma
        if certify(problem, theta, all_duals(method.algorithm, state)).relative_gap <= how_close:
            return method.clock.time
        assert first < 10**6
    return math.inf


@pytest.mark.parametrize("partition", ["even", "sorted"])
@pytest.mark.parametrize(("graph", "tau"), [("grid:3x3", 5.0), ("ring:9", 50.0), ("star:6", 0.5)])
def test_tuned_takes_less_time_than_paper(graph, tau, partition):
    topology = adfs.Topology.parse(graph)
    X, y = samples(60 * topology.n_nodes)
    shards = adfs.partition(X, y, topology.n_nodes, how=partition)
    problem = adfs.Problem(shards, loss="hinge", sigma=0.5, topology=topology)
    assert time_to(problem, "tuned", tau) <= 1.05 * time_to(problem, "paper", tau)


def test_flow_energy_is_that_of_the_shortest_flow():
    topology = adfs.Topology.parse("grid:2x3")
    demand = np.random.default_rng(0).standard_normal((6, 3))
    demand -= demand.mean(axis=0)
    a = np.zeros((6, topology.n_edges))
    for edge, (k, l) in enumerate(topology.edges):
        a[k, edge], a[l, edge] = math.sqrt(EDGE_MU2), -math.sqrt(EDGE_MU2)
    flow = np.linalg.lstsq(a, demand, rcond=None)[0]
    assert Flow(topology).energy(demand) == pytest.approx(np.sum(flow**2), rel=1e-12)


def test_more_latency_and_less_disagreement_mean_fewer_messages():
    topology = adfs.Topology.parse("grid:3x3")
    X, y = samples(900)
    even = adfs.Problem(adfs.partition(X, y, 9), loss="hinge", topology=topology)
    apart = adfs.Problem(adfs.partition(X, y, 9, how="sorted"), loss="hinge", topology=topology)
    choose = adfs.NonSmoothParameters.choose
    assert choose(even, tau=50.0).p_comm < 0.6 * choose(even, tau=1.0).p_comm
    assert choose(apart, tau=5.0).p_comm > 2.0 * choose(even, tau=5.0).p_comm


@pytest.mark.parametrize("tau", [0.1, 5.0])
def test_nodes_that_agree_at_zero_still_talk(tau):
    # The same design everywhere and targets far from zero: all duals of the model 0 are -1, so no
    # node asks for anything, but at the optimum the residuals of each have signs of their own.
    generator = np.random.default_rng(0)
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    design = np.hstack([corners, np.ones((16, 1))])
    shards = [
        (design, 20 + corners @ generator.standard_normal(4) + generator.standard_normal(16))
        for _ in range(9)
    ]
    topology = adfs.Topology.grid(3, 3)
    problem = adfs.Problem(shards, loss="absolute", sigma=0.1, topology=topology)
    assert adfs.NonSmoothParameters.choose(problem, tau=tau).p_comm > 0.01
    assert time_to(problem, "tuned", tau) <= 1.05 * time_to(problem, "paper", tau)


def test_one_node_has_no_edge():
    case = make_case("single", "hinge", sizes=[5])
    for rule in RULES:
        chosen = adfs.NonSmoothParameters.choose(case.problem, rule)
        assert (chosen.p_comm, chosen.mu2.tolist(), chosen.p_sample.tolist()) == (0.0, [1.0], [0.2])
        assert chosen.smoothness == pytest.approx(25 / case.problem.sigma[0], rel=1e-8)


def test_p_comm_can_be_given():
    problem = make_case("grid:2x2", "hinge").problem
    for rule in RULES:
        chosen = adfs.NonSmoothParameters.choose(problem, rule, p_comm=0.2)
        assert chosen.p_comm == pytest.approx(0.2, rel=1e-12)
    with pytest.raises(ParameterError, match=r"p_comm=1.2 must be inside \(0, 1\)"):
        adfs.NonSmoothParameters.choose(problem, p_comm=1.2)


def test_what_theorem_4_forbids_cannot_be_built():
    chosen = adfs.NonSmoothParameters.choose(make_case("grid:2x2", "hinge").problem)
    for field, value, sentence in (
        ("mu2", -chosen.mu2, "must be finite and > 0"),
        ("mu2", chosen.mu2[:2], "give one number per node"),
        ("p_node", 2 * chosen.p_node, "must be >= 0 and sum to 1"),
        ("p_edge", chosen.p_edge[:1], "one per edge, one per node"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            dataclasses.replace(chosen, **{field: value})
    moved = np.array([chosen.p_node[:2].sum(), 0.0, *chosen.p_node[2:]])
    with pytest.raises(ParameterError, match="every node with data, needs a positive probability"):
        dataclasses.replace(chosen, p_node=moved)


def test_unknown_rules_clocks_and_other_peoples_parameters_are_refused():
    problem = make_case("grid:2x2", "hinge").problem
    with pytest.raises(ParameterError, match=r"'exact' is not a rule of 'ns-adfs'.*paper, tuned"):
        adfs.solve(problem, parameters="exact")
    with pytest.raises(ParameterError, match="clock='sundial' is unknown"):
        adfs.NonSmoothParameters.choose(problem, clock="sundial")
    other = adfs.NonSmoothParameters.choose(make_case("grid:2x2", "hinge", seed=5).problem)
    with pytest.raises(ParameterError, match="chosen for another problem"):
        adfs.solve(problem, parameters=other)
    smooth = adfs.Parameters.choose(make_case("grid:2x2").problem, "exact")
    with pytest.raises(ParameterError, match="parameters=Parameters is not for 'ns-adfs'"):
        adfs.solve(problem, parameters=smooth)
    with pytest.raises(ParameterError, match="NonSmoothParameters instead of Parameters"):
        adfs.Parameters.choose(problem)
    logistic = make_case("grid:2x2").problem
    with pytest.raises(ParameterError, match=r"'logistic' is smooth.*Parameters\.choose"):
        adfs.NonSmoothParameters.choose(logistic)
    with pytest.raises(ParameterError, match="parameters=NonSmoothParameters is not for 'adfs'"):
        adfs.solve(logistic, parameters=adfs.NonSmoothParameters.choose(problem))


@pytest.mark.parametrize(
    ("sigma", "rule"), [(1e-100, "condition number"), (1e100, r"outside \[1e-60, 1e\+60\]")]
)
@pytest.mark.parametrize("graph", ["single", "path:2"])
def test_a_sigma_whose_square_overflows_is_refused(graph, sigma, rule):
    problem = make_case(graph, "hinge", sigma=sigma, sizes=[3] * (1 + (graph != "single"))).problem
    with pytest.raises(AdfsError, match=rf"sigma[= ]1e[-+]100.*{rule}|{rule}.*sigma[= ]1e[-+]100"):
        adfs.solve(problem)


def test_the_iterations_to_a_gap_are_those_of_theorem_4s_bound():
    case = make_case("grid:2x2", "hinge")
    chosen, first = adfs.NonSmoothParameters.choose(case.problem), 12.5
    needed = chosen.iterations_to(1e-4, first)
    moved = sum(
        weight**2 * row @ row / chosen.mu2[node]
        for node, (rows, _, weights) in enumerate(case.shards)
        for row, weight in zip(rows, weights, strict=True)
    )
    least = needed**2 / (4 * chosen.smoothness)  # A_t, at least
    assert (moved + 2 * chosen.start * first) / (2 * least) == pytest.approx(1e-4 * first)


def test_parameters_given_to_solve_are_those_that_run():
    problem = make_case("grid:2x2", "hinge").problem
    chosen = adfs.NonSmoothParameters.choose(problem, "paper")
    by_name = adfs.solve(problem, parameters="paper", tol=1e-4)
    given = adfs.solve(problem, parameters=chosen, tol=1e-4)
    assert given.parameters is chosen
    assert given.rule == by_name.rule == "paper"
    np.testing.assert_array_equal(given.thetas, by_name.thetas)


def test_they_explain_themselves():
    text = str(adfs.NonSmoothParameters.choose(make_case("grid:2x2", "hinge").problem))
    for word in (
        "NS-ADFS parameters (tuned) on grid:2x2",
        "p_comm",
        "A_0",
        "binds",
    ):
        assert word in text

"""Theorem 4, corrected: the dual gap of NS-ADFS and the primal bound that it implies."""

import functools
from typing import NamedTuple

import numpy as np
import pytest

import adfs
from adfs.algorithms.ns_adfs import NsAdfs
from adfs.problem.certificate import dual_point
from adfs.schedule.events import Events
from adfs.theory.non_smooth_parameters import RULES, Flow, NonSmoothParameters, demand, flow_ratio
from oracles import algorithm3
from support.non_smooth import DualGap, Literal, literal, node_rows, run
from support.problems import make_case

SEEDS = 24
CASES = [
    (graph, loss, how)
    for graph, loss in (
        ("grid:3x3", "hinge"),
        ("star:5", "absolute"),
        ("ring:6", "hinge"),
        ("grid:2x2", "absolute"),
    )
    for how in RULES
] + [("single", "hinge", "paper"), ("single", "absolute", "paper")]


class Study(NamedTuple):
    """Dual gaps and primal distances, one row a seed, one column a reading."""

    oracle: Literal
    gap: DualGap
    p_r: float
    times: np.ndarray
    growth: np.ndarray
    gaps: np.ndarray
    distances: np.ndarray


@functools.cache
def study(graph, loss, how):
    """Runs of 200 t_0 iterations; t_0 = 2 sqrt(3) / p_R is where A_t has grown to 4 A_0."""
    sizes = [5] if graph == "single" else None
    case = make_case(graph, loss, seed=11, n_features=3, sizes=sizes)
    chosen = NonSmoothParameters.choose(case.problem, how, tau=3.0)
    oracle = literal(case, chosen)
    gap = DualGap(oracle)
    p_r = algorithm3.p_r(*oracle.graph, oracle.p)
    times = np.unique(np.geomspace(1, 200 * 2 * np.sqrt(3) / p_r, 30).astype(int))
    # At n = 1 the mean is within a few per cent of its bound, so it has to be known that well.
    n_seeds = 10 * SEEDS if graph == "single" else SEEDS
    gaps, distances = np.zeros((2, n_seeds, len(times)))
    for seed in range(n_seeds):
        algorithm = NsAdfs(case.problem, chosen)
        schedule = adfs.Schedule.sample(chosen, int(times[-1]), seed=seed)
        state, before = algorithm.init(), 0
        for k, t in enumerate(times):
            state, before = algorithm.step(state, schedule.events(before, t)), t
            x, _ = node_rows(algorithm, state, oracle.rows)
            gaps[seed, k] = gap(x)
            distances[seed, k] = algorithm3.primal_distance(oracle.sigma, x, gap.theta)
    growth = algorithm3.weights(oracle.a_0, oracle.s, times[-1])[times]
    return Study(oracle, gap, p_r, times, growth, gaps, distances)


@pytest.mark.parametrize(("graph", "loss", "how"), CASES)
def test_mean_dual_gap_stays_under_theorem_4s_corrected_bound(graph, loss, how):
    oracle, gap, p_r, times, growth, gaps, _ = study(graph, loss, how)
    mean = gaps.mean(axis=0)
    exact = algorithm3.exact_bound(growth, oracle.a_0, gap.norm2, gap.at_zero)
    stated = algorithm3.theorem_4_bound(times, oracle.s, p_r, gap.norm2, gap.at_zero)
    assert np.all(mean <= stated)
    # C_0 / (2 A_t) has no slack at t = 0, and later not much: the theorem tells what one sees.
    assert np.all(mean <= exact)
    assert np.all(mean >= exact / 3)


@pytest.mark.parametrize(("graph", "loss", "how"), CASES)
def test_dual_gap_falls_like_one_over_t_squared(graph, loss, how):
    _, _, p_r, times, _, gaps, _ = study(graph, loss, how)
    later = times > 20 * 2 * np.sqrt(3) / p_r
    assert np.count_nonzero(later) >= 6
    slope, _ = np.polyfit(np.log(times[later]), np.log(gaps.mean(axis=0)[later]), 1)
    assert slope <= -1.9


@pytest.mark.parametrize(("graph", "loss", "how"), CASES)
def test_primal_distance_is_at_most_the_dual_gap_in_every_run(graph, loss, how):
    # sum_i sigma_i / 2 |x^(i) / sigma_i - theta*|^2 <= F*(x_t) - F*, with no expectation.
    _, gap, _, _, _, gaps, distances = study(graph, loss, how)
    assert np.all(distances <= gaps + 1e-13 * abs(gap.least))
    assert np.all(distances[:, -1] > 0.0)
    assert np.max(distances / gaps) > 0.05  # it is of the order of what it bounds


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("how", RULES)
@pytest.mark.parametrize("graph", ["path:3", "complete:3", "single"])
def test_exact_expectation_of_two_steps_decreases_from_c_0(graph, how, loss):
    # |v - lambda*|^2 + 2 A_t (F*(x) - F*) with no sampling error: all pairs of events are run.
    case = make_case(graph, loss, seed=3, n_features=2)
    chosen = NonSmoothParameters.choose(case.problem, how)
    oracle = literal(case, chosen)
    gap = DualGap(oracle)
    expectation = np.zeros(2)
    for i, p_first in enumerate(oracle.p):
        for j, p_second in enumerate(oracle.p):
            energies = _energies_of(case.problem, chosen, oracle, gap, (i, j))
            expectation += p_first * p_second * energies
    start = algorithm3.c_0(oracle.a_0, gap.norm2, gap.at_zero)
    ratio = expectation / start
    assert ratio[1] <= ratio[0] <= 1.0
    assert ratio[1] > 0.5


def _energies_of(problem, chosen, oracle, gap, pair):
    algorithm = NsAdfs(problem, chosen)
    state, energies = algorithm.init(), []
    growth = algorithm3.weights(oracle.a_0, oracle.s, len(pair))
    for t, index in enumerate(pair):
        state = algorithm.step(state, _one_event(problem, t, index))
        x, v = node_rows(algorithm, state, oracle.rows)
        distance = algorithm3.edge_norm2(*oracle.graph, v - gap.optimal)
        energies.append(distance + 2 * growth[t + 1] * gap(x))
    return np.array(energies)


def _one_event(problem, t, index):
    """The event on edge ``index`` of the augmented graph."""
    n_edges = problem.topology.n_edges
    if index < n_edges:
        which, sample = index, -1
    else:
        node = int(np.searchsorted(problem.offsets, index - n_edges, side="right")) - 1
        which, sample = n_edges + node, index - n_edges - problem.offsets[node]
    return Events(t, np.array([which], np.int32), np.array([sample], np.int32))


@pytest.mark.parametrize("p_comm", [0.07, 0.4])
@pytest.mark.parametrize("graph", ["grid:3x3", "star:5"])
def test_the_tuned_rule_weighs_the_two_parts_of_theorem_4s_leading_constant(graph, p_comm):
    # S^2 |lambda|^2 = V / (1 - p_comm)^2 + C / p_comm^2, at the dual point of the model 0.
    case = make_case(graph, "hinge", seed=4)
    oracle = literal(case, NonSmoothParameters.choose(case.problem, "tuned", p_comm=p_comm))
    sigma = oracle.sigma
    c = -np.concatenate([labels * weights for _, labels, weights in case.shards])
    theta = -(c @ oracle.rows) / sigma.sum()
    rows = algorithm3.optimal_rows(case.shards, sigma, theta, c)
    constant = oracle.s**2 * algorithm3.edge_norm2(*oracle.graph, rows)
    owner = np.repeat(np.arange(len(sigma)), [len(labels) for _, labels, _ in case.shards])
    v = len(c) ** 2 * np.sum(rows[len(sigma) :] ** 2 / sigma[owner, None])
    sums = dual_point(case.problem, np.zeros(case.problem.n_features)).sums
    ratio2 = flow_ratio(case.problem, Flow(case.problem.topology).energy(demand(sums, sigma))) ** 2
    assert constant == pytest.approx(v * (1 / (1 - p_comm) ** 2 + ratio2 / p_comm**2), rel=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("how", RULES)
def test_all_nodes_reach_the_certified_minimiser(how, loss):
    case = make_case("grid:2x2", loss, seed=7)
    chosen = NonSmoothParameters.choose(case.problem, how)
    gap = DualGap(literal(case, chosen))
    algorithm, state = run(case.problem, chosen, 1_500_000)
    np.testing.assert_allclose(
        algorithm.output(state), np.tile(gap.theta, (4, 1)), rtol=0, atol=1e-7
    )


def test_a_quarter_of_the_least_s_squared_breaks_the_bound():
    # The bound needs S^2 >= max M R / p^2; the steps are inversely proportional to S^2.
    case = make_case("single", "absolute", seed=11, n_features=3, sizes=[5])
    chosen = NonSmoothParameters.choose(case.problem, "paper")
    object.__setattr__(chosen, "smoothness", chosen.smoothness / 4)
    oracle = literal(case, chosen)
    gap = DualGap(oracle)
    gaps = []
    for seed in range(SEEDS):
        algorithm, state = run(case.problem, chosen, 2000, seed)
        gaps.append(gap(node_rows(algorithm, state, oracle.rows)[0]))
    bound = algorithm3.exact_bound(state.growth, oracle.a_0, gap.norm2, gap.at_zero)
    assert np.mean(gaps) > bound

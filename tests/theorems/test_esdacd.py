"""ESDACD is accelerated coordinate descent on the dual: its iterates, its rate, its end."""

import functools
import math

import numpy as np
import pytest

import adfs
from adfs.algorithms import dual_gradient, esdacd
from adfs.algorithms.base import Counts, MethodSetting
from adfs.algorithms.esdacd import Esdacd, prepare
from adfs.engine.evaluation import objectives
from adfs.errors import ParameterError
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from oracles import apcg, augmented
from oracles import esdacd as literal
from oracles import msda as dual
from support.problems import EDGE_MU2, make_case, stored_as

RULES = ("theory", "tuned")
LOSSES = ("logistic", "squared")
N_EVENTS = 120


@functools.cache
def make(graph, loss, seed=0):
    return make_case(graph, loss, seed=seed, n_features=3)


def minimiser(case):
    return augmented.minimiser(case.shards, case.problem.sigma, case.problem.loss.name)


def arguments(case, mu2=EDGE_MU2):
    """What the oracles need: shards, sigma, loss, edges, mu^2."""
    edges = [(int(k), int(l)) for k, l in case.problem.topology.edges]
    return case.shards, case.problem.sigma, case.problem.loss.name, edges, mu2


def run(method, n_events, theta=None):
    state = method.algorithm.init(theta)
    return method.algorithm.step(state, method.source.draw(0, n_events))


def rows(algorithm, state):
    """``(x_t, v_t, y_t)``: line 4 solved for x."""
    y, v = algorithm.nodes(state)
    rho = algorithm.parameters.rho
    return (1.0 + rho) * y - rho * v, v, y


def one_event(t, which):
    return Events(t, np.array([which], np.int32), np.array([-1], np.int32))


def assert_close(mine, theirs, what):
    scale = max(1.0, float(np.max(np.abs(theirs))))
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10 * scale, err_msg=what)


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
@pytest.mark.parametrize(
    ("graph", "rule"),
    [("path:2", "theory"), ("grid:3x3", "tuned"), ("complete:5", "theory"), ("star:5", "tuned")],
)
def test_lazy_kernel_is_the_literal_iteration_is_a_times_edge_space_apcg(graph, rule, loss):
    case = make(graph, loss)
    data = arguments(case)
    methods = [
        prepare(stored_as(case, kind), MethodSetting(rule=rule)) for kind in ("dense", "csr")
    ]
    states = [method.algorithm.init() for method in methods]
    chosen = methods[0].parameters
    n_events = min(N_EVENTS, math.ceil(50.0 / chosen.rho))  # beyond, Algorithm 2's A overflows
    sequence = methods[0].source.draw(0, n_events).which.tolist()
    node_space = literal.iterates(*data, chosen.p_edge, chosen.rho, chosen.sigma_A, sequence)
    a = literal.incidence(len(case.shards), data[3], EDGE_MU2)
    r = literal.resistances(len(case.shards), data[3], EDGE_MU2)
    # S = sqrt(sigma_A) / rho makes the general algorithm's sequences constant (Corollary 1).
    edge_space = apcg.generalized(
        *literal.edge_problem(*data), (len(data[3]), 3), r, chosen.p_edge,
        math.sqrt(chosen.sigma_A) / chosen.rho, chosen.sigma_A,
        *apcg.strongly_convex_start(chosen.sigma_A), sequence,
    )  # fmt: skip
    for t, (node, (x, v)) in enumerate(zip(node_space, edge_space, strict=True)):
        assert_close(a @ x, node[0], f"APCG, x at {t}")
        assert_close(a @ v, node[1], f"APCG, v at {t}")
        for k, method in enumerate(methods):
            for name, mine, theirs in zip(
                "xvy", rows(method.algorithm, states[k]), node, strict=True
            ):
                assert_close(mine, theirs, f"{['dense', 'csr'][k]}, {name} at {t}")
            if t < n_events:
                states[k] = method.algorithm.step(states[k], method.source.draw(t, t + 1))
    theta = dual.all_dual_gradients(*data[:3], node[2])
    for method, state in zip(methods, states, strict=True):
        assert_close(method.algorithm.output(state), theta, "output")
    assert np.max(np.abs(node[1])) > 0.1


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("graph", ["path:2", "grid:3x3", "complete:9", "star:5", "ring:9"])
def test_sigma_a_and_rho_are_those_of_the_dense_edge_space(graph, rule):
    case = make(graph, "logistic", seed=2)
    chosen = prepare(case.problem, MethodSetting(rule=rule)).parameters
    strong = literal.sigma_a(*arguments(case))
    assert chosen.sigma_A == pytest.approx(strong, rel=1e-8)
    assert chosen.sigma_A <= strong * (1 + 1e-12)
    assert chosen.p_edge.sum() == pytest.approx(1.0)
    limit = literal.max_rho(*arguments(case), chosen.p_edge)
    assert chosen.rho == pytest.approx(limit, rel=1e-8)
    assert chosen.rho <= limit * (1 + 1e-12)


@pytest.mark.parametrize("graph", ["grid:3x3", "complete:9", "star:5", "ring:9", "grid:4x5"])
def test_tuned_probabilities_have_the_largest_rate(graph):
    case = make(graph, "logistic", seed=2)
    theory, tuned = (prepare(case.problem, MethodSetting(rule=rule)).parameters for rule in RULES)
    np.testing.assert_allclose(theory.p_edge, 1.0 / case.problem.topology.n_edges)
    assert tuned.rho > theory.rho
    generator = np.random.default_rng(0)
    for _ in range(50):
        p = tuned.p_edge * generator.uniform(0.8, 1.2, len(tuned.p_edge))
        assert literal.max_rho(*arguments(case), p / p.sum()) < tuned.rho * (1 + 1e-9)


class Lyapunov:
    """``sigma_A |v - x*|^2 + 2 (D(x) - D*)`` in edge space: what Corollary 1 contracts."""

    def __init__(self, case, chosen):
        self.arguments = arguments(case)[:3]
        self.theta = minimiser(case)
        loss = case.problem.loss.name
        self.optimal = np.array(
            [
                dual.node_gradient(shard, case.problem.sigma[i], loss, self.theta)
                for i, shard in enumerate(case.shards)
            ]
        )
        self.least = dual.dual_objective(*self.arguments, self.optimal)
        edges = arguments(case)[3]
        self.inverse = np.linalg.pinv(literal.incidence(len(case.shards), edges, EDGE_MU2))
        self.sigma_a = chosen.sigma_A

    def __call__(self, x, v):
        distance = np.sum((self.inverse @ (v - self.optimal)) ** 2)
        above = dual.dual_objective(*self.arguments, x) - self.least
        return self.sigma_a * distance + 2.0 * above


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("graph", ["path:2", "path:3", "complete:3", "star:4"])
def test_exact_expectation_of_two_steps_contracts_by_one_minus_rho(graph, rule):
    # No sampling error: every pair of events is run, weighted by its probability.
    case = make(graph, "logistic", seed=3)
    method = prepare(case.problem, MethodSetting(rule=rule))
    chosen = method.parameters
    lyapunov = Lyapunov(case, chosen)
    start = np.zeros_like(lyapunov.optimal)
    expectation = np.zeros(2)
    for i, p_first in enumerate(chosen.p_edge):
        for j, p_second in enumerate(chosen.p_edge):
            state, energies = method.algorithm.init(), []
            for t, which in enumerate((i, j)):
                state = method.algorithm.step(state, one_event(t, which))
                energies.append(lyapunov(*rows(method.algorithm, state)[:2]))
            expectation += p_first * p_second * np.array(energies)
    ratio = expectation / lyapunov(start, start) / (1.0 - chosen.rho) ** np.array([1, 2])
    assert np.all(ratio <= 1.0 + 1e-12)
    assert np.all(ratio > 0.01)


@pytest.mark.parametrize(("graph", "loss"), [("grid:3x3", "squared"), ("star:5", "logistic")])
def test_mean_lyapunov_and_error_shrink_no_slower_than_the_corollary_says(graph, loss):
    case = make(graph, loss, seed=1)
    seeds, readings = range(8), 7
    chosen = prepare(case.problem, MethodSetting()).parameters
    lyapunov = Lyapunov(case, chosen)
    step = math.ceil(10.0 / chosen.rho / (readings - 1))
    energies, errors = np.zeros((2, len(seeds), readings))
    for seed in seeds:
        method = prepare(case.problem, MethodSetting(seed=seed))
        state = method.algorithm.init()
        for k in range(readings):
            x, v, _ = rows(method.algorithm, state)
            energies[seed, k] = lyapunov(x, v)
            thetas = dual.all_dual_gradients(*lyapunov.arguments, x)
            squares = np.sum((thetas - lyapunov.theta) ** 2, axis=1)
            errors[seed, k] = case.problem.sigma @ squares
            draw = method.source.draw(k * step, (k + 1) * step)
            state = method.algorithm.step(state, draw)
    bound = energies[0, 0] * (1.0 - chosen.rho) ** (step * np.arange(readings))
    assert np.all(energies.mean(axis=0) <= bound * (1 + 1e-9))
    assert np.all(errors.mean(axis=0) <= bound + 1e-12)
    slope, _ = np.polyfit(step * np.arange(2, readings), np.log(errors.mean(axis=0)[2:]), 1)
    assert -slope >= chosen.rho


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("graph", ["grid:3x3", "complete:9", "ring:9"])
def test_it_reaches_the_certified_optimum(graph, loss, rule):
    case = make(graph, loss)
    problem, best = case.problem, case.problem.optimum()
    assert best.duality_gap < 1e-13
    method = prepare(problem, MethodSetting(rule=rule))
    thetas = method.algorithm.output(run(method, math.ceil(40.0 / method.rho)))
    np.testing.assert_allclose(thetas, np.tile(minimiser(case), (9, 1)), rtol=0, atol=1e-8)
    above = np.mean(objectives(problem, thetas)) - best.objective
    assert abs(above) <= 1e-8 * max(1.0, abs(best.objective))


def test_it_does_not_depend_on_the_weight_of_the_edges(monkeypatch):
    case = make("grid:3x3", "logistic")
    outputs = []
    for mu2 in (0.5, 7.0):
        for room in (esdacd, adfs.theory.parameters):
            monkeypatch.setattr(room, "EDGE_MU2", mu2)
        method = prepare(case.problem, MethodSetting())
        outputs.append((method.rho, method.algorithm.output(run(method, 300))))
    assert outputs[0][0] == pytest.approx(outputs[1][0], rel=1e-9)
    np.testing.assert_allclose(outputs[0][1], outputs[1][1], rtol=0, atol=1e-9)


def test_rows_of_x_v_and_y_sum_to_zero_all_along():
    method = prepare(make("ring:9", "logistic").problem, MethodSetting())
    state = method.algorithm.init(np.ones(3))
    for first in range(0, 3000, 100):
        state = method.algorithm.step(state, method.source.draw(first, first + 100))
        for matrix in rows(method.algorithm, state):
            assert np.max(np.abs(matrix.sum(axis=0))) < 1e-11
    assert np.max(np.abs(matrix)) > 0.1


def test_started_at_the_optimum_it_stays_there():
    case = make("grid:3x3", "logistic")
    best = minimiser(case)
    method = prepare(case.problem, MethodSetting())
    for n_events in (0, 1, 50):
        thetas = method.algorithm.output(run(method, n_events, best))
        np.testing.assert_allclose(thetas, np.tile(best, (9, 1)), rtol=0, atol=1e-9)


def test_readings_leave_what_the_nodes_remember_as_it_was():
    method = prepare(make("grid:3x3", "logistic").problem, MethodSetting())
    algorithm = method.algorithm
    state = run(method, 40)
    before = [array.copy() for array in (*state.memory, *state.centres)]
    first, second = algorithm.output(state), algorithm.output(state)
    assert first.tobytes() == second.tobytes()
    for array, kept in zip((*state.memory, *state.centres), before, strict=True):
        assert array.tobytes() == kept.tobytes()


def test_without_matrices_it_takes_the_same_path(monkeypatch):
    problem = make("grid:3x3", "logistic").problem
    method = prepare(problem, MethodSetting())
    expected = method.algorithm.output(run(method, 200))
    monkeypatch.setattr(dual_gradient, "LARGEST_MATRIX", 0)
    method = prepare(problem, MethodSetting())
    assert not method.algorithm.dual_gradients.with_matrices
    assert_close(method.algorithm.output(run(method, 200)), expected, "theta")


def test_beyond_dense_algebra_a_bound_on_sigma_a_serves(monkeypatch):
    case = make("grid:3x3", "logistic")
    exact = prepare(case.problem, MethodSetting()).parameters
    monkeypatch.setattr(esdacd, "DENSE_LIMIT", 3)
    method = prepare(case.problem, MethodSetting())
    assert 0.2 * exact.sigma_A < method.parameters.sigma_A <= exact.sigma_A
    thetas = method.algorithm.output(run(method, math.ceil(45.0 / method.rho)))
    np.testing.assert_allclose(thetas, np.tile(minimiser(case), (9, 1)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_a_single_node_is_done_after_one_dual_gradient(rule):
    case = make("single", "logistic")
    method = prepare(case.problem, MethodSetting(rule=rule))
    for n_events in (1, 2, 5):
        thetas = method.algorithm.output(run(method, n_events))
        np.testing.assert_allclose(thetas, [minimiser(case)], rtol=0, atol=1e-11)
    m = case.problem.n_samples
    assert method.algorithm.counts(method.source.draw(0, 3)) == Counts(n_grad=3 * m)
    method.clock.advance(method.source.draw(0, 3))
    assert method.clock.time == 3.0 * m
    assert 0.9 < method.rho < 1.0
    assert "rho" in str(method.parameters)


@pytest.mark.parametrize("clock", ["rendezvous", "nonblocking"])
def test_an_event_is_a_pass_at_both_ends_and_an_exchange(clock):
    problem = make("grid:3x3", "logistic").problem
    setting = MethodSetting(clock=clock, tau=4.0, delays=Delays(tau=4.0, speed=2.0))
    method = prepare(problem, setting)
    events = method.source.draw(0, 200)
    method.clock.advance(events)
    live, ends = problem.conditioning.live_counts, problem.topology.edges
    times, n_grad = np.zeros(9), 0
    for which in events.which:
        k, l = ends[which]
        n_grad += live[k] + live[l]
        a, b = times[k] + 2.0 * live[k], times[l] + 2.0 * live[l]
        if clock == "rendezvous":
            times[k] = times[l] = max(a, b) + 4.0
        else:
            times[k], times[l] = max(a, b + 4.0), max(b, a + 4.0)
    assert method.clock.finish.tolist() == times.tolist()
    counts = method.algorithm.counts(events)
    assert counts == Counts(n_grad=n_grad, n_comm=400, bytes=400 * 3 * 8)


def test_before_the_first_event_it_has_nothing_but_its_start():
    algorithm = prepare(make("grid:3x3", "logistic").problem, MethodSetting()).algorithm
    assert isinstance(algorithm, Esdacd)
    assert (algorithm.output(algorithm.init()) == 0.0).all()
    assert (algorithm.output(algorithm.init(np.ones(3))) == 1.0).all()


def test_parameters_of_another_algorithm_are_refused():
    problem = make("grid:3x3", "logistic").problem
    chosen = adfs.Parameters.choose(problem, "exact")
    with pytest.raises(ParameterError, match=r"Parameters is not a rule of 'esdacd'.*theory, tu"):
        prepare(problem, MethodSetting(rule=chosen))


def test_the_parameters_explain_themselves():
    text = str(prepare(make("grid:3x3", "logistic").problem, MethodSetting()).parameters)
    for word in ("(tuned) on grid:3x3", "proportional to sqrt(M_kl R_kl)", "sigma_A", "kappa_b"):
        assert word in text

"""MSDA and SSDA: the published iteration, the rate it is proven to have, and where it ends."""

import functools
import math

import numpy as np
import pytest

import adfs
from adfs.algorithms import dual_gradient, msda
from adfs.algorithms.base import Counts, MethodSetting
from adfs.algorithms.msda import prepare, prepare_single
from adfs.engine.evaluation import objectives
from adfs.errors import ParameterError
from adfs.schedule.delays import Delays
from oracles import augmented
from oracles import msda as literal
from support.problems import make_case, stored_as
from support.selection import covering

FACTORIES = {"msda": prepare, "ssda": prepare_single}
RULES = ("theory", "tuned")
GRAPHS = ("grid:3x3", "complete:9", "ring:9")
LOSSES = ("logistic", "squared")
N_ROUNDS = 20


@functools.cache
def make(graph, loss, seed=0):
    return make_case(graph, loss, seed=seed, n_features=3)


def minimiser(case):
    """theta*, by scipy to the last digits: F has none left where `optimum` stops."""
    return augmented.minimiser(case.shards, case.problem.sigma, case.problem.loss.name)


def laplacian(problem):
    return problem.topology.laplacian().toarray()


def run(method, n_rounds, theta=None):
    state = method.algorithm.init(theta)
    return method.algorithm.step(state, method.source.draw(0, n_rounds))


def follow(method, n_rounds, theta=None):
    """Yield the state after each of so many rounds."""
    state = method.algorithm.init(theta)
    for t in range(n_rounds):
        state = method.algorithm.step(state, method.source.draw(t, t + 1))
        yield state


def assert_close(mine, theirs, what):
    scale = max(1.0, float(np.max(np.abs(theirs))))
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10 * scale, err_msg=what)


@covering(
    name=tuple(FACTORIES),
    graph=("path:2", "grid:3x3", "complete:5", "star:5"),
    loss=("logistic", "squared", "squared_hinge", "huber"),
)
def test_it_is_literal_algorithm_2(name, graph, loss):
    case = make(graph, loss)
    rounds = 1 if name == "ssda" else None
    oracle = literal.iterates(
        case.shards, case.problem.sigma, loss, laplacian(case.problem), N_ROUNDS, rounds
    )
    methods = [
        FACTORIES[name](stored_as(case, kind), MethodSetting(rule="theory"))
        for kind in ("dense", "csr")
    ]
    runs = [follow(method, N_ROUNDS) for method in methods]
    for t, (theta, y, x) in enumerate(oracle):
        for states in runs:
            state = next(states)
            assert_close(state.theta, theta, f"theta at {t}")
            assert_close(state.y, y, f"y at {t}")
            assert_close(state.x, x, f"x at {t}")
    assert np.max(np.abs(x)) > 0.1


@pytest.mark.parametrize("graph", ["grid:3x3", "complete:5"])
def test_ssda_is_algorithm_1_in_its_own_words(graph):
    case = make(graph, "logistic")
    oracle = literal.single_step_iterates(
        case.shards, case.problem.sigma, "logistic", laplacian(case.problem), N_ROUNDS
    )
    states = follow(prepare_single(case.problem, MethodSetting(rule="theory")), N_ROUNDS)
    for t, (state, (theta, y, x)) in enumerate(zip(states, oracle, strict=True)):
        assert_close(state.theta, theta, f"theta at {t}")
        assert_close(state.y, y, f"y at {t}")
        assert_close(state.x, x, f"x at {t}")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("graph", "tau"), [("grid:3x3", 0.1), ("star:5", 1.0), ("ring:6", 5.0)])
def test_tuned_is_nesterovs_method_on_the_dual_written_with_square_roots(graph, tau, loss):
    case = make(graph, loss)
    method = prepare(case.problem, MethodSetting(rule="tuned", tau=tau, delays=Delays(tau=tau)))
    chosen = method.parameters
    matrix = literal.gossip_matrix(
        laplacian(case.problem), 1.0 / chosen.inverse_scale, chosen.rounds
    )
    oracle = literal.nesterov_iterates(
        case.shards, case.problem.sigma, loss, matrix, chosen.eta, chosen.momentum, N_ROUNDS
    )
    for t, (state, (theta, x)) in enumerate(zip(follow(method, N_ROUNDS), oracle, strict=True)):
        assert_close(state.theta, theta, f"theta at {t}")
        assert_close(state.x, x, f"x at {t}")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("graph", ["path:2", "grid:3x3", "complete:9", "star:5", "grid:4x5"])
@pytest.mark.parametrize("name", FACTORIES)
def test_l_and_mu_are_constants_of_the_dual_and_the_step_and_momentum_follow(name, graph, rule):
    case = make(graph, "logistic", seed=2)
    sigma, chosen = (
        case.problem.sigma,
        FACTORIES[name](case.problem, MethodSetting(rule=rule)).parameters,
    )
    matrix = literal.gossip_matrix(
        laplacian(case.problem), 1.0 / chosen.inverse_scale, chosen.rounds
    )
    smooth = literal.node_smoothness(case.shards, sigma, "logistic")
    largest = np.linalg.eigvalsh(matrix / np.sqrt(np.outer(sigma, sigma)))[-1]
    least = np.linalg.eigvalsh(matrix / np.sqrt(np.outer(smooth, smooth)))[1]
    assert chosen.smoothness >= largest * (1.0 - 1e-12)
    assert chosen.convexity <= least * (1.0 + 1e-12)
    if rule == "tuned":  # and no worse than they have to be
        assert chosen.smoothness == pytest.approx(largest, rel=1e-8)
        assert chosen.convexity == pytest.approx(least, rel=1e-8)
    root = math.sqrt(chosen.smoothness / chosen.convexity)
    assert chosen.rho == pytest.approx(1.0 / root)
    assert chosen.momentum == pytest.approx((root - 1.0) / (root + 1.0))
    assert chosen.eta == pytest.approx(1.0 / chosen.smoothness)


@pytest.mark.parametrize("graph", ["grid:3x3", "complete:9", "ring:9", "path:30"])
def test_theorys_rate_is_the_closed_form_of_scaman(graph):
    case = make(graph, "logistic")
    k, c1, *_ = literal.constants(
        case.shards, case.problem.sigma, "logistic", laplacian(case.problem)
    )
    smooth = literal.node_smoothness(case.shards, case.problem.sigma, "logistic")
    root = math.sqrt(max(smooth) / min(case.problem.sigma))
    chosen = prepare(case.problem, MethodSetting(rule="theory")).parameters
    assert chosen.rounds == k
    assert chosen.rho == pytest.approx((1 - c1**k) / (1 + c1**k) / root, rel=1e-9)


class Theorem:
    """``D(y_t) - D* <= (1 - rho)^t [D(0) - D* + mu / 2 |lambda*|^2]`` on one problem."""

    def __init__(self, case, chosen):
        self.arguments = case.shards, case.problem.sigma, case.problem.loss.name
        self.theta = minimiser(case)
        best = np.array(
            [
                literal.node_gradient(shard, case.problem.sigma[i], self.arguments[2], self.theta)
                for i, shard in enumerate(case.shards)
            ]
        )
        self.least = literal.dual_objective(*self.arguments, best)
        matrix = literal.gossip_matrix(
            laplacian(case.problem), 1.0 / chosen.inverse_scale, chosen.rounds
        )
        norm2 = np.sum(best * (np.linalg.pinv(matrix, rcond=1e-12) @ best))
        self.start = self.above(np.zeros_like(best)) + chosen.convexity / 2 * norm2

    def above(self, y):
        return literal.dual_objective(*self.arguments, y) - self.least


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("graph", "loss"), [("grid:3x3", "logistic"), ("star:5", "squared")])
@pytest.mark.parametrize("name", FACTORIES)
def test_nesterovs_theorem_bounds_the_dual_error_and_that_bounds_the_models(
    name, graph, loss, rule
):
    case = make(graph, loss, seed=1)
    method = FACTORIES[name](case.problem, MethodSetting(rule=rule))
    theorem = Theorem(case, method.parameters)
    theta, sigma = theorem.theta, case.problem.sigma
    for t, state in enumerate(follow(method, math.ceil(8.0 / method.rho)), start=1):
        if t % 5 and t > 5:
            continue
        above = theorem.above(state.y)
        assert -1e-11 <= above <= theorem.start * (1.0 - method.rho) ** t + 1e-12
        thetas = literal.all_dual_gradients(*theorem.arguments, state.y)
        assert sigma @ np.sum((thetas - theta) ** 2, axis=1) <= 2.0 * above + 1e-11


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", FACTORIES)
def test_it_reaches_the_certified_optimum_no_later_than_theory_says(name, graph, loss, rule):
    problem = make(graph, loss).problem
    best = problem.optimum()
    assert best.duality_gap < 1e-13
    method = FACTORIES[name](problem, MethodSetting(rule=rule))
    theorem = Theorem(make(graph, loss), method.parameters)
    # sum sigma_i |theta_i - theta*|^2 <= 2 (1 - rho)^t start at y; x_t is (1 + momentum) y_t minus
    # momentum y_{t-1}, at most three times as far, and then the last theta is that of x_{t-1}.
    target = 1e-19
    n_rounds = 2 + math.ceil(math.log(18.0 * theorem.start / target) / method.rho)
    thetas = method.algorithm.output(run(method, n_rounds))
    assert problem.sigma @ np.sum((thetas - theorem.theta) ** 2, axis=1) <= target
    above = np.mean(objectives(problem, thetas)) - best.objective
    assert abs(above) <= 1e-8 * max(1.0, abs(best.objective))


@pytest.mark.parametrize("graph", ["grid:3x3", "star:5", "ring:9", "grid:4x5", "path:12"])
@pytest.mark.parametrize("tau", [0.01, 1.0, 5.0, 100.0])
def test_tuned_is_never_predicted_slower_than_theory(graph, tau):
    problem = make(graph, "logistic", seed=3).problem
    setting = MethodSetting(tau=tau, delays=Delays(tau=tau))
    for factory in FACTORIES.values():
        tuned, theory = (
            factory(problem, setting._replace(rule=rule)).parameters for rule in ("tuned", "theory")
        )
        assert tuned.time_per_efold <= theory.time_per_efold * (1.0 + 1e-9)
        cost = problem.conditioning.live_counts.max() + tuned.rounds * tau
        assert tuned.time_per_efold == pytest.approx(cost / tuned.rho)


def test_cheap_messages_buy_more_gossip_and_dear_ones_less():
    problem = make("grid:4x5", "logistic").problem
    rounds = [
        prepare(problem, MethodSetting(tau=tau, delays=Delays(tau=tau))).parameters.rounds
        for tau in (0.001, 1.0, 1000.0)
    ]
    assert rounds[0] > rounds[1] >= rounds[2]
    assert rounds[2] <= 2


def test_on_a_complete_graph_one_round_is_enough_whatever_it_costs():
    problem = make_case("complete:9", "logistic", sigma=0.7).problem
    for tau in (0.0, 1.0, 50.0):
        for rule in RULES:
            method = prepare(problem, MethodSetting(rule=rule, tau=tau, delays=Delays(tau=tau)))
            assert method.parameters.rounds == 1
            assert method.parameters.gamma == pytest.approx(1.0)


def test_beyond_dense_algebra_bounds_serve(monkeypatch):
    case = make("grid:3x3", "logistic")
    exact = prepare(case.problem, MethodSetting()).parameters
    monkeypatch.setattr(msda, "DENSE_LIMIT", 3)
    method = prepare(case.problem, MethodSetting())
    assert method.rho <= exact.rho * 1.5
    best = case.problem.optimum().theta
    thetas = method.algorithm.output(run(method, math.ceil(45.0 / method.rho)))
    np.testing.assert_allclose(thetas, np.tile(best, (9, 1)), rtol=0, atol=1e-9)


def test_unlike_nodes_gain_from_gossip_scaled_by_sigma():
    # sigma from 0.05 to 20, thirty rows a node: K rounds reach max M_i / sigma_i, the text's
    # rounds only beta / alpha.
    sigma = np.geomspace(0.05, 20.0, 9)
    sizes = [30] * 9
    problem = make_case("grid:3x3", "logistic", sigma=sigma, n_features=3, sizes=sizes).problem
    setting = MethodSetting(tau=0.01, delays=Delays(tau=0.01))
    tuned = prepare(problem, setting).parameters
    theory = prepare(problem, setting._replace(rule="theory")).parameters
    np.testing.assert_allclose(tuned.inverse_scale, 1.0 / sigma)
    assert tuned.time_per_efold < 0.5 * theory.time_per_efold
    assert tuned.rho == pytest.approx(problem.conditioning.kappa_b() ** -0.5, rel=0.05)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", FACTORIES)
def test_a_single_node_is_done_after_one_dual_gradient(name, rule):
    case = make("single", "logistic")
    problem, best = case.problem, minimiser(case)
    method = FACTORIES[name](problem, MethodSetting(rule=rule))
    for n_rounds in (1, 2, 5):
        np.testing.assert_allclose(
            method.algorithm.output(run(method, n_rounds)), [best], rtol=0, atol=1e-11
        )
    counts = method.algorithm.counts(method.source.draw(0, 2))
    assert counts == Counts(n_grad=2 * problem.n_samples)
    method.clock.advance(method.source.draw(0, 2))
    assert method.clock.time == 2.0 * problem.n_samples
    assert 0.9 < method.rho < 1.0


def test_a_round_takes_the_slowest_pass_and_k_messages():
    problem = make("grid:3x3", "logistic").problem
    delays = Delays(tau=4.0, speed=[1.0] * 8 + [3.0])
    method = prepare(problem, MethodSetting(rule="theory", tau=4.0, delays=delays))
    method.clock.advance(method.source.draw(0, 3))
    slowest = max(problem.conditioning.live_counts * np.array([1.0] * 8 + [3.0]))
    k = method.parameters.rounds
    assert method.clock.time == 3 * (slowest + k * 4.0)
    counts = method.algorithm.counts(method.source.draw(0, 3))
    assert counts.n_grad == 3 * problem.n_samples
    assert counts.n_comm == 3 * k * 2 * problem.topology.n_edges
    assert counts.bytes == 8 * 3 * counts.n_comm


@pytest.mark.parametrize("rule", RULES)
def test_started_at_the_optimum_it_stays_there(rule):
    problem = make("grid:3x3", "logistic").problem
    best = problem.optimum().theta
    method = prepare(problem, MethodSetting(rule=rule))
    state = method.algorithm.init(best)
    np.testing.assert_array_equal(method.algorithm.output(state), np.tile(best, (9, 1)))
    start = state.x.copy()
    for state in follow(method, 20, best):
        np.testing.assert_allclose(state.theta, np.tile(best, (9, 1)), rtol=0, atol=1e-8)
        np.testing.assert_allclose(state.x, start, rtol=0, atol=1e-8)


def test_rows_of_x_sum_to_zero_all_along():
    problem = make("ring:9", "logistic").problem
    method = prepare(problem, MethodSetting())
    for state in follow(method, 300, np.ones(3)):
        assert np.max(np.abs(state.x.sum(axis=0))) < 1e-11
    assert np.max(np.abs(state.x)) > 0.1


def test_without_matrices_it_takes_the_same_path(monkeypatch):
    problem = make("grid:3x3", "logistic").problem
    method = prepare(problem, MethodSetting())
    expected = method.algorithm.output(run(method, 30))
    monkeypatch.setattr(dual_gradient, "LARGEST_MATRIX", 0)
    method = prepare(problem, MethodSetting())
    assert not method.algorithm.dual_gradients.with_matrices
    assert_close(method.algorithm.output(run(method, 30)), expected, "theta")


def test_before_the_first_round_it_has_nothing_but_its_start():
    problem = make("grid:3x3", "logistic").problem
    algorithm = prepare(problem, MethodSetting()).algorithm
    assert (algorithm.output(algorithm.init()) == 0.0).all()
    assert (algorithm.output(algorithm.init(np.ones(3))) == 1.0).all()


@pytest.mark.parametrize("name", FACTORIES)
def test_parameters_of_another_algorithm_are_refused(name):
    problem = make("grid:3x3", "logistic").problem
    chosen = adfs.Parameters.choose(problem, "exact")
    with pytest.raises(ParameterError, match=f"Parameters is not a rule of '{name}'.*theory, tun"):
        FACTORIES[name](problem, MethodSetting(rule=chosen))


def test_the_parameters_explain_themselves():
    text = str(prepare(make("grid:3x3", "logistic").problem, MethodSetting()).parameters)
    for word in ("(tuned) on grid:3x3", "rounds of gossip", "sqrt(mu / L)", "(max m_i + K tau)"):
        assert word in text

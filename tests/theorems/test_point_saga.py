"""Point-SAGA: the kernel is the literal method, which contracts as its page proves."""

import functools

import numpy as np
import pytest

from adfs.algorithms import point_saga
from adfs.algorithms.base import MethodSetting
from adfs.errors import ParameterError
from adfs.kernels import point_saga as kernel
from adfs.kernels.sampling import alias_draw, uniform
from adfs.randomness import stream_key
from adfs.schedule.delays import Delays
from oracles import augmented
from oracles import point_saga as literal
from support.problems import all_duals, drawn_exactly, make_case, make_shards, stored_as

LOSSES = ("logistic", "squared", "squared_hinge", "smoothed_hinge", "huber")


RULES = ("theory", "tuned")


def drawn(method, n_rounds, seed=0):
    """Samples that the rounds draw: by number t of the counter stream."""
    key, table = stream_key(seed, "point-saga"), method.algorithm.constants.table
    with np.errstate(over="ignore"):
        return [alias_draw(table, 0, len(table), uniform(key, t)) for t in range(n_rounds)]


def probabilities(case, loss, method):
    """p_k of the rule, by bisection."""
    smoothness, chosen = augmented.smoothness(case.shards, loss), method.parameters
    if chosen.rule == "theory":
        return np.full(len(smoothness), 1 / len(smoothness))
    return literal.equal_rates(smoothness, chosen.gamma, chosen.ridge)[1]


def run(method, state, first, last):
    return method.algorithm.step(state, method.source.draw(first, last))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("warm", "rule"), [(False, "tuned"), (True, "tuned"), (True, "theory")])
def test_the_kernel_is_the_literal_method_with_the_ridge_apart(loss, warm, rule):
    """Dense and CSR; unequal shards, weights and sigmas; the iterate and the table."""
    case = make_case("grid:2x2", loss, seed=2, n_features=6, density=0.6)
    rows = np.vstack([features for features, *_ in case.shards])
    theta = np.random.default_rng(1).standard_normal(6) if warm else None
    methods = [
        point_saga.prepare(stored_as(case, kind), MethodSetting(seed=3, rule=rule))
        for kind in ("dense", "csr")
    ]
    gamma, start = methods[0].parameters.gamma, np.zeros(6) if theta is None else theta
    expected = literal.ridge_apart(
        case.shards, case.problem.sigma, loss, gamma, start, drawn(methods[0], 700, seed=3),
        probabilities(case, loss, methods[0]),
    )  # fmt: skip
    states = [method.algorithm.init(theta) for method in methods]
    moved, at = 0.0, 0
    for t, (x, table) in enumerate(expected):
        if t > 40 and t % 37:
            continue
        for k, method in enumerate(methods):
            states[k] = run(method, states[k], at, t)
            outputs = method.algorithm.output(states[k])
            np.testing.assert_allclose(outputs, np.tile(x, (4, 1)), rtol=0, atol=1e-12)
            duals = all_duals(method.algorithm, states[k])
            np.testing.assert_allclose(duals[:, None] * rows, table, rtol=0, atol=1e-12)
        moved, at = max(moved, np.abs(x - start).max()), t
    assert moved > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_scale_that_underflows_many_times_leaves_no_trace(kind):
    shards = make_shards(1, "logistic", seed=4, n_features=30, sizes=[3], density=0.2)
    case = make_case("single", sigma=20.0, shards=shards)
    method = point_saga.prepare(stored_as(case, kind), MethodSetting())
    gamma, n_rounds = method.parameters.gamma, 2500
    state, underflows = method.algorithm.init(), 0
    expected = literal.ridge_apart(
        shards, 20.0, "logistic", gamma, np.zeros(30), drawn(method, n_rounds),
        probabilities(case, "logistic", method),
    )  # fmt: skip
    for t, (x, _) in enumerate(expected):
        if t > 0:
            before = state.scales[kernel.S]
            state = run(method, state, t - 1, t)
            underflows += state.scales[kernel.S] > before
        np.testing.assert_allclose(method.algorithm.output(state)[0], x, rtol=0, atol=1e-13)
    assert underflows >= 3


def test_a_round_on_sparse_rows_touches_only_their_non_zeros():
    shards = make_shards(2, "logistic", n_features=30, density=0.1)
    case = make_case("path:2", shards=shards)
    method = point_saga.prepare(stored_as(case, "csr"), MethodSetting())
    state = method.algorithm.init()
    rows = np.vstack([features for features, *_ in shards])
    for t, k in enumerate(drawn(method, 8)):
        before = state.pairs.copy()
        state = run(method, state, t, t + 1)
        touched = np.repeat(rows[k] != 0.0, 2)
        assert ((state.pairs[0] != before[0]) == touched).all()


def test_the_step_is_the_published_one_of_the_rules_smoothness():
    problem = make_case("grid:3x3", "squared", seed=5).problem
    n = problem.n_samples
    mu = problem.sigma.sum() / n
    smoothness = problem.squared_norms * problem.weights
    middle = np.sqrt(smoothness.max()) * np.mean(np.sqrt(smoothness))
    for rule, bound in (("theory", smoothness.max()), ("tuned", middle)):
        chosen = point_saga.prepare(problem, MethodSetting(rule=rule)).parameters
        assert chosen.gamma == pytest.approx(literal.published_step(n, bound + mu, mu), rel=1e-12)
        assert f"{chosen.gamma:.6g}" in str(chosen)


@pytest.mark.parametrize("rule", RULES)
def test_samples_are_drawn_with_the_probabilities_of_the_page(rule):
    case = make_case("path:3", "logistic", seed=3)
    method = point_saga.prepare(case.problem, MethodSetting(rule=rule))
    p = probabilities(case, "logistic", method)
    assert (p.max() > 1.2 * p.min()) == (rule == "tuned")
    found = drawn_exactly(method.algorithm.constants.table)
    np.testing.assert_allclose(found, p, rtol=0, atol=1e-9)


@pytest.mark.parametrize("spread", [1.0, 10.0, 1e6, 1e25])
def test_newtons_method_finds_the_rate_of_the_table(spread):
    """From below, beside a bisection; never less than with uniform draws."""
    smoothness = np.geomspace(1.0, spread, 40)
    chosen = point_saga.PointSagaParameters.of("tuned", smoothness, 1e-3)
    rate, p = literal.equal_rates(smoothness, chosen.gamma, 1e-3)
    assert chosen.table == pytest.approx(rate, rel=1e-9)
    np.testing.assert_allclose(chosen.relative_draws(smoothness) / 40, p, rtol=1e-9)
    assert chosen.table >= chosen.uniform_rate / 40 * (1 - 1e-12)
    published = point_saga.PointSagaParameters.of("theory", smoothness, 1e-3)
    assert chosen.rho >= published.rho * (1 - 1e-9)


def test_rows_of_zeros_do_no_harm():
    shards = make_shards(2, "logistic", seed=5, sizes=[4, 5], dead=True)
    problem = make_case("path:2", "logistic", shards=shards).problem
    method = point_saga.prepare(problem, MethodSetting())
    state = run(method, method.algorithm.init(), 0, int(50 / method.rho))
    output = method.algorithm.output(state)[0]
    np.testing.assert_allclose(output, problem.optimum().theta, rtol=0, atol=1e-9)


@pytest.mark.parametrize("smoothness", [1e-6, 0.1, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("n", [1, 2, 30, 10**6])
def test_the_proven_rate_is_never_below_the_published_one(n, smoothness):
    chosen = point_saga.PointSagaParameters.of("theory", np.full(n, smoothness), ridge=0.01)
    tuned = point_saga.PointSagaParameters.of("tuned", np.full(n, smoothness), ridge=0.01)
    assert tuned.gamma == pytest.approx(chosen.gamma, rel=1e-9)
    assert tuned.rho == pytest.approx(chosen.rho, rel=1e-9)
    published = 1.0 - 1.0 / (1.0 + chosen.ridge * chosen.gamma)
    assert published <= chosen.rho * (1 + 1e-12)
    assert 0.0 < chosen.rho < 1.0
    assert f"{chosen.gamma:.6g}" in str(chosen)


class Energy:
    """V of the theorem on its page, for any step and the draws of a rule."""

    def __init__(self, case, loss, gamma, rule="tuned"):
        self.samples, n, self.mu = literal.mean_form(case.shards, case.problem.sigma)
        self.loss, self.gamma = loss, gamma
        self.theta = augmented.minimiser(case.shards, case.problem.sigma, loss)
        self.optimal = self.table_at(self.theta)
        smoothness = augmented.smoothness(case.shards, loss)
        a, self.p = 1 + gamma * self.mu, np.full(n, 1 / n)
        if rule == "tuned":
            self.p = literal.equal_rates(smoothness, gamma, self.mu)[1]
        boost = 1 / (n * self.p)
        self.weights = ((gamma * boost) ** 2 + 2 * gamma * a * boost / smoothness) / a**2
        slowest = np.min(self.p * 2 * a / (2 * a + gamma * boost * smoothness))
        self.rate = max(a**-2, 1 - slowest)

    def table_at(self, theta):
        return np.array([literal.gradient(self.loss, sample, theta) for sample in self.samples])

    def __call__(self, x, table):
        distance = np.sum((x - self.theta) ** 2)
        return distance + self.weights @ np.sum((table - self.optimal) ** 2, axis=1)

    def expected_after(self, x, table):
        """Exact mean over the sample drawn of V after one round."""
        rounds = (
            literal.ridge_apart_step(
                self.samples, self.loss, self.mu, self.gamma, x, table, k, self.p
            )
            for k in range(len(self.samples))
        )
        return self.p @ [self(*after) for after in rounds]


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber"])
@pytest.mark.parametrize("factor", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("rule", RULES)
def test_the_exact_expectation_of_v_shrinks_by_theta_from_anywhere(loss, factor, rule):
    """No sampling error; any step, and tables that are no gradients of anything."""
    case = make_case("path:3", loss, seed=6, n_features=3)
    chosen = point_saga.prepare(case.problem, MethodSetting(rule=rule)).parameters
    energy = Energy(case, loss, factor * chosen.gamma, rule)
    if factor == 1.0:
        assert energy.rate == pytest.approx(1.0 - chosen.rho, rel=1e-12)
    rng = np.random.default_rng(0)
    ratios = []
    for size in (0.1, 1.0, 10.0) * 4:
        x = energy.theta + size * rng.standard_normal(3)
        for table in (
            energy.table_at(x),
            energy.optimal + size * rng.standard_normal(energy.optimal.shape),
            energy.table_at(energy.theta + size * rng.standard_normal(3)),
            energy.optimal,
        ):
            ratios.append(energy.expected_after(x, table) / energy(x, table) / energy.rate)
    assert max(ratios) <= 1.0 + 1e-12
    assert max(ratios) > 0.5


def test_the_rate_cannot_be_doubled():
    """Along a feature that no sample has, x shrinks by exactly 1 / a, so V by a^-2."""
    shards = [(np.hstack([rows, np.zeros((len(rows), 1))]), *rest)
              for rows, *rest in make_shards(3, "logistic", n_features=2)]  # fmt: skip
    case = make_case("path:3", shards=shards)
    gamma = point_saga.prepare(case.problem, MethodSetting()).parameters.gamma
    energy = Energy(case, "logistic", gamma)
    x = energy.theta + np.array([0.0, 0.0, 1.0])
    a = 1 + gamma * energy.mu
    ratio = energy.expected_after(x, energy.optimal) / energy(x, energy.optimal)
    assert ratio == pytest.approx(a**-2, rel=1e-9)


@functools.cache
def study(loss):
    """Mean over seeds of V along runs of the kernel with the published rule, at 30 times."""
    case = make_case("grid:3x3", loss, seed=11, n_features=3)
    rows = np.vstack([features for features, *_ in case.shards])
    chosen = point_saga.prepare(case.problem, MethodSetting(rule="theory")).parameters
    energy = Energy(case, loss, chosen.gamma, "theory")
    step = int(16.0 / chosen.rho / 30)
    energies = np.zeros((24, 31))
    for seed in range(24):
        method = point_saga.prepare(case.problem, MethodSetting(seed=seed, rule="theory"))
        state = method.algorithm.init()
        for k in range(31):
            table = all_duals(method.algorithm, state)[:, None] * rows
            energies[seed, k] = energy(method.algorithm.output(state)[0], table)
            state = run(method, state, k * step, (k + 1) * step)
    return chosen, step * np.arange(31), energies.mean(axis=0)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_mean_v_stays_under_the_proven_and_the_published_rate(loss):
    chosen, times, mean = study(loss)
    assert np.all(mean <= mean[0] * (1.0 - chosen.rho) ** times)
    assert np.all(mean <= mean[0] * (1.0 + chosen.ridge * chosen.gamma) ** -times)
    assert mean[-1] < 1e-6 * mean[0]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_table_of_scalars_is_not_slower_than_the_published_table_of_vectors(loss):
    case = make_case("path:3", loss, seed=1, n_features=3, sizes=[6, 6, 6])
    setting = MethodSetting(rule="theory")
    gamma = point_saga.prepare(case.problem, setting).parameters.gamma
    theta = augmented.minimiser(case.shards, case.problem.sigma, loss)
    counts = np.zeros((2, 6))
    for seed in range(6):
        sequence = np.random.default_rng(seed).integers(18, size=3000)
        arguments = case.shards, case.problem.sigma, loss, gamma, np.zeros(3), sequence
        runs = literal.published(*arguments), (x for x, _ in literal.ridge_apart(*arguments))
        for k, xs in enumerate(runs):
            close = (np.sum((x - theta) ** 2) < 1e-16 * np.sum(theta**2) for x in xs)
            counts[k, seed] = next(t for t, there in enumerate(close) if there)
    assert 0.7 < counts[1].mean() / counts[0].mean() < 1.05


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "complete:9", "ring:9"])
def test_it_reaches_the_certified_optimum(graph, loss):
    problem = make_case(graph, loss, seed=8).problem
    best = problem.optimum()
    method = point_saga.prepare(problem, MethodSetting(rule="theory"))
    state = run(method, method.algorithm.init(), 0, int(50 / method.rho))
    thetas = method.algorithm.output(state)
    np.testing.assert_allclose(thetas, np.tile(best.theta, (9, 1)), rtol=0, atol=1e-9)
    assert problem.objective(thetas[0]) - best.objective <= 1e-8 * max(1.0, abs(best.objective))


def test_the_clock_is_that_of_one_machine_as_fast_as_the_fastest():
    problem = make_case("path:3").problem
    delays = Delays(tau=7.0, speed=(3.0, 0.5, 10.0))
    method = point_saga.prepare(problem, MethodSetting(delays=delays))
    method.clock.advance(method.source.draw(0, 100))
    assert method.clock.time == 50.0
    random = Delays(tau=7.0, speed=(3.0, 0.5, 10.0), law="exponential", seed=4)
    method = point_saga.prepare(problem, MethodSetting(delays=random))
    method.clock.advance(method.source.draw(0, 4000))
    assert method.clock.time == pytest.approx(2000.0, rel=0.1)
    assert method.clock.time != 2000.0
    still = Delays(tau=7.0, law="pareto", applies_to="communications")
    method = point_saga.prepare(problem, MethodSetting(delays=still))
    method.clock.advance(method.source.draw(0, 10))
    assert method.clock.time == 10.0


def test_a_rule_of_another_method_is_refused():
    problem = make_case("path:2").problem
    with pytest.raises(ParameterError, match="'projector' is not a rule of 'point-saga'"):
        point_saga.prepare(problem, MethodSetting(rule="projector"))

"""Katyusha and L-Katyusha: the estimator, the inequality of a round, the rates, the limit."""

import functools
import itertools

import numpy as np
import pytest

import adfs
from adfs.algorithms import katyusha
from adfs.algorithms.base import MethodSetting
from adfs.algorithms.katyusha import MeanForm
from adfs.kernels import katyusha as kernel
from adfs.schedule.delays import Delays
from oracles import katyusha as oracle
from support.problems import make_case, make_shards, stored_as

FACTORIES = {"katyusha": katyusha.prepare, "l-katyusha": katyusha.prepare_loopless}
NAMES = tuple(FACTORIES)
RULES = ("theory", "tuned")


def prepare(name, problem, rule, tau=0.5, seed=0):
    return FACTORIES[name](problem, MethodSetting(rule, tau, "nonblocking", Delays(tau=tau), seed))


def hard_case(graph, loss="logistic", seed=3, sigma=0.02):
    """Shards of 4 to 6 rows; condition numbers in the hundreds."""
    n_nodes = adfs.Topology.parse(graph).n_nodes
    sizes = [4 + node % 3 for node in range(n_nodes)]
    return make_case(graph, loss, seed, n_features=3, sizes=sizes, sigma=sigma)


def dead_case():
    """Zero rows, rows of weight zero, and a node (number 2) with nothing else."""
    shards = make_shards(4, "logistic", seed=5, sizes=[4, 3, 2, 5])
    shards[0][0][1] = 0.0
    shards[1][2][0] = 0.0
    shards[2][0][:] = 0.0
    return make_case("path:4", shards=shards, sigma=0.1)


def oracle_data(case):
    return oracle.data_of(case.shards, case.problem.sigma, case.problem.loss.name)


def constants(method):
    plan = method.parameters
    return oracle.Constants(plan.tau1, plan.tau2, plan.alpha, plan.theta)


def drawn(method, t):
    """The batches of round ``t``, one list a node."""
    batches, rows = method.algorithm.batches, []
    for node, size in enumerate(batches.sizes):
        with np.errstate(over="ignore"):
            kernel.draw(t, node, batches)
        rows.append(batches.drawn[:size].tolist())
    return rows


def literal_iterates(method, case, n_events):
    """(y, z, w) of the oracle after each round that moves, fed with the same draws."""
    data, c, start = oracle_data(case), constants(method), np.zeros(case.problem.n_features)
    kinds = method.source.draw(0, n_events).which
    if isinstance(method.source, katyusha.Refreshes):
        rounds = ((kind == 1, drawn(method, t)) for t, kind in enumerate(kinds))
        return oracle.l_katyusha(data, c, start, rounds)
    starts = [*np.flatnonzero(kinds == 1).tolist(), n_events]
    epochs = [
        [drawn(method, t) for t in range(first + 1, last)]
        for first, last in itertools.pairwise(starts)
    ]
    return oracle.katyusha(data, c, start, epochs)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("make", [hard_case, dead_case], ids=["hard", "dead rows"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMES)
def test_every_round_equals_the_literal_text(name, rule, make, kind):
    case = make("grid:2x2") if make is hard_case else make()
    method = prepare(name, stored_as(case, kind), rule)
    n_events = 60
    expected = literal_iterates(method, case, n_events)
    state, compared = method.algorithm.init(), 0
    for t in range(n_events):
        events = method.source.draw(t, t + 1)
        state = method.algorithm.step(state, events)
        if name == "katyusha" and events.which[0] == 1:
            continue
        y, z, w = next(expected)
        compared += 1
        for ours, theirs in ((state.y, y), (state.z, z), (state.w, w)):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    assert compared >= 30
    assert len({*method.source.draw(0, n_events).which.tolist()}) == 2
    assert (method.algorithm.output(state) == state.y).all()


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "complete:9", "ring:9"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMES)
def test_all_nodes_reach_the_certified_optimum(name, rule, graph, loss):
    problem = hard_case(graph, loss).problem
    method = prepare(name, problem, rule, tau=5.0)
    n_events = int(30.0 / method.rho)
    state = method.algorithm.step(method.algorithm.init(), method.source.draw(0, n_events))
    best = problem.optimum()
    thetas = method.algorithm.output(state)
    assert thetas.shape == (9, 3)
    np.testing.assert_allclose(thetas, np.tile(best.theta, (9, 1)), rtol=0, atol=1e-8)
    assert problem.objective(thetas[0]) - best.objective <= 1e-8 * max(1.0, best.objective)


# The estimator.

POINTS = [np.random.default_rng(k).standard_normal((2, 3)) for k in range(4)]


def tiny_case(loss="logistic", seed=0):
    return make_case("path:2", loss, seed, n_features=3, sizes=[3, 2], sigma=0.05)


def our_estimate(method, batches, vectors_at):
    """The kernel's formula on chosen batches, with its own weights and cached slopes."""
    x, w = vectors_at
    state = method.algorithm.init(w)
    algorithm = method.algorithm
    algorithm.step(state, method.source.draw(0, 1))
    problem, total = algorithm.problem, state.gradient.copy()
    rows = np.vstack([algorithm.problem.rows.values])
    for k in itertools.chain(*batches):
        slope = oracle.losses.derivative(
            problem.loss.name, rows[k] @ x, problem.labels[k], problem.weights[k]
        )
        total += algorithm.batches.factors[k] * (slope - state.slopes[k]) * rows[k]
    return total


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge"])
def test_the_estimator_is_unbiased_over_all_batches(loss):
    case = tiny_case(loss)
    data = oracle_data(case)
    method = prepare("katyusha", case.problem, "theory", tau=1.0)
    assert method.parameters.batch == 2
    for x, w in POINTS:
        mean, total = np.zeros(3), 0.0
        for batches, p in oracle.all_batches(data, 2):
            mean += p * our_estimate(method, batches, (x, w))
            total += p
        assert abs(total - 1.0) < 1e-12
        np.testing.assert_allclose(mean, oracle.gradient(data, x), rtol=0, atol=1e-12)


def exact_variance(data, size, x, w):
    """E|g - grad f(x)|^2 over all batches."""
    target, total = oracle.gradient(data, x), 0.0
    for batches, p in oracle.all_batches(data, size):
        total += p * np.sum((oracle.estimate(data, x, w, batches) - target) ** 2)
    return total


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
def test_variance_is_at_most_twice_v_times_the_bregman_distance(loss, size):
    for seed, (x, w) in enumerate(POINTS):
        case = tiny_case(loss, seed)
        data = oracle_data(case)
        bound = MeanForm(case.problem, MethodSetting()).variance(size)
        assert bound == pytest.approx(oracle.node_sums(data).max() / (oracle.n_live(data) * size))
        distance = oracle.bregman(data, w, x)
        assert distance > 0.0
        assert exact_variance(data, size, x, w) <= 2.0 * bound * distance * (1.0 + 1e-12)


def test_the_constant_v_cannot_be_halved():
    # Orthogonal rows of equal length: the variance is (1 - 1 / m) of the bound.
    shards = [(np.eye(6), np.arange(6.0), np.ones(6))]
    case = make_case("single", "squared", shards=shards, sigma=1.0)
    x, w = np.random.default_rng(0).standard_normal((2, 6))
    data = oracle_data(case)
    bound = MeanForm(case.problem, MethodSetting()).variance(1)
    assert exact_variance(data, 1, x, w) > 0.8 * 2.0 * bound * oracle.bregman(data, w, x)


def test_the_mean_over_all_samples_would_not_do_where_nodes_differ():
    # Lbar / B is the constant of sampling from all samples at once; strata need the largest node.
    rows = np.diag([3.0] * 4 + [0.1] * 4)
    shards = [(part, np.zeros(4), np.ones(4)) for part in (rows[:4], rows[4:])]
    case = make_case("path:2", "squared", shards=shards, sigma=1.0)
    data = oracle_data(case)
    x, w = np.eye(8)[0], np.zeros(8)
    at_once = oracle.smoothness(data).mean() / 2
    bound = MeanForm(case.problem, MethodSetting()).variance(1)
    variance, distance = exact_variance(data, 1, x, w), oracle.bregman(data, w, x)
    assert 2.0 * at_once * distance < 0.9 * variance
    assert variance <= 2.0 * bound * distance


# The rates.


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMES)
def test_the_inequality_of_a_round_holds_in_exact_expectation(name, rule):
    case = tiny_case("logistic")
    data = oracle_data(case)
    method = prepare(name, case.problem, rule, tau=0.0)
    plan, c = method.parameters, constants(method)
    assert plan.batch == 1
    assert plan.alpha * plan.tau1 * (plan.smoothness + plan.variance / plan.tau2) <= 1 + 1e-12
    best = case.problem.optimum().theta
    tau3 = 1.0 - c.tau1 - c.tau2
    generator = np.random.default_rng(1)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        y, z, w = best + scale * generator.standard_normal((3, 3))
        after = 0.0
        for batches, p in oracle.all_batches(data, 1):
            y_next, z_next = oracle.inner_round(data, c, y, z, w, batches)
            gain = oracle.objective(data, y_next) - oracle.objective(data, best)
            distance = (
                (1.0 + plan.alpha * plan.lam) * np.sum((z_next - best) ** 2) / (2.0 * c.alpha)
            )
            after += p * (gain / c.tau1 + distance)
        y_above, w_above = (
            oracle.objective(data, v) - oracle.objective(data, best) for v in (y, w)
        )
        before = (c.tau2 * w_above + tau3 * y_above) / c.tau1
        before += np.sum((z - best) ** 2) / (2.0 * c.alpha)
        assert after <= before * (1.0 + 1e-9)


SEEDS, EFOLDS = range(12), 6.0


@functools.cache
def study(name, rule, loss):
    """Mean over seeds of the theorem's energy when snapshots are due; what theory allows."""
    case = hard_case("grid:2x2", loss)
    data, best = oracle_data(case), case.problem.optimum().theta
    runs = []
    for seed in SEEDS:
        method = prepare(name, case.problem, rule, tau=1.0, seed=seed)
        plan, c = method.parameters, constants(method)
        stride = int(plan.every) + 1 if name == "katyusha" else max(1, int(0.5 / method.rho))
        state, energies = method.algorithm.init(), []
        for k in range(1 + int(EFOLDS / method.rho / stride)):
            v = state
            if name == "katyusha":
                w = v.average if v.mass[0] > 0.0 else v.w  # where the next snapshot will be
                energy = oracle.loop_energy(data, c, int(plan.every), best, v.y, v.z, w)
            else:
                rho = 1.0 - 1.0 / plan.theta
                energy = oracle.coin_energy(data, c, plan.p, rho, best, v.y, v.z, v.w)
            energies.append(energy)
            events = method.source.draw(k * stride, (k + 1) * stride)
            state = method.algorithm.step(state, events)
        runs.append(energies)
    times = stride * np.arange(len(runs[0]))
    return method.rho, times, np.mean(runs, axis=0)


ROUNDING = 1e-12  # of the first energy: differences F - F* below it are rounding
CASES = list(itertools.product(NAMES, RULES, ("logistic", "squared")))


@pytest.mark.parametrize(("name", "rule", "loss"), CASES)
def test_mean_energy_falls_by_one_minus_rho_an_iteration_at_least(name, rule, loss):
    rho, times, energy = study(name, rule, loss)
    assert len(times) >= 4
    assert np.all(energy >= -ROUNDING * energy[0])
    allowed = energy[0] * ((1.0 - rho) ** times * (1.0 + 1e-9) + ROUNDING)
    assert np.all(energy <= allowed)


@pytest.mark.parametrize(("name", "rule", "loss"), CASES)
def test_measured_rate_is_not_slower_than_the_theorem(name, rule, loss):
    rho, times, energy = study(name, rule, loss)
    exact = energy > ROUNDING * energy[0]
    slope, _ = np.polyfit(times[exact], np.log(energy[exact]), 1)
    assert -slope >= rho


@pytest.mark.parametrize("name", NAMES)
def test_steps_four_times_as_long_as_the_theorem_allows_diverge(name):
    # Otherwise the rates above would say nothing about the constants.
    case = hard_case("grid:2x2", "squared")
    method = prepare(name, case.problem, "tuned", tau=1.0)
    algorithm = method.algorithm
    plan, steps = method.parameters, method.algorithm.steps
    alpha = 4.0 * steps.alpha
    algorithm.steps = steps._replace(alpha=alpha, shrink=1.0 / (1.0 + alpha * plan.lam))
    state = algorithm.step(algorithm.init(), method.source.draw(0, int(30.0 / method.rho)))
    assert not np.max(np.abs(algorithm.output(state))) < 1e3


def time_to(method, problem, accuracy):
    """Idealized time until |theta - theta*|^2 / |theta*|^2 stays under ``accuracy``."""
    best, state, t = problem.optimum().theta, method.algorithm.init(), 0
    while True:
        events = method.source.draw(t, t + 1)
        state, t = method.algorithm.step(state, events), t + 1
        method.clock.advance(events)
        if np.sum((state.y - best) ** 2) <= accuracy * np.sum(best**2):
            return method.clock.time


@pytest.mark.parametrize("name", NAMES)
def test_tuned_promises_less_time_than_theory_and_keeps_the_promise(name):
    case = make_case("grid:3x3", n_features=5, sizes=[40] * 9, sigma=0.1)
    for tau in (0.0, 1.0, 5.0, 50.0):
        promised, needed = {}, {}
        for rule in RULES:
            methods = [prepare(name, case.problem, rule, tau, seed) for seed in range(5)]
            promised[rule] = methods[0].parameters.time_per_efold
            needed[rule] = np.median([time_to(m, case.problem, 1e-8) for m in methods])
            assert needed[rule] <= np.log(1e8) * promised[rule]
        assert promised["tuned"] <= promised["theory"]
        assert needed["tuned"] <= 1.25 * needed["theory"]
    assert needed["tuned"] < 0.8 * needed["theory"]  # at tau = 50


@pytest.mark.parametrize("law", ["constant", "exponential", "pareto"])
def test_tuned_knows_what_a_round_takes_under_every_law(law):
    case = make_case("grid:3x3", n_features=5, sizes=[40] * 9, sigma=0.1)
    speed = [1.0] * 8 + [3.0]
    setting = MethodSetting(delays=Delays(tau=5.0, speed=speed, law=law))
    method = katyusha.prepare(case.problem, setting)
    chosen, epochs = method.parameters, 400
    method.clock.advance(method.source.draw(0, epochs * (round(chosen.every) + 1)))
    predicted = chosen.time_per_efold * chosen.every * np.log(chosen.theta)
    assert predicted == pytest.approx(method.clock.time / epochs, rel=0.05)


def test_where_delays_are_random_tuned_takes_larger_batches():
    """They wait for the slowest of all messages: longer rounds wait less often."""
    case = make_case("grid:3x3", n_features=5, sizes=[400] * 9, sigma=0.1)
    batches = [
        katyusha.prepare(case.problem, MethodSetting(delays=Delays(5.0, law=law)))
        for law in ("constant", "exponential")
    ]
    assert batches[1].parameters.batch > batches[0].parameters.batch

"""Pieces of Katyusha: batches, averages, constants, costs, and what is refused."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms import katyusha
from adfs.algorithms.base import MethodSetting
from adfs.algorithms.katyusha import MeanForm, make_batches
from adfs.errors import ParameterError
from adfs.kernels import katyusha as kernel
from adfs.schedule.delays import Delays
from oracles import katyusha as oracle
from support.problems import homogeneous_shards, make_case, make_shards

pytestmark = pytest.mark.uncompiled
FACTORIES = (katyusha.prepare, katyusha.prepare_loopless)


def setting(rule="theory", tau=5.0, **delays):
    return MethodSetting(rule, tau, "nonblocking", Delays(tau=tau, **delays), 0)


def draws(batches, node, n_rounds):
    rows = []
    for t in range(n_rounds):
        with np.errstate(over="ignore"):
            kernel.draw(t, node, batches)
        rows.extend(batches.drawn[: batches.sizes[node]].tolist())
    return np.array(rows)


# Batches.


def test_rows_are_drawn_as_often_as_importance_sampling_says():
    case = make_case("path:3", seed=2, sizes=[5, 7, 3])
    batches = make_batches(case.problem, 4, 0, "test")
    data = oracle.data_of(case.shards, case.problem.sigma, "logistic")
    for node in range(3):
        rows = draws(batches, node, 5000)
        assert len(rows) == 20_000
        for k in np.flatnonzero(data.owner == node):
            p = oracle.probability(data, k)
            deviation = math.sqrt(20_000 * p * (1.0 - p))
            assert abs(np.count_nonzero(rows == k) - 20_000 * p) <= 4.5 * deviation + 1e-9


def test_nodes_rounds_and_draws_are_independent():
    case = make_case("path:2", shards=homogeneous_shards(2, 2), sigma=1.0)
    batches = make_batches(case.problem, 3, 0, "test")
    flips = [2.0 * (draws(batches, node, 4000) - 2 * node) - 1.0 for node in range(2)]
    limit = 4.5 / math.sqrt(12_000)
    for first, second in ((0, 0), (0, 1), (1, 0), (1, 1)):
        for lag in range(1 if first == second else 0, 8):
            shifted = np.roll(flips[second], lag)
            assert abs(np.mean(flips[first] * shifted)) < limit


def test_dead_rows_are_never_drawn_and_weigh_nothing():
    shards = make_shards(3, "logistic", sizes=[4, 4, 2])
    shards[0][0][2] = 0.0
    shards[1][2][3] = 0.0
    shards[2][2][:] = 0.0
    problem = make_case("path:3", shards=shards).problem
    batches = make_batches(problem, 3, 0, "test")
    assert batches.sizes.tolist() == [3, 3, 0]
    assert set(draws(batches, 0, 3000).tolist()) == {0, 1, 3}
    assert set(draws(batches, 1, 3000).tolist()) == {4, 5, 6}
    assert batches.factors[[2, 7, 8, 9]].tolist() == [0.0] * 4
    mean = MeanForm(problem, setting())
    assert mean.n_samples == 6
    assert mean.lam == pytest.approx(problem.total_sigma / 6)
    assert mean.total_batch(3) == 6


def test_a_row_too_small_for_the_table_does_no_harm():
    shards = make_shards(1, "squared", sizes=[5])
    shards[0][0][0] *= 1e-160  # its L_ij is not even a normal number
    problem = make_case("single", "squared", shards=shards, sigma=0.1).problem
    assert np.isfinite(make_batches(problem, 1, 0, "test").factors).all()
    for factory in FACTORIES:
        method = factory(problem, setting())
        events = method.source.draw(0, int(30.0 / method.rho))
        state = method.algorithm.step(method.algorithm.init(), events)
        best = problem.optimum().theta
        np.testing.assert_allclose(method.algorithm.output(state)[0], best, atol=1e-6)


def test_a_batch_does_not_depend_on_other_nodes_or_on_their_data():
    shards = make_shards(4, "logistic", sizes=[3, 4, 5, 6])
    whole = make_batches(make_case("path:4", shards=shards).problem, 5, 7, "test")
    part = make_batches(make_case("path:2", shards=shards[:2]).problem, 5, 7, "test")
    for node in range(2):
        assert (draws(whole, node, 50) == draws(part, node, 50)).all()


# Averages and snapshots.


def vectors(n_features, n_samples=1):
    parts = [np.zeros(n_features) for _ in range(8)]
    parts.insert(5, np.zeros(n_samples))
    return kernel.Vectors(*parts[:8], mass=np.zeros(1))


@pytest.mark.parametrize("theta", [1.0, 1.01, 3.0])
def test_the_running_average_is_the_weighted_mean_of_the_text(theta):
    state = vectors(2)
    ys = np.random.default_rng(0).standard_normal((30, 2))
    for y in ys:
        state.y[:] = y
        kernel.average_in(1.0 / theta, state)
    expected = np.average(ys, axis=0, weights=theta ** np.arange(30.0))
    np.testing.assert_allclose(state.average, expected, rtol=1e-13)


def test_averages_do_not_overflow_where_powers_of_theta_do():
    state = vectors(1)
    for k in range(3000):
        state.y[:] = k % 2
        kernel.average_in(1.0 / 3.0, state)  # 3^3000 is no number
    np.testing.assert_allclose(state.average, 0.75, rtol=1e-12)  # 2/3 (1 + 1/9 + ...)


@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed_hinge"])
def test_the_snapshot_is_the_full_gradient(loss):
    case = make_case("path:3", loss)
    data = oracle.data_of(case.shards, case.problem.sigma, loss)
    w = np.random.default_rng(0).standard_normal(4)
    method = katyusha.prepare(case.problem, setting())
    state = method.algorithm.step(method.algorithm.init(w), method.source.draw(0, 1))
    np.testing.assert_allclose(state.gradient, oracle.gradient(data, w), atol=1e-14)
    np.testing.assert_array_equal(method.algorithm.output(state), np.tile(w, (3, 1)))


# Constants.


@pytest.mark.parametrize("tau", [0.0, 0.5, 5.0, 50.0])
@pytest.mark.parametrize("sigma", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("graph", ["single", "path:3", "grid:3x3"])
def test_theory_means_the_published_constants(graph, sigma, tau):
    n = adfs.Topology.parse(graph).n_nodes
    problem = make_case(graph, shards=homogeneous_shards(n, 12), sigma=sigma).problem
    rows = problem.rows.values
    lbar = 0.25 * np.mean(np.sum(rows**2, axis=1))
    lf = 0.25 * np.linalg.norm(rows, 2) ** 2 / len(rows)
    batch = min(12, 1 + round(problem.topology.diameter * tau))
    lam, total = sigma * n / len(rows), n * batch
    plan = katyusha.prepare(problem, setting(tau=tau)).parameters
    assert (plan.batch, plan.total_batch) == (batch, total)
    expected = oracle.published_katyusha(lam, lbar, lf, len(rows), total)
    assert (plan.every, plan.tau1, plan.tau2, plan.alpha) == pytest.approx(expected, rel=1e-9)
    plan = katyusha.prepare_loopless(problem, setting(tau=tau)).parameters
    expected = oracle.published_l_katyusha(lam, lbar / total, lf, total / len(rows))
    assert (plan.tau1, plan.tau2, plan.alpha) == pytest.approx(expected, rel=1e-9)
    assert plan.p == pytest.approx(total / len(rows))


def test_the_published_weights_are_proven_where_tau1_is_not_capped():
    # docs/algorithms/katyusha.md: t2 theta^mm + t3 theta <= 1 at theta = 1 + alpha lam.
    generator, uncapped, capped = np.random.default_rng(0), 0, 0
    for _ in range(2000):
        lf, lam = 10.0 ** generator.uniform([-3.0, -8.0], [0.0, 0.0])
        total = int(10.0 ** generator.uniform(0.0, 4.0))
        n_samples = int(total * 10.0 ** generator.uniform(0.0, 3.0))
        mm, tau1, tau2, alpha = oracle.published_katyusha(lam, 1.0, lf, n_samples, total)
        assert alpha * tau1 * (lf + 1.0 / (total * tau2)) <= 1.0 + 1e-12
        growth = 1.0 + alpha * lam
        rho = katyusha.loop_rate(tau1, tau2, growth, mm)
        assert 0.0 < rho <= 1.0 - 1.0 / growth
        cap = tau2 if lf <= mm / total else 0.5 / mm
        if tau1 < cap:
            uncapped += 1
            assert rho == pytest.approx(1.0 - 1.0 / growth, rel=1e-9)
        else:
            capped += rho < 0.9 * (1.0 - 1.0 / growth)
    assert uncapped > 300
    assert capped > 300  # so the smaller theta is needed


def loop_factor(tau1, tau2, theta, length):
    """What an epoch multiplies the energy with: the worse of its two parts."""
    left = 1.0 - (1.0 - tau1 - tau2) * theta
    return max(theta**-length, tau2 / left) if left > 0.0 else math.inf


def scanned_loop_rate(tau1, tau2, growth, length):
    """The best factor over a scan of theta, as a rate of one round."""
    thetas = np.exp(np.linspace(0.0, math.log(growth), 4001))[1:]
    best = min(loop_factor(tau1, tau2, theta, length) for theta in thetas)
    return 1.0 - best ** (1.0 / length)


def scanned_coin_rate(tau1, tau2, growth, p):
    """The largest rho of a scan for which weights c of the snapshot exist (docs, coin)."""
    best = 0.0
    for rho in np.linspace(0.0, min(p, 1.0 - 1.0 / growth), 4001)[:-1]:
        c = tau2 * (1.0 - p) / (p - rho)
        if (tau2 + c) * p + (1.0 - tau1 - tau2) <= (1.0 - rho) * (1.0 + 1e-14):
            best = rho
    return best


CONSTANTS = [(0.3, 0.4, 1.1), (0.02, 0.5, 1.001), (0.5, 0.5, 3.0), (0.1, 0.01, 1.3)]


@pytest.mark.parametrize(("tau1", "tau2", "growth"), CONSTANTS)
@pytest.mark.parametrize("length", [1, 2, 10, 300])
def test_rates_of_given_constants_are_those_of_a_scan(tau1, tau2, growth, length):
    found = katyusha.loop_rate(tau1, tau2, growth, length)
    assert found == pytest.approx(scanned_loop_rate(tau1, tau2, growth, length), rel=5e-3)
    found = katyusha.coin_rate(tau1, tau2, growth, 1.0 / length)
    expected = scanned_coin_rate(tau1, tau2, growth, 1.0 / length)
    assert found == pytest.approx(expected, rel=2e-2, abs=3e-4 / length)


@pytest.mark.parametrize("length", [1, 3, 40])
@pytest.mark.parametrize("variance", [0.003, 0.1, 1.0])
@pytest.mark.parametrize("lam", [1e-5, 1e-2, 1.0])
def test_no_other_constants_have_a_better_proven_rate(lam, variance, length):
    smoothness = 0.2
    loop = katyusha.fastest(
        lam,
        smoothness,
        np.array([variance]),
        np.array([float(length)]),
        katyusha.loop_surplus,
    )
    coin = katyusha.fastest(
        lam,
        smoothness,
        np.array([variance]),
        np.array([float(length)]),
        katyusha.coin_surplus,
    )
    best_loop = best_coin = 0.0
    for tau2 in np.geomspace(1e-4, 1.0, 25):
        for tau1 in np.geomspace(1e-4, 1.0, 50):
            if tau1 + tau2 > 1.0:
                continue
            growth = 1.0 + lam / (tau1 * (smoothness + variance / tau2))
            best_loop = max(best_loop, katyusha.loop_rate(tau1, tau2, growth, length))
            best_coin = max(best_coin, katyusha.coin_rate(tau1, tau2, growth, 1.0 / length))
    for found, best in ((loop, best_loop), (coin, best_coin)):
        rho = float(found.rho[0])
        assert best <= rho * (1.0 + 1e-9)
        assert best >= 0.7 * rho  # the grid comes near, so the rate is not overstated
        assert found.tau1[0] + found.tau2[0] <= 1.0 + 1e-12
    own = katyusha.loop_rate(
        loop.tau1[0], loop.tau2[0], 1.0 + loop.alpha[0] * lam, length
    )  # fmt: skip
    assert own == pytest.approx(loop.rho[0], rel=1e-6)
    own = katyusha.coin_rate(
        coin.tau1[0], coin.tau2[0], 1.0 + coin.alpha[0] * lam, 1.0 / length
    )  # fmt: skip
    assert own == pytest.approx(coin.rho[0], rel=1e-6)


def test_smoothness_of_the_mean_is_the_largest_eigenvalue_for_many_features_too():
    generator = np.random.default_rng(0)
    for n_features in (7, 620):
        dense = generator.standard_normal((40, n_features)) * (
            generator.random((40, n_features)) < 0.2
        )
        weights = generator.uniform(0.5, 2.0, 40)
        for convert in (np.asarray, sp.csr_matrix):
            shards = [
                (convert(dense[k : k + 20]), np.zeros(20), weights[k : k + 20]) for k in (0, 20)
            ]
            problem = adfs.Problem(shards, "squared", 1.0, adfs.Topology.path(2))
            expected = np.linalg.norm(np.sqrt(weights)[:, None] * dense, 2) ** 2
            found = problem.conditioning.whole_smoothness()
            assert expected * (1.0 - 1e-10) <= found <= expected * (1.0 + 1e-4)


# Time and messages.


def test_an_epoch_takes_the_time_of_the_paper():
    problem = make_case("grid:3x3", shards=homogeneous_shards(9, 50), sigma=0.1).problem
    method = katyusha.prepare(problem, setting(tau=5.0))
    plan = method.parameters
    assert (plan.batch, plan.every) == (21, 3)  # 1 + 4 * 5, ceil(450 / 189)
    events = method.source.draw(0, 8)
    method.clock.advance(events)
    assert method.clock.time == 2 * ((50 + 4 * 5.0) + 3 * (21 + 4 * 5.0))
    counts = method.algorithm.counts(events)
    assert counts.n_grad == 2 * (450 + 3 * 189)
    assert counts.n_comm == 8 * 2 * 8
    assert counts.bytes == counts.n_comm * 8 * 3
    assert counts.n_prox == 0


def test_a_round_with_a_coin_pays_for_the_gradient_and_for_the_round():
    problem = make_case("ring:5", shards=homogeneous_shards(5, 30), sigma=0.1).problem
    method = katyusha.prepare_loopless(problem, setting(tau=3.0, speed=(1.0, 1.0, 4.0, 1.0, 1.0)))
    assert method.parameters.batch == 7
    first = method.source.draw(0, 1)
    assert first.which.tolist() == [1]
    method.clock.advance(first)
    assert method.clock.time == 4.0 * (30 + 7) + 2 * 2 * 3.0
    assert method.algorithm.counts(first) == (0, 5 * 37, 2 * 2 * 4, 2 * 2 * 4 * 8 * 3)
    later = method.source.draw(1, 4001).which
    assert np.mean(later) == pytest.approx(method.parameters.p, abs=0.04)


@pytest.mark.parametrize("rule", ["theory", "tuned"])
@pytest.mark.parametrize("factory", FACTORIES)
def test_one_node_does_not_talk(factory, rule):
    problem = make_case("single", sizes=[6]).problem
    method = factory(problem, setting(rule))
    events = method.source.draw(0, 30)
    method.clock.advance(events)
    counts = method.algorithm.counts(events)
    assert (counts.n_comm, counts.bytes) == (0, 0)
    assert method.clock.time == counts.n_grad


def test_on_one_node_theory_is_the_original_katyusha():
    problem = make_case("single", sizes=[6]).problem
    plan = katyusha.prepare(problem, setting(tau=50.0)).parameters
    assert (plan.batch, plan.every, plan.tau2) == (1, 12, 0.5)


@pytest.mark.parametrize("factory", FACTORIES)
def test_slow_nodes_and_slow_edges_enter_the_tuned_choice(factory):
    problem = make_case("grid:3x3", shards=homogeneous_shards(9, 60), sigma=0.05).problem
    quick = factory(problem, setting("tuned", tau=5.0)).parameters
    far = factory(problem, setting("tuned", tau=100.0)).parameters
    slow = factory(problem, setting("tuned", tau=5.0, speed=[1.0] * 8 + [10.0])).parameters
    assert slow.batch < quick.batch < far.batch


@pytest.mark.parametrize("factory", FACTORIES)
def test_the_parameters_explain_themselves(factory):
    plan = factory(make_case("path:2").problem, setting("tuned")).parameters
    lines = str(plan).splitlines()
    assert lines[0] == f"{plan.name} parameters (tuned)"
    names = " ".join(line.split()[0] for line in lines[1:])
    assert names == "b B every lam L_f V tau1 tau2 alpha theta time"
    assert float(lines[-1].split()[1]) == pytest.approx(plan.time_per_efold, rel=1e-5)


@pytest.mark.parametrize("factory", FACTORIES)
def test_strong_regularisation_is_no_trouble(factory):
    problem = make_case("path:3", sigma=1e12).problem
    for rule in ("theory", "tuned"):
        method = factory(problem, setting(rule))
        assert 0.0 < method.rho < 1.0
        state = method.algorithm.step(method.algorithm.init(), method.source.draw(0, 200))
        best = problem.optimum().theta
        np.testing.assert_allclose(method.algorithm.output(state)[0], best, rtol=1e-6)


@pytest.mark.parametrize("factory", FACTORIES)
def test_what_does_not_apply_is_refused(factory):
    hinge = make_case("path:2", "hinge").problem
    with pytest.raises(ParameterError, match="needs a smooth loss and 'hinge' is not; choose"):
        factory(hinge, setting())
    problem = make_case("path:2").problem
    with pytest.raises(ParameterError, match=r"'projector' is not a rule of .*; choose one of the"):
        factory(problem, setting("projector"))

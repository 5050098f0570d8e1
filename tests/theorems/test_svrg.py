"""SVRG: the literal epochs, the inequality of one step, and the contraction of an epoch."""

import numpy as np
import pytest

import adfs
from adfs.plugins import prepare
from adfs_methods.svrg import best_epoch, contraction
from oracles import augmented, losses
from oracles import svrg as literal
from support.problems import make_case, make_shards, stored_as

LOSSES = ("logistic", "squared", "squared_hinge")


def joined(case):
    """Rows, labels and weights of all nodes."""
    return [np.concatenate(part) for part in zip(*case.shards, strict=True)]


def run_on(method, state, first, last):
    return method.algorithm.step(state, method.source.draw(first, last))


def epochs(method, n_epochs):
    """The rows drawn in each epoch, and the rounds that an epoch has."""
    kinds = method.source.draw(0, 10_000).which
    length = int(np.flatnonzero(kinds)[1])
    own = method.algorithm
    return [
        np.concatenate([own.sampler.draw(t, own.batch)[0]
                        for t in range(s * length + 1, (s + 1) * length)]).tolist()
        for s in range(n_epochs)
    ], length  # fmt: skip


def going_on(rows, labels, weights, S, x, step, places, p, keep, slope):
    """Rule ``free``: snapshots and last points of epochs that go on from the last point."""
    N = len(rows)
    w, found = x, []
    for drawn in places:
        at_w = weights * slope(rows @ w, labels)
        g, inner = at_w @ rows / N, []
        for j in drawn:
            inner.append(x)
            change = weights[j] * slope(rows[j] @ x, labels[j]) - at_w[j]
            x = x - step * (change * rows[j] / (N * p[j]) + g + S / N * x)
        share = keep ** np.arange(len(drawn) - 1, -1, -1)
        w = share @ np.array(inner) / share.sum()
        found.append((w, x))
    return found


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_snapshots_are_those_of_the_literal_text(loss, kind):
    case = make_case("ring:4", loss, seed=3, density=0.6)
    problem, start = stored_as(case, kind), np.random.default_rng(0).standard_normal(4)
    method = prepare(problem, "svrg", seed=5)
    own, state = method.algorithm, method.algorithm.init(start)
    places, length = epochs(method, 4)
    expected = literal.svrg(
        *joined(case), problem.total_sigma, start, own.step_size, places, own.sampler.p,
        lambda z, y: float(losses.derivative(loss, z, y)),
    )  # fmt: skip
    for s, w in enumerate(expected):
        state = run_on(method, state, s * length, s * length + 1)
        np.testing.assert_allclose(own.output(state), np.tile(w, (4, 1)), rtol=0, atol=1e-10)
        state = run_on(method, state, s * length + 1, (s + 1) * length)
    assert np.abs(expected[-1] - start).max() > 0.1


@pytest.mark.parametrize("loss", LOSSES)
def test_free_epochs_go_on_from_the_last_point(loss):
    case = make_case("ring:4", loss, seed=3, density=0.6)
    problem, start = case.problem, np.random.default_rng(0).standard_normal(4)
    method = prepare(problem, "svrg", rule="free", seed=5)
    own, state = method.algorithm, method.algorithm.init(start)
    places, length = epochs(method, 8)
    t = own.step_size * problem.total_sigma / problem.n_samples
    expected = going_on(
        *joined(case), problem.total_sigma, start, own.step_size, places, own.sampler.p,
        1 - 2 * t * (1 - t), lambda z, y: losses.derivative(loss, z, y),
    )  # fmt: skip
    state = run_on(method, state, 0, 1)
    for s, (w, x) in enumerate(expected):
        state = run_on(method, state, s * length + 1, (s + 1) * length)
        np.testing.assert_allclose(own.output(state), np.tile(x, (4, 1)), rtol=0, atol=1e-10)
        state = run_on(method, state, (s + 1) * length, (s + 1) * length + 1)
        np.testing.assert_allclose(state.theta[0], w, rtol=0, atol=1e-10)
        np.testing.assert_allclose(own.output(state)[0], x, rtol=0, atol=1e-10)


class Sum:
    """The mean of all f_j, in plain NumPy."""

    def __init__(self, case):
        self.rows, self.labels, self.weights = joined(case)
        self.loss, self.n = case.problem.loss.name, len(self.rows)
        self.mu = case.problem.total_sigma / self.n
        self.best = augmented.minimiser(case.shards, case.problem.sigma, self.loss)
        self.smoothness = augmented.smoothness(case.shards, self.loss)

    def gradients(self, x):
        slopes = losses.derivative(self.loss, self.rows @ x, self.labels, self.weights)
        return slopes[:, None] * self.rows

    def bregman(self, x):
        values = [losses.value(self.loss, self.rows @ at, self.labels, self.weights).mean()
                  for at in (x, self.best)]  # fmt: skip
        return values[0] - values[1] - self.gradients(self.best).mean(axis=0) @ (x - self.best)

    def error(self, x):
        return self.bregman(x) + 0.5 * self.mu * np.sum((x - self.best) ** 2)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_keeps_the_inequality_of_the_page(loss):
    """Exact means over the draws, anywhere, for steps up to the largest."""
    total, random = Sum(make_case("path:3", loss, seed=2)), np.random.default_rng(0)
    mean, p = total.smoothness.mean(), total.smoothness / total.smoothness.sum()
    closest = 0.0
    for eta in np.array([0.1, 0.5, 1.0]) * 0.5 / (mean + total.mu):
        t = eta * total.mu
        for sizes in random.exponential(1.0, (40, 2)) ** 3:
            x, w = total.best + sizes[:, None] * random.standard_normal((2, 4))
            at_w = total.gradients(w)
            steps = (total.gradients(x) - at_w) / (total.n * p[:, None]) + at_w.mean(axis=0)
            after = np.sum((x - eta * (steps + total.mu * x) - total.best) ** 2, axis=1)
            bound = (1 - 2 * t * (1 - t)) * np.sum((x - total.best) ** 2)
            bound -= 2 * eta * (1 - 2 * t) * total.bregman(x)
            bound += 4 * mean * eta**2 * total.bregman(w)
            assert p @ after <= bound * (1 + 1e-12)
            closest = max(closest, p @ after / bound)
    assert closest > 0.7


@pytest.mark.parametrize("rule", ["svrg", "free"])
def test_the_mean_error_contracts_by_alpha_per_epoch(rule):
    """The theorem is not sharp: runs are some times faster."""
    case = make_case("grid:2x2", "logistic", seed=8, sigma=0.1)
    total, found = Sum(case), []
    for seed in range(30):
        method = prepare(case.problem, "svrg", rule=rule, seed=seed)
        own, state = method.algorithm, method.algorithm.init()
        places, length = epochs(method, 1)
        q, alpha = contraction(
            own.step_size, len(places[0]), total.smoothness.mean(), total.mu, rule == "free"
        )
        t, m = own.step_size * total.mu, len(places[0])
        both = 2 * own.step_size * (1 - 2 * t) * (1 - q**m) / (1 - q)
        found.append([])
        for s in range(6):
            state = run_on(method, state, s * length, s * length + 1)
            w, x = state.theta[0], state.u
            energy = np.sum((x - total.best) ** 2) + both * total.bregman(w)
            found[-1].append(energy if rule == "free" else total.error(w))
            state = run_on(method, state, s * length + 1, (s + 1) * length)
    mean = np.mean(found, axis=0)
    assert np.all(mean[1:] <= mean[0] * alpha ** np.arange(1, 6))
    assert method.rho == pytest.approx(1 - alpha ** (1 / length), rel=1e-9)
    assert alpha < 0.9
    assert method.proven


def test_no_other_epoch_takes_less_work_per_factor_e():
    for smoothness, ridge, work in ((1.0, 1e-4, 100.0), (2.0, 1e-2, 1e5), (1.0, 0.5, 10.0)):
        step, length = best_epoch(smoothness, ridge, work, False)
        gain = {}
        for a in (0.8, 1.0, 1.25):
            for b in (0.8, 1.0, 1.25):
                m = max(1, int(b * length))
                _, alpha = contraction(a * step, m, smoothness, ridge, False)
                gain[a, b] = -np.log(alpha) / (work + m)
        assert gain[1.0, 1.0] > 0.0
        assert max(gain.values()) <= 1.05 * gain[1.0, 1.0]


def test_the_published_theorem_needs_ten_times_the_work():
    """Little work in a full gradient; its best step and length, with the same L."""
    L, mu = 1.0, 1e-4
    eta = np.geomspace(1e-3, 0.24, 300)[:, None]
    m = np.geomspace(1.0, 1000.0, 300) / mu
    published = 1 / (mu * eta * (1 - 2 * L * eta) * m) + 2 * L * eta / (1 - 2 * L * eta)
    theirs = np.max(np.where(published < 1, -np.log(published), 0.0) / m)
    step, length = best_epoch(L, mu, 1.0, False)
    ours = -np.log(contraction(step, length, L, mu, False)[1]) / length
    step, length = best_epoch(L, mu, 100.0, True)
    free = -np.log(contraction(step, length, L, mu, True)[1]) / (100.0 + length)
    assert ours > 9 * theirs
    assert free > 3 * ours


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("rule", ["svrg", "free"])
def test_rows_of_zeros_do_no_harm(rule, kind):
    shards = make_shards(4, "logistic", seed=5, sizes=[3, 4, 4, 5], dead=True)
    problem = stored_as(make_case("ring:4", "logistic", shards=shards), kind)
    method = prepare(problem, "svrg", rule=rule)
    state = run_on(method, method.algorithm.init(), 0, int(50 / method.rho))
    found = method.algorithm.output(state)
    np.testing.assert_allclose(found[0], problem.optimum().theta, rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", ["svrg", "free"])
def test_an_epoch_that_no_run_ends_is_refused(rule):
    X, y = np.array([[6e8, 0.0], [1.0, 1.0]]), np.array([0.0, 1.0])
    problem = adfs.Problem([(X, y)], sigma=1e-9)
    with pytest.raises(adfs.ParameterError, match=r"more than 1,000,000 passes .* Scale the col"):
        prepare(problem, "svrg", rule=rule)

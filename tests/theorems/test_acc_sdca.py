"""Accelerated SDCA: the literal stages, what moves a stage's dual error, and the bound proven."""

import math

import numpy as np
import pytest

from adfs.plugins import prepare
from adfs_methods.acc_sdca import SHARE
from oracles import acc_sdca as literal
from oracles import augmented, losses
from support.problems import make_case, make_problem, make_shards, stored_as

LOSSES = ("logistic", "squared", "squared_hinge")


def joined(case):
    """Rows, labels and weights of all nodes."""
    return [np.concatenate(part) for part in zip(*case.shards, strict=True)]


def run_on(method, state, first, last):
    return method.algorithm.step(state, method.source.draw(first, last))


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("passes", [0.3, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_stage_is_that_of_the_literal_text(loss, passes, kind):
    case = make_case("ring:4", loss, seed=3, density=0.6, sigma=0.05)
    problem = stored_as(case, kind)
    method = prepare(problem, "acc-sdca", rule=f"passes={passes}", seed=5)
    own, state = method.algorithm, method.algorithm.init()
    length = int(np.flatnonzero(method.source.draw(0, 100).which)[0]) + 1
    places = [
        np.concatenate([own.sampler.draw(t, own.batch)[0]
                        for t in range(s * length, (s + 1) * length)]).tolist()
        for s in range(15)
    ]  # fmt: skip
    S, K = problem.total_sigma, own.strong * own.pull
    smoothness = augmented.smoothness(case.shards, loss)
    assert own.strong == pytest.approx(smoothness.mean(), rel=1e-9)
    expected, duals = literal.acc_sdca(*joined(case), S, K, own.beta, places, loss)
    for s, x in enumerate(expected):
        np.testing.assert_allclose(own.output(state), np.tile(x, (4, 1)), rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.duals, duals[s], rtol=0, atol=1e-10)
        state = run_on(method, state, s * length, (s + 1) * length)
    assert np.abs(expected[-1]).max() > 0.1


class Stage:
    """``F(x) + K/2 |x - y|^2`` and its dual, in plain NumPy."""

    def __init__(self, case, K, y):
        self.rows, self.labels, self.weights = joined(case)
        self.loss, self.S, self.K, self.y = case.problem.loss.name, case.problem.total_sigma, K, y
        self.best = self._minimiser(case)
        at_best = losses.derivative(self.loss, self.rows @ self.best, self.labels, self.weights)
        self.most = self.dual(at_best)

    def _minimiser(self, case):
        """By Newton's method; the loss is squared."""
        assert self.loss == "squared"
        weighted = self.rows * self.weights[:, None]
        matrix = weighted.T @ self.rows + (self.S + self.K) * np.eye(len(self.y))
        return np.linalg.solve(matrix, weighted.T @ self.labels + self.K * self.y)

    def point(self, duals):
        return (self.K * self.y - duals @ self.rows) / (self.S + self.K)

    def dual(self, duals):
        u = self.point(duals)
        conjugates = sum(
            float(losses.conjugate(self.loss, c, label, weight))
            for c, label, weight in zip(duals, self.labels, self.weights, strict=True)
        )
        ridge = 0.5 * self.S * u @ u + 0.5 * self.K * (u - self.y) @ (u - self.y)
        return duals @ (self.rows @ u) + ridge - conjugates

    def error(self, duals):
        return self.most - self.dual(duals)


def test_the_dual_error_of_the_next_stage_is_bounded_as_on_the_page():
    case, random = make_case("path:3", "squared", seed=2), np.random.default_rng(0)
    shares = []
    for K in (0.1, 1.0, 30.0):
        for size in (0.01, 1.0, 10.0) * 5:
            y = random.standard_normal(4)
            stage = Stage(case, K, y)
            at = stage.best + size * random.standard_normal(4)
            duals = losses.derivative("squared", stage.rows @ at, stage.labels, stage.weights)
            d = random.standard_normal(4) * random.exponential(1.0)
            moved = Stage(case, K, y + d)
            root = math.sqrt(max(0.0, stage.error(duals)))
            bound = root + K * np.linalg.norm(d) / math.sqrt(2 * (stage.S + K))
            shares.append(math.sqrt(moved.error(duals)) / bound)
    assert 0.9 < max(shares) <= 1.0 + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_the_error_after_stages_keeps_the_bound_of_the_theorem(loss):
    """Not sharp: its constants are large."""
    case = make_case("grid:2x2", loss, seed=8, sigma=0.05)
    problem, best, errors = case.problem, case.problem.optimum(), []
    for seed in range(5):
        method = prepare(problem, "acc-sdca", rule="theory", seed=seed)
        state = method.algorithm.init()
        length = int(np.flatnonzero(method.source.draw(0, 1000).which)[0]) + 1
        errors.append([])
        for s in range(8):
            x = method.algorithm.output(state)[0]
            errors[-1].append(problem.objective(x) - best.objective)
            state = run_on(method, state, s * length, (s + 1) * length)
    root = math.sqrt(problem.total_sigma / method.algorithm.strong)
    assert root < 0.5
    r = SHARE * root
    mean, t = np.mean(errors, axis=0), np.arange(8)
    assert np.all(mean <= 8 / (root - r) ** 2 * (1 - r) ** (t + 1) * mean[0] + 1e-12)
    assert np.all(mean[1:] <= mean[0] * (1 - method.rho) ** (length * t[1:]))
    assert method.proven
    assert not prepare(problem, "acc-sdca").proven


def test_momentum_pays_where_the_ridge_is_small():
    """Passes to 1e-6 of the first error, where 1 / sigma grows by 100."""
    passes = {}
    for sigma in (1e-2, 1e-4):
        problem = make_problem("logistic", 4, sigma, n_samples=200, n_features=10, scales=(0.1, 1))
        best = problem.optimum().objective
        for name in ("sdca", "acc-sdca"):
            method = prepare(problem, name, seed=2)
            state, t = method.algorithm.init(), 0
            first = problem.objective(np.zeros(10)) - best
            while problem.objective(method.algorithm.output(state)[0]) - best > 1e-6 * first:
                state, t = run_on(method, state, t, t + 10), t + 10
                assert t < 50_000
            passes[name, sigma] = t
    assert passes["sdca", 1e-4] > 4 * passes["acc-sdca", 1e-4]
    assert passes["acc-sdca", 1e-4] < 15 * passes["acc-sdca", 1e-2]


def test_with_a_large_ridge_it_is_sdca():
    problem = make_case("ring:4", "logistic", seed=3, sigma=50.0).problem
    method = prepare(problem, "acc-sdca")
    assert method.algorithm.beta == method.algorithm.pull == 0.0
    assert method.proven
    assert method.rho == pytest.approx(prepare(problem, "sdca").rho, rel=1e-9)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_rows_of_zeros_do_no_harm(kind):
    shards = make_shards(4, "logistic", seed=5, sizes=[3, 4, 4, 5], dead=True)
    problem = stored_as(make_case("ring:4", "logistic", shards=shards), kind)
    method = prepare(problem, "acc-sdca")
    state = run_on(method, method.algorithm.init(), 0, int(80 / method.rho))
    found = method.algorithm.output(state)
    np.testing.assert_allclose(found[0], problem.optimum().theta, rtol=0, atol=1e-8)

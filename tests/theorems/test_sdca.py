"""SDCA: exact maximisation of the dual over one coefficient, and the rate of its theorem."""

import numpy as np
import pytest

from adfs.plugins import prepare
from oracles import augmented, losses
from oracles import sdca as literal
from support.problems import make_case, make_shards, stored_as

LOSSES = ("logistic", "squared", "squared_hinge", "smoothed_hinge", "huber")


def joined(case):
    """Rows, labels and weights of all nodes."""
    return [np.concatenate(part) for part in zip(*case.shards, strict=True)]


def run_on(method, state, first, last):
    return method.algorithm.step(state, method.source.draw(first, last))


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_step_is_that_of_the_literal_text(loss, kind):
    case = make_case("ring:4", loss, seed=3, density=0.6)
    problem = stored_as(case, kind)
    method = prepare(problem, "sdca", rule="batch=1", seed=5)
    own, state = method.algorithm, method.algorithm.init()
    places = [int(own.sampler.draw(t)[0, 0]) for t in range(80)]
    iterates, duals = literal.sdca(*joined(case), problem.total_sigma, places, loss)
    for t, x in enumerate(iterates):
        np.testing.assert_allclose(own.output(state), np.tile(x, (4, 1)), rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.duals, duals[t], rtol=0, atol=1e-10)
        state = run_on(method, state, t, t + 1)
    assert np.abs(iterates[-1]).max() > 0.1


class Dual:
    """The dual's error, and its exact mean after one step."""

    def __init__(self, case):
        self.own = prepare(case.problem, "sdca", seed=1).algorithm
        self.samples, self.S = joined(case), case.problem.total_sigma
        self.loss, self.p = case.problem.loss.name, self.own.sampler.p
        smoothness = augmented.smoothness(case.shards, self.loss)
        self.rho = 1.0 / np.sum(1.0 + smoothness / self.S)
        self.shares = self.p / (1.0 + smoothness / self.S)
        best = augmented.minimiser(case.shards, case.problem.sigma, self.loss)
        rows, labels, weights = self.samples
        self.best = losses.derivative(self.loss, rows @ best, labels, weights)
        self.most = self.value(self.best)

    def value(self, duals):
        return literal.dual(self.loss, *self.samples, self.S, duals)

    def error(self, duals):
        return self.most - self.value(duals)

    def mean_after(self, duals):
        total = 0.0
        for j, p in enumerate(self.p):
            new, x = duals.copy(), -(duals @ self.samples[0])[None] / self.S
            self.own.nodes.coordinate_steps(x, new, np.array([[j]]), np.array([1.0 / self.S]))
            total += p * self.error(new)
        return total


@pytest.mark.parametrize("loss", LOSSES)
def test_the_exact_mean_of_the_dual_error_contracts_from_anywhere(loss):
    dual, random = Dual(make_case("path:3", loss, seed=2)), np.random.default_rng(0)
    np.testing.assert_allclose(dual.shares, dual.rho, rtol=1e-9)  # no draws promise more
    rows, labels, weights = dual.samples
    for size in (0.1, 1.0, 10.0) * 5:
        duals = losses.derivative(loss, rows @ (size * random.standard_normal(4)), labels, weights)
        for start in (duals, 0.5 * (duals + dual.best)):
            assert dual.mean_after(start) <= dual.error(start) * (1.0 - dual.rho) * (1.0 + 1e-9)


def test_no_rate_that_is_ten_percent_larger_holds():
    """Orthogonal rows, and a ridge that outweighs them: a step ends one sample's error."""
    shards = [(np.eye(6)[:3], np.ones(3), np.ones(3)), (np.eye(6)[3:], -np.ones(3), np.ones(3))]
    dual = Dual(make_case("path:2", "squared", shards=shards, sigma=np.array([20.0, 20.0])))
    start = dual.best + 0.1
    ratio = dual.mean_after(start) / dual.error(start)
    assert 1.0 - 1.1 * dual.rho < ratio <= 1.0 - dual.rho


def test_mean_error_along_runs_stays_under_the_proven_rate():
    case = make_case("grid:2x2", "logistic", seed=8, sigma=0.1)
    dual, errors, distances = Dual(case), [], []
    for seed in range(20):
        method = prepare(case.problem, "sdca", seed=seed)
        state, best = method.algorithm.init(), case.problem.optimum().theta
        errors.append([])
        distances.append([])
        for t in range(15):
            errors[-1].append(dual.error(state.duals))
            distances[-1].append(np.sum((method.algorithm.output(state)[0] - best) ** 2))
            state = run_on(method, state, t, t + 1)
    mean, bound = np.mean(errors, axis=0), errors[0][0] * (1.0 - method.rho) ** np.arange(15)
    assert np.all(mean <= bound * (1.0 + 1e-12))
    assert np.all(np.array(distances) <= 2.0 * np.array(errors) / dual.S + 1e-15)
    n = len(dual.p)
    assert method.rho == pytest.approx(1 - (1 - dual.rho) ** n, rel=1e-9)
    assert method.proven


def test_a_model_to_start_from_gives_its_slopes():
    case = make_case("ring:4", "logistic", seed=3)
    best, method = case.problem.optimum(), prepare(case.problem, "sdca")
    found = method.algorithm.output(method.algorithm.init(best.theta))
    np.testing.assert_allclose(found, np.tile(best.theta, (4, 1)), rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_rows_of_zeros_do_no_harm(kind):
    shards = make_shards(4, "logistic", seed=5, sizes=[3, 4, 4, 5], dead=True)
    problem = stored_as(make_case("ring:4", "logistic", shards=shards), kind)
    method = prepare(problem, "sdca")
    state = run_on(method, method.algorithm.init(), 0, int(50 / method.rho))
    found = method.algorithm.output(state)
    np.testing.assert_allclose(found[0], problem.optimum().theta, rtol=0, atol=1e-8)

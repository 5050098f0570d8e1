"""CoLA and CoCoA+: the literal rounds, and the rate that their page proves."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from adfs.plugins import prepare
from adfs_methods.cola import common_rate
from oracles import augmented, losses
from oracles import cola as literal
from oracles.sdca import dual
from support.problems import make_case, make_shards, stored_as

LOSSES = ("logistic", "squared", "squared_hinge", "smoothed_hinge", "huber")


def run_on(method, state, first, last):
    return method.algorithm.step(state, method.source.draw(first, last))


def split(problem, values):
    return np.split(values, problem.offsets[1:-1])


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("name", "graph"), [("cola", "star:4"), ("cocoa", "ring:4")])
def test_every_round_is_that_of_the_literal_text(name, graph, loss, kind):
    case = make_case(graph, loss, seed=3, density=0.6)
    problem = stored_as(case, kind)
    method = prepare(problem, name, rule="passes=1.5", seed=5)
    own, state = method.algorithm, method.algorithm.init()
    assert own.local_steps == round(1.5 * problem.sizes.max())
    places = [own.sampler.draw(t, own.local_steps) - problem.offsets[:-1, None] for t in range(20)]
    samples = list(zip(*case.shards, strict=True))
    mixing = [own.mix.weights.matrix.toarray()] * (name == "cola")
    expected, duals = getattr(literal, name)(
        *samples, problem.total_sigma, *mixing, places, loss
    )  # fmt: skip
    for t, X in enumerate(expected):
        np.testing.assert_allclose(own.output(state), X, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.duals, np.concatenate(duals[t]), rtol=0, atol=1e-10)
        state = run_on(method, state, t, t + 1)
    assert np.abs(expected[-1]).max() > 0.1


class Energy:
    """``D* - D(c) + S/(2n) sum_i |X_i - x(c)|^2``, and its exact mean after a round."""

    def __init__(self, case, name, rule="tuned"):
        problem = case.problem
        self.method = prepare(problem, name, rule=rule, seed=1)
        self.own, self.problem, self.rho = self.method.algorithm, problem, self.method.rho
        self.samples = [np.concatenate(part) for part in zip(*case.shards, strict=True)]
        self.loss, self.S, self.n = problem.loss.name, problem.total_sigma, problem.n_nodes
        self.p = self.own.sampler.p
        best = augmented.minimiser(case.shards, problem.sigma, self.loss)
        rows, labels, weights = self.samples
        self.best = losses.derivative(self.loss, rows @ best, labels, weights)
        self.most = self.dual(self.best)

    def dual(self, duals):
        return dual(self.loss, *self.samples, self.S, duals)

    def model(self, duals):
        return -(duals @ self.samples[0]) / self.S

    def __call__(self, X, duals):
        apart = np.sum((X - self.model(duals)) ** 2)
        return self.most - self.dual(duals) + self.S / (2 * self.n) * apart

    def mean_after(self, X, duals):
        total, sizes = 0.0, np.diff(self.problem.offsets)
        for drawn in itertools.product(*map(range, sizes)):
            places = (self.problem.offsets[:-1] + drawn)[:, None]
            self.own.sampler = SimpleNamespace(draw=lambda t, batch, places=places: places)
            state = self.own.start(np.zeros_like(X))
            state.theta[:], state.duals[:] = X, duals
            self.own.round(state, 0, 0)
            total += math.prod(self.p[places[:, 0]]) * self(state.theta, state.duals)
        return total


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("name", "graph"), [("cola", "path:3"), ("cola", "path:2"),
                                             ("cocoa", "path:3")])  # fmt: skip
def test_the_exact_mean_contracts_from_anywhere(name, graph, loss):
    """With one step at every node, over all draws."""
    case = make_case(graph, loss, seed=2)
    energy, random = Energy(case, name, "passes=0.1"), np.random.default_rng(0)
    assert energy.own.local_steps == 1
    rows, labels, weights = energy.samples
    for size in (0.1, 1.0, 10.0):
        at = size * random.standard_normal(4)
        duals = losses.derivative(loss, rows @ at, labels, weights)
        for start in (duals, energy.best, 0.5 * (duals + energy.best)):
            apart = size * random.standard_normal((energy.n, 4)) * (name == "cola")
            for X in (0.0, apart - apart.mean(axis=0)):
                state = energy.model(start) + X + np.zeros((energy.n, 4)), start
                if energy(*state) > 1e-12:
                    after = energy.mean_after(*state)
                    assert after <= energy(*state) * (1.0 - energy.rho) * (1.0 + 1e-9)


@pytest.mark.parametrize("name", ["cola", "cocoa"])
def test_mean_error_along_runs_stays_under_the_proven_rate(name):
    """Not sharp: what local steps gain is bounded as if their directions were the worst."""
    case, found = make_case("grid:2x2", "logistic", seed=8), []
    energy = Energy(case, name)
    n_rounds = int(6 / energy.rho)
    every = n_rounds // 10
    for seed in range(8):
        method = prepare(case.problem, name, seed=seed)
        state, values = method.algorithm.init(), []
        for t in range(0, n_rounds, every):
            values.append(energy(state.theta, state.duals))
            state = run_on(method, state, t, t + every)
        found.append(values)
    mean, times = np.mean(found, axis=0), every * np.arange(len(found[0]))
    assert np.all(mean <= mean[0] * (1.0 - energy.rho) ** times * (1.0 + 1e-12))
    assert method.proven


@pytest.mark.parametrize("name", ["cola", "cocoa"])
def test_the_mean_of_the_points_is_the_model_of_the_duals(name):
    case = make_case("star:5", "logistic", seed=3)
    energy = Energy(case, name)
    for theta in (None, np.ones(4)):
        state = run_on(energy.method, energy.own.init(theta), 0, 40)
        model = energy.model(state.duals)
        np.testing.assert_allclose(state.theta.mean(axis=0), model, rtol=0, atol=1e-12)


def test_the_rate_is_the_best_that_the_page_allows():
    for local, beta, k in itertools.product((0.5, 1e-3), (0.9, 0.1, 0.0), (1.0, 100.0)):
        e = np.geomspace(1e-6, 1e6, 20_001)
        network = (1 - beta**2) / (1 + beta**2 * (1 + 1 / e) * k)
        best = np.minimum(local / (1 + e), network).max()
        assert common_rate(local, beta, k) == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize("name", ["cola", "cocoa"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_rows_of_zeros_and_a_node_of_nothing_else_do_no_harm(name, kind):
    shards = make_shards(4, "logistic", seed=5, sizes=[3, 4, 4, 5], dead=True)
    shards[0][0][:] = 0.0
    problem = stored_as(make_case("ring:4", "logistic", shards=shards), kind)
    method = prepare(problem, name)
    state = run_on(method, method.algorithm.init(), 0, int(50 / method.rho))
    found = method.algorithm.output(state)
    np.testing.assert_allclose(found, np.tile(problem.optimum().theta, (4, 1)), rtol=0, atol=1e-8)

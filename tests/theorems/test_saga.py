"""SAGA and SAG on one machine: the literal steps, and the rate that SAGA is proven to have."""

import numpy as np
import pytest

from adfs.plugins import prepare
from adfs_methods.saga import best_step, run
from oracles import augmented, losses
from oracles import saga as literal
from support.problems import make_case, make_shards, stored_as

LOSSES = ("logistic", "squared", "squared_hinge")


def joined(case):
    """Rows, labels and weights of all nodes."""
    return [np.concatenate(part) for part in zip(*case.shards, strict=True)]


def run_on(method, state, first, last):
    return method.algorithm.step(state, method.source.draw(first, last))


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("rule", ["saga", "sag"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_step_is_that_of_the_literal_text(loss, rule, kind):
    case = make_case("ring:4", loss, seed=3, density=0.6)
    problem, start = stored_as(case, kind), np.random.default_rng(0).standard_normal(4)
    method = prepare(problem, "saga", rule=f"{rule},batch=1", seed=5)
    own, state = method.algorithm, method.algorithm.init(start)
    places = [int(own.sampler.draw(t)[0, 0]) for t in range(80)]
    step, draws = own.step_size, [own.sampler.p] * (rule == "saga")
    expected = getattr(literal, rule)(
        *joined(case), problem.total_sigma, start, step, places, *draws,
        lambda z, y: float(losses.derivative(loss, z, y)),
    )  # fmt: skip
    for t, x in enumerate(expected):
        np.testing.assert_allclose(own.output(state), np.tile(x, (4, 1)), rtol=0, atol=1e-11)
        state = run_on(method, state, t, t + 1)
    assert np.abs(expected[-1] - start).max() > 0.03


class Energy:
    """``V`` and its exact mean after one step, from the theorem's page."""

    def __init__(self, case):
        self.method = prepare(case.problem, "saga", seed=1)
        self.own = self.method.algorithm
        self.rows, self.labels, self.weights = joined(case)
        self.loss, self.p, self.n = case.problem.loss.name, self.own.sampler.p, len(self.rows)
        self.eta, self.mu = self.own.step_size, case.problem.total_sigma / self.n
        self.smoothness = augmented.smoothness(case.shards, self.loss)
        self.rho = 2 * self.eta * self.mu * (1 - self.eta * self.mu)
        self.best = augmented.minimiser(case.shards, case.problem.sigma, self.loss)
        self.duals = self.slopes(self.best)
        self.a = 2 * self.eta**2 / (self.n**2 * self.p * (self.p - self.rho))

    def slopes(self, x):
        return losses.derivative(self.loss, self.rows @ x, self.labels, self.weights)

    def __call__(self, x, table):
        distances = (table - self.duals) ** 2 * np.sum(self.rows**2, axis=1)
        return np.sum((x - self.best) ** 2) + self.a @ distances

    def mean_after(self, x, table):
        total = 0.0
        for j, p in enumerate(self.p):
            new, u, scales = table.copy(), x.copy(), np.array([1.0, 0.0])
            mean = table @ self.rows / self.n
            run(
                *self.own.problem.samples, np.array([j]), self.own.boost, self.eta, self.mu, new,
                u, mean, scales,
            )  # fmt: skip
            total += p * self(scales[0] * u + scales[1] * mean, new)
        return total


@pytest.mark.parametrize("loss", LOSSES)
def test_the_exact_mean_of_v_contracts_from_anywhere(loss):
    energy, random = Energy(make_case("path:3", loss, seed=2)), np.random.default_rng(0)
    ratios = []
    for size in (0.01, 0.1, 1.0, 10.0):
        for _ in range(10):
            x = energy.best + size * random.standard_normal(4)
            table = energy.slopes(energy.best + size * random.standard_normal(4))
            ratios += [energy.mean_after(*at) / energy(*at)
                       for at in ((x, table), (x, energy.duals), (energy.best, table))]  # fmt: skip
    assert max(ratios) <= (1.0 - energy.rho) * (1.0 + 1e-9)


def test_no_rate_that_is_ten_percent_larger_holds():
    """A direction that no sample sees has the ridge alone: the iterate's part of V is tight."""
    case = make_case("path:3", "squared", seed=2, n_features=12)
    energy = Energy(case)
    unseen = np.linalg.svd(energy.rows)[2][-1]
    ratio = energy.mean_after(energy.best + unseen, energy.duals) / energy(
        energy.best + unseen, energy.duals
    )
    assert np.abs(energy.rows @ unseen).max() < 1e-9
    assert 1.0 - 1.1 * energy.rho < ratio <= 1.0 - energy.rho + 1e-12


@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 1.0, 100.0])
def test_the_step_is_the_largest_that_the_theorem_allows(ridge):
    smoothness = np.random.default_rng(0).exponential(1.0, 30)
    step, p, rho = best_step(smoothness, ridge)
    n, mu = 30, ridge / 30
    assert p.sum() == pytest.approx(1.0, rel=1e-12)
    assert rho == pytest.approx(2 * step * mu * (1 - step * mu), rel=1e-9)
    sides = step * smoothness / n * (1 / p + 1 / (p - rho)), 1 - 2 * step * mu
    np.testing.assert_allclose(*sides, rtol=1e-6)  # equal: no p_j could be less
    published = min(1 / (4 * n), mu / (3 * (smoothness.max() + mu)))
    assert rho > 1.5 * published
    if ridge < 1e-3:
        assert step == pytest.approx(0.5 / smoothness.mean(), rel=1e-2)


def test_mean_error_along_runs_stays_under_the_proven_rate():
    case = make_case("grid:2x2", "logistic", seed=8, sigma=0.1)
    errors, energy = [], Energy(case)
    for seed in range(20):
        method = prepare(case.problem, "saga", seed=seed)
        state = method.algorithm.init()
        if seed == 0:
            first = energy(np.zeros(4), state.table)
        errors.append([])
        for t in range(20):
            x = method.algorithm.output(state)[0]
            errors[-1].append(np.sum((x - energy.best) ** 2))
            state = run_on(method, state, t, t + 1)
    mean, times = np.mean(errors, axis=0), np.arange(20)
    assert method.rho == pytest.approx(1 - (1 - energy.rho) ** energy.n, rel=1e-9)
    assert np.all(mean <= first * (1.0 - method.rho) ** times)
    assert method.proven
    assert not prepare(case.problem, "saga", rule="sag").proven


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_rows_of_zeros_do_no_harm(kind):
    shards = make_shards(4, "logistic", seed=5, sizes=[3, 4, 4, 5], dead=True)
    problem = stored_as(make_case("ring:4", "logistic", shards=shards), kind)
    method = prepare(problem, "saga")
    state = run_on(method, method.algorithm.init(), 0, int(50 / method.rho))
    found = method.algorithm.output(state)
    np.testing.assert_allclose(found[0], problem.optimum().theta, rtol=0, atol=1e-8)

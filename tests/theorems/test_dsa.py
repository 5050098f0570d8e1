"""DSA: EXTRA with SAGA's estimates, summed up; it contracts as its page proves."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

import adfs
from adfs.plugins import prepare
from oracles import augmented, losses
from oracles import dsa as literal
from support.problems import make_case, make_shards, stored_as

LOSSES = ("logistic", "squared", "squared_hinge")
CASES = [("grid:2x2", "logistic"), ("ring:5", "squared"), ("star:4", "squared_hinge"),
         ("complete:3", "huber"), ("single", "logistic")]  # fmt: skip


def run_on(method, state, first, last):
    return method.algorithm.step(state, method.source.draw(first, last))


def split(problem, values):
    return np.split(values, problem.offsets[1:-1])


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize(("graph", "loss"), CASES)
def test_every_round_is_that_of_the_literal_text(graph, loss, kind):
    case = make_case(graph, loss, seed=4, density=0.6)
    problem, start = stored_as(case, kind), np.random.default_rng(1).standard_normal(4)
    method = prepare(problem, "dsa", seed=7)
    own, n = method.algorithm, problem.n_nodes
    places = [own.sampler.draw(t)[:, 0] - problem.offsets[:-1] for t in range(60)]
    expected = literal.dsa(
        *zip(*case.shards, strict=True), problem.sigma, own.mix.weights.matrix.toarray(),
        np.tile(start, (n, 1)), own.step_size, places, split(problem, own.sampler.p),
        lambda z, y: float(losses.derivative(loss, z, y)),
    )  # fmt: skip
    state = own.init(start)
    for t, X in enumerate(expected):
        np.testing.assert_allclose(own.output(state), X, rtol=0, atol=1e-11)
        state = run_on(method, state, t, t + 1)
    assert np.abs(expected[-1] - start).max() > 0.05


class Energy:
    """``E`` of the page, and its exact mean after one round."""

    def __init__(self, case):
        problem = case.problem
        self.method = prepare(problem, "dsa", seed=1)
        self.own, self.problem, self.shards = self.method.algorithm, problem, case.shards
        self.rho, self.a = self.method.rho, self.own.step_size
        self.p, self.loss = self.own.sampler.p, problem.loss.name
        values, vectors = np.linalg.eigh(
            (np.eye(problem.n_nodes) - self.own.mix.weights.matrix.toarray()) / 2
        )
        self.u = vectors @ np.diag(np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        self.v = np.eye(problem.n_nodes) - self.u @ self.u
        best = augmented.minimiser(case.shards, problem.sigma, self.loss)
        self.x = np.tile(best, (problem.n_nodes, 1))
        self.table = self.slopes(self.x)
        sums = [c @ rows for c, (rows, *_) in zip(
            split(problem, self.table), case.shards, strict=True)]  # fmt: skip
        self.q = np.linalg.pinv(self.u, rcond=1e-9) @ (
            -self.a * (problem.sigma[:, None] * self.x + np.array(sums))
        )

    def slopes(self, x):
        return np.concatenate([
            losses.derivative(self.loss, rows @ at, labels, weights)
            for (rows, labels, weights), at in zip(self.shards, x, strict=True)
        ])  # fmt: skip

    def __call__(self, x, q, table):
        norms = np.concatenate([np.sum(rows**2, axis=1) for rows, *_ in self.shards])
        share = 2 * self.a**2 / (self.p * (self.p - self.rho))
        e = x - self.x
        return (
            np.sum(e * (self.v @ e)) + np.sum((q - self.q) ** 2)
            + share * (table - self.table) ** 2 @ norms
        )  # fmt: skip

    def mean_after(self, x, q, table):
        """Over all draws of all nodes; ``q`` holds ``x`` already."""
        total = 0.0
        sizes = np.diff(self.problem.offsets)
        for drawn in itertools.product(*map(range, sizes)):
            places = (self.problem.offsets[:-1] + drawn)[:, None]
            self.own.sampler = SimpleNamespace(p=self.p, draw=lambda t, places=places: places)
            state = self.own.start(x.copy())
            state.table[:] = table
            state.total = self.own.nodes.row_sums(state.table)
            state.pull = self.u @ q - self.u @ (self.u @ x)
            self.own.round(state, 0, 0)
            after = self(state.theta, q + self.u @ state.theta, state.table)
            total += math.prod(self.p[places[:, 0]]) * after
        return total


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("graph", "ridge"),
    [("path:2", 1.0), ("ring:3", 1.0), ("path:3", 1.0), ("single", 1.0), ("path:3", 30.0)],
)
def test_the_exact_mean_of_e_contracts_from_anywhere(graph, ridge, loss):
    n = 1 if graph == "single" else int(graph[-1])
    sigma = ridge * np.random.default_rng(1).uniform(0.5, 1.5, n)
    energy = Energy(make_case(graph, loss, seed=2, sigma=sigma))
    assert (energy.rho == energy.own.network_rate) == (ridge > 1.0)
    random = np.random.default_rng(0)
    shape, ratios = energy.x.shape, []
    for size in (0.01, 0.1, 1.0, 10.0):
        x = energy.x + size * random.standard_normal(shape)
        q = energy.q + energy.u @ random.standard_normal(shape) * size * (graph != "single")
        table = energy.slopes(energy.x + size * random.standard_normal(shape))
        states = [(x, q, table), (x, energy.q, energy.table), (energy.x, q, energy.table),
                  (energy.x, energy.q, table)]  # fmt: skip
        ratios += [energy.mean_after(*at) / energy(*at) for at in states if energy(*at) > 1e-12]
    assert max(ratios) <= (1.0 - energy.rho) * (1.0 + 1e-9)


@pytest.mark.parametrize("graph", ["path:2", "ring:3"])
def test_no_rate_that_is_ten_percent_larger_holds(graph):
    """Along a common direction that no sample sees there is the ridge alone."""
    case = make_case(graph, "squared", seed=2, n_features=14, sigma=np.full(int(graph[-1]), 0.2))
    energy = Energy(case)
    unseen = np.linalg.svd(np.vstack([rows for rows, *_ in case.shards]))[2][-1]
    at = energy.x + unseen, energy.q, energy.table
    ratio = energy.mean_after(*at) / energy(*at)
    assert energy.rho == pytest.approx(2 * 0.2 * energy.a * (1 - 0.2 * energy.a), rel=1e-9)
    assert 1.0 - 1.1 * energy.rho < ratio <= 1.0 - energy.rho + 1e-9


@pytest.mark.parametrize("graph", ["grid:3x3", "star:9"])
def test_the_step_is_the_largest_that_the_theorem_allows(graph):
    case = make_case(graph, "logistic", seed=4)
    method, problem = prepare(case.problem, "dsa"), case.problem
    a, rho, p = method.algorithm.step_size, method.rho, method.algorithm.sampler.p
    sigma, L = (
        np.repeat(problem.sigma, problem.sizes),
        augmented.smoothness(case.shards, "logistic"),
    )
    sides = a * L * (1 / p + 1 / (p - rho)) / (1 - 2 * a * sigma)
    assert sides.max() == pytest.approx(1.0, rel=1e-6)
    assert rho <= 2 * a * problem.sigma.min() * (1 - a * problem.sigma.min()) * (1 + 1e-12)
    assert rho <= method.algorithm.network_rate
    totals = [part.sum() for part in split(problem, L)]
    assert a > 0.25 / max(totals)  # 1 / (2 sum_j L_ij), less what the ridge takes


@pytest.mark.parametrize("name", ["dsa", "saga"])
def test_the_step_is_the_largest_where_it_is_tiny(name):
    X, y = np.array([[6e14, 0.0], [1.0, 1.0]]), np.array([0.0, 1.0])
    method = prepare(adfs.Problem([(X, y)], sigma=1.0), name)
    mean = 2 if name == "saga" else 1  # its step is that of F / N
    assert method.algorithm.step_size == pytest.approx(mean * 0.5 / (0.25 * 36e28), rel=1e-9)


def test_mean_error_along_runs_stays_under_the_proven_rate():
    case = make_case("grid:2x2", "logistic", seed=8, sigma=np.linspace(0.2, 0.5, 4))
    energy, found = Energy(case), []
    n_rounds = int(8 / energy.rho)
    every = n_rounds // 12
    for seed in range(12):
        method = prepare(case.problem, "dsa", seed=seed)
        state, values = method.algorithm.init(), []
        for t in range(0, n_rounds, every):
            e = method.algorithm.output(state) - energy.x
            values.append(np.sum(e * (energy.v @ e)))
            state = run_on(method, state, t, t + every)
        found.append(values)
    state = method.algorithm.init()
    first = energy(state.theta, energy.u @ state.theta, state.table)
    times = every * np.arange(len(found[0]))
    assert np.all(np.mean(found, axis=0) <= first * (1.0 - method.rho) ** times)


def test_rounding_errors_do_not_add_up():
    problem = make_case("star:4", "smoothed_hinge", seed=4, n_features=5, density=0.6).problem
    method = prepare(problem, "dsa")
    state = run_on(method, method.algorithm.init(), 0, 100_000)
    assert np.abs(method.algorithm.output(state) - problem.optimum().theta).max() < 1e-12


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_rows_of_zeros_and_a_node_of_nothing_else_do_no_harm(kind):
    shards = make_shards(4, "logistic", seed=5, sizes=[3, 4, 4, 5], dead=True)
    shards[0][0][:] = 0.0
    problem = stored_as(make_case("ring:4", "logistic", shards=shards), kind)
    method = prepare(problem, "dsa")
    state = run_on(method, method.algorithm.init(), 0, int(50 / method.rho))
    found = method.algorithm.output(state)
    np.testing.assert_allclose(found, np.tile(problem.optimum().theta, (4, 1)), rtol=0, atol=1e-8)

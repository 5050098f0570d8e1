"""DGD: its oracle, where a constant step ends, and O(1 / t) for steps that decrease."""

import numpy as np
import pytest

import adfs
from oracles import dgd as literal
from support.problems import make_case, stored_as
from support.rounds import (
    decreasing_steps,
    distances,
    estimates_of,
    gradients_of,
    iterates,
    slope,
    weights_of,
)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:2x3", "star:5", "path:2", "single"])
@pytest.mark.parametrize("rule", ["constant", "decreasing"])
def test_it_is_the_literal_recursion(graph, loss, rule):
    case = make_case(graph, loss, seed=4, n_features=5, density=0.6)
    theta = np.random.default_rng(1).standard_normal(5)
    start = np.tile(theta, (case.problem.n_nodes, 1))
    for kind in ("dense", "csr"):
        method, found = iterates(stored_as(case, kind), "dgd", 60, theta, rule=rule)
        steps = np.full(60, method.algorithm.step_size)
        if rule == "decreasing":
            steps = decreasing_steps(method, 60)
        expected = literal.dgd(gradients_of(case), weights_of(case.problem), start, steps)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        assert np.abs(found[60] - start).max() > 0.1


@pytest.mark.parametrize("batch", [1, 3])
def test_with_samples_it_is_d_psgd(batch):
    case = make_case("grid:2x3", "logistic", seed=4, n_features=5)
    rule = f"sampled,batch={batch},step=0.1"
    method, found = iterates(case.problem, "dgd", 60, seed=3, rule=rule)
    grads, rounds = estimates_of(case, method, batch), iter(range(60))
    expected = literal.dgd(
        lambda X: grads(next(rounds), X),
        weights_of(case.problem),
        np.zeros((6, 5)),
        decreasing_steps(method, 60),
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def penalised_minimiser(case, step):
    """Of ``sum_i f_i(x_i) + X . (I - W) X / (2 a)`` for squared loss: a linear system."""
    n, d = case.problem.n_nodes, case.problem.n_features
    matrix = np.kron(np.eye(n) - weights_of(case.problem), np.eye(d)) / step
    right = np.zeros(n * d)
    for i, (rows, labels, weights) in enumerate(case.shards):
        own = slice(i * d, (i + 1) * d)
        matrix[own, own] += rows.T @ (weights[:, None] * rows)
        matrix[own, own] += case.problem.sigma[i] * np.eye(d)
        right[own] = rows.T @ (weights * labels)
    return np.linalg.solve(matrix, right).reshape(n, d)


@pytest.mark.parametrize("graph", ["grid:3x3", "ring:5", "star:4", "complete:4"])
def test_a_constant_step_ends_at_the_penalised_minimiser(graph):
    case = make_case(graph, "squared", seed=6, n_features=3)
    for share in (1.0, 0.2):
        usual = adfs.prepare(case.problem, "dgd").algorithm.step_size
        step = float(share * usual)
        rounds = int(30.0 / (step * case.problem.sigma.min()))
        _, points = iterates(case.problem, "dgd", rounds, rule=f"step={step!r}", every=rounds)
        expected = penalised_minimiser(case, step)
        np.testing.assert_allclose(points[-1], expected, rtol=0, atol=1e-10)
        assert distances(case.problem, points)[-1] > 1e-3  # which is not the optimum


def test_the_neighbourhood_is_proportional_to_the_step():
    case = make_case("ring:5", "squared", seed=6, n_features=3)
    steps = 0.005 * 2.0 ** -np.arange(5)
    best = case.problem.optimum().theta
    found = [np.linalg.norm(penalised_minimiser(case, step) - best) for step in steps]
    assert slope(steps, found) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("graph", ["ring:9", "grid:3x3", "path:6"])
def test_it_comes_there_at_the_rate_of_its_page(graph):
    """``1 - a mu`` per round, and no step comes there faster: all nodes have one Hessian."""
    n, curvatures = adfs.Topology.parse(graph).n_nodes, np.geomspace(0.05, 1.0, 8)
    rows = np.diag(np.sqrt(curvatures - 0.05))[1:]
    random = np.random.default_rng(0)
    shards = [(rows, random.standard_normal(7), np.ones(7)) for _ in range(n)]
    case = make_case(graph, "squared", shards=shards, sigma=np.full(n, 0.05))
    usual, rates = adfs.prepare(case.problem, "dgd").algorithm.step_size, []
    for share in (1.0, 0.8, 1.1):
        step = float(share * usual)
        _, points = iterates(
            case.problem, "dgd", 600, theta=np.ones(8), rule=f"step={step!r}", every=100
        )
        left = np.linalg.norm(points - penalised_minimiser(case, step), axis=(1, 2))
        left = left[left > 1e-10]
        rates.append((left[-1] / left[1]) ** (1.0 / (100 * (len(left) - 2))))
    assert rates[0] == pytest.approx(1.0 - 0.05 * usual, rel=2e-3)
    assert rates[0] < min(rates[1:])


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_decreasing_steps_come_to_the_optimum_as_one_over_t(loss):
    problem = make_case("ring:5", loss, seed=2, n_features=3).problem
    _, points = iterates(problem, "dgd", 20_000, rule="decreasing", every=1000)
    found = distances(problem, points)[2:]
    times = 1000.0 * np.arange(2, 2 + len(found))
    assert slope(times, found) == pytest.approx(-1.0, abs=0.1)


def test_sampled_squared_distances_fall_as_one_over_t():
    problem = make_case("ring:5", "logistic", seed=2, n_features=3).problem
    squares = 0.0
    for seed in range(6):
        _, points = iterates(problem, "dgd", 8000, seed=seed, rule="sampled", every=500)
        squares = squares + distances(problem, points) ** 2
    times = 500.0 * np.arange(len(squares))
    assert -1.5 < slope(times[2:], squares[2:]) < -0.75

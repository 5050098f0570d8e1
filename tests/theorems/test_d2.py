"""D2: its oracle, its rates with full gradients, and O(1 / t) with sampled ones."""

import numpy as np
import pytest

import adfs
from oracles import d2 as literal
from support.problems import make_case, stored_as
from support.rounds import (
    decreasing_steps,
    distances,
    estimates_of,
    falls_each_round,
    gradients_of,
    iterates,
    measured_fall,
    quadratics,
    slope,
    weights_of,
)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:2x3", "star:5", "path:2", "single"])
def test_it_is_the_literal_recursion(graph, loss):
    case = make_case(graph, loss, seed=4, n_features=5, density=0.6)
    theta = np.random.default_rng(1).standard_normal(5)
    start = np.tile(theta, (case.problem.n_nodes, 1))
    for kind in ("dense", "csr"):
        method, found = iterates(stored_as(case, kind), "d2", 60, theta)
        step = method.algorithm.step_size
        expected = literal.d2(gradients_of(case), weights_of(case.problem), start, step, 60)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        assert np.abs(found[60] - start).max() > 0.1


@pytest.mark.parametrize("batch", [1, 3])
def test_with_samples_too(batch):
    """The oracle has one step: it is given ``a_t g~_t`` and the step 1."""
    case = make_case("grid:2x3", "logistic", seed=4, n_features=5)
    rule = f"sampled,batch={batch},step=0.1"
    method, found = iterates(case.problem, "d2", 60, seed=3, rule=rule)
    grads, steps = estimates_of(case, method, batch), enumerate(decreasing_steps(method, 60))

    def scaled(X):
        t, step = next(steps)
        return step * grads(t, X)

    expected = literal.d2(scaled, weights_of(case.problem), np.zeros((6, 5)), 1.0, 60)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "ring:9", "complete:4", "path:6"])
def test_an_energy_falls_by_the_rate_in_each_round(graph, loss):
    def modes(value, c, h):
        gap = (1.0 - value) / 2.0
        return 2.0 * gap + (1.0 - gap) * c, gap, (1.0 - gap) * h

    falls_each_round("d2", graph, loss, modes)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "path:9", "star:6"])
@pytest.mark.parametrize("share", [0.3, 1.0, 1.9])
def test_any_step_below_two_over_l_has_the_closed_rate(graph, loss, share):
    """``|e|^2 + v / (1 - v) |c - c*|^2`` falls by max(|1 - a mu|^2, |1 - a L|^2, v_2)."""
    case = make_case(graph, loss, seed=6, n_features=3)
    problem, grads = case.problem, gradients_of(case)
    largest = (problem.sigma + problem.conditioning.batch_smoothness()).max()
    step = share / largest
    method, points = iterates(problem, "d2", 200, rule=f"step={float(step)!r}")
    V = (np.eye(problem.n_nodes) + weights_of(problem)) / 2.0
    values, vectors = np.linalg.eigh(V)
    best = np.tile(problem.optimum().theta, (problem.n_nodes, 1))
    energies, correction = [], np.zeros_like(best)
    for X in points[:-1]:
        e, c = vectors.T @ (X - best), vectors.T @ (correction + step * grads(best))
        weights = values[:-1] / (1.0 - values[:-1])
        energies.append(np.sum(e**2) + np.sum(weights[:, None] * c[:-1] ** 2))
        half = X - step * grads(X) - correction
        correction = correction + half - V @ half
    energies = np.array(energies)
    contraction = max(abs(1.0 - step * problem.sigma.min()), abs(1.0 - step * largest))
    rate = max(contraction**2, values[-2])
    seen = energies[energies > 1e-16 * energies[0]]
    assert len(seen) > 20
    assert np.all(seen[1:] <= rate * (1.0 + 1e-9) * seen[:-1])
    assert method.rho >= (1.0 - rate) * (1.0 - 1e-6)  # the circle criterion gives no less


@pytest.mark.parametrize("kappa", [10.0, 40.0])
@pytest.mark.parametrize("graph", ["ring:9", "grid:3x3", "complete:5", "path:6"])
def test_quadratics_fall_at_that_rate_and_hardly_faster(graph, kappa):
    """A method 10 % slower than its theorem would fail the first line."""
    found, method = measured_fall(quadratics(graph, kappa), "d2")
    assert found >= 0.999 * method.rho
    assert found <= 1.1 * method.rho


def test_sampled_squared_distances_fall_as_one_over_t():
    problem = make_case("ring:5", "logistic", seed=2, n_features=3).problem
    squares = 0.0
    for seed in range(6):
        _, points = iterates(problem, "d2", 8000, seed=seed, rule="sampled", every=500)
        squares = squares + distances(problem, points) ** 2
    times = 500.0 * np.arange(len(squares))
    found = slope(times[2:], squares[2:])
    assert -1.5 < found < -0.75


def test_sampled_gradients_promise_no_linear_rate():
    problem = make_case("ring:5", "logistic", seed=2).problem
    method = adfs.prepare(problem, "d2", rule="sampled")
    assert method.rho == 0.0
    assert not method.proven

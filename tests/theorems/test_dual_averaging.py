"""Dual averaging: its oracle, and Theorem 2 of its publication."""

import numpy as np
import pytest

from oracles import dual_averaging as literal
from oracles import mixing
from support.problems import make_case, stored_as
from support.rounds import gradients_of, iterates, weights_of


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:2x3", "star:5", "single"])
@pytest.mark.parametrize("rule", ["tuned", "step=0.5"])  # the long step meets the ball's border
def test_it_is_the_literal_recursion(graph, loss, rule):
    case = make_case(graph, loss, seed=4, n_features=5, density=0.6)
    theta = np.random.default_rng(1).standard_normal(5)
    start = np.tile(theta, (case.problem.n_nodes, 1))
    for kind in ("dense", "csr"):
        method, found = iterates(stored_as(case, kind), "dual-averaging", 60, theta, rule=rule)
        steps = method.algorithm.step_size / np.sqrt(np.arange(1, 61))
        points, expected = literal.dual_averaging(
            gradients_of(case), weights_of(case.problem), start, steps, method.algorithm.radius
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        lengths = np.linalg.norm(points[1:], axis=2)
        assert (lengths.max() > 0.999999 * method.algorithm.radius) == (rule != "tuned")


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "ring:9", "path:4", "complete:4"])
def test_theorem_2_holds(graph, loss):
    """Its constants from the problem alone; F is n times the publication's mean."""
    case = make_case(graph, loss, seed=6, n_features=3)
    problem, n = case.problem, case.problem.n_nodes
    best = problem.optimum()
    grads, random = gradients_of(case), np.random.default_rng(0)
    method, means = iterates(problem, "dual-averaging", 2000, every=100)
    radius, bound = method.algorithm.radius, method.algorithm.bound
    assert np.linalg.norm(best.theta) <= radius
    for _ in range(100):  # G bounds gradients in the ball
        inside = random.standard_normal(3)
        inside *= radius / np.linalg.norm(inside)
        assert np.linalg.norm(grads(np.tile(inside, (n, 1))), axis=1).max() <= bound
    gap = 1.0 - mixing.second_largest_modulus(weights_of(problem))
    half = radius / np.sqrt(2.0)  # psi = |x|^2 / 2 is at most its square
    step = half * np.sqrt(gap) / (4.0 * bound)
    assert method.algorithm.step_size == pytest.approx(step, rel=1e-9)
    for k, points in enumerate(means[1:]):
        T = 100 * (k + 1)
        allowed = 8 * n * half * bound * np.log(T * np.sqrt(n)) / np.sqrt(T * gap)
        errors = [problem.objective(point) - best.objective for point in points]
        assert max(errors) <= allowed
        assert max(errors) >= -1e-9


def test_the_gap_falls_with_the_root_of_t():
    """Its steps decrease as in the theorem, whose logarithm is not seen."""
    problem = make_case("ring:5", "logistic", seed=6, n_features=3).problem
    _, means = iterates(problem, "dual-averaging", 30_000, every=3000)
    best = problem.optimum().objective
    gaps = [max(problem.objective(x) for x in points) - best for points in means[1:]]
    times = 3000.0 * np.arange(1, 11)
    found = np.polyfit(np.log(times), np.log(gaps), 1)[0]
    assert found < -0.4

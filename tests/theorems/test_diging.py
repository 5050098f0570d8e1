"""DIGing: its oracle, the rate of the circle criterion, and the matrix of Qu and Li."""

import numpy as np
import pytest

import adfs
from adfs_methods.diging import bound_matrix
from oracles import diging as literal
from support.problems import make_case, stored_as
from support.rounds import (
    falls_each_round,
    gradients_of,
    iterates,
    measured_fall,
    quadratics,
    weights_of,
)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize(
    ("graph", "rule"), [("grid:2x3", "tuned"), ("star:5", "paper"), ("single", "tuned")]
)
def test_it_is_the_literal_recursion(graph, rule, loss):
    case = make_case(graph, loss, seed=4, n_features=5, density=0.6)
    theta = np.random.default_rng(1).standard_normal(5)
    start = np.tile(theta, (case.problem.n_nodes, 1))
    for kind in ("dense", "csr"):
        method, found = iterates(stored_as(case, kind), "diging", 60, theta, rule=rule)
        step = method.algorithm.step_size
        expected = literal.diging(gradients_of(case), weights_of(case.problem), start, step, 60)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        assert np.abs(found[60] - start).max() > 1e-2


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "ring:9", "complete:4", "path:6"])
def test_an_energy_falls_by_the_rate_in_each_round(graph, loss):
    falls_each_round("diging", graph, loss, lambda w, c, h: (2.0 - 2.0 * w + c, (1.0 - w) ** 2, h))


@pytest.mark.parametrize("kappa", [10.0, 40.0])
@pytest.mark.parametrize("graph", ["ring:9", "grid:3x3", "complete:5", "path:6"])
def test_quadratics_fall_at_that_rate_and_hardly_faster(graph, kappa):
    """A method 10 % slower than its theorem would fail the first line."""
    found, method = measured_fall(quadratics(graph, kappa), "diging")
    assert found >= 0.999 * method.rho
    assert found <= 1.1 * method.rho


def norms(case, points, step):
    """``|Y - 1 gbar|``, ``L |X - 1 xbar|`` and ``L sqrt(n) |xbar - x*|`` of each round."""
    problem, grads = case.problem, gradients_of(case)
    largest = (problem.sigma + problem.conditioning.batch_smoothness()).max()
    W, best, found = weights_of(problem), problem.optimum().theta, []
    for t in range(len(points) - 1):
        directions = (W @ points[t] - points[t + 1]) / step
        mean, g = points[t].mean(axis=0), grads(points[t]).mean(axis=0)
        found.append([
            np.linalg.norm(directions - g), largest * np.linalg.norm(points[t] - mean),
            largest * np.sqrt(problem.n_nodes) * np.linalg.norm(mean - best),
        ])  # fmt: skip
    return np.array(found)


@pytest.mark.parametrize("rule", ["paper", "tuned"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "ring:5", "star:5"])
def test_the_norms_stay_under_the_matrix_of_qu_and_li(graph, loss, rule):
    case = make_case(graph, loss, seed=6, n_features=3)
    theta = np.random.default_rng(2).standard_normal(3)
    method, points = iterates(case.problem, "diging", 300, theta, rule=rule)
    step, problem = method.algorithm.step_size, case.problem
    largest = (problem.sigma + problem.conditioning.batch_smoothness()).max()
    weights = problem.topology.weights("metropolis")
    (G,) = bound_matrix(np.array([step]), largest, problem.sigma.min(), weights)
    found = norms(case, points, step)
    floor = 1e-9 * found[0].max()
    assert np.all(found[1:] <= found[:-1] @ G.T + floor)
    radius = np.abs(np.linalg.eigvals(G)).max()
    assert (radius < 1.0) == (rule == "paper")
    if rule == "paper":
        assert 1.0 - radius**2 == pytest.approx(method.rho, rel=1e-9)
        left = np.abs(np.linalg.eig(G.T)[1][:, np.argmax(np.abs(np.linalg.eigvals(G.T)))])
        sums = found @ left  # falls by the radius in each round
        assert np.all(sums[1:] <= radius * sums[:-1] + floor)


def test_the_step_of_the_paper_has_the_least_radius_and_is_far_smaller():
    problem = make_case("grid:3x3", "logistic", seed=6).problem
    paper, tuned = (adfs.prepare(problem, "diging", rule=rule) for rule in ("paper", "tuned"))
    step = paper.algorithm.step_size
    for factor in (0.5, 0.9, 1.1, 1.5):
        other = adfs.prepare(problem, "diging", rule=f"paper,step={float(factor * step)!r}")
        assert other.rho < paper.rho
    assert tuned.rho > 5.0 * paper.rho
    assert tuned.algorithm.step_size > 5.0 * step

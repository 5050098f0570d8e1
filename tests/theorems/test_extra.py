"""EXTRA: its oracle, and the rate of the circle criterion."""

import numpy as np
import pytest

import adfs
from oracles import extra as literal
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
@pytest.mark.parametrize("graph", ["grid:2x3", "star:5", "path:2", "single"])
def test_it_is_the_literal_recursion(graph, loss):
    case = make_case(graph, loss, seed=4, n_features=5, density=0.6)
    theta = np.random.default_rng(1).standard_normal(5)
    start = np.tile(theta, (case.problem.n_nodes, 1))
    for kind in ("dense", "csr"):
        method, found = iterates(stored_as(case, kind), "extra", 60, theta)
        step = method.algorithm.step_size
        expected = literal.extra(gradients_of(case), weights_of(case.problem), start, step, 60)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        assert np.abs(found[60] - start).max() > 0.1


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("graph", ["grid:3x3", "ring:9", "complete:4", "path:6"])
def test_an_energy_falls_by_the_rate_in_each_round(graph, loss):
    def modes(value, c, h):
        gap = (1.0 - value) / 2.0
        return 2.0 * gap + c, gap, h

    falls_each_round("extra", graph, loss, modes)


@pytest.mark.parametrize("kappa", [10.0, 40.0])
@pytest.mark.parametrize("graph", ["ring:9", "grid:3x3", "complete:5", "path:6"])
def test_quadratics_fall_at_that_rate_and_hardly_faster(graph, kappa):
    """A method 10 % slower than its theorem would fail the first line."""
    found, method = measured_fall(quadratics(graph, kappa), "extra")
    assert found >= 0.999 * method.rho
    assert found <= 1.1 * method.rho


def test_steps_beyond_the_publications_are_proven_too():
    problem = quadratics("ring:9", 1000.0)
    method = adfs.prepare(problem, "extra")
    usual = adfs.prepare(problem, "extra", rule=f"step={0.99 * (1 + weights_of_least(problem))}")
    assert method.algorithm.step_size > usual.algorithm.step_size
    assert method.rho > 1.2 * usual.rho > 0.0
    beyond = adfs.prepare(problem, "extra", rule="step=2.0")
    assert beyond.rho == 0.0
    assert not beyond.proven


def weights_of_least(problem):
    return np.linalg.eigvalsh(weights_of(problem))[0]

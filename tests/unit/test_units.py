"""No tolerance has a unit: targets, weights and sigma may be of any size."""

import dataclasses
import math

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import REGISTRY, get_algorithm
from adfs.errors import DataError
from adfs.problem.certificate import certified_text, relative
from support.problems import make_data

SMOOTH = [name for name in adfs.algorithms.NAMES if name != "ns-adfs"]
PAIRS = [(name, "logistic") for name in SMOOTH] + [
    (name, loss)
    for name in ("adfs", "newton", "lbfgs", "tron")
    for loss in ("squared", "squared_hinge", "smoothed_hinge", "huber")
]
FACTORS = [1e-9, 1e-6, 1e6]
TOL = 1e-10


def make_problem(loss, algorithm, targets=1.0, weights=1.0, sigma=1.0):
    """The same problem in other units."""
    X, y = make_data(loss, n_samples=24, n_features=3)
    n_nodes = 1 if algorithm == "point-saga" else 3
    each = 0.3 * sigma / n_nodes
    shards = adfs.partition(X, targets * y, n_nodes)
    shards = [(rows, labels, np.full(len(labels), weights)) for rows, labels, *_ in shards]
    return adfs.Problem(shards, loss, each, adfs.Topology.path(n_nodes))


def solved(problem, algorithm, tol=TOL):
    result = adfs.solve(problem, algorithm, tol=tol, parameters="tuned")
    assert result.status == "converged"
    return result


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("algorithm", SMOOTH)
def test_squared_targets_times_s_are_the_model_times_s(algorithm, factor):
    plain = solved(make_problem("squared", algorithm), algorithm)
    scaled = solved(make_problem("squared", algorithm, targets=factor), algorithm)
    np.testing.assert_allclose(scaled.theta / factor, plain.theta, rtol=1e-4, atol=1e-5)
    assert scaled.objective / factor**2 == pytest.approx(plain.objective, rel=2 * TOL)
    assert abs(scaled.iterations - plain.iterations) <= 0.1 * plain.iterations


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize(("algorithm", "loss"), PAIRS)
def test_weights_and_sigma_in_another_unit_leave_the_model(algorithm, loss, factor):
    plain = solved(make_problem(loss, algorithm), algorithm)
    other = make_problem(loss, algorithm, weights=factor, sigma=factor)
    scaled = solved(other, algorithm)
    np.testing.assert_allclose(scaled.theta, plain.theta, rtol=1e-4, atol=1e-5)
    assert scaled.objective / factor == pytest.approx(plain.objective, rel=2 * TOL)


@pytest.mark.parametrize("factor", FACTORS)
def test_absolute_targets_times_s_with_sigma_over_s_scale_the_model(factor):
    plain = solved(make_problem("absolute", "ns-adfs"), "ns-adfs", tol=1e-6)
    other = make_problem("absolute", "ns-adfs", targets=factor, sigma=1.0 / factor)
    scaled = solved(other, "ns-adfs", tol=1e-6)
    np.testing.assert_allclose(scaled.theta / factor, plain.theta, rtol=1e-2, atol=1e-2)
    assert scaled.objective / factor == pytest.approx(plain.objective, rel=2e-6)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("factor", FACTORS)
def test_non_smooth_weights_and_sigma_leave_the_model(loss, factor):
    plain = solved(make_problem(loss, "ns-adfs"), "ns-adfs", tol=1e-6)
    other = make_problem(loss, "ns-adfs", weights=factor, sigma=factor)
    scaled = solved(other, "ns-adfs", tol=1e-6)
    np.testing.assert_allclose(scaled.theta, plain.theta, rtol=1e-2, atol=1e-2)
    assert scaled.objective / factor == pytest.approx(plain.objective, rel=2e-6)


@pytest.mark.parametrize("factor", [*FACTORS, 1e-98, 1e98])
def test_the_optimum_is_as_exact_in_any_unit(factor):
    for loss, other in [
        ("squared", {"targets": factor}),
        ("huber", {"weights": factor, "sigma": factor}),
        ("logistic", {"weights": factor, "sigma": factor}),
        ("hinge", {"weights": factor, "sigma": factor}),
    ]:
        plain = make_problem(loss, "adfs").optimum()
        scaled = make_problem(loss, "adfs", **other).optimum()
        unit = factor if loss == "squared" else 1.0
        assert relative(scaled.duality_gap, scaled.objective) <= 1e-12
        np.testing.assert_allclose(scaled.theta / unit, plain.theta, rtol=1e-6)


@pytest.mark.parametrize("factor", FACTORS)
def test_suboptimality_in_a_trace_has_no_unit(factor):
    problem = make_problem("squared", "adfs", targets=factor)
    best = problem.optimum().objective
    result = adfs.solve(problem, tol=1e-3)
    mean = np.mean([problem.objective(theta) for theta in result.thetas])
    assert result.trace["suboptimality"][-1] == pytest.approx((mean - best) / best, rel=1e-6)


class Exploding:
    """ADFS whose models grow without end, in units of the test."""

    def __init__(self, algorithm, unit):
        self._algorithm, self._unit = algorithm, unit

    def __getattr__(self, name):
        return getattr(self._algorithm, name)

    def output(self, state):
        return self._algorithm.output(state) + self._unit * 10.0 ** (state.t / 500)

    def duals(self, state, node):
        return None


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_a_run_that_blows_up_is_noticed_in_any_unit(factor, monkeypatch):
    def prepare(problem, setting):
        method = get_algorithm("adfs")(problem, setting)
        return dataclasses.replace(method, algorithm=Exploding(method.algorithm, factor))

    monkeypatch.setitem(REGISTRY, "exploding", prepare)
    problem = make_problem("squared", "exploding", targets=factor)
    result = adfs.solve(problem, "exploding", evaluate_every=100, max_iter=10**5)
    assert result.status == "diverged"
    assert result.iterations <= 3_000


def test_a_problem_whose_best_model_is_zero_has_converged_at_zero():
    problem = adfs.Problem([(np.eye(2), [0.0, 0.0])], "squared")
    result = adfs.solve(problem)
    assert (result.status, result.relative_gap, result.iterations) == ("converged", 0.0, 0)


@pytest.mark.parametrize("algorithm", SMOOTH)
@pytest.mark.filterwarnings("ignore:overflow")
def test_an_objective_that_overflows_has_diverged(algorithm):
    nodes = 1 if algorithm == "point-saga" else 2
    shard = (np.array([[0.1], [0.1]]), np.array([2e154, 1.9e154]))
    result = adfs.solve(adfs.Problem([shard] * nodes, "squared"), algorithm)
    assert result.status == "diverged"
    assert math.isnan(result.relative_gap)


def test_targets_whose_squares_vanish_are_refused():
    with pytest.raises(DataError, match=r"double precision.*; scale the targets"):
        adfs.Problem([(np.eye(2), [1e-170, 0.0])], "squared")
    assert adfs.Problem([(np.eye(2), [1e-170, 0.0])], "absolute").n_samples == 2


def test_a_gap_below_rounding_of_the_start_is_told_in_words():
    assert certified_text(3e-31, 6e-30, at_zero=20.0) == "to rounding"
    assert certified_text(3e-15, 6e-14, at_zero=20.0) == "3e-15"
    assert certified_text(math.nan, math.nan, at_zero=20.0) == "not finite"
    assert certified_text(0.0, 1.0, at_zero=math.inf) == "0"


def test_a_result_keeps_the_number_that_its_text_does_not_show():
    result = adfs.solve(make_problem("squared", "newton"), "newton", tol=1e-20)
    assert "relative gap=to rounding" in repr(result)
    assert 0.0 < result.relative_gap <= 1e-20
    assert result.objective_at_zero == pytest.approx(
        make_problem("squared", "newton").objective(np.zeros(3))
    )

"""Runs that start from a `Result`: its duals say what its model alone cannot."""

import dataclasses

import numpy as np
import pytest

import adfs
from adfs.algorithms.base import MethodSetting, WarmStart
from adfs.engine.run_identity import identity_of
from adfs.errors import DataError, ParameterError
from adfs.problem.certificate import certify, dual_point
from support.problems import gaussian_problem, make_case, make_problem

SEEDS = range(5)


def hinge_problem(seed):
    return gaussian_problem(loss="hinge", sigma=0.25, samples=(200, 6), seed=seed)


def total_events(problems, starts):
    """Events of runs to a gap of 1e-3, which is looked at often."""
    runs = [
        adfs.solve(problem, tol=1e-3, evaluate_every=200, warm_start=start)
        for problem, start in zip(problems, starts, strict=True)
    ]
    assert {run.status for run in runs} == {"converged"}
    return sum(run.iterations for run in runs)


def test_duals_are_the_dual_point_of_the_certificate():
    problem = make_problem("hinge", n_samples=60)
    result = adfs.solve(problem, tol=1e-5)
    assert result.duals.shape == (problem.n_rows,)
    assert certify(problem, result.theta, result.duals).duality_gap == result.duality_gap


def test_duals_of_a_method_without_any_belong_to_its_model():
    problem = make_problem("logistic")
    result = adfs.solve(problem, "newton")
    slopes = -problem.labels / (1.0 + np.exp(problem.labels * (problem.rows.values @ result.theta)))
    np.testing.assert_allclose(result.duals, slopes, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared_hinge"])
def test_a_smooth_solution_is_certified_again_at_once(loss):
    problem = make_problem(loss)
    first = adfs.solve(problem, tol=1e-8)
    again = adfs.solve(problem, tol=1.01e-8, warm_start=first)
    assert (again.status, again.iterations) == ("converged", 0)


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared_hinge", "squared"])
@pytest.mark.parametrize("loose", [1e-2, 1e-4])
def test_a_loose_solution_is_refined_in_fewer_events(loss, loose):
    problem = make_problem(loss)
    first = adfs.solve(problem, tol=loose)
    again = adfs.solve(problem, tol=1e-10, warm_start=first)
    assert again.status == "converged"
    assert again.iterations < adfs.solve(problem, tol=1e-10).iterations


def test_a_restarted_support_vector_machine_needs_few_events():
    problems = [hinge_problem(seed) for seed in SEEDS]
    first = [adfs.solve(problem, tol=1e-3) for problem in problems]
    assert total_events(problems, first) < total_events(problems, [None] * 5) / 3


def test_duals_help_more_than_a_model_at_a_neighbouring_sigma():
    problems = [hinge_problem(seed) for seed in SEEDS]
    first = [adfs.solve(problem, tol=1e-3) for problem in problems]
    others = [problem.with_sigma(0.25 / 1.2) for problem in problems]
    cold = total_events(others, [None] * 5)
    from_models = total_events(others, [each.theta for each in first])
    from_duals = total_events(others, first)
    assert from_duals < 0.6 * cold
    assert from_duals < 0.75 * from_models


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "absolute", "squared"])
def test_given_duals_are_moved_into_the_domain_of_the_loss(loss):
    problem = make_case("ring:4", loss).problem
    given = np.linspace(-9.0, 9.0, problem.n_rows)
    theta = np.zeros(problem.n_features)
    point = dual_point(problem, theta, given)
    share = point.duals / problem.weights
    if loss == "squared":
        np.testing.assert_array_equal(point.duals, given)
    elif loss == "absolute":
        assert abs(share).max() <= 1.0 + 1e-15
    else:
        assert (problem.labels * share <= 0.0).all()
        assert loss == "squared_hinge" or (problem.labels * share >= -1.0 - 1e-15).all()
    inside = abs(given) < 1e-300
    np.testing.assert_array_equal(point.duals[inside], given[inside])


def test_duals_of_samples_without_weight_are_zero():
    case = make_case("ring:4", "hinge")
    problem = case.problem
    weights = np.where(np.arange(problem.n_rows) % 2, problem.weights, 0.0)
    other = problem.with_targets(problem.labels, weights)
    start = adfs.solve(problem, max_iter=500)
    duals = dual_point(other, start.theta, start.duals).duals
    assert not duals[::2].any()
    assert adfs.solve(other, tol=1e-4, warm_start=start).status == "converged"


def test_a_result_of_other_rows_is_refused_in_one_sentence():
    result = adfs.solve(make_problem(n_samples=60), max_iter=10)
    with pytest.raises(DataError, match="60 rows here, but this problem has 50; give its theta"):
        adfs.solve(make_problem(n_samples=50), warm_start=result)


def test_a_result_without_duals_starts_from_its_model():
    problem = make_problem("hinge")
    result = adfs.solve(problem, max_iter=3000)
    bare = dataclasses.replace(result, duals=None)
    one, other = (
        adfs.solve(problem, max_iter=500, warm_start=start) for start in (bare, result.theta)
    )
    assert one.theta.tobytes() == other.theta.tobytes()


def test_methods_that_know_no_duals_start_from_the_model_of_a_result():
    problem = make_problem()
    result = adfs.solve(problem, tol=1e-9)
    for name in ("newton", "msda", "point-saga"):
        assert adfs.solve(problem, name, tol=1e-6, warm_start=result).iterations == 0


def test_checkpoints_tell_starts_with_other_duals_apart(tmp_path):
    problem = make_problem("hinge")
    start = adfs.solve(problem, max_iter=100)
    theta, setting = start.theta, MethodSetting()
    found = [
        identity_of(problem, "ns-adfs", setting, WarmStart(theta, duals))["config"]["warm_start"]
        for duals in (None, start.duals, start.duals + 1e-9)
    ]
    assert len(set(found)) == 3
    kept = adfs.Checkpoints(tmp_path, every=50)
    adfs.solve(problem, max_iter=100, warm_start=start, checkpoints=kept)
    resumed = kept._replace(resume=True)
    with pytest.raises(ParameterError, match="but this run has warm_start="):
        adfs.solve(problem, max_iter=100, warm_start=theta, checkpoints=resumed)


def test_parameters_of_another_sigma_do_not_belong():
    for loss in ("hinge", "logistic"):
        problem = make_problem(loss)
        chosen = adfs.solve(problem, max_iter=0).parameters
        assert chosen.belongs_to(problem)
        assert not chosen.belongs_to(problem.with_sigma(1.0))


def test_a_problem_with_another_sigma_is_the_one_made_anew():
    rows = make_problem("logistic", sigma=0.3), make_problem("logistic", sigma=2.0)
    other = rows[0].with_sigma(2.0)
    assert other.rows is rows[0].rows
    ours, theirs = (adfs.solve(each, tol=1e-8) for each in (other, rows[1]))
    assert ours.theta.tobytes() == theirs.theta.tobytes()
    with pytest.raises(ParameterError, match="sigma=-1 must be a finite number > 0"):
        other.with_sigma(-1.0)

"""`adfs.regularization_path`: models for a grid of C, and the best C by cross-validation."""

import dataclasses
import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss

import adfs
from adfs import solver
from adfs.errors import DataError, ParameterError
from adfs.regularization import PathPoint, RegularizationPath, deal_folds
from support.problems import gaussian_problem, make_data, make_problem

GRID = [0.01, 0.3, 10.0]


def problem_with_rows(loss="logistic", n_samples=90):
    """A problem, and its rows and labels in its own order."""
    X, y = make_data(loss, n_samples=n_samples, seed=1)
    shards = adfs.partition(X, y, 3)
    rows, labels = (np.concatenate(each) for each in zip(*(s[:2] for s in shards), strict=True))
    return adfs.Problem(shards, loss), rows, labels


def folds_of(problem, labels, cv, seed=0):
    return deal_folds(problem, labels, cv, seed)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "huber"])
def test_every_model_is_certified_for_its_own_C(loss):
    problem = make_problem(loss)
    path = adfs.regularization_path(problem, GRID, tol=1e-5)
    for C, point in zip(sorted(GRID), path.points, strict=True):
        assert (point.C, point.status) == (C, "converged")
        best = problem.with_sigma(1.0 / (problem.n_nodes * C)).optimum().objective
        assert point.objective <= best * (1.0 + 1e-5) + 1e-12
    assert path.coef.shape == (3, problem.n_features)
    assert (path.cv, path.best, path.best_C) == (None, None, None)
    assert path.model is path.points[-1].model


def test_scores_are_those_of_models_that_never_saw_the_fold():
    problem, rows, labels = problem_with_rows()
    path = adfs.regularization_path(problem, GRID, tol=1e-10, cv=3, parameters="paper")
    fold_of = folds_of(problem, labels, 3)
    for k, C in enumerate(GRID):
        for fold in range(3):
            mine = fold_of == fold
            theirs = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
            theirs.fit(rows[~mine], labels[~mine])
            expected = log_loss(labels[mine], theirs.predict_proba(rows[mine]))
            assert path.scores()[k, fold] == pytest.approx(expected, rel=1e-4)
            right = accuracy_score(labels[mine], theirs.predict(rows[mine]))
            assert path.scores("accuracy")[k, fold] == pytest.approx(right)


def test_a_fold_without_rows_is_a_problem_without_them():
    problem, rows, labels = problem_with_rows("squared")
    path = adfs.regularization_path(problem, [1.0], tol=1e-12, cv=3)
    mine = folds_of(problem, labels, 3) == 1
    X, y = rows[~mine], labels[~mine]
    theta = np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y)
    expected = np.sqrt(np.mean((rows[mine] @ theta - labels[mine]) ** 2))
    assert path.scores()[0, 1] == pytest.approx(expected, rel=1e-6)


def test_nodes_deal_their_own_rows_evenly_by_class():
    problem, _, labels = problem_with_rows(n_samples=100)
    fold_of = folds_of(problem, labels, 4)
    for node in range(problem.n_nodes):
        mine, own = fold_of[problem.node_rows(node)], labels[problem.node_rows(node)]
        for label in (-1.0, 1.0):
            assert np.ptp(np.bincount(mine[own == label], minlength=4)) <= 1
        assert np.ptp(np.bincount(mine, minlength=4)) <= 1
    assert (fold_of == folds_of(problem, labels, 4)).all()
    assert (fold_of != folds_of(problem, labels, 4, seed=1)).any()


def test_best_is_the_lowest_mean_and_of_equal_ones_the_strongest():
    def path(values, measure):
        points = [
            PathPoint(C, None, 1.0, 0.0, 0, "converged", {}, ({measure: a}, {measure: b}))
            for C, (a, b) in zip((0.1, 1.0, 10.0), values, strict=True)
        ]
        return RegularizationPath(tuple(points), 2, measure)

    assert path([(3, 1), (1, 1), (1, 1)], "log_loss").best == 1
    assert path([(0.5, 0.5), (0.9, 0.8), (0.8, 0.9)], "accuracy").best_C == 1.0
    unknown = path([(2, 2), (None, 0), (1, 2)], "log_loss")
    assert unknown.best == 2
    assert unknown.mean().tolist() == [2.0, math.inf, 1.5]
    assert unknown.standard_error()[2] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("loss", "measure"),
    [("logistic", "log_loss"), ("hinge", "accuracy"), ("huber", "root_mean_squared_error")],
)
def test_the_loss_says_what_decides(loss, measure):
    path = adfs.regularization_path(make_problem(loss), [0.1, 1.0], tol=1e-3, cv=2)
    assert (path.measure, path.cv) == (measure, 2)
    assert path.best_C == path.C[path.best]
    assert {f"cv_{measure}", f"cv_{measure}_se", f"train_{measure}", "best"} <= set(path.table())


def test_warm_starts_make_a_fine_path_shorter():
    problem = gaussian_problem(loss="hinge", samples=(200, 6))
    grid = np.geomspace(0.5, 2.0, 8)
    path = adfs.regularization_path(problem, grid, tol=1e-3)
    cold = [adfs.solve(problem.with_sigma(0.25 / C), tol=1e-3).iterations for C in grid]
    assert sum(point.iterations for point in path.points[1:]) < 0.8 * sum(cold[1:])


def test_rows_are_in_memory_once(monkeypatch):
    seen, run = [], solver.run

    def noted(problem, *rest):
        seen.append(problem)
        return run(problem, *rest)

    monkeypatch.setattr("adfs.regularization.run", noted)
    problem = make_problem()
    adfs.regularization_path(problem, GRID, tol=1e-2, cv=2, parameters="paper")
    assert len(seen) == 9
    assert all(each.rows is problem.rows for each in seen)


def test_an_interrupted_path_keeps_what_there_is(monkeypatch):
    calls, run = [], solver.run

    def interrupted(*arguments):
        calls.append(arguments)
        result = run(*arguments)
        return dataclasses.replace(result, status="interrupted") if len(calls) == 5 else result

    monkeypatch.setattr("adfs.regularization.run", interrupted)
    path = adfs.regularization_path(make_problem(), GRID, tol=1e-2, cv=3, parameters="paper")
    assert len(calls) == 5
    assert (len(path.points), path.cv, path.best_C, path.status) == (3, None, None, "interrupted")


def test_after_a_run_that_diverged_the_next_one_starts_cold(monkeypatch):
    starts, run = [], solver.run

    def diverged(problem, algorithm, setting, stopping, options, interrupts):
        starts.append(options.warm_start)
        result = run(problem, algorithm, setting, stopping, options, interrupts)
        return dataclasses.replace(result, status="diverged") if len(starts) == 1 else result

    monkeypatch.setattr("adfs.regularization.run", diverged)
    path = adfs.regularization_path(make_problem(), GRID, tol=1e-2)
    assert starts[:2] == [None, None]
    assert starts[2].objective == path.points[1].objective
    assert [point.status for point in path.points] == ["diverged", "converged", "converged"]
    assert path.status == "diverged"


def test_a_fold_that_holds_all_that_can_be_learnt_is_refused():
    rows = np.zeros((8, 2))
    rows[0] = 1.0, 2.0
    problem = adfs.Problem(adfs.partition(rows, [1, 0] * 4, 2))
    with pytest.raises(DataError, match="nothing can be learnt"):
        adfs.regularization_path(problem, [1.0], cv=2)


def test_a_path_shows_itself():
    path = adfs.regularization_path(make_problem(), GRID, tol=1e-3, cv=2, parameters="paper")
    assert "converged, 3 values of C from 0.01 to 10, best C=" in repr(path)
    assert list(path.to_frame()["C"]) == GRID
    assert path._repr_html_().count("<tr>") == 4
    left, right = path.plot()
    assert left.get_xscale() == right.get_xscale() == "log"
    assert len(right.lines) == 4 + 1  # coefficients, and the best C


def test_a_number_of_values_is_a_geometric_grid():
    path = adfs.regularization_path(make_problem(), 3, max_iter=0)
    np.testing.assert_allclose(path.C, [1e-4, 1.0, 1e4])
    assert path.status == "max_iter"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"Cs": 0}, "Cs=0 must be a whole number >= 1"),
     ({"Cs": []}, "at least one value"),
     ({"Cs": [1.0, -1.0]}, "C=-1 must be a finite number > 0"),
     ({"cv": 1}, "cv=1 must be a whole number >= 2"),
     ({"cv": 61}, "leave a fold without rows; lower it"),
     ({"parameters": "mystery"}, "mystery"),
     ({"tol": -1.0}, "tol=-1")],
)  # fmt: skip
def test_bad_arguments_are_one_sentence(options, sentence):
    with pytest.raises(ParameterError, match=sentence):
        adfs.regularization_path(make_problem(), **{"Cs": GRID} | options)

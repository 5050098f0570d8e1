"""LinearSVC has scikit-learn's coefficients, for both losses."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

import adfs
from support.estimators import NODES, WEIGHTINGS, joined, relative, rows, svc_reference, weighted
from support.selection import few

# All on the small data; on digits, ten models each, the weightings with an intercept.
CASES = [
    ("breast-cancer", intercept, weighting, nodes)
    for intercept in (False, True)
    for weighting in WEIGHTINGS
    for nodes in NODES
]
CASES += [("digits", False, "none", nodes) for nodes in NODES]
CASES += [("digits", True, weighting, nodes) for weighting in WEIGHTINGS for nodes in (1, 4)]
CASES += [("digits", True, "balanced", 16)]


@pytest.mark.parametrize(("name", "intercept", "weighting", "nodes"), few(CASES))
def test_coefficients_equal_scikit_learns(name, intercept, weighting, nodes):
    X, y = rows(name)
    fit, options = weighted(weighting, len(y))
    model = adfs.LinearSVC(fit_intercept=intercept, n_nodes=nodes, tol=1e-13, **options)
    model.fit(X, y, **fit)
    assert relative(model, svc_reference(name, intercept, weighting)) < 1e-5


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_dict_weighs_the_class_against_ones(loss):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    options = {"class_weight": {0: 1.0, 1: 3.0, 2: 0.5}, "loss": loss, "C": 0.1}
    model = adfs.LinearSVC(tol=1e-12, **options).fit(X, y)
    reference = sklearn.svm.LinearSVC(tol=1e-9, max_iter=10**6, random_state=0, **options)
    assert relative(model, joined(reference.fit(X, y))) < 1e-5


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("nodes", [1, 4])
def test_the_hinge_has_liblinears_coefficients(nodes, intercept):
    X, y = rows("breast-cancer")
    model = adfs.LinearSVC(
        C=0.1, loss="hinge", n_nodes=nodes, fit_intercept=intercept, tol=1e-13
    ).fit(X, y)
    assert model.result_.algorithm == "ns-adfs"
    reference = sklearn.svm.LinearSVC(
        C=0.1, loss="hinge", fit_intercept=intercept, tol=1e-9, max_iter=10**6, random_state=0
    ).fit(X, y)
    assert relative(model, joined(reference)) < 1e-5


def test_scores_decide():
    X, y = load_iris(return_X_y=True)
    model = adfs.LinearSVC().fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (150, 3)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    two = adfs.LinearSVC().fit(X[:100], y[:100])
    assert two.decision_function(X).shape == (150,)
    np.testing.assert_array_equal(two.predict(X), (two.decision_function(X) > 0).astype(int))


def test_a_class_that_weighs_nothing_still_counts_against_the_others():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = adfs.LinearSVC(loss="hinge", class_weight={0: 0.0}, tol=1e-7).fit(X, y)
    # In the problems of the other classes its rows weigh one, as they do without weights.
    without = adfs.LinearSVC(loss="hinge", tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.coef_[1:], without.coef_[1:], atol=1e-3)
    assert [result.status for result in model.result_] == ["converged"] * 3

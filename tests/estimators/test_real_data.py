"""Scikit-learn's coefficients on a9a and on sparse text, for 1, 4 and 16 nodes."""

import itertools

import pytest

import adfs
from support.estimators import (
    NODES,
    logistic_reference,
    relative,
    ridge_reference,
    rows,
    svc_reference,
    weighted,
)

pytestmark = [pytest.mark.realdata, pytest.mark.usefixtures("data_folder")]

NAMES = ["a9a", "reuters-money-fx"]
# Every weighting and every number of nodes; all pairs of them are in the tests of small data.
WEIGHTINGS = dict(zip(NODES, ("none", "weights", "balanced"), strict=True))
# Every value once outside the soak lane.
FEW = {("a9a", False, 1), ("reuters-money-fx", True, 4), ("a9a", True, 16)}
EVERY = pytest.mark.parametrize(
    ("name", "intercept", "nodes"),
    [
        pytest.param(*row, marks=[pytest.mark.soak] * (row not in FEW))
        for row in itertools.product(NAMES, (False, True), NODES)
    ],
)


@EVERY
def test_logistic_regression_has_scikit_learns_coefficients(name, intercept, nodes):
    X, y = rows(name)
    fit, options = weighted(WEIGHTINGS[nodes], len(y))
    model = adfs.LogisticRegression(n_nodes=nodes, fit_intercept=intercept, tol=1e-12, **options)
    model.fit(X, y, **fit)
    assert relative(model, logistic_reference(name, intercept, WEIGHTINGS[nodes])) < 1e-5


@EVERY
def test_linear_svc_has_scikit_learns_coefficients(name, intercept, nodes):
    X, y = rows(name)
    fit, options = weighted(WEIGHTINGS[nodes], len(y))
    model = adfs.LinearSVC(n_nodes=nodes, fit_intercept=intercept, tol=1e-12, **options)
    model.fit(X, y, **fit)
    assert relative(model, svc_reference(name, intercept, WEIGHTINGS[nodes])) < 1e-5


@EVERY
def test_ridge_has_scikit_learns_coefficients(name, intercept, nodes):
    X, y = rows(name)
    weighting = "weights" if nodes == 4 else "none"
    fit, _ = weighted(weighting, len(y))
    # a9a's indicator columns nearly sum to a constant, so that its intercept needs more digits.
    tol = 1e-16 if intercept else 1e-12
    model = adfs.Ridge(n_nodes=nodes, fit_intercept=intercept, tol=tol).fit(X, y, **fit)
    assert relative(model, ridge_reference(name, intercept, weighting)) < 1e-5

"""Targets may be of any size: the models are scikit-learn's, in the same units."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning

import adfs

SIZES = [1e-9, 1e-6, 1e6]


def make_data(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 3.0 + 0.1 * rng.normal(size=120)
    return X, size * y


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_is_scikit_learns_for_targets_of_any_size(size, convert, intercept):
    X, y = make_data(size)
    theirs = sklearn.linear_model.Ridge(fit_intercept=intercept).fit(X, y)
    ours = adfs.Ridge(fit_intercept=intercept).fit(convert(X), y)
    assert ours.result_.status == "converged"
    np.testing.assert_allclose(ours.coef_ / size, theirs.coef_ / size, atol=3e-3)
    assert ours.intercept_ / size == pytest.approx(theirs.intercept_ / size, abs=3e-3)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_huber_scales_with_targets_and_delta(size):
    """Scikit-learn's learns a scale; within delta its loss is Ridge's, up to that."""
    X, y = make_data(size)
    ours = adfs.HuberRegressor(delta=0.05 * size, tol=1e-10).fit(X, y)
    X, y = make_data(1.0)
    plain = adfs.HuberRegressor(delta=0.05, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_ / size, plain.coef_, rtol=1e-4)
    assert ours.result_.objective / size**2 == pytest.approx(plain.result_.objective, rel=1e-9)


@pytest.mark.parametrize("size", [1e-9, 1e-6])
def test_huber_of_tiny_targets_is_ridge_without_outliers(size):
    X, y = make_data(size)
    theirs = sklearn.linear_model.Ridge(fit_intercept=False).fit(X, y)
    ours = adfs.HuberRegressor(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_ / size, theirs.coef_ / size, atol=1e-2)


@pytest.mark.parametrize("size", [1e-9, 1e6])
def test_linear_svr_of_targets_of_any_size_is_scikit_learns(size):
    """sigma = 1 / C has the unit of 1 / y."""
    X, y = make_data(size)
    options = {"C": size, "fit_intercept": False}
    theirs = sklearn.svm.LinearSVR(C=1.0, fit_intercept=False, tol=1e-8, max_iter=100_000)
    theirs.fit(*make_data(1.0))
    ours = adfs.LinearSVR(**options).fit(X, y)
    assert ours.result_.status == "converged"
    np.testing.assert_allclose(ours.coef_ / size, theirs.coef_, atol=1e-2)


def test_linear_svr_of_tiny_targets_does_not_take_zero_for_the_best():
    """C = 1 is next to no regularisation here: liblinear does not converge either."""
    X, y = make_data(1e-9)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = adfs.LinearSVR(max_iter=1_000_000).fit(X, y)
    assert model.score(X, y) > 0.99


def test_squares_of_linear_svr_do_not_vanish():
    X, y = make_data(1e-9)
    model = adfs.LinearSVR(loss="squared_epsilon_insensitive").fit(X, y)
    assert model.score(X, y) > 0.99

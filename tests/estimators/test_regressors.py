"""HuberRegressor and LinearSVR have the minimisers that scikit-learn finds."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.datasets import load_diabetes

import adfs
from support.estimators import joined, relative


def diabetes():
    """Rows of size one, targets of size one and a few outliers."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
    y[::40] += 8.0
    return X, y


@pytest.mark.parametrize("nodes", [1, 4, 16])
@pytest.mark.parametrize("weights", [None, np.random.default_rng(0).random(442)])
def test_huber_has_scikit_learns_minimiser_at_the_scale_it_found(nodes, weights):
    X, y = diabetes()
    reference = sklearn.linear_model.HuberRegressor(
        epsilon=1.5, alpha=0.7, fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(X, y, sample_weight=weights)
    scale = reference.scale_
    model = adfs.HuberRegressor(
        delta=1.5 * scale, alpha=0.7 * scale, fit_intercept=False, n_nodes=nodes, tol=1e-14
    ).fit(X, y, sample_weight=weights)
    assert np.any(np.abs(X @ reference.coef_ - y) > 1.5 * scale)  # both branches matter
    # Its L-BFGS ends some 1e-5 away, whatever its tol; the next test is the exact one.
    assert relative(model, joined(reference)) < 1e-4


@pytest.mark.parametrize("delta", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("scaling", [1.0, 5.0])
def test_huber_minimises_its_formula_with_a_regularised_intercept(delta, scaling):
    X, y = diabetes()
    alpha = 2.0

    def objective(numbers):
        theta, b = numbers[:-1], numbers[-1]
        r = np.abs(X @ theta + b - y)
        losses = np.where(r <= delta, 0.5 * r**2, delta * r - 0.5 * delta**2)
        return np.sum(losses) + 0.5 * alpha * (theta @ theta + (b / scaling) ** 2)

    model = adfs.HuberRegressor(delta, alpha=alpha, intercept_scaling=scaling, tol=1e-14).fit(X, y)
    found = joined(model)[0]
    value = objective(found)
    assert model.result_.objective == pytest.approx(value, rel=1e-9)
    best = scipy.optimize.minimize(objective, found, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(best.x, found, rtol=1e-5, atol=1e-5)
    assert best.fun >= value - model.dual_gap_ - 1e-12 * abs(value)


@pytest.mark.parametrize("nodes", [1, 4, 16])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("intercept", [False, True])
def test_linear_svr_has_scikit_learns_coefficients(loss, intercept, nodes):
    X, y = diabetes()
    weights = np.random.default_rng(1).random(442)
    options = {"C": 0.1, "loss": loss, "fit_intercept": intercept, "intercept_scaling": 2.0}
    model = adfs.LinearSVR(n_nodes=nodes, tol=1e-13, **options)
    model.fit(sp.csr_array(X) if nodes == 4 else X, y, sample_weight=weights)
    reference = sklearn.svm.LinearSVR(
        tol=1e-9, max_iter=10**6, random_state=0, dual=True, **options
    ).fit(X, y, sample_weight=weights)
    assert relative(model, joined(reference)) < 1e-5


def test_outliers_bend_least_squares_but_not_huber():
    X, y = diabetes()
    y_with = y.copy()
    y_with[:20] += 1000.0
    options = {"alpha": 1e-3, "tol": 1e-10}
    clean = adfs.Ridge(**options).fit(X, y).coef_
    bent = adfs.Ridge(**options).fit(X, y_with).coef_
    straight = adfs.HuberRegressor(0.5, **options).fit(X, y_with).coef_
    assert np.linalg.norm(straight - clean) < 0.05 * np.linalg.norm(bent - clean)

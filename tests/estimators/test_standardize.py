"""`standardize=True`: the model of a pipeline with a scaler, in the units of the columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adfs

TIGHT = {"tol": 1e-16, "standardize": True}


def in_units(pipeline):
    """Coefficients and intercept of scikit-learn's pipeline, of the columns as they are."""
    scaler, model = pipeline[0], pipeline[-1]
    means = scaler.mean_ * scaler.with_mean
    coef = model.coef_ / scaler.scale_
    return coef, model.intercept_ - coef @ means


def require_equal(ours, theirs):
    coef, intercept = in_units(theirs)
    np.testing.assert_allclose(ours.coef_, coef, rtol=1e-6, atol=1e-9 * np.abs(coef).max())
    np.testing.assert_allclose(ours.intercept_, intercept, rtol=1e-6)


@pytest.mark.parametrize("has_intercept", [True, False])
def test_logistic_regression_is_that_of_a_pipeline(has_intercept):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :8]
    liblinear = linear_model.LogisticRegression(
        solver="liblinear", tol=1e-12, max_iter=10_000, fit_intercept=has_intercept
    )
    theirs = make_pipeline(StandardScaler(), liblinear).fit(X, y)
    ours = adfs.LogisticRegression(fit_intercept=has_intercept, **TIGHT).fit(X, y)
    require_equal(ours, theirs)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)


def test_ridge_is_that_of_a_pipeline():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    theirs = make_pipeline(StandardScaler(), linear_model.Ridge(2.0)).fit(X, y)
    require_equal(adfs.Ridge(2.0, **TIGHT).fit(X, y), theirs)


def test_columns_of_a_sparse_matrix_that_are_mostly_zero_are_divided_only():
    random = np.random.default_rng(0)
    X = random.normal(3.0, [1.0, 10.0, 100.0], (200, 3)) * (random.random((200, 3)) < 0.3)
    y = X @ [1.0, 0.1, 0.01] + random.normal(size=200)
    theirs = make_pipeline(StandardScaler(with_mean=False), linear_model.Ridge(1.0)).fit(X, y)
    require_equal(adfs.Ridge(1.0, **TIGHT).fit(sp.csr_matrix(X), y), theirs)


def test_a_weight_of_two_is_the_row_twice_and_zero_is_no_row():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    often = np.repeat(np.arange(len(y)), weights)
    weighted = adfs.Ridge(**TIGHT).fit(X, y, weights)
    repeated = adfs.Ridge(**TIGHT).fit(X[often], y[often])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-5)


def test_a_warm_start_begins_in_the_scaled_units():
    X, y = load_breast_cancer(return_X_y=True)
    model = adfs.LogisticRegression(standardize=True, warm_start=True, tol=1e-10).fit(X, y)
    model.set_params(max_iter=0)
    with pytest.warns(Warning, match="stopped with 'max_iter'"):
        model.fit(X, y)
    assert model.result_.relative_gap < 1e-4


def test_a_value_that_is_no_flag_is_refused():
    with pytest.raises(adfs.ParameterError, match="standardize"):
        adfs.Ridge(standardize="yes").fit(np.eye(3), [1.0, 2.0, 3.0])


def test_a_cross_validated_model_is_in_the_units_of_the_columns():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :8]
    ours = adfs.LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, **TIGHT).fit(X, y)
    liblinear = linear_model.LogisticRegression(
        C=ours.C_[0], solver="liblinear", tol=1e-12, max_iter=10_000
    )
    require_equal(ours, make_pipeline(StandardScaler(), liblinear).fit(X, y))

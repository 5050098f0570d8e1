"""Data, weights and references by scikit-learn, shared by the tests of the estimators."""

import functools

import numpy as np
import sklearn.linear_model
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from adfs.data import datasets

NODES = (1, 4, 16)
WEIGHTINGS = ("none", "weights", "balanced")
TIGHT = {"tol": 1e-12, "max_iter": 100_000}


@functools.cache
def rows(name):
    """Rows and labels of a data set, scaled as one would."""
    if name == "breast-cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return StandardScaler().fit_transform(X), y
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16.0, y
    return datasets.load(name)


def weighted(weighting, n_samples):
    """What `fit` and the constructor are told; weights between 0 and 2, some of them 0."""
    if weighting != "weights":
        return {}, {"class_weight": "balanced" if weighting == "balanced" else None}
    weights = 2.0 * np.random.default_rng(0).random(n_samples)
    weights[::50] = 0.0
    return {"sample_weight": weights}, {"class_weight": None}


@functools.cache
def logistic_reference(name, intercept, weighting):
    """Scikit-learn's coefficients: liblinear with the column, Newton without; a class at a time."""
    X, y = rows(name)
    fit, options = weighted(weighting, len(y))
    solver = "liblinear" if intercept else "newton-cholesky" if X.shape[1] < 500 else "newton-cg"
    classes = np.unique(y)
    found = []
    for positive in classes[1:] if len(classes) == 2 else classes:
        model = sklearn.linear_model.LogisticRegression(
            fit_intercept=intercept, solver=solver, **options, **TIGHT
        )
        found.append(joined(model.fit(X, y == positive, **fit)))
    return np.vstack(found)


@functools.cache
def svc_reference(name, intercept, weighting):
    """Coefficients of scikit-learn's LinearSVC, all classes by itself."""
    X, y = rows(name)
    fit, options = weighted(weighting, len(y))
    model = sklearn.svm.LinearSVC(dual=False, fit_intercept=intercept, **options, **TIGHT)
    return joined(model.fit(X, y, **fit))


@functools.cache
def ridge_reference(name, intercept, weighting):
    """Coefficients of scikit-learn's Ridge, the labels as targets."""
    X, y = rows(name)
    fit, _ = weighted(weighting, len(y))
    solver = "sparse_cg" if X.shape[1] > 500 else "cholesky"
    if solver == "cholesky" and not isinstance(X, np.ndarray):
        X = X.toarray()
    model = sklearn.linear_model.Ridge(fit_intercept=intercept, solver=solver, **TIGHT)
    return joined(model.fit(X, y.astype(float), **fit))


def joined(model):
    """Coefficients and intercepts, one row a model."""
    coef = np.atleast_2d(model.coef_)
    intercept = np.broadcast_to(np.ravel(model.intercept_), len(coef))
    return np.column_stack([coef, intercept])


def relative(model, reference):
    """Distance of a fitted model's numbers to the reference, relative to it."""
    return float(np.linalg.norm(joined(model) - reference) / np.linalg.norm(reference))


LOOSE = (
    "two fits are compared to 1e-7, but each stops at its tol, by default a relative gap of 1e-6; "
    "tests/estimators/test_tight_checks.py shows that the check passes with a small tol"
)


def loose_checks(estimator):
    """Checks that ask for more than the default ``tol`` promises, and why."""
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": LOOSE for kind in ("dense", "sparse")
    }

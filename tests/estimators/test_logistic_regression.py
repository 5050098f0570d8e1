"""LogisticRegression has scikit-learn's coefficients, whatever the number of nodes."""

import numpy as np
import pytest
import sklearn.linear_model
from sklearn.datasets import load_iris
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.class_weight import compute_sample_weight

import adfs
from support.estimators import NODES, WEIGHTINGS, logistic_reference, relative, rows, weighted
from support.selection import covering


@covering(
    name=("breast-cancer", "digits"), intercept=(False, True), weighting=WEIGHTINGS, nodes=NODES
)
def test_coefficients_equal_scikit_learns(name, intercept, weighting, nodes):
    X, y = rows(name)
    fit, options = weighted(weighting, len(y))
    model = adfs.LogisticRegression(fit_intercept=intercept, n_nodes=nodes, tol=1e-13, **options)
    model.fit(X, y, **fit)
    assert relative(model, logistic_reference(name, intercept, weighting)) < 1e-5


@pytest.mark.parametrize("C", [0.01, 30.0])
@pytest.mark.parametrize("scaling", [0.3, 10.0])
def test_C_and_intercept_scaling_are_liblinears(C, scaling):
    X, y = rows("breast-cancer")
    options = {"C": C, "intercept_scaling": scaling}
    model = adfs.LogisticRegression(tol=1e-14, **options).fit(X, y)
    reference = sklearn.linear_model.LogisticRegression(solver="liblinear", tol=1e-12, **options)
    reference.fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-5)


def test_probabilities_are_those_of_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = adfs.LogisticRegression(tol=1e-14).fit(X, y)
    reference = OneVsRestClassifier(
        sklearn.linear_model.LogisticRegression(solver="liblinear", tol=1e-12)
    ).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))


def test_binary_probabilities_are_scikit_learns():
    X, y = rows("breast-cancer")
    model = adfs.LogisticRegression(tol=1e-14).fit(X, y)
    reference = sklearn.linear_model.LogisticRegression(solver="liblinear", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-6)


def test_probabilities_far_from_every_class_are_even():
    X, y = load_iris(return_X_y=True)
    model = adfs.LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.zeros_like(model.coef_), np.full(3, -1e4)
    np.testing.assert_array_equal(model.predict_proba(X[:1]), np.full((1, 3), 1.0 / 3.0))


def test_a_dict_weighs_each_row_by_its_own_class():
    X, y = load_iris(return_X_y=True)
    heavy = {0: 1.0, 1: 3.0, 2: 0.5}
    by_class = adfs.LogisticRegression(class_weight=heavy, tol=1e-12).fit(X, y)
    by_row = adfs.LogisticRegression(tol=1e-12)
    by_row.fit(X, y, sample_weight=compute_sample_weight(heavy, y))
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)


def test_class_and_sample_weights_multiply():
    X, y = rows("breast-cancer")
    weights = np.random.default_rng(1).random(len(y)) + 0.5
    heavy = {0: 2.0, 1: 0.5}
    model = adfs.LogisticRegression(class_weight=heavy, tol=1e-13)
    model.fit(X, y, sample_weight=weights)
    reference = sklearn.linear_model.LogisticRegression(
        class_weight=heavy, solver="liblinear", tol=1e-12
    ).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4, atol=1e-6)


def test_labels_may_be_words():
    X, y = rows("breast-cancer")
    words = np.array(["malignant", "benign"])[y]
    model = adfs.LogisticRegression(tol=1e-12).fit(X, words)
    assert model.classes_.tolist() == ["benign", "malignant"]
    numbers = adfs.LogisticRegression(tol=1e-12).fit(X, 1 - y)
    np.testing.assert_array_equal(model.coef_, numbers.coef_)
    assert set(model.predict(X)) == {"benign", "malignant"}
    assert model.score(X, words) == numbers.score(X, 1 - y)

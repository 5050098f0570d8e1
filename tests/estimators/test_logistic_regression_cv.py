"""LogisticRegressionCV has scikit-learn's folds, scores, best C and coefficients."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn.linear_model
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import adfs
from adfs.errors import ParameterError
from support.estimators import loose_checks, rows

GRID = np.logspace(-3, 0, 4)


def theirs(X, y, weights=None, **options):
    """Scikit-learn's, whose coming changes of defaults are announced."""
    model = sklearn.linear_model.LogisticRegressionCV(
        solver="liblinear", tol=1e-12, max_iter=100_000, **{"scoring": None} | options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return model.fit(X, y, sample_weight=weights)


@parametrize_with_checks(
    [adfs.LogisticRegressionCV(Cs=[0.1, 1.0], cv=2, tol=1e-3, n_nodes=1)],
    expected_failed_checks=loose_checks,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_scores_best_C_and_coefficients_are_scikit_learns(scoring):
    X, y = rows("breast-cancer")
    model = adfs.LogisticRegressionCV(Cs=GRID, scoring=scoring, tol=1e-13).fit(X, y)
    reference = theirs(X, y, Cs=GRID, scoring=scoring)
    np.testing.assert_array_equal(model.C_, reference.C_)
    np.testing.assert_array_equal(model.Cs_, reference.Cs_)
    np.testing.assert_allclose(model.scores_[1], reference.scores_[1], rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-4, atol=1e-6)
    assert model.n_iter_.shape == reference.n_iter_.shape == (1, 5, 4)
    assert model.result_.status == "converged"


def test_without_refit_coefficients_are_means_over_folds():
    X, y = rows("breast-cancer")
    options = {"Cs": GRID, "refit": False, "cv": 3}
    model = adfs.LogisticRegressionCV(tol=1e-11, **options).fit(X, y)
    reference = theirs(X, y, **options)
    np.testing.assert_allclose(model.C_, reference.C_)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4, atol=1e-6)


def test_weights_and_other_folds_are_scikit_learns():
    X, y = rows("breast-cancer")
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    options = {
        "Cs": GRID[:3], "cv": KFold(3, shuffle=True, random_state=0), "fit_intercept": False,
        "class_weight": "balanced", "scoring": "neg_log_loss",
    }  # fmt: skip
    model = adfs.LogisticRegressionCV(tol=1e-11, n_nodes=3, **options)
    model.fit(X, y, sample_weight=weights)
    reference = theirs(X, y, weights, **options)
    np.testing.assert_allclose(model.scores_[1], reference.scores_[1], rtol=1e-5)
    assert model.C_ == reference.C_
    assert model.intercept_ == 0.0


def test_several_classes_share_one_C():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = adfs.LogisticRegressionCV(Cs=[0.1, 1.0, 10.0], cv=3, tol=1e-8).fit(X, names)
    assert list(model.scores_) == list(model.classes_) == sorted(set(names))
    assert model.C_.shape == (3,)
    assert len(set(model.C_)) == 1
    (train, test), *_ = StratifiedKFold(3).split(X, names)
    for k, C in enumerate(model.Cs_):
        one = adfs.LogisticRegression(C=C, tol=1e-8).fit(X[train], names[train])
        assert model.scores_["setosa"][0, k] == accuracy_score(names[test], one.predict(X[test]))
    whole = adfs.LogisticRegression(C=model.C_[0], tol=1e-8).fit(X, names)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-3, atol=1e-4)


def test_values_keep_their_order_and_rows_may_be_sparse():
    X, y = rows("breast-cancer")
    up, down = (
        adfs.LogisticRegressionCV(Cs=Cs, cv=2).fit(csr_matrix(X), y)
        for Cs in ([0.01, 1.0], [1.0, 0.01])
    )
    assert down.Cs_.tolist() == [1.0, 0.01]
    np.testing.assert_array_equal(up.scores_[1], down.scores_[1][:, ::-1])


def test_it_has_no_parameter_that_means_nothing_and_survives_a_pickle():
    model = adfs.LogisticRegressionCV(Cs=[0.1], cv=2)
    assert not {"C", "warm_start"} & set(model.get_params())
    X, y = rows("breast-cancer")
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert len(pickle.dumps(fitted)) < 8 * len(y) + 20_000  # neither rows nor duals


def test_a_run_that_stops_early_is_announced():
    X, y = rows("breast-cancer")
    with (
        pytest.warns(ConvergenceWarning, match="2 of the runs without a fold stopped before tol"),
        pytest.warns(ConvergenceWarning, match="stopped with 'max_iter' after 100 iterations"),
    ):
        adfs.LogisticRegressionCV(Cs=[1.0], cv=2, max_iter=100).fit(X, y)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"Cs": []}, "at least one value"), ({"Cs": [1.0, 0.0]}, "C=0 must be a finite number > 0"),
     ({"refit": 1}, "refit=1 must be True or False"),
     ({"intercept_scaling": 0.0}, "intercept_scaling=0")],
)  # fmt: skip
def test_bad_parameters_are_one_sentence(options, sentence):
    X, y = rows("breast-cancer")
    with pytest.raises(ParameterError, match=sentence):
        adfs.LogisticRegressionCV(**options).fit(X, y)

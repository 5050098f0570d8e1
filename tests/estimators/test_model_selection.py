"""The estimators inside scikit-learn's tools, and what a fitted one carries."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adfs
from adfs.estimators import fitting
from support.estimators import rows

ALL = [adfs.LogisticRegression, adfs.LinearSVC, adfs.Ridge, adfs.HuberRegressor, adfs.LinearSVR]


def test_grid_search_finds_the_regularisation_in_a_pipeline():
    X, y = rows("breast-cancer")
    pipeline = make_pipeline(StandardScaler(), adfs.LogisticRegression(n_nodes=4))
    grid = {"logisticregression__C": [1e-4, 0.1, 10.0], "logisticregression__graph": ["ring"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["logisticregression__C"] in (0.1, 10.0)
    assert search.best_score_ > 0.96
    assert search.best_estimator_[-1].result_.status == "converged"


def test_grid_search_in_other_processes_gives_the_same_scores():
    X, y = rows("breast-cancer")
    grid = {"C": [1e-3, 1.0]}
    alone = GridSearchCV(adfs.LinearSVC(), grid, cv=2).fit(X, y)
    together = GridSearchCV(adfs.LinearSVC(), grid, cv=2, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(
        alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"]
    )


def test_cross_validation_works_with_groups_of_its_own():
    X, y = rows("breast-cancer")
    groups = np.arange(len(y)) % 5
    scores = cross_val_score(adfs.LogisticRegression(), X, y, groups=groups, cv=GroupKFold(3))
    assert scores.shape == (3,)
    assert scores.min() > 0.9
    words = np.array(["no", "yes"])[y]
    assert np.mean(cross_val_predict(adfs.LinearSVC(), X, words, cv=3) == words) > 0.9


def test_meta_estimators_take_them():
    X, y = rows("digits")
    few = y < 3
    calibrated = CalibratedClassifierCV(adfs.LinearSVC(C=0.1), cv=2).fit(X[few], y[few])
    assert calibrated.score(X[few], y[few]) > 0.95
    several = OneVsRestClassifier(adfs.LogisticRegression(tol=1e-10)).fit(X[few], y[few])
    direct = adfs.LogisticRegression(tol=1e-10).fit(X[few], y[few])
    np.testing.assert_array_equal(
        direct.coef_, np.vstack([each.coef_ for each in several.estimators_])
    )


@pytest.mark.parametrize("kind", ALL)
def test_a_clone_has_the_parameters_and_nothing_learnt(kind):
    X, y = rows("breast-cancer")
    model = kind(n_nodes=9, graph=adfs.Topology.ring(9), tau=0.5, random_state=3).fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    assert {**copy.get_params(), "graph": None} == {**model.get_params(), "graph": None}
    assert copy.graph == model.graph
    np.testing.assert_array_equal(copy.fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("kind", ALL)
def test_a_fitted_estimator_does_not_carry_the_data(kind):
    X, y = rows("digits")
    model = kind(n_nodes=2, tol=1e-2).fit(X, y)
    text = pickle.dumps(model)
    assert len(text) < 0.1 * X.nbytes
    np.testing.assert_array_equal(pickle.loads(text).predict(X), model.predict(X))


@pytest.mark.parametrize("algorithm", [*adfs.algorithms.NAMES, "auto"])
def test_every_algorithm_fits_several_classes(algorithm):
    X, y = rows("digits")
    few = y < 3
    kind = adfs.LinearSVC
    loss = "hinge" if algorithm == "ns-adfs" else "squared_hinge"
    model = kind(0.01, loss=loss, algorithm=algorithm, tol=1e-8).fit(X[few], y[few])
    best = kind(0.01, loss=loss, algorithm="auto", tol=1e-11).fit(X[few], y[few])
    np.testing.assert_allclose(model.coef_, best.coef_, atol=2e-3)
    assert {result.status for result in model.result_} == {"converged"}


def test_all_classes_share_one_schedule(monkeypatch):
    X, y = rows("digits")
    chosen = []
    run = fitting.run_named
    monkeypatch.setattr(
        fitting,
        "run_named",
        lambda p, name, setting, *a: chosen.append(setting.rule) or run(p, name, setting, *a),
    )
    model = adfs.LogisticRegression(max_iter=20_000, tol=1e-12)
    with pytest.warns(UserWarning, match="stopped with 'max_iter' after 20000 iterations"):
        model.fit(X, y)
    assert chosen[0] == "tuned"
    assert len(set(map(id, chosen[1:]))) == 1
    spent = ("iteration", "idealized_time", "n_prox", "n_comm")
    last = [[history[name][-1] for name in spent] for history in model.history_]
    assert len(last) == 10
    assert all(each == last[0] for each in last)

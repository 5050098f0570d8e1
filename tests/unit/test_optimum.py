"""The certified optimum against independent solvers: scikit-learn on the same sum, the oracle."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import adfs
from adfs.losses import LOSSES
from adfs.problem.certificate import certify
from oracles import augmented
from support import problems

SMOOTH = [name for name, loss in LOSSES.items() if loss.smooth]
SIGMA = np.array([0.02, 0.5, 0.1, 0.3])
STRETCHED = {"n_samples": 120, "n_features": 6, "noise": 1.0, "scales": (0.3, 3.0)}
make_data = functools.partial(problems.make_data, **STRETCHED)
make_problem = functools.partial(problems.make_problem, sigma=SIGMA, **STRETCHED)


@pytest.mark.parametrize("convert", [np.asarray, np.float32, sp.csr_matrix])
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_optimum_is_certified_to_a_relative_gap_of_1e_12(loss, convert):
    problem = make_problem(loss, convert=convert)
    assert not problem.optimum_is_known
    best = problem.optimum()
    assert problem.optimum_is_known
    assert best.duality_gap <= 1e-12 * best.objective
    assert best.objective == problem.objective(best.theta)
    assert problem.optimum() is best
    found = certify(problem, best.theta)
    assert found.duality_gap == pytest.approx(best.duality_gap, rel=1e-6, abs=1e-30)


@pytest.mark.parametrize("sigma", [1e-6, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_optimum_is_certified_for_weak_and_strong_regularisation(loss, sigma):
    best = make_problem(loss, sigma=sigma).optimum()
    assert best.duality_gap <= 1e-12 * best.objective


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_optimum_is_the_oracles_minimiser(loss):
    X, y = make_data(loss, n_samples=30, n_features=3)
    shards = [(X[:11], y[:11], np.full(11, 0.7)), (X[11:], y[11:], np.ones(19))]
    best = adfs.Problem(shards, loss, [0.2, 0.9]).optimum()
    theta = augmented.minimiser(shards, [0.2, 0.9], loss)
    np.testing.assert_allclose(best.theta, theta, atol=1e-7)
    value = augmented.objective(shards, [0.2, 0.9], loss, best.theta)
    assert best.objective == pytest.approx(value, rel=1e-12)


def test_logistic_is_scikit_learns_with_c_one_over_total_sigma():
    X, y = make_data("logistic")
    theirs = LogisticRegression(C=1 / SIGMA.sum(), fit_intercept=False, tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(
        make_problem("logistic").optimum().theta, theirs.fit(X, y).coef_[0], atol=1e-6
    )


def test_squared_is_scikit_learns_ridge_with_alpha_total_sigma():
    X, y = make_data("squared")
    theirs = Ridge(alpha=SIGMA.sum(), fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(make_problem("squared").optimum().theta, theirs.coef_, atol=1e-9)


def test_squared_hinge_is_scikit_learns_linear_svc():
    X, y = make_data("squared_hinge")
    theirs = LinearSVC(
        C=1 / SIGMA.sum(), loss="squared_hinge", fit_intercept=False, dual=False, tol=1e-12,
        max_iter=100_000,
    )  # fmt: skip
    np.testing.assert_allclose(
        make_problem("squared_hinge").optimum().theta, theirs.fit(X, y).coef_[0], atol=1e-6
    )


def test_huber_is_scikit_learns_at_its_own_scale():
    """HuberRegressor also fits a scale; once that is known, the bend is moved to 1."""
    X, y = make_data("huber")
    theirs = HuberRegressor(
        epsilon=1.5, alpha=0.01, fit_intercept=False, tol=1e-12, max_iter=10_000
    )
    theirs.fit(X, y)
    width = 1.5 * theirs.scale_
    # Theirs is the sum of residual^2 / scale (inside) and alpha |theta|^2, times scale / 2 width^2.
    sigma = 0.01 * theirs.scale_ / width**2
    ours = adfs.Problem([(X / width, y / width)], "huber", sigma).optimum()
    np.testing.assert_allclose(ours.theta, theirs.coef_, atol=1e-4)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("loss", SMOOTH)
def test_conjugate_gradients_serve_beyond_the_dense_limit(loss, convert, monkeypatch):
    direct = make_problem(loss, convert=convert).optimum()
    monkeypatch.setattr("adfs.problem.optimum.DENSE_HESSIAN_LIMIT", 0)
    iterative = make_problem(loss, convert=convert).optimum()
    assert iterative.duality_gap <= 1e-12 * iterative.objective
    np.testing.assert_allclose(iterative.theta, direct.theta, atol=1e-7)


def test_more_features_than_samples_is_no_obstacle():
    rng = np.random.default_rng(1)
    X = sp.random(60, 2000, 0.01, format="csr", random_state=2)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    best = adfs.Problem(adfs.partition(X, y, 3), "logistic", 0.01).optimum()
    assert best.duality_gap <= 1e-12 * best.objective


@pytest.mark.parametrize("loss", SMOOTH)
def test_one_sample_one_feature_has_an_optimum(loss):
    label = 1 if not LOSSES[loss].binary else None
    y = [label, label] if label else [0, 1]
    problem = adfs.Problem([([[2.0], [0.5]], y)], loss, 0.1)
    best = problem.optimum()
    grid = np.linspace(best.theta[0] - 1, best.theta[0] + 1, 20_001)
    values = [problem.objective([theta]) for theta in grid]
    assert best.objective <= min(values) + 1e-12
    assert abs(grid[int(np.argmin(values))] - best.theta[0]) < 1e-3

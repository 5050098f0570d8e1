"""The certified optimum of the hinge and the absolute loss, against solvers that share nothing."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, lsq_linear
from sklearn.svm import LinearSVC

import adfs
from adfs.data import datasets
from support import problems

LOSSES = ("hinge", "absolute")
SIGMA = np.array([0.02, 0.5, 0.1, 0.3])
STRETCHED = {"n_samples": 120, "n_features": 6, "noise": 1.0, "scales": (0.3, 3.0)}
make_data = functools.partial(problems.make_data, **STRETCHED)
CONVERT = {"dense": np.asarray, "float32": np.float32, "csr": sp.csr_matrix}


def make_problem(loss, kind="dense"):
    return problems.make_problem(loss, sigma=SIGMA, convert=CONVERT[kind], **STRETCHED)


def objective(loss, X, y, weights, sigma, theta):
    """F by its definition."""
    scores = X @ theta
    losses = np.maximum(0.0, 1.0 - y * scores) if loss == "hinge" else np.abs(scores - y)
    return weights @ losses + 0.5 * sigma * theta @ theta


def slopes(loss, y, weights):
    """The two ends of the subdifferential of ``w l``: the dual's box."""
    if loss == "absolute":
        return -weights, weights
    return np.minimum(0.0, -y * weights), np.maximum(0.0, -y * weights)


def exact_minimiser(loss, X, y, weights, sigma):
    """The best of all ``3^N`` ways to put every dual coefficient at a bound or inside."""
    low, high = slopes(loss, y, weights)
    best, best_value = None, np.inf
    for choice in itertools.product((0, 1, 2), repeat=len(y)):
        choice = np.array(choice)
        c, free = np.where(choice == 0, low, high), choice == 2
        rest = X[~free].T @ c[~free]
        # d/dc of |X^T c|^2 / (2 sigma) + y . c is zero for the free ones
        c[free] = np.linalg.lstsq(
            X[free] @ X[free].T, -sigma * y[free] - X[free] @ rest, rcond=None
        )[0]
        c = np.clip(c, low, high)
        theta = -X.T @ c / sigma
        value = objective(loss, X, y, weights, sigma, theta)
        if value < best_value:
            best, best_value = theta, value
    return best, best_value


def assert_certified(best, relative=1e-13):
    # A kink lets rounding of F(0), of order one, into the gap.
    assert 0.0 <= best.duality_gap <= relative * max(1.0, best.objective)


def assert_optimal(loss, X, y, weights, sigma, theta, atol):
    """Zero is a subgradient: off the kink c is given, at it the best of the box is taken."""
    low, high = slopes(loss, y, weights)
    residual = X @ theta - y  # of the hinge too: it bends where s = y
    kink = np.abs(residual) < 1e-7
    c = np.where(residual > 0, high, low)
    rest = sigma * theta + X[~kink].T @ c[~kink]
    slope = rest
    if kink.any():
        bounds = (low[kink], high[kink])
        slope = rest + X[kink].T @ lsq_linear(X[kink].T, -rest, bounds, tol=1e-14).x
    np.testing.assert_allclose(slope, 0.0, atol=atol)


@pytest.mark.parametrize("kind", CONVERT)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_certified_to_a_relative_gap_of_1e_13(loss, kind):
    problem = make_problem(loss, kind)
    best = problem.optimum()
    assert_certified(best)
    assert best.objective == problem.objective(best.theta)
    assert problem.optimum() is best


@pytest.mark.parametrize("sigma", [1e-6, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("loss", LOSSES)
def test_zero_is_a_subgradient_for_weak_and_strong_regularisation(loss, sigma):
    X, y = make_data(loss)
    best = adfs.Problem([(X, y)], loss, sigma).optimum()
    assert_certified(best)
    # A gap of 1e-13 F allows a slope of sqrt(2e-13 sigma F).
    atol = 1e-7 * max(1.0, np.sqrt(sigma))
    assert_optimal(loss, X, y, np.ones(len(y)), sigma, best.theta, atol)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loss", LOSSES)
def test_tiny_problems_have_the_minimiser_of_an_exhaustive_search(loss, seed):
    """Weights, a row twice, a zero row, a sample of weight zero; sigma differs over the nodes."""
    rng = np.random.default_rng(seed)
    X, y = make_data(loss, seed=seed, n_samples=7, n_features=3)
    weights = rng.uniform(0.2, 3.0, 7)
    X[1], X[2], weights[3], y[5], y[6] = X[0], 0.0, 0.0, 1.0, -1.0
    sigma = 10.0 ** rng.uniform(-2, 1, 2)
    shards = [(X[:4], y[:4], weights[:4]), (X[4:], y[4:], weights[4:])]
    best = adfs.Problem(shards, loss, sigma).optimum()
    theta, value = exact_minimiser(loss, X, y, weights, sigma.sum())
    assert_certified(best)
    assert best.objective == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(best.theta, theta, atol=1e-7)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_hinge_is_scikit_learns_linear_svc_with_c_one_over_total_sigma(C):
    X, y = make_data("hinge")
    best = adfs.Problem(adfs.partition(X, y, 4), "hinge", 0.25 / C).optimum()
    theirs = linear_svc(X, y, C, tol=1e-10)
    value = objective("hinge", X, y, np.ones(len(y)), 1 / C, theirs)
    assert best.objective - 1e-12 <= value <= best.objective * (1 + 1e-8)
    np.testing.assert_allclose(best.theta, theirs, atol=1e-4)


@pytest.mark.realdata
def test_hinge_is_scikit_learns_on_a_part_of_a9a(data_folder):
    X, y = datasets.load("a9a")
    X, y = X[:3000], np.where(y[:3000] > 0, 1.0, -1.0)
    best = adfs.Problem(adfs.partition(X, y, 4), "hinge", 0.25).optimum()
    assert_certified(best)
    value = objective("hinge", X, y, np.ones(len(y)), 1.0, linear_svc(X, y, 1.0, tol=1e-6))
    assert best.objective * (1 - 1e-13) <= value <= best.objective * (1 + 1e-6)


def linear_svc(X, y, C, tol):
    model = LinearSVC(
        loss="hinge", dual=True, C=C, fit_intercept=False, tol=tol, max_iter=2_000_000
    )
    return model.fit(X, y).coef_[0]


def test_absolute_at_a_tiny_sigma_is_the_vertex_that_linear_programming_finds():
    """The ridge does not move a vertex whose dual coefficients are inside the box."""
    X, y = make_data("absolute", n_samples=40, n_features=3)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, 40)
    eye = np.eye(40)
    program = linprog(
        np.concatenate([np.zeros(3), weights]), np.block([[X, -eye], [-X, -eye]]),
        np.concatenate([y, -y]), bounds=[(None, None)] * 3 + [(0, None)] * 40,
    )  # fmt: skip
    best = adfs.Problem([(X, y, weights)], "absolute", 1e-6).optimum()
    theta = program.x[:3]
    np.testing.assert_allclose(best.theta, theta, atol=1e-10)
    assert best.objective == pytest.approx(program.fun + 0.5e-6 * theta @ theta, rel=1e-12)


def test_separable_data_at_a_tiny_sigma_have_the_largest_margin():
    """Four points whose nearest pair across is (1, 1) and (-1, -1): theta = (1/2, 1/2)."""
    X = np.array([[1.0, 1.0], [3.0, 1.5], [-1.0, -1.0], [-2.0, -4.0]])
    best = adfs.Problem([(X, [1, 1, -1, -1])], "hinge", 1e-6).optimum()
    np.testing.assert_allclose(best.theta, [0.5, 0.5], atol=1e-9)
    assert best.objective == pytest.approx(0.25e-6, rel=1e-9)
    assert best.duality_gap <= 1e-9 * best.objective


@pytest.mark.parametrize("sigma", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("target", [0.0, 3.0, -0.2])
def test_one_sample_has_the_closed_form_minimiser(sigma, target):
    """Along x, up to where ``w |s - b|`` has no slope left or the prediction is exact."""
    x, weight = np.array([2.0, -1.0]), 0.7
    best = adfs.Problem([([x], [target], [weight])], "absolute", sigma).optimum()
    size = np.clip(target / 5.0, -weight / sigma, weight / sigma)
    np.testing.assert_allclose(best.theta, size * x, atol=1e-14, rtol=1e-10)
    assert_certified(best)


@pytest.mark.parametrize("kind", CONVERT)
@pytest.mark.parametrize("loss", LOSSES)
def test_more_features_than_samples_is_no_obstacle(loss, kind):
    X, y = make_data(loss, n_samples=20, n_features=50, noise=0.0)
    X, y = np.vstack([X, X[:5]]), np.concatenate([y, y[:5]])
    best = adfs.Problem([(CONVERT[kind](X), y)], loss, 1e-3).optimum()
    assert_certified(best)
    stored = CONVERT[kind](X).astype(np.float64) @ np.eye(50)
    assert_optimal(loss, stored, y, np.ones(25), 1e-3, best.theta, atol=1e-8)


@pytest.mark.parametrize("kind", CONVERT)
@pytest.mark.parametrize("loss", LOSSES)
def test_conjugate_gradients_serve_beyond_both_dense_limits(loss, kind, monkeypatch):
    """With room for fewer heavy samples than there are kinks, and for none of the features."""
    direct = make_problem(loss, kind).optimum()
    monkeypatch.setattr("adfs.problem.optimum.DENSE_HESSIAN_LIMIT", 0)
    monkeypatch.setattr("adfs.problem.box_dual.SAMPLE_LIMIT", 5)
    iterative = make_problem(loss, kind).optimum()
    assert_certified(iterative)
    np.testing.assert_allclose(iterative.theta, direct.theta, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_counts_as_that_many_copies(loss):
    X, y = make_data(loss, n_samples=30)
    weights = np.arange(30) % 4
    weighted = adfs.Problem([(X, y, weights)], loss, 0.3).optimum()
    copied = adfs.Problem([(np.repeat(X, weights, 0), np.repeat(y, weights))], loss, 0.3).optimum()
    assert weighted.objective == pytest.approx(copied.objective, rel=1e-13)
    np.testing.assert_allclose(weighted.theta, copied.theta, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_targets_of_any_size_are_fitted(scale):
    """F with targets and theta times k and sigma over k is k F."""
    X, y = make_data("absolute")
    unit = adfs.Problem([(X, y)], "absolute", 0.5).optimum()
    scaled = adfs.Problem([(X, scale * y)], "absolute", 0.5 / scale).optimum()
    np.testing.assert_allclose(scaled.theta, scale * unit.theta, atol=1e-9 * scale)
    assert scaled.objective == pytest.approx(scale * unit.objective, rel=1e-12)


def test_targets_that_are_all_zero_have_the_optimum_zero():
    X, _ = make_data("absolute")
    best = adfs.Problem([(X, np.zeros(len(X)))], "absolute", 0.5).optimum()
    assert best.objective == best.duality_gap == 0.0
    assert not best.theta.any()

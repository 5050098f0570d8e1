"""APCG's solutions are those that scikit-learn and SciPy find."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import lsq_linear, minimize
from sklearn.linear_model import ElasticNet, Lasso

from adfs.apcg.penalties import Penalty
from adfs.apcg.smooth import LeastSquares, Quadratic, SmoothFunction
from adfs.apcg.solver import apcg


def regression(m, n, seed=0):
    generator = np.random.default_rng(seed)
    K = generator.standard_normal((m, n)) * (generator.random((m, n)) < 0.5)
    return K, K[:, :3].sum(axis=1) + 0.3 * generator.standard_normal(m)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("m", "n"), [(80, 20), (15, 25)])
def test_lasso_agrees_with_scikit_learn(m, n, sparse):
    K, c = regression(m, n)
    strength = 0.2 * np.abs(K.T @ c).max()
    mine = apcg(LeastSquares(sp.csc_array(K) if sparse else K, c), Penalty(l1=strength), tol=1e-10)
    theirs = Lasso(strength / m, fit_intercept=False, tol=1e-14, max_iter=10**6).fit(K, c)
    assert mine.status == "converged"
    assert mine.parameters.form == ("strongly-convex" if m > n else "convex")
    np.testing.assert_allclose(mine.x, theirs.coef_, rtol=0, atol=1e-8)
    assert (mine.x == 0.0).sum() == (theirs.coef_ == 0.0).sum() > 0


def test_elastic_net_agrees_with_scikit_learn_however_its_ridge_is_told():
    K, c = regression(15, 25)
    theirs = ElasticNet(0.1, l1_ratio=0.5, fit_intercept=False, tol=1e-14, max_iter=10**6)
    coefficients = theirs.fit(K, c).coef_
    l1 = l2 = 0.1 * 0.5 * 15
    inside = apcg(LeastSquares(K, c, ridge=l2), Penalty(l1=l1), tol=1e-11)
    outside = apcg(LeastSquares(K, c), Penalty(l1=l1, l2=l2), tol=1e-10)
    assert (inside.parameters.form, outside.parameters.form) == ("strongly-convex", "convex")
    np.testing.assert_allclose(inside.x, coefficients, rtol=0, atol=1e-8)
    np.testing.assert_allclose(outside.x, coefficients, rtol=0, atol=1e-8)


@pytest.mark.parametrize("low", [0.0, np.linspace(-0.3, 0.4, 20)], ids=["zero", "each"])
def test_box_constrained_least_squares_agrees_with_scipy(low):
    K, c = regression(80, 20)
    high = np.linspace(0.5, 1.0, 20)
    mine = apcg(LeastSquares(K, c), Penalty(low=low, high=high), tol=1e-12)
    theirs = lsq_linear(K, c, bounds=(np.broadcast_to(low, 20), high), method="bvls", tol=1e-14)
    np.testing.assert_allclose(mine.x, theirs.x, rtol=0, atol=1e-8)
    assert (mine.x == low).sum() > 3
    assert mine.objective == pytest.approx(theirs.cost, rel=1e-12)


@pytest.mark.parametrize("m", [30, 8])
def test_without_a_penalty_it_solves_the_normal_equations(m):
    K, c = regression(m, 12)
    H, b = K.T @ K, K.T @ c
    least = np.linalg.lstsq(K, c, rcond=None)[0]
    projector = np.linalg.pinv(K) @ K
    for f in (Quadratic(H, b), Quadratic(sp.csr_array(H), b), LeastSquares(K, c)):
        result = apcg(f, tol=1e-12)
        assert result.status == "converged"
        assert result.parameters.form == "strongly-convex"
        np.testing.assert_allclose(H @ result.x, b, rtol=0, atol=1e-9)
        np.testing.assert_allclose(projector @ result.x, least, rtol=0, atol=1e-9)


def test_a_function_that_is_no_quadratic_agrees_with_scipy():
    """``sum_j log cosh((Kx - c)_j)`` by its coordinate gradients, with ``M_i = |K_i|^2``."""
    K, c = regression(30, 6)
    K, c = K / 3, c / 3

    def gradient(i, y):
        return K[:, i] @ np.tanh(K @ np.asarray(y) - c)

    f = SmoothFunction(gradient, np.sum(K**2, axis=0), lambda x: np.log(np.cosh(K @ x - c)).sum())
    result = apcg(f, Penalty(l2=0.05), tol=1e-9)
    best = minimize(
        lambda x: np.log(np.cosh(K @ x - c)).sum() + 0.025 * x @ x, np.zeros(6), tol=1e-12
    )
    assert result.status == "converged"
    assert result.parameters.form == "convex"
    np.testing.assert_allclose(result.x, best.x, rtol=0, atol=1e-6)
    assert result.objective <= best.fun + 1e-14


def test_examples_of_the_documentation_run_and_arrive():
    page = (Path(__file__).parents[2] / "docs" / "algorithms" / "apcg.md").read_text()
    names = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(code, "apcg.md", "exec"), names)
    assert names["lasso"].status == names["bounded"].status == "converged"
    assert 0 < (names["lasso"].x != 0.0).sum() < 200
    np.testing.assert_allclose(names["consensus"], names["values"].mean(), rtol=0, atol=1e-8)

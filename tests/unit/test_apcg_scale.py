"""Units do not matter: neither for the answer nor for the belief that it has been reached."""

import numpy as np
import pytest

from adfs.apcg.array_checks import norm
from adfs.apcg.penalties import Penalty
from adfs.apcg.smooth import LeastSquares, Quadratic, SmoothFunction
from adfs.apcg.solver import apcg

H = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
B = np.array([1.0, 0.0, -1.0])
UNITS = (1e-49, 1e-20, 1.0, 1e20, 3e49)


@pytest.mark.parametrize("form", ["auto", "convex"])
@pytest.mark.parametrize("of_h", UNITS)
@pytest.mark.parametrize("of_b", UNITS)
def test_in_any_units_the_answer_is_the_same(of_h, of_b, form):
    best = np.array([0.6, -0.2, -1.0]) * (of_b / of_h)
    for f in (Quadratic(H * of_h / 3, B * of_b / 3), LeastSquares(H * of_h / 3, B * of_b / 3)):
        result = apcg(f, form=form, tol=1e-9)
        assert result.status == "converged"
        np.testing.assert_allclose(result.x, best, rtol=1e-6)


@pytest.mark.parametrize("unit", UNITS)
def test_where_the_gradient_at_zero_vanishes_the_first_residual_is_the_unit(unit):
    def gradient(i, y):
        return unit / 3 * (H[i] @ np.asarray(y))

    for f in (Quadratic(H * unit / 3), SmoothFunction(gradient, np.diag(H) * unit / 3)):
        free = apcg(f, x0=[1.0, 2.0, 3.0])
        assert free.status == "converged"
        np.testing.assert_allclose(free.x, 0.0, rtol=0, atol=1e-6)
        boxed = apcg(f, Penalty(low=[1.0, -np.inf, -1.0]), x0=[1.0, 2.0, 3.0])
        np.testing.assert_allclose(boxed.x, [1.0, -1 / 3, 0.0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-200, 1.0, 1e200, 3e307])
def test_norm_keeps_its_squares_in_range(unit):
    assert norm(np.array([3.0, -4.0, 0.0]) * unit) == pytest.approx(5.0 * unit, rel=1e-12)
    assert norm(np.zeros(3)) == norm(np.zeros(0)) == 0.0
    assert np.isnan(norm(np.array([1.0, np.nan])))
    assert norm(np.array([1.0, -np.inf])) == np.inf


def test_where_squares_fit_norm_is_numpys_to_the_bit():
    vector = np.random.default_rng(0).standard_normal(50) * 1e7
    assert norm(vector) == np.linalg.norm(vector)

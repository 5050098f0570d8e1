"""The plain proximal step of one sample: against brute force, and against 50 digits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from adfs.kernels import prox
from adfs.losses import LOSSES
from oracles import losses as literal
from oracles import point_saga

pytestmark = pytest.mark.uncompiled
SMOOTH = [name for name, loss in LOSSES.items() if loss.smooth]
FACTORS = [0.0, 1e-9, 0.01, 0.6, 3.0, 100.0, 1e7]
STARTS = [0.0, -1.0, 40.0, 1e8, -1e8, 1e300]


def labels(loss):
    return (-1.0, 1.0) if LOSSES[loss].binary else (-1.7, 0.6)


def solve(loss, b, k, target, warm=0.0, slope=0.0):
    return prox.slope_after(LOSSES[loss].code, b, k, target, warm, slope)


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_step_is_the_minimiser_found_from_values_alone(loss):
    """u = zeta - g w l' x minimises |u - zeta|^2 / (2 g) + w l(x . u): scipy on values, 1-D."""
    for g in (0.05, 0.8, 6.0):
        for w, q in ((1.0, 2.3), (0.2, 0.4), (3.0, 1.1)):
            for b in labels(loss):
                for target in (-6.0, -1.2, 0.1, 0.9, 2.5):

                    def objective(c, g=g, w=w, q=q, b=b, target=target):
                        # u = zeta - g c x, so |u - zeta|^2 = g^2 c^2 q and x . u = target - g c q
                        return g * c * c * q / 2 + float(
                            literal.value(loss, target - g * c * q, b, w)
                        )

                    best = minimize_scalar(objective, bracket=(-1.0, 1.0), tol=1e-12).x
                    found = w * solve(loss, b, g * w * q, target)[0]
                    assert found == pytest.approx(best, abs=2e-7 * (1 + abs(best)))
                    assert objective(found) <= objective(best) + 1e-14 * abs(objective(best))


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("ridge", [0.0, 0.3, 50.0])
def test_the_step_with_a_ridge_is_the_vector_found_by_bisection(loss, ridge):
    rng = np.random.default_rng(5)
    for g in (0.02, 0.7, 30.0):
        for b in labels(loss):
            x, z = rng.standard_normal((2, 4))
            w = rng.uniform(0.1, 3.0)
            expected = point_saga.prox(loss, (x, b, w), g, ridge, z)
            inside = g / (1 + g * ridge)
            slope, _ = solve(loss, b, inside * w * (x @ x), x @ z / (1 + g * ridge))
            found = z / (1 + g * ridge) - inside * w * slope * x
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * (1 + abs(z).max()))


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("k", FACTORS)
def test_the_slope_is_the_derivative_at_the_solution(loss, k):
    """Built backwards: choose s, form the target, expect l'(s)."""
    for b in labels(loss):
        for s in (-8.0, -0.4, 0.0, 0.3, 0.8, 2.2, 9.0):
            expected = float(literal.derivative(loss, s, b))
            for warm in (0.0, s, s + 1e-3, -s, 5.0):
                known = float(literal.derivative(loss, warm, b))
                for slope in (0.0, known):
                    found, _ = solve(loss, b, k, s + k * expected, warm, slope)
                    assert found == pytest.approx(expected, rel=1e-9, abs=1e-13)


def precise(k, target):
    """(m, sigmoid(-m)) with m - k sigmoid(-m) = target in 50 digits, by bisection."""
    with localcontext() as context:
        context.prec = 50
        k, target = Decimal(k), Decimal(target)
        low, high = target, target + k
        for _ in range(200):
            m = (low + high) / 2
            p = 1 / (1 + m.exp()) if abs(m) < 5000 else Decimal(int(m < 0))
            low, high = (low, m) if m - k * p > target else (m, high)
        return float(low), float(1 / (1 + low.exp()))


@pytest.mark.parametrize("k", FACTORS)
def test_the_logistic_step_has_twelve_relative_digits_from_any_start(k):
    for target in (-200.0, -30.0, -2.0, 0.0, 0.7, 8.0, 40.0):
        m, p = precise(k, target)
        # A rounding of the target is felt, divided by the slope of the equation, as one of m.
        noise = 1e-13 + 4e-16 * (abs(target) + k * p) / (1 + k * p * (1 - p))
        for warm in (*STARTS, m, m + 1e-7, m - 3e-3, m + 0.5):
            slopes = [0.0] if abs(warm) > 50 else [0.0, -1 / (1 + math.exp(warm))]
            for slope in slopes:
                for b in (-1.0, 1.0):
                    found, s = solve("logistic", b, k, b * target, b * warm, b * slope)
                    assert abs(b * s - m) <= noise * (1 + abs(m)), (target, warm, slope)
                    assert abs(-b * found - p) <= noise * p * (1 + abs(m)) + 1e-300


def test_the_search_never_runs_out_of_iterations():
    rng = np.random.default_rng(3)
    for _ in range(5_000):
        k = math.exp(rng.uniform(-20, 20))
        target = rng.normal(0, 30) - k * rng.random()
        warm = rng.choice([0.0, 1e8, -1e8, rng.normal(0, 30)])
        slope = rng.choice([0.0, float(literal.derivative("logistic", warm, 1.0))])
        found, s = solve("logistic", 1.0, k, target, warm, slope)
        assert abs(s + k * found - target) <= 1e-13 * (abs(s) + abs(k * found) + abs(target))
        exact = float(literal.derivative("logistic", s, 1.0))
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-300)


def test_a_good_start_costs_no_exponential(monkeypatch):
    def refuse(*_):
        raise AssertionError("the search was asked")

    function = getattr(prox.logistic_margin, "py_func", prox.logistic_margin)
    monkeypatch.setitem(function.__globals__, "logistic_search", refuse)
    for k in (0.01, 0.6, 100.0):
        for m in (-8.0, -1.0, 0.0, 2.0, 8.0):
            p = 1 / (1 + math.exp(m))
            start = m + 0.5 * prox.CLOSE / (1 + k * p * (1 - p))
            known = 1 / (1 + math.exp(start))
            found, margin = function(k, m - k * p, start, known)
            assert margin == pytest.approx(m, abs=1e-13 * (1 + k))
            assert found == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize("loss", [name for name in SMOOTH if name != "logistic"])
def test_a_closed_form_leaves_the_warm_start_alone(loss):
    assert solve(loss, 1.0, 0.7, 0.1, warm=0.123)[1] == 0.123


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_slope_stays_in_the_domain_of_the_conjugate(loss):
    for b in labels(loss):
        low, high = literal.conjugate_domain(loss, b)
        for target in (-1e9, -1.0, 0.0, 1.0, 1e9):
            for k in FACTORS:
                assert low <= solve(loss, b, k, target)[0] <= high

"""Every registered loss against its textbook definition, finite differences and 60 digits.

One matrix of claims for all: `LOSSES` is the registry, so a loss added later is tested here too.
"""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from adfs.errors import ParameterError
from adfs.kernels import loss_functions
from adfs.losses import LOSSES, Loss, get_loss
from oracles import losses as literal

pytestmark = pytest.mark.uncompiled
NAMES = list(LOSSES)
SMOOTH = [name for name in NAMES if LOSSES[name].smooth]
SCORES = [-1e4, -750.0, -50.0, -3.3, -1.0, -0.2, 0.0, 1e-9, 0.7, 1.0, 2.0, 2.5, 50.0, 750.0, 1e4]
DUALS = [-1.0, -0.999, -0.3, -1e-3, -1e-20, 0.0]  # times the label, for the losses of a margin


def targets(loss):
    return (-1.0, 1.0) if LOSSES[loss].binary else (-1.7, 0.0, 0.6)


def cases(loss, scores=SCORES):
    return [(s, b) for s in scores for b in targets(loss)]


def duals(loss, b):
    """Coefficients in the domain of the conjugate, its ends included."""
    low, high = literal.conjugate_domain(loss, b)
    inside = [b * u for u in DUALS] if LOSSES[loss].binary else [*DUALS, 0.4, 1.0]
    outer = {-math.inf: [-30.0], math.inf: [30.0]}
    return inside + outer.get(low, []) + outer.get(high, [])


def code(loss):
    return LOSSES[loss].code


def test_the_registry_and_the_oracle_know_the_same_losses():
    assert sorted(NAMES) == sorted(literal.LOSSES)
    assert sorted(SMOOTH) == sorted(literal.SMOOTH)
    assert sorted(loss.code for loss in LOSSES.values()) == list(range(len(NAMES)))


@pytest.mark.parametrize("loss", NAMES)
def test_declared_smoothness_is_the_oracles_curvature_bound(loss):
    assert LOSSES[loss].max_curvature == literal.curvature_bound(loss)


def test_an_unknown_loss_is_refused_with_the_list_of_names():
    with pytest.raises(ParameterError, match="loss='log' is not known; choose one of logistic,"):
        get_loss("log")


def test_get_loss_takes_a_name_or_a_loss():
    assert get_loss("huber") is LOSSES["huber"]
    assert isinstance(get_loss("huber"), Loss)
    assert get_loss(LOSSES["hinge"]) is LOSSES["hinge"]


@pytest.mark.parametrize("loss", NAMES)
def test_value_is_the_textbook_formula(loss):
    for s, b in cases(loss):
        expected = literal.value(loss, s, b)
        assert loss_functions.value(code(loss), s, b) == pytest.approx(
            expected, rel=1e-14, abs=1e-300
        )


@pytest.mark.parametrize("loss", NAMES)
def test_derivative_is_the_textbook_formula(loss):
    for s, b in cases(loss):
        kink = 1 - b * s if LOSSES[loss].binary else s - b
        if kink == 0 and not LOSSES[loss].smooth:
            continue
        expected = literal.derivative(loss, s, b)
        assert loss_functions.derivative(code(loss), s, b) == pytest.approx(
            expected, rel=1e-14, abs=0
        )


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_at_a_kink_the_subgradient_is_zero(loss):
    for b in targets(loss):
        kink = b if loss == "absolute" else 1 / b
        assert loss_functions.derivative(code(loss), kink, b) == 0.0


@pytest.mark.parametrize("loss", NAMES)
def test_derivative_is_the_slope_of_the_value(loss):
    step = 1e-6
    for s, b in cases(loss, [-4.37, -1.21, -0.31, 0.43, 0.77, 1.9, 3.11]):
        rise = loss_functions.value(code(loss), s + step, b) - loss_functions.value(
            code(loss), s - step, b
        )
        assert loss_functions.derivative(code(loss), s, b) == pytest.approx(
            rise / (2 * step), abs=1e-8
        )


@pytest.mark.parametrize("loss", NAMES)
def test_curvature_is_the_slope_of_the_derivative_and_stays_below_its_bound(loss):
    step = 1e-6
    for s, b in cases(loss, [-4.37, -1.21, -0.31, 0.43, 0.77, 1.9, 3.11]):
        rise = loss_functions.derivative(code(loss), s + step, b)
        rise -= loss_functions.derivative(code(loss), s - step, b)
        curvature = loss_functions.curvature(code(loss), s, b)
        assert curvature == pytest.approx(rise / (2 * step), abs=1e-8)
        assert 0.0 <= curvature <= LOSSES[loss].max_curvature


@pytest.mark.parametrize("loss", NAMES)
def test_nothing_overflows_at_a_score_of_ten_thousand(loss):
    for s in (-1e4, 1e4):
        for b in targets(loss):
            c = loss_functions.clip(code(loss), b, loss_functions.derivative(code(loss), s, b))
            numbers = [
                loss_functions.value(code(loss), s, b),
                loss_functions.curvature(code(loss), s, b),
                loss_functions.conjugate(code(loss), b, c),
                loss_functions.fenchel_gap(code(loss), s, b, c),
                *(loss_functions.fenchel_gap(code(loss), s, b, other) for other in duals(loss, b)),
            ]
            assert np.isfinite(numbers).all()


def test_the_logistic_derivative_keeps_its_digits_in_the_tail():
    with localcontext() as context:
        context.prec = 40
        for s in (30.0, 50.0, 700.0):
            exact = -1 / (1 + Decimal(s).exp())
            found = loss_functions.derivative(loss_functions.LOGISTIC, s, 1.0)
            assert found == pytest.approx(float(exact), rel=1e-14, abs=0)


@pytest.mark.parametrize("loss", NAMES)
def test_conjugate_is_the_textbook_formula_and_infinite_outside_its_domain(loss):
    for b in targets(loss):
        for c in duals(loss, b):
            expected = literal.conjugate(loss, c, b)
            assert loss_functions.conjugate(code(loss), b, c) == pytest.approx(
                expected, rel=1e-13, abs=1e-19
            )
        for end, outward in zip(literal.conjugate_domain(loss, b), (-1.0, 1.0), strict=True):
            if math.isfinite(end):
                assert loss_functions.conjugate(code(loss), b, end + 1e-9 * outward) == math.inf


@pytest.mark.parametrize("loss", NAMES)
def test_conjugate_is_the_largest_c_s_minus_l(loss):
    grid = np.linspace(-60.0, 60.0, 240_001)
    for b in targets(loss):
        values = literal.value(loss, grid, b)
        for c in duals(loss, b):
            highest = np.max(c * grid - values)
            assert loss_functions.conjugate(code(loss), b, c) == pytest.approx(highest, abs=1e-6)


@pytest.mark.parametrize("loss", NAMES)
def test_clip_is_the_nearest_point_of_the_domain(loss):
    for b in targets(loss):
        low, high = literal.conjugate_domain(loss, b)
        for c in (-1e300, -40.0, -1.0000001, -1.0, -0.5, 0.0, 0.5, 1.0, 1.0000001, 40.0, 1e300):
            clipped = loss_functions.clip(code(loss), b, c)
            assert clipped == min(max(c, low), high)
            assert math.isfinite(loss_functions.conjugate(code(loss), b, clipped)) or abs(c) > 1e100


@pytest.mark.parametrize("loss", NAMES)
def test_every_derivative_lies_in_the_domain_of_the_conjugate(loss):
    for s, b in cases(loss):
        c = loss_functions.derivative(code(loss), s, b)
        assert loss_functions.clip(code(loss), b, c) == c


def precise_value(loss, s, b):
    margin, residual = b * s, s - b
    if loss == "logistic":
        return (1 + (-margin).exp()).ln() if margin > 0 else (1 + margin.exp()).ln() - margin
    if loss == "squared":
        return residual**2 / 2
    if loss == "huber":
        return residual**2 / 2 if abs(residual) <= 1 else abs(residual) - Decimal("0.5")
    if loss == "absolute":
        return abs(residual)
    violation = max(Decimal(0), 1 - margin)
    if loss == "squared_hinge":
        return violation**2
    if loss == "hinge":
        return violation
    return violation**2 / 2 if violation <= 1 else violation - Decimal("0.5")


def precise_gap(loss, s, b, c):
    """``l(s) + l*(c) - c s`` for the doubles s, b, c, in more digits than cancellation can eat."""
    with localcontext() as context:
        context.prec = 400 if abs(s) > 100 else 120
        s, b, c = Decimal(float(s)), Decimal(float(b)), Decimal(float(c))
        return precise_value(loss, s, b) + literal.conjugate(loss, c, b, Decimal(1)) - c * s


@pytest.mark.parametrize("loss", NAMES)
def test_fenchel_gap_agrees_with_many_digits_over_all_scores_and_duals(loss):
    for s, b in cases(loss):
        for c in duals(loss, b):
            exact = float(precise_gap(loss, s, b, c))
            found = loss_functions.fenchel_gap(code(loss), s, b, c)
            assert found >= 0.0
            assert found == pytest.approx(exact, rel=1e-12, abs=1e-25), (s, b, c)


@pytest.mark.parametrize("loss", NAMES)
@pytest.mark.parametrize("relative", [1e-1, 1e-3, 1e-6, 1e-9])
def test_tiny_fenchel_gaps_keep_the_digits_that_their_arguments_have(loss, relative):
    """A rounding of c or of the score moves the gap by 2 eps / relative: no more is lost."""
    smallest = 1.0
    for s, b in cases(loss, [-20.0, -8.0, -1.5, -0.6, 0.3, 1.4, 5.0, 12.0, 20.0, 28.0]):
        centre = loss_functions.derivative(code(loss), s, b)
        for sign in (-1.0, 1.0):
            c = loss_functions.clip(code(loss), b, centre * (1.0 + sign * relative))
            exact = float(precise_gap(loss, s, b, c))
            found = loss_functions.fenchel_gap(code(loss), s, b, c)
            assert found >= 0.0
            if exact > 0.0:
                smallest = min(smallest, exact)
                condition = (abs(s) + abs(b) + 1.0) / (abs(centre) if loss != "logistic" else 1.0)
                tolerance = 1e-12 + 8 * np.finfo(float).eps * condition / relative
                assert found == pytest.approx(exact, rel=tolerance, abs=0), (s, b, c)
    assert loss in ("hinge", "absolute") or smallest < relative**2


@pytest.mark.parametrize("margin", [26.0, 30.0, 40.0])
def test_a_logistic_gap_of_1e_25_is_right_to_a_millionth(margin):
    """In the tails, on both sides of the margin, and for both labels."""
    tail = 1.0 / (1.0 + math.exp(margin))
    p = tail + math.sqrt(2e-25 * tail)
    for b in (-1.0, 1.0):
        exact = float(precise_gap("logistic", b * margin, b, -b * p))
        found = loss_functions.fenchel_gap(loss_functions.LOGISTIC, b * margin, b, -b * p)
        assert 5e-26 < exact < 2e-25
        assert found == pytest.approx(exact, rel=1e-6, abs=0)


def test_the_divergence_of_a_coin_that_the_model_rules_out_is_large():
    """p of order one where pi is 1e-20: a bound that cancels here would certify anything."""
    for margin in (20.0, 40.0, 46.0, 100.0, 690.0, 720.0, 1e4):
        for b in (-1.0, 1.0):
            exact = float(precise_gap("logistic", b * margin, b, -b * 0.3))
            found = loss_functions.fenchel_gap(loss_functions.LOGISTIC, b * margin, b, -b * 0.3)
            assert found == pytest.approx(exact, rel=1e-13)


def test_the_ends_of_the_logistic_domain_are_exact():
    for margin in (-690.0, -50.0, -30.0, 0.0, 30.0, 50.0, 690.0):
        at_zero = loss_functions.fenchel_gap(loss_functions.LOGISTIC, margin, 1.0, -0.0)
        at_one = loss_functions.fenchel_gap(loss_functions.LOGISTIC, margin, 1.0, -1.0)
        assert at_zero == pytest.approx(float(np.logaddexp(0.0, -margin)), rel=1e-14, abs=0)
        assert at_one == pytest.approx(float(np.logaddexp(0.0, margin)), rel=1e-14, abs=0)


@pytest.mark.parametrize("loss", NAMES)
def test_the_fenchel_gap_vanishes_at_the_derivative(loss):
    for s, b in cases(loss, [-3.3, -1.0, -0.2, 0.0, 0.7, 1.0, 2.5]):
        c = loss_functions.derivative(code(loss), s, b)
        assert 0.0 <= loss_functions.fenchel_gap(code(loss), s, b, c) <= 1e-30

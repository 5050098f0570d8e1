"""The proximal equation against brute force on the dual, and against 50 digits in the tails."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from adfs.kernels import loss_functions, prox
from adfs.losses import LOSSES
from oracles import losses as literal

pytestmark = pytest.mark.uncompiled
SMOOTH = [name for name, loss in LOSSES.items() if loss.smooth]
NON_SMOOTH = [name for name, loss in LOSSES.items() if not loss.smooth]
RATIOS = [1e-6, 0.01, 0.999, 1.0, 1.9, 30.0, 1e4]
WEIGHTS = [1.0, 0.03, 7.0]
NORMS = [1e-6, 1.0, 3.7, 1e5]
STARTS = [0.0, -1.0, 1e8, -1e8, 1e300]


def targets(loss):
    return (-1.0, 1.0) if LOSSES[loss].binary else (-1.7, 0.6)


def smoothness(loss, w, q):
    return w * literal.curvature_bound(loss) * q


def solve(loss, b, w, q, eta, z, warm=0.0, dual=0.0):
    return prox.dual_prox(LOSSES[loss].code, b, w, q, eta, z * q, warm, dual)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_prox_is_the_minimiser_found_by_brute_force(loss, ratio):
    for w in WEIGHTS:
        for q in NORMS:
            eta = ratio * smoothness(loss, w, q)
            for b in targets(loss):
                for z in w * np.array([-40.0, -1.3, -0.99, -0.2, 0.0, 1e-3, 0.5, 1.7, 40.0]):
                    expected = literal.prox_tilde_star(loss, b, w, q, eta, z)
                    found, _ = solve(loss, b, w, q, eta, z)
                    # Bisection on the dual slope resolves c to a rounding of z and of w.
                    scale = abs(expected) + 1e-4 * (abs(z) + w * (1.0 + ratio))
                    assert abs(found - expected) <= 1e-10 * scale, (w, q, b, z)


@pytest.mark.parametrize("loss", SMOOTH)
def test_prox_is_the_minimiser_found_from_values_alone(loss):
    """Golden section in 60 digits on the objective: no derivative, no equation."""
    for ratio in (0.01, 1.0, 30.0):
        eta = ratio * smoothness(loss, 2.0, 0.7)
        for b, z in zip(targets(loss), (-0.8, 1.1), strict=True):
            expected = literal.prox_by_values(loss, b, 2.0, 0.7, eta, z, tilde=1)
            assert solve(loss, b, 2.0, 0.7, eta, z)[0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("loss", NON_SMOOTH)
def test_the_same_formula_is_the_plain_prox_of_a_loss_that_is_not_smooth(loss):
    for eta in (1e-3, 0.4, 25.0):
        for w in WEIGHTS:
            for b in targets(loss):
                for z in (-30.0, -0.7, 0.0, 0.2, 30.0):
                    expected = literal.prox_star(loss, b, w, 1.9, eta, z)
                    assert solve(loss, b, w, 1.9, eta, z)[0] == pytest.approx(expected, abs=1e-12)


def precise_margin(w, q, eta, u):
    """Root of ``eta m - (q w - 4 eta) / (1 + exp(m)) = u`` for the doubles given, by bisection."""
    with localcontext() as context:
        context.prec = 60
        w, q, eta, u = (Decimal(float(number)) for number in (w, q, eta, u))
        k = q * w - 4 * eta
        low, high = (u + min(k, 0)) / eta, (u + max(k, 0)) / eta
        while high - low > Decimal("1e-40") * max(1, abs(low)):
            middle = (low + high) / 2
            if eta * middle - k * sigmoid(-middle) > u:
                high = middle
            else:
                low = middle
        return low


def sigmoid(m):
    """``1 / (1 + exp(-m))`` of a Decimal that may be huge."""
    if abs(m) > 5000:
        return Decimal(1) if m > 0 else Decimal(0)
    return 1 / (1 + (-m).exp())


def starts(margin):
    """Pairs (margin, probability) to start from; probability 0 means that it is not known."""
    pairs = [(start, 0.0) for start in (margin, margin + 0.1, *STARTS)]
    close = [margin, margin + 1e-9, margin - 1e-4, margin + 1e-3, margin + 0.1, -margin, 0.0, 3.0]
    return pairs + [(start, 1.0 / (1.0 + math.exp(start))) for start in close]


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_logistic_prox_has_ten_relative_digits_in_both_tails(ratio):
    """Also where c is 1e-22, and from every warm start: good, bad, absurd, with or without dual."""
    for w, q in ((1.0, 2.3), (0.05, 4e3), (6.0, 1e-5)):
        eta = ratio * smoothness("logistic", w, q)
        for margin in (-50.0, -9.0, -0.4, 0.0, 0.4, 3.0, 20.0, 50.0):
            u = eta * margin - (q * w - 4 * eta) / (1.0 + math.exp(margin))
            exact = precise_margin(w, q, eta, u)
            with localcontext() as context:
                context.prec = 60
                p = float(sigmoid(-exact))
            # A rounding of eta m, which the equation holds, is felt as one of m.
            slope = eta + (q * w - 4 * eta) * p * (1 - p)
            noise = 1e-12 + 4e-16 * (eta * (abs(margin) + 4) + q * w * p) / slope
            for warm, known in starts(margin):
                for b in (-1.0, 1.0):
                    c, s = prox.dual_prox(
                        loss_functions.LOGISTIC, b, w, q, eta, b * u, b * warm, -b * known
                    )
                    assert abs(b * s - float(exact)) <= noise, (margin, warm, known)
                    assert abs(-b * c / w - p) <= noise * p, (margin, warm, known)


@pytest.mark.parametrize("reach", [prox.CLOSE, 0.03, 0.1, prox.WITHIN])
@pytest.mark.parametrize("ratio", [1e-6, 0.01, 0.3, 0.999, 1.9, 30.0])
def test_the_last_steps_are_exact_to_rounding_from_as_far_as_they_are_trusted(ratio, reach):
    """One step from near, two from the middle: a wrong coefficient would show as 1e-13 or more."""
    w, q = 1.0, 2.3
    eta = ratio * smoothness("logistic", w, q)
    k = q * w - 4 * eta
    for margin in (-4.0, -1.1, -0.3, 0.2, 0.9, 2.5, 5.0):
        p = 1.0 / (1.0 + math.exp(margin))
        u = eta * margin - k * p
        exact = float(precise_margin(w, q, eta, u))
        slope = eta + k * p * (1 - p)
        noise = 1e-15 * (eta * (abs(margin) + 4) + q * w * p) / slope
        far = 0.95 * reach / (1.0 + abs(k) * p * (1 - p) / slope)
        for start in (margin - far, margin + far):
            known = 1.0 / (1.0 + math.exp(start))
            found, s = prox.dual_prox(loss_functions.LOGISTIC, 1.0, w, q, eta, u, start, -known)
            assert abs(s - exact) <= 2e-15 + noise, (margin, start)
            assert abs(-found - 1.0 / (1.0 + math.exp(exact))) <= 1e-15 + noise * p


@pytest.mark.parametrize("reach", [0.1, 0.25])
@pytest.mark.parametrize("ratio", [0.01, 0.3, 1.9])
def test_two_steps_are_exact_although_the_remembered_p_lost_digits(ratio, reach):
    """The second step knows by itself whether it is near enough; if not, the search goes on."""
    w, q = 1.0, 2.3
    eta = ratio * smoothness("logistic", w, q)
    k = q * w - 4 * eta
    for margin in (-2.5, -1.1, 0.2, 0.9, 2.5):
        p = 1.0 / (1.0 + math.exp(margin))
        u = eta * margin - k * p
        exact = float(precise_margin(w, q, eta, u))
        slope = eta + k * p * (1 - p)
        noise = 1e-15 * (eta * (abs(margin) + 4) + q * w * p) / slope
        start = margin + 0.9 * reach / (1.0 + abs(k) * p * (1 - p) / slope)
        for lost in (-1e-3, -1e-4, 1e-4, 1e-3):
            known = (1.0 + lost) / (1.0 + math.exp(start))
            found, s = prox.dual_prox(loss_functions.LOGISTIC, 1.0, w, q, eta, u, start, -known)
            assert abs(s - exact) <= 2e-15 + noise, (margin, lost)
            assert abs(-found - 1.0 / (1.0 + math.exp(exact))) <= 1e-15 + noise * p


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_logistic_prox_never_runs_out_of_iterations(ratio):
    """Whatever the start, the answer solves the equation (an exit by count would not)."""
    rng = np.random.default_rng(3)
    for _ in range(2_000):
        w, q = np.exp(rng.uniform(-7, 7, 2))
        eta = ratio * smoothness("logistic", w, q)
        u = eta * rng.normal(0, 30) + q * w * rng.normal()
        warm = rng.choice([0.0, 1e8, -1e8, rng.normal(0, 30)])
        dual = rng.choice([0.0, literal.derivative("logistic", warm, 1.0)])
        c, s = prox.dual_prox(loss_functions.LOGISTIC, 1.0, w, q, eta, u, warm, dual)
        residual = eta * s + (q - 4 * eta / w) * c - u
        scale = abs(eta * s) + abs((q - 4 * eta / w) * c) + abs(u)
        assert abs(residual) <= 1e-13 * scale
        expected = w * literal.derivative("logistic", s, 1.0)
        assert c == pytest.approx(expected, rel=1e-12, abs=1e-300)


def count_exponentials(monkeypatch, *arguments):
    """Run the Python source of the kernel and count its exponentials: one an iteration."""
    calls = []

    class Counting:
        @staticmethod
        def exp(x):
            calls.append(x)
            return math.exp(x)

    function = getattr(prox.logistic_prox, "py_func", prox.logistic_prox)
    with monkeypatch.context() as patch:
        patch.setitem(function.__globals__, "math", Counting)
        for name in ("second_step", "logistic_search"):
            source = getattr(prox, name)
            patch.setitem(function.__globals__, name, getattr(source, "py_func", source))
        function(*arguments)
    return len(calls)


@pytest.mark.parametrize("ratio", RATIOS)
def test_a_good_start_costs_at_most_one_exponential_and_an_absurd_one_a_few_dozen(
    monkeypatch, ratio
):
    q, w = 1.3, 1.0
    eta = ratio * smoothness("logistic", w, q)
    for margin in (-50.0, -2.0, 0.0, 1.0, 8.0, 50.0):
        u = eta * margin - (q * w - 4 * eta) / (1.0 + math.exp(margin))
        start = margin + 1e-8
        known = 1.0 / (1.0 + math.exp(start))
        assert count_exponentials(monkeypatch, w, q, eta, u, start, 0.0) == 1
        if abs(margin) < 10:  # beyond, a remembered p has too few digits
            assert count_exponentials(monkeypatch, w, q, eta, u, start, known) == 0
        if abs(margin) < 10 and ratio <= 1.0:  # for larger eta the slope can be next to nothing
            middle = margin + 0.05
            known = 1.0 / (1.0 + math.exp(middle))
            assert count_exponentials(monkeypatch, w, q, eta, u, middle, known) == 1
        for absurd in STARTS:
            assert count_exponentials(monkeypatch, w, q, eta, u, absurd, 0.0) <= 60


@pytest.mark.parametrize(("size", "accuracy"), [(0.005, 1e-7), (0.02, 1e-12), (0.1, 1e-12)])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 1.9])
@pytest.mark.parametrize("start", [-40.0, -33.0, -16.0, 40.0])
def test_a_margin_can_walk_out_of_a_tail_where_its_p_had_no_digits(start, ratio, size, accuracy):
    w, q = 1.0, 2.0
    eta = ratio * smoothness("logistic", w, q)
    margin = start
    c, s = 0.0, 0.0
    while abs(margin) > 0.5:
        margin -= math.copysign(size, start)
        u = eta * margin - (q * w - 4 * eta) / (1.0 + math.exp(margin))
        c, s = prox.dual_prox(loss_functions.LOGISTIC, 1.0, w, q, eta, u, s, c / w)
    assert -c == pytest.approx(1.0 / (1.0 + math.exp(margin)), rel=accuracy)
    assert s == pytest.approx(margin, rel=10 * accuracy)


@pytest.mark.parametrize("size", [5e-4, 0.05])
def test_many_steps_from_one_pair_to_the_next_do_not_drift(size):
    """The pair (s, c) feeds the next step; after 20,000 of them it still is one of the sigmoid."""
    rng = np.random.default_rng(0)
    w, q, eta = 1.3, 0.8, 0.3
    s, c, margin = 0.0, 0.0, 0.5
    for _ in range(20_000):
        margin = min(3.0, max(-3.0, margin + size * rng.normal()))
        u = eta * margin + (q - 4 * eta / w) * w * literal.derivative("logistic", margin, 1.0)
        c, s = prox.dual_prox(loss_functions.LOGISTIC, 1.0, w, q, eta, u, s, c / w)
    assert c == pytest.approx(w * literal.derivative("logistic", margin, 1.0), rel=1e-12)
    assert s == pytest.approx(margin, rel=1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_coefficient_is_the_derivative_at_the_solution_on_both_sides_of_eta_equals_l(loss):
    """Built backwards: choose s, form u, expect ``c = w l'(s)``; the prox is continuous at L."""
    w, q = 1.6, 0.9
    for b in targets(loss):
        for s in (-3.0, -0.4, 0.3, 0.8, 2.2):
            c = float(literal.derivative(loss, s, b, w))
            for ratio in (0.01, 1 - 1e-9, 1.0, 1 + 1e-9, 1.9, 30.0):
                eta = ratio * smoothness(loss, w, q)
                u = eta * s + (q - eta / (w * literal.curvature_bound(loss))) * c
                found, _ = prox.dual_prox(LOSSES[loss].code, b, w, q, eta, u, 0.0, 0.0)
                assert found == pytest.approx(c, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "logistic"])
def test_a_closed_form_leaves_the_warm_start_alone(loss):
    assert solve(loss, 1.0, 1.0, 2.0, 0.5, 0.1, warm=0.123)[1] == 0.123


@pytest.mark.parametrize("loss", list(LOSSES))
def test_the_coefficient_stays_in_the_domain_of_the_conjugate(loss):
    for b in targets(loss):
        for w in WEIGHTS:
            low, high = literal.conjugate_domain(loss, b, w)
            for z in (-1e6, -1.0, 0.0, 1.0, 1e6):
                for eta in (1e-8, 0.3, 1e6):
                    assert low <= solve(loss, b, w, 1.1, eta, z)[0] <= high

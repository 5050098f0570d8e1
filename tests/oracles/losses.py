"""The seven scalar losses, from their textbook definitions, and proximal steps by brute force.

A sample is f(theta) = w l(x . theta, y). Its conjugate is finite on the line spanned by x only,
f*(c x) = w l*(c / w) ("Linear case" of the paper). Every proximal step below minimises the DUAL
objective over the coefficient c; nothing here solves a primal equation or uses Moreau's identity.
"""

import math
from decimal import Decimal, localcontext

import numpy as np
from scipy.special import expit

SMOOTH = ("logistic", "squared", "squared_hinge", "smoothed_hinge", "huber")
NON_SMOOTH = ("hinge", "absolute")
LOSSES = SMOOTH + NON_SMOOTH
GAMMA = 1  # smoothing of the hinge
DELTA = 1  # half-width of huber's quadratic part


def value(loss, s, y, w=1.0):
    """w l(s, y); s may be an array."""
    s = np.asarray(s, dtype=float)
    margin, residual = y * s, s - y
    if loss == "logistic":
        return w * np.logaddexp(0.0, -margin)
    if loss == "squared":
        return w * residual**2 / 2
    if loss == "squared_hinge":
        return w * np.maximum(0.0, 1 - margin) ** 2
    if loss == "smoothed_hinge":
        quadratic = (1 - margin) ** 2 / (2 * GAMMA)
        linear = 1 - margin - GAMMA / 2
        return w * np.where(margin >= 1, 0.0, np.where(margin <= 1 - GAMMA, linear, quadratic))
    if loss == "huber":
        inside = np.abs(residual) <= DELTA
        return w * np.where(inside, residual**2 / 2, DELTA * np.abs(residual) - DELTA**2 / 2)
    if loss == "hinge":
        return w * np.maximum(0.0, 1 - margin)
    if loss == "absolute":
        return w * np.abs(residual)
    raise KeyError(loss)


def derivative(loss, s, y, w=1.0):
    """d/ds of `value`; at a kink of hinge or absolute, one of the subgradients."""
    s = np.asarray(s, dtype=float)
    margin, residual = y * s, s - y
    if loss == "logistic":
        return -w * y * expit(-margin)
    if loss == "squared":
        return w * residual
    if loss == "squared_hinge":
        return -2 * w * y * np.maximum(0.0, 1 - margin)
    if loss == "smoothed_hinge":
        return -w * y * np.clip((1 - margin) / GAMMA, 0.0, 1.0)
    if loss == "huber":
        return w * np.clip(residual, -DELTA, DELTA)
    if loss == "hinge":
        return -w * y * np.where(margin < 1, 1.0, 0.0)
    if loss == "absolute":
        return w * np.sign(residual)
    raise KeyError(loss)


def curvature_bound(loss):
    """lmax, the largest second derivative of l (w = 1); infinite for a loss that is not smooth."""
    return {
        "logistic": 0.25,
        "squared": 1.0,
        "squared_hinge": 2.0,
        "smoothed_hinge": 1.0 / GAMMA,
        "huber": 1.0,
        "hinge": math.inf,
        "absolute": math.inf,
    }[loss]


def conjugate_domain(loss, y, w=1.0):
    """The closed interval of c on which w l*(c / w) is finite."""
    if loss == "squared":
        return -math.inf, math.inf
    if loss == "huber":
        return -w * DELTA, w * DELTA
    if loss == "absolute":
        return -w, w
    # The rest are functions of y s that decrease: y c / w lies in [-1, 0] or (-inf, 0].
    length = math.inf if loss == "squared_hinge" else w
    return (-length, 0.0) if y > 0 else (0.0, length)


def conjugate(loss, c, y, w=1.0):
    """w l*(c / w) = sup over s of c s - w l(s, y); infinite outside its domain.

    Floats or Decimals, as long as c, y and w are of one kind.
    """
    low, high = conjugate_domain(loss, y, w)
    if not low <= c <= high:
        return math.inf
    u = c / w
    a = y * u
    if loss == "logistic":
        return w * (_x_log_x(-a) + _x_log_x(1 + a))
    if loss == "squared":
        return w * (u * u / 2 + y * u)
    if loss == "squared_hinge":
        return w * (a + a * a / 4)
    if loss == "smoothed_hinge":
        return w * (a + GAMMA * a * a / 2)
    if loss == "huber":
        return w * (u * u / 2 + y * u)
    if loss == "hinge":
        return w * a
    if loss == "absolute":
        return w * y * u
    raise KeyError(loss)


def _x_log_x(a):
    """Continued by 0 at 0."""
    if a <= 0:
        return a * 0
    return a * (a.ln() if isinstance(a, Decimal) else math.log(a))


def conjugate_derivative(loss, c, y, w=1.0):
    """d/dc of w l*(c / w), differentiated by hand from `conjugate`; one-sided at an end."""
    u = c / w
    a = y * u
    if loss == "logistic":
        if a <= -1:
            return -math.inf * y
        if a >= 0:
            return math.inf * y
        return -y * (math.log(-a) - math.log1p(a))
    if loss == "squared":
        return u + y
    if loss == "squared_hinge":
        return y * (1 + a / 2)
    if loss == "smoothed_hinge":
        return y * (1 + GAMMA * a)
    if loss == "huber":
        return u + y
    if loss in ("hinge", "absolute"):
        # hinge: y (the slope of y c); absolute: y (the slope of b c, whose b is called y here)
        return float(y)
    raise KeyError(loss)


def minimiser_on_line(slope, low, high, start):
    """Where the increasing function `slope` changes sign in [low, high]: bisection to the last bit.

    An infinite end is replaced by the first of start -+ 1, 2, 4, ... beyond the change of sign.
    """
    step = 1.0
    if math.isinf(low):
        low = min(start, high) - step
        while slope(low) > 0:
            step *= 2
            low -= step
    step = 1.0
    if math.isinf(high):
        high = max(start, low) + step
        while slope(high) < 0:
            step *= 2
            high += step
    if slope(low) >= 0:
        return low
    if slope(high) <= 0:
        return high
    for _ in range(300):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return low + (high - low) / 2


def prox_tilde_star(loss, y, w, q, eta, z):
    """Algorithm 1, line 8, on the span of x, with App. B.2's node-level tilde.

    f~*(v) = f*(v) - |v|^2 / (2 L), v = c x, |x|^2 = q, L = w lmax q: returns the c that minimises
    q (c - z)^2 / (2 eta) + w l*(c / w) - q c^2 / (2 L).
    """
    big_l = w * curvature_bound(loss) * q

    def slope(c):
        return q * (c - z) / eta + conjugate_derivative(loss, c, y, w) - q * c / big_l

    return minimiser_on_line(slope, *conjugate_domain(loss, y, w), z)


def prox_star(loss, y, w, q, eta, z):
    """Algorithm 3's proximal step (plain f*): minimise q (c - z)^2 / (2 eta) + w l*(c / w)."""

    def slope(c):
        return q * (c - z) / eta + conjugate_derivative(loss, c, y, w)

    return minimiser_on_line(slope, *conjugate_domain(loss, y, w), z)


def prox_by_values(loss, y, w, q, eta, z, tilde):
    """The same two minimisers from values of the objective alone: golden section in 60 digits.

    `tilde` is the number subtracting |v|^2 / (2 L): 1 for f~*, 0 for f*. No derivative is used,
    which is what makes it an oracle of the two functions above; it is far slower.
    """
    with localcontext() as context:
        context.prec = 60
        y, w, q, eta, z = (Decimal(float(number)) for number in (y, w, q, eta, z))
        curvature = Decimal(curvature_bound(loss)) * w

        def objective(c):
            return (
                q * (c - z) ** 2 / (2 * eta)
                + conjugate(loss, c, y, w)
                - tilde * (c * c / (2 * curvature))
            )

        low, high = _bracket_by_values(objective, *conjugate_domain(loss, y, w), z)
        return float(_golden_section(objective, low, high))


def _bracket_by_values(objective, low, high, start):
    """A finite interval holding the minimiser of a convex function."""
    low, high = Decimal(low), Decimal(high)
    if low.is_finite() and high.is_finite():
        return low, high
    inner = min(max(start, low), high)
    step = Decimal(1)
    if low.is_infinite():
        while objective(inner - step) <= objective(inner - step / 2):
            step *= 2
        low = inner - step
    step = Decimal(1)
    if high.is_infinite():
        while objective(inner + step) <= objective(inner + step / 2):
            step *= 2
        high = inner + step
    return low, high


def _golden_section(objective, low, high):
    """Minimise a strictly convex function of a Decimal to 1e-22."""
    ratio = (Decimal(5).sqrt() - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = objective(left), objective(right)
    while high - low > Decimal("1e-22"):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = objective(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = objective(right)
    return (low + high) / 2

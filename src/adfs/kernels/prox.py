"""Proximal steps of one sample, each one equation in one unknown.

`dual_prox` is that of a local update. With ``q = |x|^2`` and weight ``w``, the step on
``f~* = f* - |.|^2 / (2 w l''max q)`` from ``z`` along ``x`` has the solution ``c = w l'(s)`` where

    eta s + (q - eta / (w l''max)) w l'(s) = u,    u = z q.

For every piecewise quadratic loss, the hinge and the absolute loss the step is a shift and a clip:
``c = (u - eta b) / q`` or ``c = b (b u - eta) / q``, clipped to the domain scaled by ``w``.
Why there is one solution for every ``eta > 0``: docs/algorithms/adfs.md.

`slope_after` is the plain step on ``f(u) = w l(x . u)`` of length ``g`` from ``zeta``,
``u = zeta - g w l'(s) x``, where ``s = x . u`` solves

    s + k l'(s) = target,    k = g w |x|^2 >= 0,    target = x . zeta.

A ridge ``lam/2 |u|^2`` beside ``f`` divides ``g`` and ``zeta`` by ``1 + g lam``. For the logistic
loss it is the equation above with ``eta = 1`` (docs/algorithms/point-saga.md).

For a loss of one's own both equations are solved by `adfs.kernels.plugin_loss.root`.
"""

import math

from adfs.kernels import plugin_loss
from adfs.kernels.compiled import njit
from adfs.kernels.loss_functions import ABSOLUTE, HUBER, LOGISTIC, SQUARED, SQUARED_HINGE
from adfs.kernels.plugin_loss import PLUGIN

MAX_STEPS = 200
CLOSE = 6e-3  # a fifth-order step from within this reach is exact to rounding (2e-16)
WITHIN = 0.3  # from within this reach two steps are enough, with an exact p between them
NEXT = 5e-6  # where a step with two terms is exact to rounding: the cube of this
NEAR = 1.0  # where the fifth-order step beats Halley's
SURE = 1e-9  # below, a remembered p or 1 - p has lost digits to the sum it was kept in


@njit(cache=True, _nrt=False, forceinline=True)
def dual_prox(code, b, w, q, eta, u, warm, dual):
    """Solve the proximal equation; return ``(c, s)``.

    ``warm`` is the ``s`` of the last time and ``dual`` the ``c / w`` it gave, 0 if there was none.
    """
    if code == LOGISTIC:
        p, margin = logistic_prox(w, q, eta, b * u, b * warm, -b * dual)
        return -b * w * p, b * margin
    if code == SQUARED:
        return (u - eta * b) / q, warm
    if code == HUBER or code == ABSOLUTE:
        return min(w, max(-w, (u - eta * b) / q)), warm
    if code >= PLUGIN:
        return plugin_loss.prox(code, b, w, q, eta, u, warm)
    shifted = min(0.0, (b * u - eta) / q)
    return b * (shifted if code == SQUARED_HINGE else max(-w, shifted)), warm


@njit(cache=True, _nrt=False, forceinline=True)
def logistic_prox(w, q, eta, target, m, p):
    """Margin ``m`` with ``eta m - k p = target``, ``p = sigmoid(-m)``, ``k = q w - 4 eta``.

    Starts from the last margin and its ``p`` (not positive if unknown). All derivatives of a
    sigmoid are polynomials in ``p``: near the solution one step of fifth order ends the search,
    without an exponential.
    """
    k = q * w - 4.0 * eta
    spread = p * (1.0 - p)
    if spread > SURE:
        slope = eta + k * spread
        inverse = 1.0 / slope
        newton = (k * p + target - eta * m) * inverse
        reach = abs(newton) * (slope + abs(k) * spread)
        if reach <= WITHIN * slope:
            step = fifth_order_step(newton, k * inverse, p, spread)
            if reach <= CLOSE * slope:
                return moved_sigmoid(p, spread, step), m + step
            return second_step(k, eta, target, m + step)
    return logistic_search(k, eta, target, m, p)


@njit(cache=True, _nrt=False, forceinline=True)
def second_step(k, eta, target, m):
    """The same from a margin that one step has brought so near that two terms do.

    Its ``p`` is computed anew, so that what steps lose in rounding does not add up.
    """
    e = math.exp(-abs(m))
    near = 1.0 / (1.0 + e)
    p = e * near if m >= 0.0 else near
    spread = e * near * near
    slope = eta + k * spread
    inverse = 1.0 / slope
    newton = (k * p + target - eta * m) * inverse
    if abs(newton) * (slope + abs(k) * spread) <= NEXT * slope:
        half = 0.5 * (1.0 - 2.0 * p)
        step = newton * (1.0 + newton * (k * inverse * spread * half))
        return p - spread * step * (1.0 - step * half), m + step
    return logistic_search(k, eta, target, m, p)


@njit(cache=True, _nrt=False)
def logistic_search(k, eta, target, m, p):
    """The same from afar: fifth-order or Halley's steps inside a bracket.

    The bracket shrinks at every step; a step that leaves it, or does not halve the one before, is
    replaced by a bisection.
    """
    low = (target + min(0.0, k)) / eta
    high = (target + max(0.0, k)) / eta
    known = p * (1.0 - p) > SURE and low <= m <= high
    if m == 0.0:  # never visited: nothing is remembered
        p = 0.5
        known = low <= 0.0 <= high
        if high - low <= NEAR:
            m, known = 0.5 * (low + high), False
    m = min(high, max(low, m))
    previous = high - low
    spread = p * (1.0 - p)
    for _ in range(MAX_STEPS):
        if not known:
            e = math.exp(-abs(m))
            inverse = 1.0 / (1.0 + e)
            p = e * inverse if m >= 0.0 else inverse
            spread = e * inverse * inverse
        known = False
        residual = eta * m - k * p - target
        slope = eta + k * spread
        newton = -residual / slope
        reach = abs(newton) * (1.0 + abs(k) * spread / slope)
        if reach <= NEAR:
            step = fifth_order_step(newton, k / slope, p, spread)
            if reach <= CLOSE:
                return moved_sigmoid(p, spread, step), m + step
        else:
            bend = k * spread * (2.0 * p - 1.0)
            step = newton / (1.0 + 0.5 * newton * bend / slope)
        if residual > 0.0:
            high = m
        else:
            low = m
        if not (low < m + step < high) or abs(step) > 0.5 * previous:
            step = 0.5 * (low + high) - m
            if m + step == m:
                return p, m
        previous = abs(step)
        m += step
    return p, m


@njit(cache=True, _nrt=False, forceinline=True)
def fifth_order_step(x, ratio, p, spread):
    """Step to the root from the Newton step ``x``: the reverted Taylor series of the residual.

    ``ratio = k / slope``; the residual's derivatives are ``-k`` times those of the sigmoid.
    """
    c = 1.0 - 2.0 * p
    s = ratio * spread
    a2 = -0.5 * s * c
    a3 = s * (1.0 - 6.0 * spread) / 6.0
    a4 = -s * c * (1.0 - 12.0 * spread) / 24.0
    a5 = s * (1.0 - 30.0 * spread + 120.0 * spread * spread) / 120.0
    square = a2 * a2
    b3 = 2.0 * square - a3
    b4 = 5.0 * a2 * (a3 - square) - a4
    b5 = 6.0 * a2 * a4 + 3.0 * a3 * a3 + 7.0 * square * (2.0 * square - 3.0 * a3) - a5
    return x * (1.0 + x * (-a2 + x * (b3 + x * (b4 + x * b5))))


@njit(cache=True, _nrt=False, forceinline=True)
def moved_sigmoid(p, spread, d):
    """``sigmoid(-(m + d))`` by its Taylor series of fifth order, accurate relative to itself."""
    c = 1.0 - 2.0 * p
    fifth = (1.0 - 30.0 * spread + 120.0 * spread * spread) * d / 5.0
    fourth = (c * (1.0 - 12.0 * spread) - fifth) * d / 4.0
    third = (1.0 - 6.0 * spread - fourth) * d / 3.0
    return p - spread * d * (1.0 - 0.5 * d * (c - third))


@njit(cache=True, _nrt=False, forceinline=True)
def slope_after(code, b, k, target, warm, slope):
    """Solve ``s + k l'(s) = target``; return ``(l'(s), s)``, or the warm start where ``s`` is not
    needed (all closed forms).

    ``warm`` is the ``s`` of the last time and ``slope`` its ``l'(s)``, 0 if there was none.
    """
    if code == LOGISTIC:
        p, margin = logistic_margin(k, b * target, b * warm, -b * slope)
        return -b * p, b * margin
    if code == SQUARED:
        return (target - b) / (1.0 + k), warm
    if code == HUBER:
        return min(1.0, max(-1.0, (target - b) / (1.0 + k))), warm
    if code == SQUARED_HINGE:
        return -2.0 * b * max(0.0, (1.0 - b * target) / (1.0 + 2.0 * k)), warm
    if code >= PLUGIN:
        return plugin_loss.slope_after(code, b, k, target, warm)
    return -b * min(1.0, max(0.0, (1.0 - b * target) / (1.0 + k))), warm


@njit(cache=True, _nrt=False, forceinline=True)
def logistic_margin(k, target, m, p):
    """``(p, m)`` with ``m - k p = target`` and ``p = sigmoid(-m)``, from the last margin and ``p``.

    Near the solution one step of fifth order ends the search without an exponential.
    """
    if p > SURE:
        spread = p * (1.0 - p)
        bend = k * spread
        inverse = 1.0 / (1.0 + bend)
        newton = (k * p + target - m) * inverse
        if abs(newton) * (1.0 + 2.0 * bend) <= CLOSE * (1.0 + bend):
            step = fifth_order_step(newton, k * inverse, p, spread)
            return moved_sigmoid(p, spread, step), m + step
    return logistic_search(k, 1.0, target, m, p)

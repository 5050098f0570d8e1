"""The one-dimensional proximal equation of a local update (SPEC 2.2 and 2.3, trap T4).

With ``q = |x|^2``, weight ``w`` and ``L = w l''max q``, the proximal step on
``f~* = f* - |.|^2 / (2 L)`` from ``z`` along ``x`` has the solution ``c = w l'(s)`` where

    eta s + (q - eta / (w l''max)) w l'(s) = u,    u = z q.

The left side increases in ``s`` for every ``eta > 0``, on both sides of ``eta = L``, because its
slope is ``eta (1 - l'' / l''max) + q w l''``.

For every piecewise quadratic loss ``f~*`` is linear on its domain, so the step is a shift and a
clip: ``c = (u - eta b) / q`` or ``c = y (y u - eta) / q``, clipped to the domain scaled by ``w``.
The plain conjugates of the hinge and of the absolute loss are linear too: the same formulas.
"""

import math

from numba import njit

from adfs.kernels.scalar import ABSOLUTE, HUBER, LOGISTIC, SQUARED, SQUARED_HINGE

MAX_NEWTON = 200
ACCURACY = 1e-16


@njit(cache=True, _nrt=False)
def dual_prox(code, b, w, q, eta, u, warm):
    """Solve the proximal equation; return ``(c, s)`` with ``s`` the warm start for next time."""
    if code == LOGISTIC:
        p, margin = logistic_prox(w, q, eta, b * u, b * warm)
        return -b * w * p, b * margin
    if code == SQUARED:
        return (u - eta * b) / q, warm
    if code == HUBER or code == ABSOLUTE:
        return min(w, max(-w, (u - eta * b) / q)), warm
    shifted = min(0.0, (b * u - eta) / q)
    return b * (shifted if code == SQUARED_HINGE else max(-w, shifted)), warm


@njit(cache=True, _nrt=False)
def logistic_prox(w, q, eta, target, start):
    """Margin ``m`` with ``eta m - k sigmoid(-m) = target``, ``k = q w - 4 eta``, and the sigmoid.

    Halley's third-order step from a warm start, inside a bracket that shrinks at every step; a step
    that leaves the bracket, or does not halve the one before, is replaced by a bisection. The last
    step is applied to the sigmoid by its Taylor series, so that a good start costs one exponential.
    """
    k = q * w - 4.0 * eta
    low = (target + min(0.0, k)) / eta
    high = (target + max(0.0, k)) / eta
    m = min(high, max(low, start))
    previous = high - low
    for _ in range(MAX_NEWTON):
        e = math.exp(-abs(m))
        inverse = 1.0 / (1.0 + e)
        p = e * inverse if m >= 0.0 else inverse
        spread = e * inverse * inverse
        residual = eta * m - k * p - target
        slope = eta + k * spread
        bend = k * spread * (2.0 * p - 1.0)
        step = -2.0 * residual * slope / (2.0 * slope * slope - residual * bend)
        if residual > 0.0:
            high = m
        else:
            low = m
        # The error of a Halley step is below (|k| spread / slope) step^3.
        if abs(step * step * step) * (abs(k) * spread + slope) <= ACCURACY * slope:
            m += step
            p += spread * step * (0.5 * step * (1.0 - 2.0 * p) - 1.0)
            return p, m
        if not (low < m + step < high) or abs(step) > 0.5 * previous:
            step = 0.5 * (low + high) - m
            if step == 0.0 or m + step == m:
                return p, m
        previous = abs(step)
        m += step
    return p, m

"""The plain proximal step of one sample, as one equation in one unknown.

The step on ``f(u) = w l(x . u)`` of length ``g`` from ``zeta``,

    u = argmin |u - zeta|^2 / (2 g) + w l(x . u) = zeta - g c x,    c = w l'(s),    s = x . u,

needs only ``s``, the solution of

    s + k l'(s) = target,    k = g w |x|^2 >= 0,    target = x . zeta.

The left side increases with slope ``1 + k l'' >= 1``, so there is exactly one solution. A ridge
``lam/2 |u|^2`` beside ``f`` changes only the arguments: ``g`` and ``zeta`` divided by
``1 + g lam``.

For a piecewise quadratic loss ``l'`` is a clipped line, and so is ``l'`` at the solution as a
function of ``target``. For the logistic loss the equation is the one of `adfs.kernels.prox` with
``eta = 1``, and its search, bracketed and warm-started, ends when rounding does.
"""

from adfs.kernels.compiled import njit
from adfs.kernels.loss_functions import HUBER, LOGISTIC, SQUARED, SQUARED_HINGE
from adfs.kernels.prox import CLOSE, SURE, fifth_order_step, logistic_search, moved_sigmoid


@njit(cache=True, _nrt=False, forceinline=True)
def slope_after(code, b, k, target, warm, slope):
    """Solve ``s + k l'(s) = target``; return ``(l'(s), s)``, or the warm start where ``s`` is not
    needed (all losses but the logistic).

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

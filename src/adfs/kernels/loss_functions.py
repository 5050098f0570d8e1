"""One-dimensional losses by integer code: value, derivative, curvature, conjugate, certificate.

Every function here is for weight one; a sample of weight ``w`` has loss ``w l``, slope ``w l'``
and conjugate ``w l*(c / w)``. ``s`` is the prediction, ``b`` the label (-1 or 1, or a real target),
``c`` a dual coefficient. The parameters of the smoothed hinge and of Huber's loss are 1.
A code from `PLUGIN` on is a loss of one's own, with functions of its own.
"""

import math

import numpy as np

from adfs.kernels import plugin_loss
from adfs.kernels.compiled import njit
from adfs.kernels.plugin_loss import PLUGIN

LOGISTIC, SQUARED, SQUARED_HINGE, SMOOTHED_HINGE, HUBER, HINGE, ABSOLUTE = range(7)

LARGEST_MARGIN = 700.0  # beyond, sigmoid(-margin) is too small to divide by


@njit(cache=True, forceinline=True)
def value(code, s, b):
    """``l(s)``, finite for every finite ``s``."""
    if code == LOGISTIC:
        margin = b * s
        return max(0.0, -margin) + math.log1p(math.exp(-abs(margin)))
    if code == SQUARED:
        return 0.5 * (s - b) * (s - b)
    if code == HUBER or code == ABSOLUTE:
        residual = abs(s - b)
        if code == ABSOLUTE:
            return residual
        return 0.5 * residual * residual if residual <= 1.0 else residual - 0.5
    if code >= PLUGIN:
        return plugin_loss.call(code, plugin_loss.VALUE, s, b)
    violation = max(0.0, 1.0 - b * s)
    if code == SQUARED_HINGE:
        return violation * violation
    if code == HINGE:
        return violation
    return 0.5 * violation * violation if violation <= 1.0 else violation - 0.5


@njit(cache=True, forceinline=True)
def derivative(code, s, b):
    """``l'(s)``; where the loss is not smooth, the subgradient nearest to zero."""
    if code == LOGISTIC:
        return -b * sigmoid(-b * s)
    if code == SQUARED:
        return s - b
    if code == HUBER:
        return min(1.0, max(-1.0, s - b))
    if code == ABSOLUTE:
        return float(np.sign(s - b))
    if code >= PLUGIN:
        return plugin_loss.call(code, plugin_loss.DERIVATIVE, s, b)
    violation = max(0.0, 1.0 - b * s)
    if code == SQUARED_HINGE:
        return -2.0 * b * violation
    if code == HINGE:
        return -b if violation > 0.0 else 0.0
    return -b * min(1.0, violation)


@njit(cache=True)
def curvature(code, s, b):
    """``l''(s)``, from the inner side at a kink of ``l'``; zero where the loss is not smooth."""
    if code == LOGISTIC:
        e = math.exp(-abs(s))
        return e / ((1.0 + e) * (1.0 + e))
    if code == SQUARED:
        return 1.0
    if code == HUBER:
        return 1.0 if abs(s - b) <= 1.0 else 0.0
    if code >= PLUGIN:
        return plugin_loss.bend(code, s, b)
    violation = 1.0 - b * s
    if code == SQUARED_HINGE:
        return 2.0 if violation >= 0.0 else 0.0
    if code == SMOOTHED_HINGE:
        return 1.0 if 0.0 <= violation <= 1.0 else 0.0
    return 0.0


@njit(cache=True)
def sigmoid(s):
    """``1 / (1 + exp(-s))`` without overflow, with full relative accuracy in both tails."""
    e = math.exp(-abs(s))
    return 1.0 / (1.0 + e) if s >= 0.0 else e / (1.0 + e)


@njit(cache=True, forceinline=True)
def clip(code, b, c):
    """Nearest point to ``c`` in the domain of ``l*``."""
    if code == SQUARED:
        return c
    if code == HUBER or code == ABSOLUTE:
        return min(1.0, max(-1.0, c))
    if code >= PLUGIN:
        return plugin_loss.clip(code, b, c)
    u = min(0.0, b * c)
    return b * u if code == SQUARED_HINGE else b * max(-1.0, u)


@njit(cache=True)
def conjugate(code, b, c):
    """``l*(c) = max_s c s - l(s)``, infinite outside its domain."""
    if code >= PLUGIN:
        return plugin_loss.conjugate(code, b, c)
    if clip(code, b, c) != c:
        return math.inf
    if code == SQUARED or code == HUBER:
        return 0.5 * c * c + b * c
    if code == ABSOLUTE:
        return b * c
    u = b * c
    if code == LOGISTIC:
        return negative_entropy(-u)
    if code == SQUARED_HINGE:
        return u + 0.25 * u * u
    return u if code == HINGE else u + 0.5 * u * u


@njit(cache=True)
def negative_entropy(p):
    """``p log p + (1 - p) log(1 - p)`` with its limit 0 at 0 and 1."""
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return p * math.log(p) + (1.0 - p) * math.log1p(-p)


@njit(cache=True, forceinline=True)
def fenchel_gap(code, s, b, c):
    """``l(s) + l*(c) - c s >= 0`` for ``c`` in the domain, computed without cancellation."""
    if code == LOGISTIC:
        return logistic_summary(b * s, -b * c)[2]
    if code == SQUARED:
        return 0.5 * (s - b - c) * (s - b - c)
    if code == HUBER or code == ABSOLUTE:
        return residual_gap(code, s - b, c)
    if code >= PLUGIN:
        return plugin_loss.fenchel_gap(code, s, b, c)
    return hinge_gap(code, 1.0 - b * s, b * c)


@njit(cache=True)
def residual_gap(code, r, c):
    """Fenchel gap of Huber's and of the absolute loss at residual ``r``."""
    room = 1.0 - c if r > 0.0 else 1.0 + c  # how far c is from the end that r pulls it to
    if code == ABSOLUTE:
        return abs(r) * room
    if abs(r) <= 1.0:
        return 0.5 * (r - c) * (r - c)
    return room * ((abs(r) - 1.0) + 0.5 * room)


@njit(cache=True)
def hinge_gap(code, h, u):
    """Fenchel gap of the hinge family at violation ``h = 1 - y s`` and ``u = y c <= 0``."""
    if code == HINGE:
        return h * (1.0 + u) if h > 0.0 else u * h
    bend = 0.5 if code == SQUARED_HINGE else 1.0  # 1 / l''
    if h <= 0.0:
        return u * h + 0.5 * bend * u * u
    if code == SMOOTHED_HINGE and h > 1.0:
        return (1.0 + u) * ((h - 1.0) + 0.5 * (1.0 + u))
    return 0.5 / bend * (h + bend * u) * (h + bend * u)


@njit(cache=True, forceinline=True)
def summary(code, s, b, c):
    """``l(s)``, ``l'(s)`` and the Fenchel gap at ``c``, with one exponential where there is one."""
    if code == LOGISTIC:
        loss, pi, gap = logistic_summary(b * s, -b * c)
        return loss, -b * pi, gap
    return value(code, s, b), derivative(code, s, b), fenchel_gap(code, s, b, c)


@njit(cache=True)
def logistic_summary(margin, p):
    """``log(1 + exp(-margin))``, ``pi = sigmoid(-margin)``, and how far ``p`` is from ``pi``.

    The last is the KL divergence of the coins with these biases. With ``d = p - pi`` it is
    ``pi h(d / pi) + (1 - pi) h(-d / (1 - pi))``, ``h`` below: two terms that are never negative.
    The coin is turned over if ``pi > 1/2``: up to 1/2 the difference ``d`` keeps its digits.
    """
    size = abs(margin)
    e = math.exp(-size)
    rest = 1.0 / (1.0 + e)
    pi = e * rest
    loss = max(0.0, -margin) + math.log1p(e)
    side = p if margin >= 0.0 else 1.0 - p
    if size > LARGEST_MARGIN:
        gap = max(0.0, negative_entropy(side) + side * size)
    else:
        d = side - pi
        gap = pi * relative_divergence(d / pi) + rest * relative_divergence(-d / rest)
    return loss, pi if margin >= 0.0 else rest, gap


@njit(cache=True)
def relative_divergence(x):
    """``(1 + x) log(1 + x) - x >= 0`` for ``x >= -1``, with full relative accuracy near zero."""
    if x <= -1.0:
        return 1.0
    if abs(x) > 0.05:
        return (1.0 + x) * math.log1p(x) - x
    # sum_k (-x)^k / (k (k - 1)), as many terms as the size of x asks for; even and odd ones apart,
    # so that the processor need not wait for each.
    y = x * x
    if abs(x) <= 2e-3:
        return y * ((1 / 2 + y * (1 / 12 + y / 30)) - x * (1 / 6 + y * (1 / 20 + y / 42)))
    low = 1 / 2 + y * (1 / 12 + y * (1 / 30 + y / 56))
    even = low + y * y * y * y * (1 / 90 + y * (1 / 132 + y / 182))
    odd = 1 / 6 + y * (1 / 20 + y * (1 / 42 + y * (1 / 72 + y * (1 / 110 + y / 156))))
    return y * (even - x * odd)

"""Constants of Katyusha and L-Katyusha: one inequality, two ways to renew the snapshot.

With ``E|g - grad f(x)|^2 <= 2 V (f(w) - f(x) - <grad f(x), w - x>)`` and
``alpha tau1 (L_f + V / tau2) <= 1`` a round of either method satisfies

    E[P(y+) - P*] / tau1 + (1 + alpha lam) E|z+ - x*|^2 / (2 alpha)
        <= (tau2 / tau1) (P(w) - P*) + (tau3 / tau1) (P(y) - P*) + |z - x*|^2 / (2 alpha),

``tau3 = 1 - tau1 - tau2`` (docs/algorithms/katyusha.md). Errors then fall by ``1 - rho`` a round if
``1 + alpha lam >= 1 / (1 - rho)`` and ``tau1 >= rho + tau2 Q(rho)``, where ``Q``, the surplus, is
what the age of the snapshot costs.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Surplus = Callable[[Vector], Vector]

BISECTIONS = 100
FASTEST = 0.999  # no rho beyond: 1 / (1 - rho) must stay a number
LARGEST_POWER = 300.0  # exp of it squared is still a number


class Coupling(NamedTuple):
    """``tau1``, ``tau2``, ``alpha`` and the rate ``rho`` of a round: numbers, or arrays alike."""

    tau1: Any
    tau2: Any
    alpha: Any
    rho: Any


def loop_surplus(length: Vector) -> Surplus:
    """``Q = (1 - rho)^(1 - length) - 1``: a snapshot every ``length`` rounds (Katyusha)."""
    return lambda rho: np.expm1(np.minimum(-(length - 1.0) * np.log1p(-rho), LARGEST_POWER))


def coin_surplus(p: Vector) -> Surplus:
    """``Q = rho (1 - p) / (p - rho)``: a snapshot with probability ``p`` (L-Katyusha)."""

    def surplus(rho: Vector) -> Vector:
        room = np.where(rho < p, p - rho, math.exp(-LARGEST_POWER))
        return rho * (1.0 - p) / room + np.where(rho < p, 0.0, math.exp(LARGEST_POWER))

    return surplus


def fastest(lam: float, smoothness: float, variance: Vector, surplus: Surplus) -> Coupling:
    """The constants of the largest proven ``rho``, for arrays of ``V`` and of snapshot rates.

    With both conditions tight, ``rho`` is proven if ``tau2`` exists with

        rho / (1 - rho) * (rho + tau2 Q) (L_f + V / tau2) <= lam,  tau1 + tau2 <= 1.

    The left side is least at ``tau2^2 = rho V / (L_f Q)`` and grows with ``rho``: bisection.
    """
    shape = np.broadcast_shapes(np.shape(variance), np.shape(surplus(np.zeros(1))))
    low, high = np.zeros(shape), np.full(shape, FASTEST)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        tau1, tau2 = _tightest(middle, smoothness, variance, surplus)
        proven = middle / (1.0 - middle) * tau1 * (smoothness + variance / tau2) <= lam
        low, high = np.where(proven, middle, low), np.where(proven, high, middle)
    tau1, tau2 = _tightest(low, smoothness, variance, surplus)
    return Coupling(tau1, tau2, 1.0 / (tau1 * (smoothness + variance / tau2)), low)


def _tightest(
    rho: Vector, smoothness: float, variance: Vector, surplus: Surplus
) -> tuple[Vector, Vector]:
    """``tau1`` and ``tau2`` with ``tau1 = rho + tau2 Q`` and ``tau1 + tau2 <= 1``."""
    q = surplus(rho)
    best = np.sqrt(rho * variance / (smoothness * np.maximum(q, math.exp(-LARGEST_POWER))))
    tau2 = np.minimum(best, (1.0 - rho) / (1.0 + q))
    return rho + tau2 * q, tau2


def loop_rate(tau1: float, tau2: float, growth: float, length: int) -> float:
    """``rho = 1 - 1 / theta`` of given constants, snapshots every ``length`` rounds.

    ``theta`` is the largest number up to ``growth = 1 + alpha lam`` with
    ``tau2 theta^length + tau3 theta <= 1``: an epoch then divides the errors by ``theta^length``.
    """
    tau3 = 1.0 - tau1 - tau2

    def excess(log_theta: float) -> float:
        power = min(length * log_theta, LARGEST_POWER)
        return tau2 * math.expm1(power) + tau3 * math.expm1(log_theta) - tau1

    low, high = 0.0, math.log(growth)
    if excess(high) <= 0.0:
        return min(FASTEST, 1.0 - 1.0 / growth)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) <= 0.0 else (low, middle)
    return min(FASTEST, -math.expm1(-low))


def coin_rate(tau1: float, tau2: float, growth: float, p: float) -> float:
    """``rho`` of given constants, snapshots with probability ``p``.

    ``tau1 = rho + tau2 rho (1 - p) / (p - rho)`` is a quadratic equation; ``growth`` limits it.
    """
    half = 0.5 * (tau1 + tau2 * (1.0 - p) + p)
    root = tau1 * p / (half + math.sqrt(max(0.0, half * half - tau1 * p)))
    return min(FASTEST, root, 1.0 - 1.0 / growth)

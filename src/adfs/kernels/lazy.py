"""Idle iterations in O(1): the (s, delta) form of Algorithm 1.

An iteration that does not touch a row only mixes it: lines 4, 6 and 11 then read
``x, v <- y, (1 - rho) v + rho y``. The sum ``s = x + v`` is kept and the difference
``delta = x - v`` shrinks by ``r = (1 - rho) / (1 + rho)``, so ``k`` of them cost one power.
"""

import math
from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit

LOW_BITS = 10
LOW_MASK = (1 << LOW_BITS) - 1
HIGH_SIZE = 4096


class Decay(NamedTuple):
    """``r^k`` as a product of two table entries; ``log_r`` serves beyond the tables."""

    log_r: float
    low: np.ndarray
    high: np.ndarray


def decay_table(rho):
    """Tables of ``r^k`` for ``r = (1 - rho) / (1 + rho)``, accurate to a few ulps."""
    return power_table(math.log1p(-rho) - math.log1p(rho))


def power_table(log_r):
    """Tables of ``r^k`` for any ``r < 1``; ``r = exp(-2 rho / TICKS)`` is the continuized form's.

    There ``x' = rho (v - x)`` and ``v' = rho (x - v)`` between events: ``s`` is kept and
    ``delta`` shrinks by ``exp(-2 rho dt)``.
    """
    low = np.exp(log_r * np.arange(1 << LOW_BITS))
    high = np.exp(log_r * (np.arange(HIGH_SIZE) * float(1 << LOW_BITS)))
    return Decay(log_r, low, high)


@njit(cache=True, _nrt=False, forceinline=True)
def power(decay, k):
    """``r^k`` for a whole number ``k``; below 0 only where a checkpoint was forged."""
    block = k >> LOW_BITS
    if 0 <= block < HIGH_SIZE:
        return decay.low[k & LOW_MASK] * decay.high[block]
    return math.exp(decay.log_r * k)

"""Generalized APCG (Appendix A, Algorithm 2): its elementary updates and its loops.

Both corollaries run in one form. A coordinate holds two numbers, ``anchor`` and ``offset``, with

    x = anchor + scale * offset,    v = anchor - lean * scale * offset,

``lean = 1`` in Corollary 1 and ``lean = 0`` in Corollary 2. An iteration first multiplies the one
``scale`` of all coordinates, by ``(1 - rho) / (1 + rho)`` or ``1 - alpha_t``; the same formulas
then give ``y`` and ``w``. If the sampled coordinate's w moves by ``m``, then with
``push = alpha R_i / p_i`` and ``half = 1 / (1 + lean)``

    anchor += half (1 + lean push) m,    offset += half (push - 1) m / scale.

Corollary 2's sequence is kept as ``S^2 A_t / B_0``. Derivation: docs/algorithms/apcg.md, Cost.
"""

import math
from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.memory import prefetch
from adfs.kernels.rows import multiply_out, prefetch_row, two_axpys, two_dots

SCALE, GROWTH, ALPHA, STEP = range(4)  # entries of the clock; STEP is eta_i p_i
TINY_SCALE = 1e-200  # the offsets grow as 1 / scale
AHEAD = 8  # iterations between asking for a column's memory and using it


class Rule(NamedTuple):
    """Constants of a run, whichever corollary it follows."""

    lean: float  # 1 for Corollary 1, 0 for Corollary 2
    shrink: float  # r = (1 - rho) / (1 + rho); not read in Corollary 2
    unit: float  # 1 / S^2; not read in Corollary 1
    inverse_p: np.ndarray
    pull: np.ndarray  # R_i / p_i


class Separable(NamedTuple):
    """``psi_i(x) = l1_i |x| + l2_i x^2 / 2``, and infinity outside ``[low_i, high_i]``."""

    l1: np.ndarray
    l2: np.ndarray
    low: np.ndarray
    high: np.ndarray


@njit(cache=True, _nrt=False, forceinline=True)
def tick(rule, clock, pairs, images):
    """Advance the clock by one iteration: scale, and in Corollary 2 alpha and the step.

    The offsets in ``pairs`` and ``images`` are multiplied out before the scale underflows.
    """
    if rule.lean != 0.0:
        clock[SCALE] *= rule.shrink
    else:
        a = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * clock[GROWTH]))
        clock[GROWTH] += a
        clock[SCALE] = 1.0 / clock[GROWTH]
        clock[ALPHA] = a / clock[GROWTH]
        clock[STEP] = a * rule.unit
    if clock[SCALE] < TINY_SCALE:
        multiply_out(pairs, 0, 1, clock[SCALE])
        multiply_out(images, 0, 1, clock[SCALE])
        clock[SCALE] = 1.0


@njit(cache=True, _nrt=False, forceinline=True)
def point(i, rule, clock, pairs):
    """``(y_i, w_i)`` of the running iteration."""
    behind = clock[SCALE] * pairs[0, 2 * i + 1]
    return pairs[0, 2 * i] + behind, pairs[0, 2 * i] - rule.lean * behind


@njit(cache=True, _nrt=False, forceinline=True)
def shift(i, move, rule, clock, pairs):
    """``v_i = w_i + move`` and ``x_i = y_i + (alpha R_i / p_i) move``; return what was added."""
    push = clock[ALPHA] * rule.pull[i]
    half = 1.0 / (1.0 + rule.lean)
    to_anchor = half * (1.0 + rule.lean * push) * move
    to_offset = half * (push - 1.0) * move / clock[SCALE]
    pairs[0, 2 * i] += to_anchor
    pairs[0, 2 * i + 1] += to_offset
    return to_anchor, to_offset


@njit(cache=True, _nrt=False, forceinline=True)
def separable_prox(psi, i, eta, z):
    """Minimiser of ``(x - z)^2 / (2 eta) + psi_i(x)``.

    On a line the minimiser over an interval is the free minimiser moved to the nearest point of
    the interval, so shrinking, scaling and clipping in this order is exact.
    """
    threshold = eta * psi.l1[i]
    free = math.copysign(max(abs(z) - threshold, 0.0), z) / (1.0 + eta * psi.l2[i])
    return min(max(free, psi.low[i]), psi.high[i])


@njit(cache=True, _nrt=False, forceinline=True)
def along(i, rows, clock, pairs):
    """Row ``i`` times ``y`` (or times ``K y - b`` where ``pairs`` holds the images)."""
    with_anchor, with_offset = two_dots(rows, i, pairs, 0)
    return with_anchor + clock[SCALE] * with_offset


@njit(cache=True, _nrt=False, forceinline=True)
def add_column(i, columns, to_anchor, to_offset, images):
    """``K anchor`` and ``K offset`` after coordinate ``i`` has moved."""
    two_axpys(columns, i, to_anchor, to_offset, images, 0)


@njit(cache=True, _nrt=False, nogil=True)
def run_quadratic(which, rows, linear, psi, rule, clock, pairs, images):
    """One iteration for each sampled coordinate on ``x'Hx/2 - b'x``: row ``i`` of H a time."""
    for k in range(which.size):
        if k + AHEAD < which.size:
            prefetch_row(rows, np.int64(which[k + AHEAD]))
        i = np.int64(which[k])
        tick(rule, clock, pairs, images)
        _, w = point(i, rule, clock, pairs)
        eta = clock[STEP] * rule.inverse_p[i]
        z = w - eta * (along(i, rows, clock, pairs) - linear[i])
        shift(i, separable_prox(psi, i, eta, z) - w, rule, clock, pairs)


@njit(cache=True, _nrt=False, nogil=True)
def run_least_squares(which, columns, ridge, psi, rule, clock, pairs, images):
    """One iteration for each sampled coordinate on ``|Kx - b|^2/2 + sum ridge_i x_i^2/2``.

    ``images`` holds ``K anchor - b`` and ``K offset``: column ``i`` of K is read and added.
    """
    for k in range(which.size):
        if k + AHEAD < which.size:
            soon = np.int64(which[k + AHEAD])
            prefetch(np.uintp(pairs.ctypes.data + 16 * soon))
            prefetch_row(columns, soon)
        i = np.int64(which[k])
        tick(rule, clock, pairs, images)
        y, w = point(i, rule, clock, pairs)
        eta = clock[STEP] * rule.inverse_p[i]
        z = w - eta * (along(i, columns, clock, images) + ridge[i] * y)
        move = separable_prox(psi, i, eta, z) - w
        to_anchor, to_offset = shift(i, move, rule, clock, pairs)
        add_column(i, columns, to_anchor, to_offset, images)

"""Rounds of Point-SAGA with a table of scalars, in O(non-zeros) each.

The iterate moves along the dense mean ``gb`` of the table every round. So it is kept as
``x = s u + r gb`` with two numbers ``s`` and ``r``, and a round changes ``u`` and ``gb`` only along
the sample's row. With ``a = 1 + gamma lam``, ``delta = c' - c`` and ``step = gamma / (N p_k)`` for
a sample that is drawn with probability ``p_k``, the round

    x' = (x - gamma gb + step (c - c') x_k) / a,    gb' = gb + delta x_k / N

reads

    s' = s / a,    r' = (r - gamma) / a,    u' = u - delta (step + (r - gamma) / N) / s x_k.

``r`` tends to ``-1 / lam``, as ``x* = -gb* / lam``. ``u`` and ``gb`` lie interleaved in one row of
pairs; ``u`` is multiplied out before ``s`` underflows.
"""

from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.edge import TINY_SCALE
from adfs.kernels.loss_functions import derivative
from adfs.kernels.prox import slope_after
from adfs.kernels.rows import axpy, dot, multiply_out, prefetch_sample, two_axpys, two_dots
from adfs.kernels.sampling import alias_draw, prefetch_cell, uniform

# Columns of a sample's line: its l' in the table, the prox's warm start; then the constants
# |x|^2, label, weight and boost, 1 / (N p) of a sample that is drawn with probability p.
# Eight doubles, so that a line is one cache line.
SLOPE, WARM, NORM2, LABEL, WEIGHT, BOOST = range(6)
LINE = 8
AHEAD = 16  # rounds between asking for a row's memory and using it
S, R = 0, 1


class PointSagaConstants(NamedTuple):
    """Numbers of a run that never change."""

    loss: int
    gamma: float
    ridge: float  # lam = sum_i sigma_i / N
    key: np.uint64  # of the stream of samples
    table: np.ndarray  # alias table of the samples' probabilities


@njit(cache=True, _nrt=False, nogil=True)
def fill_table(loss, rows, lines, first, last, theta, total):
    """Table of rows ``first`` to ``last`` at ``theta``; adds its ``sum c x`` to ``total``."""
    for row in range(first, last):
        score = dot(rows, row, theta)
        slope = derivative(loss, score, lines[row, LABEL])
        lines[row, SLOPE], lines[row, WARM] = slope, score
        axpy(rows, row, lines[row, WEIGHT] * slope, total)


@njit(cache=True, _nrt=False, nogil=True)
def run_rounds(start, count, rows, lines, pairs, scales, constants):
    """Rounds ``start, ..., start + count - 1``; ``pairs`` and ``scales`` hold ``x`` as above."""
    n = lines.shape[0]
    gamma, loss, table = constants.gamma, constants.loss, constants.table
    inverse = 1.0 / (1.0 + gamma * constants.ridge)
    s, r = scales[S], scales[R]
    for t in range(start, start + count):
        prefetch_cell(table, 0, n, uniform(constants.key, t + 2 * AHEAD))
        prefetch_sample(rows, alias_draw(table, 0, n, uniform(constants.key, t + AHEAD)), lines)
        row = alias_draw(table, 0, n, uniform(constants.key, t))
        slope, weight, norm2 = lines[row, SLOPE], lines[row, WEIGHT], lines[row, NORM2]
        step = gamma * lines[row, BOOST]
        along_u, along_mean = two_dots(rows, row, pairs, 0)
        target = s * along_u + (r - gamma) * along_mean + step * weight * slope * norm2
        new, lines[row, WARM] = slope_after(
            loss, lines[row, LABEL], step * inverse * weight * norm2, target * inverse,
            lines[row, WARM], slope,
        )  # fmt: skip
        lines[row, SLOPE] = new
        delta = weight * (new - slope)
        if s < TINY_SCALE:
            multiply_out(pairs, 0, 0, s)
            s = 1.0
        move = -delta * (step + (r - gamma) / n) / s
        two_axpys(rows, row, move, delta / n, pairs, 0)
        s *= inverse
        r = (r - gamma) * inverse
    scales[S], scales[R] = s, r

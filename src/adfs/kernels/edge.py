"""The two elementary updates of ADFS: one sample's proximal step, one half of an exchange.

Every engine calls these same functions, so the same seed gives the same bits everywhere.

An iteration that does not touch a row only mixes it: lines 4, 6 and 11 then read
``x, v <- y, (1 - rho) v + rho y``. The sum ``s = x + v`` is kept and the difference
``delta = x - v`` shrinks by ``r = (1 - rho) / (1 + rho)``, so ``k`` of them cost one power.

State of a centre: ``s`` and ``delta`` of length d, interleaved in one row of pairs, a factor
``scale`` and the index ``last``; its true difference is ``scale * delta``. A local update then
multiplies only ``scale`` and touches only the sample's non-zeros; ``delta`` is multiplied out
before ``scale`` underflows.
State of a sample: one cache line of eight doubles, named below.
"""

import math
from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.memory import prefetch
from adfs.kernels.prox import dual_prox
from adfs.kernels.rows import multiply_out, prefetch_pairs, two_axpys, two_dots

# Columns of a sample's line: x + v, x - v, the index up to which they are current, the prox's warm
# start; then the constants |x|^2, label, weight, and rho / p_ij.
SUM, DIFFERENCE, LAST, WARM, NORM2, LABEL, WEIGHT, PUSH = range(8)
LINE = 8

TINY_SCALE = 1e-90

# Sizes of the tables of powers.
LOW_BITS = 10
LOW_MASK = (1 << LOW_BITS) - 1
HIGH_SIZE = 4096


class Centres(NamedTuple):
    """State of the centre nodes: one row per node."""

    pairs: np.ndarray  # (n, 2 d): s_0, delta_0, s_1, delta_1, ...
    scale: np.ndarray
    last: np.ndarray


class RunConstants(NamedTuple):
    """Constants of a run: what an update at an edge or at a node needs beside the state."""

    edges: np.ndarray  # (E, 2)
    edge_eta: np.ndarray  # eta~_kl = rho mu_kl^2 / (sigma_A p_kl)
    edge_push: np.ndarray  # c_kl = rho R_kl / p_kl
    inverse_sigma: np.ndarray
    eta_ratio: np.ndarray  # eta~_ij = eta_ratio_i c_ij w_ij q_ij, that is alpha_i l''max / sigma_A
    offsets: np.ndarray  # first row of each node
    loss: int
    inverse_curvature: float  # 1 / l''max


class Decay(NamedTuple):
    """``r^k`` as a product of two table entries; ``log_r`` serves beyond the tables."""

    log_r: float
    low: np.ndarray
    high: np.ndarray


class AdfsArithmetic(NamedTuple):
    """Arithmetic of Algorithm 1: the state of its samples and centres, and the constants."""

    lines: np.ndarray
    centres: Centres
    constants: RunConstants
    decay: Decay


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


@njit(cache=True, _nrt=False, forceinline=True)
def moment(work, now, tick, timed):
    """When an event happens, at iteration ``now`` or at its tick, and the next iteration."""
    return tick if timed else now, now + 1


@njit(cache=True, _nrt=False, forceinline=True)
def local_update(work, at, node, row, rows):
    """Iteration ``at`` on the virtual edge of one sample: Algorithm 1, lines 4 to 11."""
    lines, centres, network, decay = work
    scale = centres.scale[node] * power(decay, at + 1 - centres.last[node])
    weight, norm2, push = lines[row, WEIGHT], lines[row, NORM2], lines[row, PUSH]
    difference = lines[row, DIFFERENCE] * power(decay, at + 1 - np.int64(lines[row, LAST]))
    y_virtual = 0.5 * (lines[row, SUM] + difference)
    w_virtual = 0.5 * (lines[row, SUM] - difference)

    along_s, along_delta = two_dots(rows, row, centres.pairs, node)
    prediction = 0.5 * (along_s + scale * along_delta) * network.inverse_sigma[node]
    eta = network.eta_ratio[node] * push * weight * norm2
    inverse_weight = 1.0 / weight
    flat = y_virtual * inverse_weight * network.inverse_curvature
    u = norm2 * w_virtual + eta * (prediction - flat)
    last_dual = 0.5 * inverse_weight * (lines[row, SUM] - lines[row, DIFFERENCE])
    coefficient, warm = dual_prox(
        network.loss, lines[row, LABEL], weight, norm2, eta, u, lines[row, WARM], last_dual
    )

    move = coefficient - w_virtual
    lines[row, SUM] += (1.0 + push) * move
    lines[row, DIFFERENCE] = difference + (push - 1.0) * move
    lines[row, LAST] = at + 1
    lines[row, WARM] = warm

    if scale < TINY_SCALE:
        multiply_out(centres.pairs, node, 1, scale)  # rare, and the only O(d) work
        scale = 1.0
    back = (1.0 - push) * move / scale
    two_axpys(rows, row, -(1.0 + push) * move, back, centres.pairs, node)
    centres.scale[node] = scale
    centres.last[node] = at + 1


@njit(cache=True, _nrt=False, forceinline=True)
def prefetch_centre(work, node):
    """Ask for the state of a centre."""
    prefetch(np.uintp(work.centres.scale.ctypes.data + 8 * node))
    prefetch(np.uintp(work.centres.last.ctypes.data + 8 * node))
    prefetch_pairs(work.centres.pairs, node)


@njit(cache=True, _nrt=False, forceinline=True)
def offer(work, at, node, messages, slot):
    """Bring a centre up to iteration ``at`` and write ``y / sigma`` into ``messages[slot]``."""
    centres, pairs = work.centres, work.centres.pairs
    scale = centres.scale[node] * power(work.decay, at + 1 - centres.last[node])
    half = 0.5 * work.constants.inverse_sigma[node]
    for k in range(pairs.shape[1] // 2):
        pairs[node, 2 * k + 1] *= scale
        messages[slot, k] = half * (pairs[node, 2 * k] + pairs[node, 2 * k + 1])
    centres.scale[node] = 1.0
    centres.last[node] = at + 1


@njit(cache=True, _nrt=False, forceinline=True)
def accept(work, at, edge, node, messages, slot):
    """Finish an exchange at one end; ``messages`` has the first node's at ``slot``, then the other.

    Must follow ``offer`` at the same iteration. Both ends compute the same difference from the same
    operands, so their moves are opposite to the last bit.
    """
    pairs, network = work.centres.pairs, work.constants
    eta, push = network.edge_eta[edge], network.edge_push[edge]
    sign = -1.0 if network.edges[edge, 0] == node else 1.0
    for k in range(pairs.shape[1] // 2):
        move = sign * (eta * (messages[slot, k] - messages[slot + 1, k]))
        pairs[node, 2 * k] += (1.0 + push) * move
        pairs[node, 2 * k + 1] += (push - 1.0) * move


@njit(cache=True, _nrt=False, nogil=True)
def offer_ends(work, t, edge, messages):
    """Bring an edge's ends that are here up to ``t``; write ``y_t``, as ``inverse_sigma`` is 1."""
    for side in range(2):
        node = work.constants.edges[edge, side]
        if node >= 0:
            offer(work, t, node, messages, side)


@njit(cache=True, _nrt=False, nogil=True)
def accept_ends(work, t, edge, messages):
    """Move these ends along the difference of the messages; must follow ``offer_ends``."""
    for side in range(2):
        node = work.constants.edges[edge, side]
        if node >= 0:
            accept(work, t, edge, node, messages, 0)

"""NS-ADFS (Algorithm 3): its two elementary updates.

With ``A_t`` the theorem's sequence, ``x_t - v_t = lag / A_t`` where ``lag`` changes only when a row
is touched: ``1 - alpha_t = A_t / A_{t+1}``, so a product over idle iterations telescopes.
An untouched row costs nothing, and needs neither an index nor a power.

State of a centre: ``v`` and ``lag``, interleaved in one row of pairs.
State of a sample: one cache line of eight doubles, named below.
"""

import math
from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.poisson import TICKS
from adfs.kernels.prox import dual_prox
from adfs.kernels.rows import prefetch_pairs, two_axpys, two_dots

# Columns of a sample's line: the coefficients of v and of lag; then the constants |x|^2, label,
# weight, 1 / p_ij and mu_ij^2 / p_ij.
VALUE, LAG, NORM2, LABEL, WEIGHT, PUSH, ETA = range(7)


class ConvexConstants(NamedTuple):
    """Constants of a run: what an update at an edge or at a node needs beside the state."""

    edges: np.ndarray  # (E, 2)
    edge_eta: np.ndarray  # mu_kl^2 / p_kl
    edge_push: np.ndarray  # R_kl / p_kl
    inverse_sigma: np.ndarray
    offsets: np.ndarray  # first row of each node
    loss: int
    smoothness: float  # S^2
    first_root: float  # sqrt(A_0)
    root_per_tick: float  # 1 / (2 S) a unit of time


class NonSmoothArithmetic(NamedTuple):
    """Arithmetic of Algorithm 3. Its updates happen ``at = (a_{t+1}, A_{t+1})``."""

    lines: np.ndarray
    pairs: np.ndarray
    constants: ConvexConstants


@njit(cache=True, _nrt=False, forceinline=True)
def next_weight(growth, smoothness):
    """``a_{t+1}`` from ``A_t``: the positive root of ``a^2 S^2 = A_t + a``."""
    return (1.0 + math.sqrt(1.0 + 4.0 * smoothness * growth)) / (2.0 * smoothness)


@njit(cache=True, _nrt=False, forceinline=True)
def weights_at(tick, network):
    """``a(t)`` and ``A(t)`` of the continuized form: ``A = (sqrt(A_0) + t / (2 S))^2``, ``a = A'``.

    Then ``a^2 S^2 = A``, and between events ``x' = (A' / A)(v - x)`` and ``v' = 0``: once more
    ``x - v = lag / A(t)`` with a ``lag`` that only events change (docs/algorithms/continuized.md).
    """
    root = network.first_root + tick * network.root_per_tick
    return 2.0 * TICKS * network.root_per_tick * root, root * root


@njit(cache=True, _nrt=False, nogil=True)
def weights_of_own(when, start, stop, growth, constants, a, total):
    """Write ``a_{t+1}`` and ``A_{t+1}`` at this rank's events of the shared form; return ``A_t``.

    ``A_t`` goes on from ``growth`` at every event of any node. Arrays hold one more than ``when``.
    """
    own = 0
    for t in range(start, stop):
        weight = next_weight(growth, constants.smoothness)
        growth += weight
        a[own], total[own] = weight, growth
        own += own < when.size and when[own] == t
    return growth


@njit(cache=True, _nrt=False, nogil=True)
def weights_of_ticks(ticks, constants, a, total):
    """The same of the continuized form, where both are functions of time."""
    for k in range(ticks.size):
        a[k], total[k] = weights_at(ticks[k], constants)


@njit(cache=True, _nrt=False, forceinline=True)
def moment(work, now, tick, timed):
    """``(a, A)`` of the event after ``A_t = now``, or of its tick; and ``A`` for the next one."""
    if timed:
        at = weights_at(tick, work.constants)
    else:
        a = next_weight(now, work.constants.smoothness)
        at = a, now + a
    return at, at[1]


@njit(cache=True, _nrt=False, forceinline=True)
def prefetch_centre(work, node):
    """Ask for the state of a centre."""
    prefetch_pairs(work.pairs, node)


@njit(cache=True, _nrt=False, forceinline=True)
def local_update(work, at, node, row, rows):
    """One sample's proximal step."""
    (a, growth), (lines, pairs, network) = at, work
    weight, norm2, value = lines[row, WEIGHT], lines[row, NORM2], lines[row, VALUE]
    along_v, along_lag = two_dots(rows, row, pairs, node)
    prediction = (along_v + along_lag / growth) * network.inverse_sigma[node]
    eta = a * lines[row, ETA]
    u = norm2 * value + eta * prediction
    label = lines[row, LABEL]
    coefficient, _ = dual_prox(network.loss, label, weight, norm2, eta, u, 0.0, 0.0)
    move = coefficient - value
    behind = (a * lines[row, PUSH] - growth) * move
    lines[row, VALUE] = coefficient
    lines[row, LAG] += behind
    two_axpys(rows, row, -move, -behind, pairs, node)


@njit(cache=True, _nrt=False, forceinline=True)
def offer(work, at, node, messages, slot):
    """Write ``y_t / sigma`` of a centre into ``messages[slot]``."""
    pairs, inverse, scale = work.pairs, 1.0 / at[1], work.constants.inverse_sigma[node]
    for k in range(pairs.shape[1] // 2):
        messages[slot, k] = scale * (pairs[node, 2 * k] + inverse * pairs[node, 2 * k + 1])


@njit(cache=True, _nrt=False, forceinline=True)
def accept(work, at, edge, node, messages, slot):
    """Finish an exchange at one end, as for Algorithm 1: opposite moves to the last bit."""
    (a, growth), pairs, network = at, work.pairs, work.constants
    eta = a * network.edge_eta[edge]
    behind = a * network.edge_push[edge] - growth
    sign = -1.0 if network.edges[edge, 0] == node else 1.0
    for k in range(pairs.shape[1] // 2):
        move = sign * (eta * (messages[slot, k] - messages[slot + 1, k]))
        pairs[node, 2 * k] += move
        pairs[node, 2 * k + 1] += behind * move

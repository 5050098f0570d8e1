"""NS-ADFS (Algorithm 3): its two elementary updates and the loop over events.

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
from adfs.kernels.event_loop import AHEAD, ask_ahead
from adfs.kernels.poisson import TICKS
from adfs.kernels.prox import dual_prox
from adfs.kernels.rows import two_axpys, two_dots

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


@njit(cache=True, _nrt=False, forceinline=True)
def local_update(a, growth, node, row, rows, lines, pairs, network):
    """One sample's proximal step, with ``a = a_{t+1}`` and ``growth = A_{t+1}``."""
    weight, norm2, value = lines[row, WEIGHT], lines[row, NORM2], lines[row, VALUE]
    along_v, along_lag = two_dots(rows, row, pairs, node)
    prediction = (along_v + along_lag / growth) * network.inverse_sigma[node]
    eta = a * lines[row, ETA]
    u = norm2 * value + eta * prediction
    coefficient, _ = dual_prox(
        network.loss, lines[row, LABEL], weight, norm2, eta, u, 0.0, 0.0
    )  # fmt: skip
    move = coefficient - value
    behind = (a * lines[row, PUSH] - growth) * move
    lines[row, VALUE] = coefficient
    lines[row, LAG] += behind
    two_axpys(rows, row, -move, -behind, pairs, node)


@njit(cache=True, _nrt=False, forceinline=True)
def offer(growth, node, pairs, network, messages, slot):
    """Write ``y_t / sigma`` of a centre into ``messages[slot]``."""
    inverse, scale = 1.0 / growth, network.inverse_sigma[node]
    for k in range(pairs.shape[1] // 2):
        messages[slot, k] = scale * (pairs[node, 2 * k] + inverse * pairs[node, 2 * k + 1])


@njit(cache=True, _nrt=False, forceinline=True)
def accept(a, growth, edge, node, messages, slot, pairs, network):
    """Finish an exchange at one end; ``messages`` has the first node's at ``slot``, then the other.

    Both ends compute the same difference from the same operands: opposite moves to the last bit.
    """
    eta = a * network.edge_eta[edge]
    behind = a * network.edge_push[edge] - growth
    sign = -1.0 if network.edges[edge, 0] == node else 1.0
    for k in range(pairs.shape[1] // 2):
        move = sign * (eta * (messages[slot, k] - messages[slot + 1, k]))
        pairs[node, 2 * k] += move
        pairs[node, 2 * k + 1] += behind * move


@njit(cache=True, _nrt=False, nogil=True)
def run_events(growth, ticks, which, sample, rows, lines, pairs, network, messages):
    """Run one iteration of Algorithm 3 for each event; return ``A_t`` after the last.

    With ``ticks`` (empty otherwise), the events happen at these times: the continuized form.
    """
    timed = ticks.size > 0
    n_edges = network.edges.shape[0]
    lines_at = lines.ctypes.data
    for k in range(which.size):
        ask_ahead(k + AHEAD, which, sample, network.offsets, n_edges, lines_at, rows)
        if timed:
            a, growth = weights_at(ticks[k], network)
        else:
            a = next_weight(growth, network.smoothness)
            growth += a
        if which[k] >= n_edges:
            node = which[k] - n_edges
            row = network.offsets[node] + sample[k]
            local_update(a, growth, node, row, rows, lines, pairs, network)
        else:
            edge = which[k]
            first, second = network.edges[edge, 0], network.edges[edge, 1]
            offer(growth, first, pairs, network, messages, 0)
            offer(growth, second, pairs, network, messages, 1)
            accept(a, growth, edge, first, messages, 0, pairs, network)
            accept(a, growth, edge, second, messages, 0, pairs, network)
    return growth

"""Loops over events: what turns one compiled call into many iterations."""

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.edge import DIFFERENCE, LAST, LINE, SUM, accept, local_update, offer
from adfs.kernels.lazy import power
from adfs.kernels.memory import prefetch
from adfs.kernels.rows import prefetch_row

AHEAD = 16  # events between asking for a row's memory and using it


@njit(cache=True, _nrt=False, forceinline=True)
def ask_ahead(k, which, sample, offsets, n_edges, lines_at, rows):
    """Ask for the line and the row of the sample that event ``k`` will need, if it is local."""
    if k < which.size and which[k] >= n_edges:
        row = offsets[which[k] - n_edges] + sample[k]
        prefetch(np.uintp(lines_at + row * (LINE * 8)))
        prefetch_row(rows, row)


@njit(cache=True, _nrt=False, nogil=True)
def run_events(start, ticks, which, sample, rows, lines, centres, network, decay, messages):
    """Run iterations ``start, start + 1, ...`` of Algorithm 1, one for each event of the block.

    With ``ticks`` (empty otherwise), run them at these times instead: the continuized form. An
    update at ``t`` decays by ``r^(t + 1 - last)`` and leaves ``last = t + 1``, so what enters is
    the difference of two times, and both ``y = x(t-)`` and ``w = v(t-)`` are decayed by it.
    """
    timed = ticks.size > 0
    n_edges = network.edges.shape[0]
    lines_at = lines.ctypes.data
    for k in range(which.size):
        ask_ahead(k + AHEAD, which, sample, network.offsets, n_edges, lines_at, rows)
        t = ticks[k] if timed else start + k
        if which[k] >= n_edges:
            node = which[k] - n_edges
            row = network.offsets[node] + sample[k]
            local_update(t, node, row, rows, lines, centres, network, decay)
        else:
            edge = which[k]
            first, second = network.edges[edge, 0], network.edges[edge, 1]
            offer(t, first, centres, network, decay, messages, 0)
            offer(t, second, centres, network, decay, messages, 1)
            accept(edge, first, messages, 0, centres, network)
            accept(edge, second, messages, 0, centres, network)


@njit(cache=True, _nrt=False, nogil=True)
def centres_at(t, centres, decay, y, v, ahead=1):
    """Write ``y_t`` and ``v_t`` of every centre, leaving the state as it is.

    ``y_t`` is one idle step ahead of ``v_t`` in Algorithm 1. In the continuized form ``x`` and
    ``v`` are asked for at the same time: ``ahead`` is 0, and ``t`` is the tick plus 1, as ``last``.
    """
    pairs = centres.pairs
    for node in range(y.shape[0]):
        idle = t - centres.last[node]
        now = centres.scale[node] * power(decay, idle)
        mixed = centres.scale[node] * power(decay, idle + ahead)
        for k in range(y.shape[1]):
            s, delta = pairs[node, 2 * k], pairs[node, 2 * k + 1]
            y[node, k] = 0.5 * (s + mixed * delta)
            v[node, k] = 0.5 * (s - now * delta)


@njit(cache=True, _nrt=False, nogil=True)
def virtual_at(t, lines, decay, y, v, ahead=1):
    """The same of every virtual node: coefficients on its own row."""
    for row in range(lines.shape[0]):
        idle = t - np.int64(lines[row, LAST])
        now = lines[row, DIFFERENCE] * power(decay, idle)
        mixed = lines[row, DIFFERENCE] * power(decay, idle + ahead)
        y[row] = 0.5 * (lines[row, SUM] + mixed)
        v[row] = 0.5 * (lines[row, SUM] - now)

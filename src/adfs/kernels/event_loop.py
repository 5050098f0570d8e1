"""Loops over events: what turns one compiled call into many iterations."""

import numpy as np

from adfs.kernels import edge, non_smooth
from adfs.kernels.compiled import njit
from adfs.kernels.edge import DIFFERENCE, LAST, SUM, AdfsArithmetic, power
from adfs.kernels.memory import prefetch
from adfs.kernels.rows import by_type, prefetch_sample

AHEAD = 16  # events between asking for a row's memory and using it
MANY = 10_000  # nodes, from which on centres are asked for too

moment = by_type(AdfsArithmetic, edge.moment, non_smooth.moment)
local_update = by_type(AdfsArithmetic, edge.local_update, non_smooth.local_update)
offer = by_type(AdfsArithmetic, edge.offer, non_smooth.offer)
accept = by_type(AdfsArithmetic, edge.accept, non_smooth.accept)
prefetch_centre = by_type(AdfsArithmetic, edge.prefetch_centre, non_smooth.prefetch_centre)


@njit(cache=True, _nrt=False, forceinline=True)
def prefetch_far(work, which, k, n_edges):
    """Where centres fill no cache: ask for those of an event, and before for what names them."""
    edges, offsets = work.constants.edges, work.constants.offsets
    later = k + 2 * AHEAD
    if later < which.size:
        event = which[later]
        if event >= n_edges:
            prefetch(np.uintp(offsets.ctypes.data + 8 * (event - n_edges)))
        else:
            prefetch(np.uintp(edges.ctypes.data + 8 * event))
            prefetch(np.uintp(work.constants.edge_eta.ctypes.data + 8 * event))
            prefetch(np.uintp(work.constants.edge_push.ctypes.data + 8 * event))
    soon = k + AHEAD
    if soon < which.size:
        event = which[soon]
        if event >= n_edges:
            prefetch_centre(work, event - n_edges)
        else:
            prefetch_centre(work, edges[event, 0])
            prefetch_centre(work, edges[event, 1])


@njit(cache=True, _nrt=False, nogil=True)
def run_events(work, now, ticks, which, sample, rows, messages):
    """Run one iteration of Algorithm 1 or 3 for each event of the block.

    ``now`` is the index of the first event, or Algorithm 3's ``A_t``; returns the same after the
    last. With ``ticks`` (empty otherwise), run them at these times instead: the continuized form.
    An update of Algorithm 1 at ``t`` decays by ``r^(t + 1 - last)`` and leaves ``last = t + 1``, so
    what enters is the difference of two times, and both ``y = x(t-)`` and ``w = v(t-)`` are decayed
    by it.
    """
    timed = ticks.size > 0
    edges, offsets = work.constants.edges, work.constants.offsets
    n_edges, many = edges.shape[0], offsets.size > MANY
    for k in range(which.size):
        soon = k + AHEAD
        if soon < which.size and which[soon] >= n_edges:
            prefetch_sample(rows, offsets[which[soon] - n_edges] + sample[soon], work.lines)
        if many:
            prefetch_far(work, which, k, n_edges)
        at, now = moment(work, now, ticks[k] if timed else 0, timed)
        if which[k] >= n_edges:
            node = which[k] - n_edges
            local_update(work, at, node, offsets[node] + sample[k], rows)
        else:
            first, second = edges[which[k], 0], edges[which[k], 1]
            offer(work, at, first, messages, 0)
            offer(work, at, second, messages, 1)
            accept(work, at, which[k], first, messages, 0)
            accept(work, at, which[k], second, messages, 0)
    return now


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

"""Both clocks, and how long an event takes.

``edges`` has one row (k, l) per edge; an event ``which < E`` is the exchange on that edge, and
``which = E + i`` a local update at node i. ``finish[i]`` is when node i has done all its events.
"""

import math

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.sampling import uniform

NONBLOCKING, RENDEZVOUS = 0, 1
CONSTANT, EXPONENTIAL, LOGNORMAL, PARETO = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def factor(law, shape, keys, t):
    """Unit-mean factor of event ``t``: draw number ``t`` of the streams ``keys`` (two of them)."""
    u = 1.0 - uniform(keys[0], t)  # in (0, 1]: its logarithm and its powers are finite
    if law == EXPONENTIAL:
        return -math.log(u)
    if law == LOGNORMAL:
        angle = 2.0 * math.pi * uniform(keys[1], t)
        normal = math.sqrt(-2.0 * math.log(u)) * math.cos(angle)
        return math.exp(shape * (normal - 0.5 * shape))
    if law == PARETO:
        return (shape - 1.0) / shape * u ** (-1.0 / shape)
    return 1.0


@njit(cache=True, nogil=True)
def durations(which, start, ticks, nominal, first, last, law, shape, keys, out):
    """Fill ``out`` with the duration of each event, the first of which is event ``start``.

    With ``ticks`` (empty otherwise) an event's number is its tick, which both of its nodes know.
    ``nominal`` has one duration per edge, then one per node; the law multiplies those of the events
    with ``first <= which < last``.
    """
    for k in range(which.size):
        event = which[k]
        out[k] = nominal[event]
        if first <= event < last:
            out[k] *= factor(law, shape, keys, start + k if ticks.size == 0 else ticks[k])


@njit(cache=True, inline="always")
def leave(clock, a, b, duration):
    """When two nodes that reach an exchange at times ``a`` and ``b`` are done with it.

    Rendezvous (Figure 2): it starts when both are there and holds both. Non-blocking: each posts
    its message and goes on once the other's has arrived, which may have been long ago.
    """
    if clock == RENDEZVOUS:
        end = max(a, b) + duration
        return end, end
    return max(a, b + duration), max(b, a + duration)


@njit(cache=True, nogil=True)
def advance(which, edges, duration, clock, finish, busy, waiting, reached, left):
    """Execute events in schedule order: ``finish``, ``busy`` and ``waiting`` move in place.

    A node waits while its peer has not reached the exchange, and is busy from then until it
    leaves; under either clock, ``finish - busy - waiting`` of a node never changes. ``reached`` and
    ``left``, unless they are empty, keep when each of an event's (two) nodes came and went.
    """
    n_edges, kept = edges.shape[0], reached.size > 0
    for k in range(which.size):
        node = which[k] - n_edges
        length = duration[k]
        if node >= 0:
            if kept:
                reached[k, 0], left[k, 0] = finish[node], finish[node] + length
            finish[node] += length
            busy[node] += length
            continue
        i, j = edges[which[k], 0], edges[which[k], 1]
        a, b = finish[i], finish[j]
        ready = max(a, b)
        end_i, end_j = leave(clock, a, b, length)
        if kept:
            reached[k, 0], reached[k, 1], left[k, 0], left[k, 1] = a, b, end_i, end_j
        finish[i] = end_i
        finish[j] = end_j
        waiting[i] += ready - a
        waiting[j] += ready - b
        busy[i] += end_i - ready
        busy[j] += end_j - ready


@njit(cache=True, nogil=True)
def work_time(work, speed, random, law, shape, keys, counter):
    """``work`` elementary steps at a node, each (or a part of one) with a draw if ``random``."""
    if not random:
        return speed * work
    total, left = 0.0, work
    while left > 0.0:
        total += min(left, 1.0) * factor(law, shape, keys, counter)
        counter += 1
        left -= 1.0
    return speed * total


@njit(cache=True, nogil=True)
def spread(which, start, edges, work, nominal, scopes, law, shape, keys, parts, lengths):
    """Events whose ends each work alone before they exchange, as the parts that a clock knows.

    An exchange becomes a local part at each end, then the exchange; a local event its one part.
    ``parts`` and ``lengths`` hold three per event; returns how many are used. ``nominal`` has one
    duration per edge, then one per node; ``scopes``: whether the law applies to messages, and to
    steps. Event t draws from its own range of the stream: cutting elsewhere changes nothing.
    """
    n_edges, most, used = edges.shape[0], math.ceil(work.max()), 0
    for k in range(which.size):
        counter = (start + k) * (2 * most + 1)
        ends = 2 if which[k] < n_edges else 1
        for side in range(ends):
            node = edges[which[k], side] if ends == 2 else which[k] - n_edges
            parts[used] = n_edges + node
            first, speed = counter + side * most, nominal[n_edges + node]
            lengths[used] = work_time(work[node], speed, scopes[1], law, shape, keys, first)
            used += 1
        if ends == 2:
            parts[used] = which[k]
            lengths[used] = nominal[which[k]]
            if scopes[0]:
                lengths[used] *= factor(law, shape, keys, counter + 2 * most)
            used += 1
    return used


@njit(cache=True, nogil=True)
def random_rounds(which, start, work, rounds, speed, tau, scopes, law, shape, keys, time, busy):
    """Add the time of synchronous rounds under a random law to ``time[0]`` and ``busy``.

    A round of kind k takes its slowest node, with ``work[k, i]`` elementary steps, then
    ``rounds[k]`` times its slowest edge. ``scopes`` gives whether the law applies to messages and
    to steps. Round t draws from its own range of the stream.
    """
    most = 0  # random numbers that a round of any kind takes
    for kind in range(rounds.size):
        most = max(most, rounds[kind] * tau.size + np.int64(np.ceil(work[kind]).sum()))
    for k in range(which.size):
        kind = which[k]
        counter = (start + k) * most
        slowest = 0.0
        for node in range(speed.size):
            steps = work[kind, node]
            length = work_time(steps, speed[node], scopes[1], law, shape, keys, counter)
            if scopes[1]:
                counter += np.int64(math.ceil(steps))
            busy[node] += length
            slowest = max(slowest, length)
        time[0] += slowest
        for _ in range(rounds[kind]):
            slowest = 0.0
            for edge in range(tau.size):
                length = tau[edge]
                if scopes[0]:
                    length *= factor(law, shape, keys, counter)
                    counter += 1
                slowest = max(slowest, length)
            time[0] += slowest

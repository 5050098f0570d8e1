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
def advance(which, edges, duration, clock, finish, busy, waiting):
    """Execute events in schedule order: ``finish``, ``busy`` and ``waiting`` move in place.

    A node waits while its peer has not reached the exchange, and is busy from then until it
    leaves; under either clock, ``finish - busy - waiting`` of a node never changes.
    """
    n_edges = edges.shape[0]
    for k in range(which.size):
        node = which[k] - n_edges
        length = duration[k]
        if node >= 0:
            finish[node] += length
            busy[node] += length
            continue
        i, j = edges[which[k], 0], edges[which[k], 1]
        a, b = finish[i], finish[j]
        ready = max(a, b)
        end_i, end_j = leave(clock, a, b, length)
        finish[i] = end_i
        finish[j] = end_j
        waiting[i] += ready - a
        waiting[j] += ready - b
        busy[i] += end_i - ready
        busy[j] += end_j - ready


@njit(cache=True, nogil=True)
def follow(which, edges, duration, clock, finish, reached, left):
    """As ``advance``, keeping for each event when each of its (two) nodes reached and left it.

    The second column of a local update stays as it was.
    """
    n_edges = edges.shape[0]
    for k in range(which.size):
        node = which[k] - n_edges
        if node >= 0:
            reached[k, 0] = finish[node]
            finish[node] += duration[k]
            left[k, 0] = finish[node]
            continue
        i, j = edges[which[k], 0], edges[which[k], 1]
        reached[k, 0], reached[k, 1] = finish[i], finish[j]
        finish[i], finish[j] = leave(clock, finish[i], finish[j], duration[k])
        left[k, 0], left[k, 1] = finish[i], finish[j]


@njit(cache=True, nogil=True)
def bind(which, edges, clock, reached, left, before, latest):
    """Who determined whose time: fill ``before`` (K, 2) and ``latest`` (n,).

    A link is ``2 k + side``: event k as felt by its node ``side``. ``before[k, side]`` is the link
    that ended when this one began to count, ``latest[i]`` the link that set the finish time of
    node i; -1 where there is none. An exchange whose message had arrived before the node came
    sets nothing there, so the node keeps its former link.
    """
    n_edges = edges.shape[0]
    latest[:] = -1
    for k in range(which.size):
        node = which[k] - n_edges
        if node >= 0:
            before[k, 0] = latest[node]
            latest[node] = 2 * k
            continue
        i, j = edges[which[k], 0], edges[which[k], 1]
        of_i, of_j = latest[i], latest[j]
        i_is_last = reached[k, 0] >= reached[k, 1]
        if left[k, 0] > reached[k, 0]:
            before[k, 0] = of_i if clock == RENDEZVOUS and i_is_last else of_j
            latest[i] = 2 * k
        if left[k, 1] > reached[k, 1]:
            before[k, 1] = of_j if clock == RENDEZVOUS and not i_is_last else of_i
            latest[j] = 2 * k + 1


@njit(cache=True, nogil=True)
def backtrack(before, link, path):
    """Write the events that lead to ``link``, last one first, into ``path``; return how many."""
    length = 0
    while link >= 0:
        path[length] = link // 2
        length += 1
        link = before[link // 2, link % 2]
    return length


@njit(cache=True, nogil=True)
def extremes(which):
    """Smallest and largest number of a block: kernels do not check bounds, callers must."""
    low, high = which[0], which[0]
    for k in range(which.size):
        low = min(low, which[k])
        high = max(high, which[k])
    return low, high


@njit(cache=True, nogil=True)
def random_rounds(which, start, work, rounds, speed, tau, scopes, law, shape, keys, time, busy):
    """Add the time of synchronous rounds under a random law to ``time[0]`` and ``busy``.

    A round of kind k takes its slowest node, ``work[k, i]`` elementary steps each with a factor of
    its own (a fraction of a step: that fraction of a draw), then ``rounds[k]`` times its slowest
    edge. ``scopes`` gives whether the law applies to messages and to steps. Round t draws from its
    own range of the stream.
    """
    most = most_draws(work, rounds, tau.size)
    for k in range(which.size):
        kind = which[k]
        counter = (start + k) * most
        slowest = 0.0
        for node in range(speed.size):
            left = work[kind, node]
            total = 0.0 if scopes[1] else left
            while scopes[1] and left > 0.0:
                total += min(left, 1.0) * factor(law, shape, keys, counter)
                counter += 1
                left -= 1.0
            busy[node] += speed[node] * total
            slowest = max(slowest, speed[node] * total)
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


@njit(cache=True, nogil=True)
def most_draws(work, rounds, n_edges):
    """Most random numbers that a round of any kind takes."""
    most = 0
    for kind in range(rounds.size):
        draws = rounds[kind] * n_edges
        for node in range(work.shape[1]):
            draws += np.int64(math.ceil(work[kind, node]))
        most = max(most, draws)
    return most

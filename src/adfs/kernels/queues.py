"""From a schedule to each node's own part of it: what a rank executes between two positions."""

from typing import NamedTuple

from adfs.kernels.compiled import njit
from adfs.kernels.non_smooth import next_weight, weights_at
from adfs.kernels.sampling import alias_draw, uniform


@njit(cache=True, _nrt=False, nogil=True)
def keep_own(start, stop, key, table, mine, which, when, buffer):
    """Draw events ``start`` to ``stop`` of the shared stream and keep this rank's; how many.

    ``mine`` is 1 for its edges and nodes, 0 for others: no unpredictable branch. Some
    events at a time are drawn to ``buffer``, in a loop that the compiler vectorises. What
    does not fit into the arrays is counted only; they need ``buffer.size`` to spare.
    """
    used, size = 0, table.size
    for first in range(start, stop, buffer.size):
        n = min(buffer.size, stop - first)
        for k in range(n):
            buffer[k] = alias_draw(table, 0, size, uniform(key, first + k))
        if used + n <= which.size:
            for k in range(n):
                which[used], when[used] = buffer[k], first + k
                used += mine[buffer[k]]
        else:
            for k in range(n):
                used += mine[buffer[k]]
    return used


@njit(cache=True, _nrt=False, nogil=True)
def draw_own_samples(sample, which, when, n_edges, here, keys, tables, offsets):
    """Samples of this rank's events, as `sampling.draw_samples` has them; -1 at an edge.

    ``here`` gives a node's number on this rank; ``keys`` and ``offsets`` are of these nodes.
    """
    for k in range(which.size):
        if which[k] >= n_edges:
            own = here[which[k] - n_edges]
            first = offsets[own]
            u = uniform(keys[own], when[k])
            sample[k] = alias_draw(tables, first, offsets[own + 1] - first, u)
        else:
            sample[k] = -1


@njit(cache=True, _nrt=False, nogil=True)
def count_own(which, ends, here, count):
    """Add to ``count`` the number of events of each node of this rank; return exchanges, local.

    ``ends`` are the edges in this rank's numbers. An exchange between two ranks is counted by the
    one that has its first end.
    """
    n_edges = ends.shape[0]
    exchanges = updates = 0
    for k in range(which.size):
        if which[k] >= n_edges:
            count[here[which[k] - n_edges]] += 1
            updates += 1
        else:
            first, second = ends[which[k], 0], ends[which[k], 1]
            if first >= 0:
                count[first] += 1
                exchanges += 1
            if second >= 0:
                count[second] += 1
    return exchanges, updates


@njit(cache=True, _nrt=False, forceinline=True)
def put(queue, cursor, node, when, which, sample, a, growth):
    """Append an event to a node's queue."""
    place = cursor[node]
    queue.when[place] = when
    queue.which[place] = which
    queue.sample[place] = sample
    if queue.a.size > 1:
        queue.a[place] = a
        queue.growth[place] = growth
    cursor[node] = place + 1


class Sequence(NamedTuple):
    """What Algorithm 3's ``A_t`` depends on; ``smoothness`` is 0 for Algorithm 1, without one."""

    smoothness: float
    first_root: float
    root_per_tick: float


@njit(cache=True, _nrt=False, nogil=True)
def weights_of_own(when, start, stop, growth, sequence, a, total):
    """Write ``a_{t+1}`` and ``A_{t+1}`` at this rank's events of the shared form; return ``A_t``.

    ``A_t`` goes on from ``growth`` at every event of any node. Arrays hold
    one more than ``when``.
    """
    own = 0
    for t in range(start, stop):
        weight = next_weight(growth, sequence.smoothness)
        growth += weight
        a[own], total[own] = weight, growth
        own += own < when.size and when[own] == t
    return growth


@njit(cache=True, _nrt=False, nogil=True)
def weights_of_ticks(ticks, sequence, a, total):
    """The same of the continuized form, where both are functions of time."""
    for k in range(ticks.size):
        a[k], total[k] = weights_at(ticks[k], sequence)


@njit(cache=True, _nrt=False, nogil=True)
def fill(queue, cursor, which, sample, when, a, total, ends, here):
    """Deal events to those of this rank's nodes that take part in them."""
    n_edges, weighted = ends.shape[0], a.size > 1
    for k in range(which.size):
        weight, growth = (a[k], total[k]) if weighted else (0.0, 0.0)
        if which[k] >= n_edges:
            node = here[which[k] - n_edges]
            put(queue, cursor, node, when[k], -1, sample[k], weight, growth)
        else:
            for side in range(2):
                end = ends[which[k], side]
                if end >= 0:
                    put(queue, cursor, end, when[k], which[k], -1, weight, growth)

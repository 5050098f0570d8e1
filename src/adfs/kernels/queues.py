"""From a schedule to each node's own part of it: what a rank executes between two positions."""

from typing import NamedTuple

from numba import njit

from adfs.kernels.convex import next_weight, weights_at
from adfs.kernels.sampling import alias_draw, uniform


@njit(cache=True, _nrt=False, nogil=True)
def draw_own_samples(sample, which, start, n_edges, here, keys, tables, offsets):
    """Samples of the events at nodes of this rank, as `sampling.draw_samples` has them.

    ``here`` gives a node's number on this rank, or -1; ``keys`` and ``offsets`` are of these nodes.
    """
    for k in range(which.size):
        node = which[k] - n_edges
        if node >= 0 and here[node] >= 0:
            own = here[node]
            first = offsets[own]
            u = uniform(keys[own], start + k)
            sample[k] = alias_draw(tables, first, offsets[own + 1] - first, u)


@njit(cache=True, _nrt=False, nogil=True)
def count_own(which, ends, here, count):
    """Add to ``count`` the number of events of each node of this rank; return exchanges, local.

    ``ends`` are the edges in this rank's numbers. An exchange between two ranks is counted by the
    one that has its first end.
    """
    n_edges = ends.shape[0]
    exchanges = updates = 0
    for k in range(which.size):
        node = which[k] - n_edges
        if node >= 0:
            if here[node] >= 0:
                count[here[node]] += 1
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
def fill(queue, cursor, which, sample, start, ticks, ends, here, growth, sequence):
    """Deal a block of events to the nodes of this rank; return ``A_t`` after the block.

    ``ticks`` is empty in the shared form, where event ``k`` has the index ``start + k`` and ``A_t``
    goes on from ``growth`` at every event, whoever takes part in it.
    """
    n_edges = ends.shape[0]
    timed = ticks.size > 0
    weight = 0.0
    for k in range(which.size):
        when = ticks[k] if timed else start + k
        if sequence.smoothness > 0.0:
            if timed:
                weight, growth = weights_at(when, sequence)
            else:
                weight = next_weight(growth, sequence.smoothness)
                growth += weight
        node = which[k] - n_edges
        if node >= 0:
            if here[node] >= 0:
                put(queue, cursor, here[node], when, -1, sample[k], weight, growth)
        else:
            for side in range(2):
                end = ends[which[k], side]
                if end >= 0:
                    put(queue, cursor, end, when, which[k], -1, weight, growth)
    return growth

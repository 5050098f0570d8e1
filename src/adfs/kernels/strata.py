"""Samples of a node in epochs: systematic draws through its importance, in a random order.

Draw number ``k`` of a node of ``m`` samples belongs to epoch ``k // m``. The samples lie on a line,
sample ``j`` on a part of length ``m q_j``, in an order drawn once. An epoch takes the points ``u,
1 + u, ..., m - 1 + u``, with one ``u`` in [0, 1) for all, and shuffles what they meet. So sample
``j`` comes up ``m q_j`` times, rounded up or down, and ``m q_j`` times in the mean over ``u``.
"""

import math

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.memory import prefetch
from adfs.kernels.sampling import AHEAD, bits, uniform

EPOCH, PLACE, KEPT = range(3)  # columns of a node's state: its next draw, and the epoch in memory
ONCE = 0  # number of the stream's key for the order on the line
PER_EPOCH = 2  # numbers of each epoch: its ``u``, and the key of its order


@njit(cache=True, _nrt=False, forceinline=True)
def insert(order, k, value, key):
    """Shuffle as values come: afterwards ``order[:k + 1]`` is in any order, equally likely."""
    other = np.int64(uniform(key, k) * (k + 1))
    order[k] = order[other]
    order[other] = value


@njit(cache=True, _nrt=False, nogil=True)
def lay_out(weights, key, line, ends):
    """Samples in a random order on a line of length ``m``, and where the part of each ends.

    From the last one that has a part, the end is infinity: rounding must not pass it.
    """
    shuffle = bits(key, ONCE)
    total = 0.0
    for sample in range(weights.size):
        insert(line, sample, sample, shuffle)
        total += weights[sample]
    reached = 0.0
    last = 0
    for k in range(weights.size):
        reached += weights[line[k]]
        ends[k] = reached / total * weights.size
        if weights[line[k]] > 0.0:
            last = k
    ends[last:] = math.inf


@njit(cache=True, _nrt=False, nogil=True)
def fill_epoch(order, line, ends, key, epoch):
    """Write the samples of one epoch to ``order``, in the order of its draws."""
    first = 1 + PER_EPOCH * epoch
    u, shuffle = uniform(key, first), bits(key, first + 1)
    part = 0
    for k in range(order.size):
        while ends[part] <= k + u:
            part += 1
        insert(order, k, line[part], shuffle)


@njit(cache=True, _nrt=False, nogil=True)
def draw_strata(sample, which, n_edges, state, keys, offsets, line, ends, order):
    """Each local event's sample, the next one of its node's epochs; -1 for edges.

    ``order`` keeps one epoch of each node: m draws of a node pay for filling it once.
    """
    order_at = order.ctypes.data
    for k in range(which.size):
        soon = k + AHEAD
        if soon < which.size and which[soon] >= n_edges:
            node = which[soon] - n_edges
            prefetch(np.uintp(order_at + 4 * (offsets[node] + state[node, PLACE])))
        node = which[k] - n_edges
        if node < 0:
            sample[k] = -1
            continue
        first, last = offsets[node], offsets[node + 1]
        if state[node, PLACE] == last - first:
            state[node, PLACE] = 0
            state[node, EPOCH] += 1
        epoch = state[node, EPOCH]
        if state[node, KEPT] != epoch:
            state[node, KEPT] = epoch
            own = order[first:last]
            fill_epoch(own, line[first:last], ends[first:last], keys[node], epoch)
        sample[k] = order[first + state[node, PLACE]]
        state[node, PLACE] += 1

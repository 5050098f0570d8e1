"""Pairwise events whose two ends each work alone before they exchange, and how long those take."""

import math

from adfs.kernels.clocks import factor
from adfs.kernels.compiled import njit
from adfs.kernels.edge import accept, offer


@njit(cache=True, _nrt=False, nogil=True)
def offer_ends(t, edge, centres, constants, decay, messages):
    """Bring the ends of an edge that are here up to iteration ``t`` and write their ``y_t``.

    ``constants.inverse_sigma`` must be one, because here a message is not ``y_t / sigma``.
    """
    for side in range(2):
        node = constants.edges[edge, side]
        if node >= 0:
            offer(t, node, centres, constants, decay, messages, side)


@njit(cache=True, _nrt=False, nogil=True)
def accept_ends(edge, messages, centres, constants):
    """Move these ends along the difference of the messages; must follow ``offer_ends``."""
    for side in range(2):
        node = constants.edges[edge, side]
        if node >= 0:
            accept(edge, node, messages, 0, centres, constants)


@njit(cache=True, nogil=True)
def work_time(work, speed, random, law, shape, keys, counter):
    """``work`` elementary steps at a node, each with a factor of its own if ``random``.

    A fraction of a step takes that fraction of a draw.
    """
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
    """Write every event as the parts that a clock knows; return how many.

    An exchange becomes a local part at each end, then the exchange; a local event its one part.
    ``parts`` and ``lengths`` hold three per event. ``nominal`` has one duration per edge,
    then one per node; ``scopes``: whether the law applies to messages, and to steps. Event t draws
    from its own range of the stream: cutting elsewhere changes nothing.
    """
    n_edges = edges.shape[0]
    most = 0
    for node in range(work.size):
        most = max(most, math.ceil(work[node]))
    used = 0
    for k in range(which.size):
        counter = (start + k) * (2 * most + 1)
        ends = 2 if which[k] < n_edges else 1
        for side in range(ends):
            node = edges[which[k], side] if ends == 2 else which[k] - n_edges
            parts[used] = n_edges + node
            lengths[used] = work_time(
                work[node], nominal[n_edges + node], scopes[1], law, shape, keys,
                counter + side * most,
            )  # fmt: skip
            used += 1
        if ends == 2:
            parts[used] = which[k]
            lengths[used] = nominal[which[k]]
            if scopes[0]:
                lengths[used] *= factor(law, shape, keys, counter + 2 * most)
            used += 1
    return used

"""What a rank does with its nodes' part of a schedule: run each until it needs a message.

Nodes, and the ends of edges, have the numbers that they have on this rank; the far end of an edge
to another rank is -1. A node waits for one message at a time, and the others go on meanwhile. What
carries messages between ranks is no matter here: a node that needs one stands at `POST`.

A message has d + 1 numbers: ``y / sigma``, and when its sender reached the exchange in idealized
time, from which the receiver knows when it leaves.
"""

from typing import NamedTuple

import numpy as np

from adfs.kernels.clocks import leave
from adfs.kernels.compiled import njit
from adfs.kernels.edge import AdfsArithmetic
from adfs.kernels.event_loop import AHEAD, accept, local_update, offer
from adfs.kernels.rows import by_type, prefetch_sample

# What a node is doing: it can run; its message is ready to go to another rank; it waits for one
# from there; it waits for a node of this rank; it has no event left.
RUN, POST, WAIT_REMOTE, WAIT_LOCAL, DONE = range(5)


class Queue(NamedTuple):
    """Events of each node in order: node ``i`` has those from ``first[i]`` to ``first[i + 1]``."""

    first: np.ndarray
    head: np.ndarray  # the next event of each node
    turn: np.ndarray  # its next exchange, or its end
    when: np.ndarray  # its index, or its tick
    which: np.ndarray  # its edge, or -1 for a local update
    sample: np.ndarray
    a: np.ndarray  # Algorithm 3 only: a_{t+1} and A_{t+1}
    growth: np.ndarray


class NodeClocks(NamedTuple):
    """Idealized time of each node (`adfs.schedule.clock.Clock`)."""

    kind: int
    step: np.ndarray  # of a local update at each node
    tau: np.ndarray  # of an exchange on each edge
    finish: np.ndarray
    busy: np.ndarray
    waiting: np.ndarray


class Mailbox(NamedTuple):
    """Where messages are written and read: two rows per node, the edge's first end's on top."""

    status: np.ndarray
    messages: np.ndarray  # (2 n, d + 1)


def _smooth_moment(work, queue, k):
    """When event ``k`` of the queue happens, as the updates of `event_loop` take it."""
    return queue.when[k]


def _convex_moment(work, queue, k):
    return queue.a[k], queue.growth[k]


moment = by_type(AdfsArithmetic, _smooth_moment, _convex_moment)


@njit(cache=True, _nrt=False, nogil=True)
def count_own(which, ends, here, count):
    """Count each node's local updates, and its exchanges as first and as second end, (n, 3)."""
    n_edges = ends.shape[0]
    for k in range(which.size):
        if which[k] >= n_edges:
            count[here[which[k] - n_edges], 0] += 1
        else:
            for side in range(2):
                if ends[which[k], side] >= 0:
                    count[ends[which[k], side], 1 + side] += 1


@njit(cache=True, _nrt=False, forceinline=True)
def put(queue, cursor, node, when, which, sample, a, growth):
    place = cursor[node]
    queue.when[place] = when
    queue.which[place] = which
    queue.sample[place] = sample
    if queue.a.size > 1:
        queue.a[place] = a
        queue.growth[place] = growth
    cursor[node] = place + 1


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


@njit(cache=True, _nrt=False, nogil=True)
def find_turn(node, queue):
    """Look for a node's next exchange."""
    k, last = queue.head[node], queue.first[node + 1]
    while k < last and queue.which[k] < 0:
        k += 1
    queue.turn[node] = k


@njit(cache=True, _nrt=False, nogil=True)
def begin(queue, mailbox):
    for node in range(mailbox.status.size):
        find_turn(node, queue)
        mailbox.status[node] = RUN


@njit(cache=True, _nrt=False, nogil=True)
def run_node(node, work, rows, queue, clocks):
    """Local updates of a node up to its next exchange; whether there is one."""
    last = queue.first[node + 1]
    step, first_row = clocks.step[node], work.constants.offsets[node]
    for k in range(queue.head[node], queue.turn[node]):
        if k + AHEAD < last and queue.which[k + AHEAD] < 0:
            prefetch_sample(rows, first_row + queue.sample[k + AHEAD], work.lines)
        local_update(work, moment(work, queue, k), node, first_row + queue.sample[k], rows)
        clocks.finish[node] += step
        clocks.busy[node] += step
    queue.head[node] = queue.turn[node]
    return queue.head[node] < last


@njit(cache=True, _nrt=False, nogil=True)
def finish_exchange(node, work, queue, clocks, mailbox):
    """Finish the exchange at which a node stands; both messages are on its mailbox."""
    k, width = queue.head[node], mailbox.messages.shape[1] - 1
    which = queue.which[k]
    side = 0 if work.constants.edges[which, 0] == node else 1
    accept(work, moment(work, queue, k), which, node, mailbox.messages, 2 * node)
    mine, other = clocks.finish[node], mailbox.messages[2 * node + 1 - side, width]
    ready = max(mine, other)
    end, _ = leave(clocks.kind, mine, other, clocks.tau[which])
    clocks.finish[node] = end
    clocks.waiting[node] += ready - mine
    clocks.busy[node] += end - ready
    queue.head[node] = k + 1
    find_turn(node, queue)
    mailbox.status[node] = RUN


@njit(cache=True, _nrt=False, nogil=True)
def reach_exchange(node, work, queue, clocks, mailbox):
    """Write a node's message; if its peer is on this rank and there already, finish both ends."""
    k, messages = queue.head[node], mailbox.messages
    which, width = queue.which[k], messages.shape[1] - 1
    side = 0 if work.constants.edges[which, 0] == node else 1
    slot = 2 * node + side
    offer(work, moment(work, queue, k), node, messages, slot)
    messages[slot, width] = clocks.finish[node]
    peer = work.constants.edges[which, 1 - side]
    if peer < 0:
        mailbox.status[node] = POST
    elif mailbox.status[peer] != WAIT_LOCAL or queue.which[queue.head[peer]] != which:
        mailbox.status[node] = WAIT_LOCAL
    else:
        for column in range(width + 1):
            messages[2 * peer + side, column] = messages[slot, column]
            messages[2 * node + 1 - side, column] = messages[2 * peer + 1 - side, column]
        finish_exchange(node, work, queue, clocks, mailbox)
        finish_exchange(peer, work, queue, clocks, mailbox)


@njit(cache=True, _nrt=False, nogil=True)
def advance(work, rows, queue, clocks, mailbox):
    """Run every node until it stands before a message or at its end; return how many moved."""
    moved, before = 0, -1
    while moved > before:
        before = moved
        for node in range(mailbox.status.size):
            while mailbox.status[node] == RUN:
                moved += 1
                if run_node(node, work, rows, queue, clocks):
                    reach_exchange(node, work, queue, clocks, mailbox)
                else:
                    mailbox.status[node] = DONE
    return moved

"""What a rank does with its nodes' part of a schedule: run each until it needs a message.

Nodes, and the ends of edges, have the numbers that they have on this rank; the far end of an edge
to another rank is -1. A node waits for one message at a time, and the others go on meanwhile. What
carries messages between ranks is no matter here: a node that needs one stands at `POST`.

A message has d + 1 numbers: ``y / sigma``, and when its sender reached the exchange in idealized
time, from which the receiver knows when it leaves.
"""

import inspect
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from adfs.kernels import edge, non_smooth
from adfs.kernels.clocks import leave
from adfs.kernels.compiled import njit
from adfs.kernels.edge import LINE
from adfs.kernels.memory import prefetch
from adfs.kernels.queues import Sequence
from adfs.kernels.rows import prefetch_row

# What a node is doing: it can run; its message is ready to go to another rank; it waits for one
# from there; it waits for a node of this rank; it has no event left.
RUN, POST, WAIT_REMOTE, WAIT_LOCAL, DONE = range(5)
AHEAD = 16


class AdfsArithmetic(NamedTuple):
    """Arithmetic of Algorithm 1: the state of its samples and centres, and the constants."""

    lines: np.ndarray
    centres: edge.Centres
    constants: edge.RunConstants
    decay: NamedTuple


class NonSmoothArithmetic(NamedTuple):
    """Arithmetic of Algorithm 3."""

    lines: np.ndarray
    pairs: np.ndarray
    constants: non_smooth.ConvexConstants


NO_SEQUENCE = Sequence(0.0, 0.0, 0.0)  # of Algorithm 1, whose events have no weights


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


def _smooth_local(work, queue, k, node, rows):
    row = work.constants.offsets[node] + queue.sample[k]
    edge.local_update(
        queue.when[k], node, row, rows, work.lines, work.centres, work.constants, work.decay
    )


def _convex_local(work, queue, k, node, rows):
    row = work.constants.offsets[node] + queue.sample[k]
    non_smooth.local_update(
        queue.a[k], queue.growth[k], node, row, rows, work.lines, work.pairs, work.constants
    )


def _smooth_offer(work, queue, k, node, messages, slot):
    edge.offer(queue.when[k], node, work.centres, work.constants, work.decay, messages, slot)


def _convex_offer(work, queue, k, node, messages, slot):
    non_smooth.offer(queue.growth[k], node, work.pairs, work.constants, messages, slot)


def _smooth_accept(work, queue, k, node, messages, slot):
    edge.accept(queue.which[k], node, messages, slot, work.centres, work.constants)


def _convex_accept(work, queue, k, node, messages, slot):
    non_smooth.accept(
        queue.a[k],
        queue.growth[k],
        queue.which[k],
        node,
        messages,
        slot,
        work.pairs,
        work.constants,
    )


def _by_arithmetic(smooth, not_smooth):
    """Make one function of the two: chosen by type, when compiled and when not."""

    def function(work, *args):
        return (smooth if isinstance(work, AdfsArithmetic) else not_smooth)(work, *args)

    def choose(work, *args):
        return smooth if len(work) == len(AdfsArithmetic._fields) else not_smooth

    function.__signature__ = choose.__signature__ = inspect.signature(smooth)
    overload(function, jit_options={"_nrt": False, "forceinline": True})(choose)
    return function


local = _by_arithmetic(_smooth_local, _convex_local)
offer = _by_arithmetic(_smooth_offer, _convex_offer)
accept = _by_arithmetic(_smooth_accept, _convex_accept)


@njit(cache=True, _nrt=False, nogil=True)
def count_events(queue, ends, tally):
    """Add each node's local updates and exchanges; an exchange counts at its edge's first end."""
    for node in range(tally.shape[0]):
        updates = exchanges = 0
        for k in range(queue.first[node], queue.first[node + 1]):
            if queue.which[k] < 0:
                updates += 1
            elif ends[queue.which[k], 0] == node:
                exchanges += 1
        tally[node, 0] += updates
        tally[node, 1] += exchanges


@njit(cache=True, _nrt=False, nogil=True)
def find_turn(node, queue):
    """Look for a node's next exchange."""
    k, last = queue.head[node], queue.first[node + 1]
    while k < last and queue.which[k] < 0:
        k += 1
    queue.turn[node] = k


@njit(cache=True, _nrt=False, nogil=True)
def begin(queue, mailbox):
    """Let every node run from the start of its queue."""
    for node in range(mailbox.status.size):
        find_turn(node, queue)
        mailbox.status[node] = RUN


@njit(cache=True, _nrt=False, nogil=True)
def run_node(node, work, rows, queue, clocks):
    """Local updates of a node up to its next exchange; whether there is one."""
    last = queue.first[node + 1]
    step, first_row = clocks.step[node], work.constants.offsets[node]
    lines_at = work.lines.ctypes.data
    for k in range(queue.head[node], queue.turn[node]):
        if k + AHEAD < last and queue.which[k + AHEAD] < 0:
            row = first_row + queue.sample[k + AHEAD]
            prefetch(np.uintp(lines_at + row * (LINE * 8)))
            prefetch_row(rows, row)
        local(work, queue, k, node, rows)
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
    accept(work, queue, k, node, mailbox.messages, 2 * node)
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
    k, width = queue.head[node], mailbox.messages.shape[1] - 1
    which = queue.which[k]
    side = 0 if work.constants.edges[which, 0] == node else 1
    slot = 2 * node + side
    offer(work, queue, k, node, mailbox.messages, slot)
    mailbox.messages[slot, width] = clocks.finish[node]
    peer = work.constants.edges[which, 1 - side]
    if peer < 0:
        mailbox.status[node] = POST
    elif mailbox.status[peer] != WAIT_LOCAL or queue.which[queue.head[peer]] != which:
        mailbox.status[node] = WAIT_LOCAL
    else:
        for column in range(width + 1):
            mailbox.messages[2 * peer + side, column] = mailbox.messages[slot, column]
            mailbox.messages[2 * node + 1 - side, column] = mailbox.messages[
                2 * peer + 1 - side, column
            ]  # fmt: skip
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

"""The loop of a rank with MPI's own C functions: no Python between two messages.

`adfs.mpi.communicator` finds the functions in the library that mpi4py has loaded and registers them
under the names below. Handles of MPI are machine words here, whatever they are in C.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from adfs.kernels.compiled import njit
from adfs.kernels.rank_nodes import (
    DONE,
    POST,
    RUN,
    WAIT_REMOTE,
    finish_exchange,
    reach_exchange,
    run_node,
)

WORD, INT, REAL = types.uintp, types.int32, types.float64
irecv = types.ExternalFunction("adfs_MPI_Irecv", INT(WORD, INT, WORD, INT, INT, WORD, WORD))
isend = types.ExternalFunction("adfs_MPI_Isend", INT(WORD, INT, WORD, INT, INT, WORD, WORD))
testall = types.ExternalFunction("adfs_MPI_Testall", INT(INT, WORD, WORD, WORD))
wtime = types.ExternalFunction("adfs_MPI_Wtime", REAL())
give_way = types.ExternalFunction("adfs_sched_yield", INT())

YIELD_EVERY = 20  # polls: spinning on would starve ranks that share this core
RETURN_EVERY = 2_000  # polls without a message between two returns to Python
FEW = 16  # nodes of a rank, among which choosing is quick
NEVER = np.iinfo(np.int64).max
FINISHED, WAITING, FAILED = 0, 1, 2


class Port(NamedTuple):
    """Handles and buffers of requests; ``peer`` is the rank at the far end of each edge."""

    comm: np.uint64
    kind: np.uint64
    peer: np.ndarray
    requests: np.ndarray  # bytes, two requests per node
    statuses: np.ndarray
    flag: np.ndarray
    seconds: np.ndarray  # spent waiting, one number
    waits: np.ndarray  # (K, 2): when waits began and ended, as many as fit
    n_waits: np.ndarray


@njit(cache=True, _nrt=False, nogil=True)
def post(node, queue, network, mailbox, port):
    """Begin to receive and to send the message of the exchange at which a node stands."""
    edge = queue.which[queue.head[node]]
    side = 0 if network.edges[edge, 0] == node else 1
    width = mailbox.messages.shape[1]
    count, row = np.int32(width), 8 * width
    out = mailbox.messages.ctypes.data + (2 * node + side) * row
    into = mailbox.messages.ctypes.data + (2 * node + 1 - side) * row
    size = port.requests.size // (2 * mailbox.status.size)
    request = port.requests.ctypes.data + 2 * node * size
    peer, tag = np.int32(port.peer[edge]), np.int32(edge)
    fault = irecv(np.uintp(into), count, port.kind, peer, tag, port.comm, np.uintp(request))
    fault |= isend(np.uintp(out), count, port.kind, peer, tag, port.comm, np.uintp(request + size))
    mailbox.status[node] = WAIT_REMOTE
    return fault


@njit(cache=True, _nrt=False, nogil=True)
def note_wait(started, port):
    """A wait that ends now."""
    now = wtime()
    port.seconds[0] += now - started
    if port.n_waits[0] < port.waits.shape[0]:
        port.waits[port.n_waits[0], 0] = started
        port.waits[port.n_waits[0], 1] = now
        port.n_waits[0] += 1


@njit(cache=True, _nrt=False, nogil=True)
def receive(work, queue, clocks, mailbox, port):
    """Finish the exchanges that are through; how many nodes still wait, -1 if MPI has a fault."""
    waiting, size = 0, port.requests.size // mailbox.status.size
    for node in range(mailbox.status.size):
        if mailbox.status[node] == WAIT_REMOTE:
            fault = testall(
                np.int32(2), np.uintp(port.requests.ctypes.data + node * size),
                np.uintp(port.flag.ctypes.data), np.uintp(port.statuses.ctypes.data),
            )  # fmt: skip
            if fault:
                return -1
            if port.flag[0]:
                finish_exchange(node, work, queue, clocks, mailbox)
            else:
                waiting += 1
    return waiting


@njit(cache=True, _nrt=False, nogil=True)
def most_urgent(queue, mailbox):
    """Of the nodes that can run, the one whose next exchange is first in the schedule; else -1."""
    chosen, due = -1, 0
    for node in range(mailbox.status.size):
        if mailbox.status[node] == RUN:
            k = queue.turn[node]
            when = queue.when[k] if k < queue.first[node + 1] else NEVER
            if chosen < 0 or when < due:
                chosen, due = node, when
    return chosen


@njit(cache=True, _nrt=False, nogil=True)
def run_some(work, rows, queue, clocks, mailbox, port):
    """Run one node up to its next message or its end; if there are many nodes, run them all.

    Returns how many nodes ran, or -1 after an error of MPI. Of few nodes the most urgent one goes
    first, so that the receiver of its message does not wait for the work of the others. With many
    nodes there is always work while one waits, and choosing would take long.
    """
    ran, few = 0, mailbox.status.size <= FEW
    for turn in range(1 if few else mailbox.status.size):
        node = most_urgent(queue, mailbox) if few else turn
        if node < 0 or mailbox.status[node] != RUN:
            continue
        ran += 1
        if not run_node(node, work, rows, queue, clocks):
            mailbox.status[node] = DONE
            continue
        reach_exchange(node, work, queue, clocks, mailbox)
        if mailbox.status[node] == POST and post(node, queue, work.constants, mailbox, port):
            return -1
    return ran


@njit(cache=True, _nrt=False, nogil=True)
def run_until_idle(work, rows, queue, clocks, mailbox, port):
    """Run until all nodes are done, or long enough without a message that Python should check."""
    polls = 0
    started = 0.0
    while True:
        waiting = receive(work, queue, clocks, mailbox, port)
        if waiting < 0:
            return FAILED
        ran = run_some(work, rows, queue, clocks, mailbox, port)
        if ran < 0:
            return FAILED
        if ran > 0:
            if polls > 0:
                note_wait(started, port)
            polls = 0
            continue
        if waiting == 0:
            return FINISHED
        if polls == 0:
            started = wtime()
        polls += 1
        if polls % YIELD_EVERY == 0:
            give_way()
        if polls >= RETURN_EVERY:
            note_wait(started, port)
            return WAITING


@njit(cache=True, _nrt=False, nogil=True)
def time_exchanges(peer, outgoing, incoming, comm, kind, requests, statuses, flag, seconds):
    """Time exchanges with a rank, one per entry of ``seconds``; returns MPI's fault or 0."""
    count, tag, both = np.int32(outgoing.size), np.int32(0), np.int32(2)
    first = np.uintp(requests.ctypes.data)
    second = np.uintp(requests.ctypes.data + requests.size // 2)
    for k in range(seconds.size):
        started = wtime()
        fault = irecv(np.uintp(incoming.ctypes.data), count, kind, peer, tag, comm, first)
        fault |= isend(np.uintp(outgoing.ctypes.data), count, kind, peer, tag, comm, second)
        flag[0], polls = 0, 0
        while fault == 0 and flag[0] == 0:
            fault = testall(
                both, first, np.uintp(flag.ctypes.data), np.uintp(statuses.ctypes.data)
            )  # fmt: skip
            polls += 1
            if polls % YIELD_EVERY == 0:
                give_way()
        if fault:
            return fault
        seconds[k] = wtime() - started
    return 0

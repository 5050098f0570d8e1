"""The loop of a rank with MPI's own C functions: no Python between two messages.

`adfs.distributed.mpi_symbols` finds the functions in the library that mpi4py has loaded and makes
them known under the names below. Handles of MPI are machine words here, whatever they are in C.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, types

from adfs.kernels.ranks import DONE, POST, RUN, WAIT, reach_exchange, run_node, settle

WORD, INT, REAL = types.uintp, types.int32, types.float64
irecv = types.ExternalFunction("adfs_MPI_Irecv", INT(WORD, INT, WORD, INT, INT, WORD, WORD))
isend = types.ExternalFunction("adfs_MPI_Isend", INT(WORD, INT, WORD, INT, INT, WORD, WORD))
testall = types.ExternalFunction("adfs_MPI_Testall", INT(INT, WORD, WORD, WORD))
wtime = types.ExternalFunction("adfs_MPI_Wtime", REAL())
give_way = types.ExternalFunction("adfs_sched_yield", INT())

YIELD_EVERY = 20  # polls: spinning on would starve ranks that share this core
LOOK_EVERY = 2_000  # polls without a message between two returns to Python
FINISHED, WAITING, FAILED = 0, 1, 2


class Port(NamedTuple):
    """Handles and room for requests; ``peer`` is the rank at the far end of each edge."""

    comm: np.uint64
    kind: np.uint64
    peer: np.ndarray
    requests: np.ndarray  # bytes, two requests a node
    statuses: np.ndarray
    flag: np.ndarray
    seconds: np.ndarray  # spent waiting, one number
    waits: np.ndarray  # (K, 2): when waits began and ended, as far as there is room
    n_waits: np.ndarray


@njit(cache=True, _nrt=False, nogil=True)
def post(node, queue, network, desk, port):
    """Begin to receive and to send the message of the exchange at which a node stands."""
    edge = queue.which[queue.head[node]]
    side = 0 if network.edges[edge, 0] == node else 1
    width = desk.messages.shape[1]
    count, row = np.int32(width), 8 * width
    out = desk.messages.ctypes.data + (2 * node + side) * row
    into = desk.messages.ctypes.data + (2 * node + 1 - side) * row
    size = port.requests.size // (2 * desk.status.size)
    request = port.requests.ctypes.data + 2 * node * size
    peer, tag = np.int32(port.peer[edge]), np.int32(edge)
    fault = irecv(
        np.uintp(into), count, np.uintp(port.kind), peer, tag, np.uintp(port.comm),
        np.uintp(request),
    )  # fmt: skip
    fault |= isend(
        np.uintp(out), count, np.uintp(port.kind), peer, tag, np.uintp(port.comm),
        np.uintp(request + size),
    )  # fmt: skip
    desk.status[node] = WAIT
    return fault


@njit(cache=True, _nrt=False, nogil=True)
def arrived(node, desk, port):
    """Whether a node's two messages are through; -1 if MPI reports a fault."""
    size = port.requests.size // (2 * desk.status.size)
    request = port.requests.ctypes.data + 2 * node * size
    fault = testall(
        np.int32(2), np.uintp(request), np.uintp(port.flag.ctypes.data),
        np.uintp(port.statuses.ctypes.data),
    )  # fmt: skip
    return -1 if fault else port.flag[0]


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
def visit(node, work, rows, queue, hands, desk, port):
    """Take a node as far as it goes; return whether it moved, -1 if MPI reports a fault.

    Its message leaves at once: to run the rank's other nodes first would keep its peer waiting.
    """
    moved = 0
    if desk.status[node] == WAIT:
        there = arrived(node, desk, port)
        if there < 0:
            return -1
        if there > 0:
            settle(node, work, queue, hands, desk)
    while desk.status[node] == RUN:
        moved = 1
        if run_node(node, work, rows, queue, hands):
            reach_exchange(node, work, queue, hands, desk)
        else:
            desk.status[node] = DONE
    if desk.status[node] == POST and post(node, queue, work.network, desk, port):
        return -1
    return moved


@njit(cache=True, _nrt=False, nogil=True)
def turn(work, rows, queue, hands, desk, port):
    """Run until all nodes are done, or long enough without a message that Python should look."""
    polls = 0
    started = 0.0
    while True:
        moved = waiting = 0
        for node in range(desk.status.size):
            step = visit(node, work, rows, queue, hands, desk, port)
            if step < 0:
                return FAILED
            moved += step
            waiting += desk.status[node] == WAIT
        if moved > 0:
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
        if polls >= LOOK_EVERY:
            note_wait(started, port)
            return WAITING

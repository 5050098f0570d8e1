"""MPI as a transport: plain mpi4py as the readable reference, C calls from compiled code for speed.

A carrier serves a rank until its nodes are done, or for some time without a message, after which
the engine checks the clock and signals. ``seconds`` were spent waiting; ``waits`` are the begin and
end of each wait, if recorded.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.engine.execution import MOST_SPANS
from adfs.engine.steppers import QueueStepper
from adfs.kernels import rank_nodes
from adfs.mpi import library
from adfs.mpi.communicator import yield_core

Vector = NDArray[np.float64]

POLLS = 2_000


class MpiTransport:
    """Buffers through mpi4py: receive, send, test."""

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi, self._comm = mpi, comm
        self._requests: dict[int, list[Any]] = {}

    def post(self, node: int, rank: int, edge: int, outgoing: Vector, incoming: Vector) -> None:
        """Receive before sending, so that a large message has a buffer to go to."""
        self._requests[node] = [
            self._comm.Irecv(incoming, rank, edge), self._comm.Isend(outgoing, rank, edge)
        ]  # fmt: skip

    def done(self, node: int) -> bool:
        """Whether both are complete."""
        complete: bool = self._mpi.Request.Testall(self._requests[node])
        return complete


class PlainCarrier:
    """The reference: each message goes through Python."""

    def __init__(self, rank: QueueStepper, transport: Any) -> None:
        self._rank, self._transport = rank, transport
        self.seconds = 0.0
        self.waits = np.empty((0, 2))

    def serve(self) -> bool:
        """Serve until no node has moved for `POLLS` polls."""
        idle = 0
        while idle < POLLS:
            moved = serve(self._rank, self._transport)
            if self._rank.done:
                return True
            if moved:
                idle = 0
                continue
            idle += 1
            started = time.perf_counter()
            yield_core()
            self.seconds += time.perf_counter() - started
        return False


class CompiledCarrier:
    """The same in one compiled loop."""

    def __init__(self, rank: QueueStepper, mpi: Any, comm: Any, keep_waits: bool = False) -> None:
        from adfs.kernels import rank_messages  # needs MPI's symbols

        self._rank, self._loop = rank, rank_messages
        n, request = len(rank.problem.nodes), mpi._sizeof(mpi.Request)
        self._port = rank_messages.Port(
            np.uint64(mpi._handleof(comm)), np.uint64(mpi._handleof(mpi.DOUBLE)), rank.peer_of,
            np.zeros(2 * n * request, np.uint8), np.zeros(2 * mpi._sizeof(mpi.Status), np.uint8),
            np.zeros(1, np.int32), np.zeros(1),
            np.empty((MOST_SPANS if keep_waits else 0, 2)), np.zeros(1, np.int64),
        )  # fmt: skip

    def serve(self) -> bool:
        """One compiled call."""
        rank, loop = self._rank, self._loop
        code = loop.run_until_idle(
            rank.work, rank.problem.rows, rank.queue, rank.clocks, rank.mailbox, self._port
        )  # fmt: skip
        if code == loop.FAILED:
            raise ConnectionError("could not send or receive a message: MPI reports a fault")
        return bool(code == loop.FINISHED)

    @property
    def seconds(self) -> float:
        """Spent waiting for messages."""
        return float(self._port.seconds[0])

    @property
    def waits(self) -> NDArray[np.float64]:
        """Begin and end of each wait, in MPI's time."""
        return self._port.waits[: self._port.n_waits[0]]


def serve(rank: QueueStepper, transport: Any) -> int:
    """Run a rank's nodes as far as possible, begin their exchanges, finish completed ones.

    Returns how many nodes moved: none when all wait for other ranks, or are done.
    """
    moved, mailbox = rank.advance(), rank.mailbox
    for node in np.flatnonzero(mailbox.status == rank_nodes.POST).tolist():
        edge = int(rank.queue.which[rank.queue.head[node]])
        side = 0 if rank.ends[edge, 0] == node else 1
        outgoing, incoming = (mailbox.messages[2 * node + k] for k in (side, 1 - side))
        transport.post(node, int(rank.peer_of[edge]), edge, outgoing, incoming)
        mailbox.status[node] = rank_nodes.WAIT_REMOTE
    for node in np.flatnonzero(mailbox.status == rank_nodes.WAIT_REMOTE).tolist():
        if transport.done(node):
            rank_nodes.finish_exchange(node, rank.work, rank.queue, rank.clocks, mailbox)
            moved += 1
    return moved


def make_carrier(
    rank: QueueStepper, mpi: Any, comm: Any, kind: str = "auto", keep_waits: bool = False
) -> CompiledCarrier | PlainCarrier:
    """``auto`` takes compiled code where the platform allows it."""
    if kind != "plain" and library.register_mpi_symbols(mpi):
        return CompiledCarrier(rank, mpi, comm, keep_waits)
    return PlainCarrier(rank, MpiTransport(mpi, comm))

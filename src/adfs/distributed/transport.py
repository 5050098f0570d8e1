"""What carries messages between ranks: it posts and polls, it never blocks."""

from collections import deque
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Transport(Protocol):
    """One exchange at a time for each node (numbered as on its rank)."""

    def post(self, node: int, rank: int, edge: int, outgoing: Vector, incoming: Vector) -> None:
        """Begin to send and to receive along an edge; both buffers stay untouched until done."""
        ...

    def done(self, node: int) -> bool:
        """Whether the node's exchange is complete: ``outgoing`` is free, ``incoming`` is there."""
        ...


class Hub:
    """Ranks in one process: what they have sent to each other and not yet received."""

    def __init__(self) -> None:
        self._sent: dict[tuple[int, int, int], deque[Vector]] = {}

    def send(self, source: int, target: int, edge: int, message: Vector) -> None:
        """Keep a copy, as a network would."""
        self._sent.setdefault((source, target, edge), deque()).append(message.copy())

    def receive(self, source: int, target: int, edge: int) -> Vector | None:
        """The oldest message of that edge and direction, if there is one."""
        messages = self._sent.get((source, target, edge))
        return messages.popleft() if messages else None


class Loopback:
    """A transport between ranks of one process, through their common hub."""

    def __init__(self, hub: Hub, rank: int) -> None:
        self.hub, self.rank = hub, rank
        self._waiting: dict[int, tuple[int, int, Vector]] = {}

    def post(self, node: int, rank: int, edge: int, outgoing: Vector, incoming: Vector) -> None:
        """Send at once, receive when asked."""
        self.hub.send(self.rank, rank, edge, outgoing)
        self._waiting[node] = (rank, edge, incoming)

    def done(self, node: int) -> bool:
        """Whether the peer has sent too; its message is then in place."""
        rank, edge, incoming = self._waiting[node]
        message = self.hub.receive(rank, self.rank, edge)
        if message is None:
            return False
        incoming[:] = message
        del self._waiting[node]
        return True

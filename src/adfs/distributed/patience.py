"""How long a rank waits for the others before it ends the job with a sentence."""

import os
import time
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from adfs.distributed.rank import Rank
from adfs.kernels import ranks

WORK = 0.1  # seconds of a poll, beyond which this rank was at work itself


class Patience:
    """Ends the job when nothing has come for ``timeout`` seconds.

    The others may be at work as well: ``timeout`` has to be longer than what the largest share
    takes to read its rows once, or to save a checkpoint.

    ``give_up`` is told what happened.
    """

    def __init__(self, timeout: float, give_up: Callable[[str], NoReturn]) -> None:
        self.timeout, self.give_up = timeout, give_up
        self._progress = -1
        self._since = time.monotonic()

    def watch(self, rank: Rank, done: bool) -> None:
        """Called after every turn: has a node of the rank moved since the last one?"""
        progress = int(rank.queue.head.sum()) + int(rank.position)
        now = time.monotonic()
        if done or progress != self._progress:
            self._progress, self._since = progress, now
        elif now - self._since > self.timeout:
            self.give_up(self._waits_for(rank))

    def until(self, there: Callable[[], bool], what: str) -> None:
        """Poll until something of all ranks has arrived."""
        since = before = time.monotonic()
        while not there():
            now = time.monotonic()
            if now - before > WORK:  # it was not the others who took so long
                since = now
            if now - since > self.timeout:
                self.give_up(f"has waited {self.timeout:g} s for {what}; one of them hangs")
            os.sched_yield()
            before = time.monotonic()
        self.renew()

    def renew(self) -> None:
        """What this rank did meanwhile is no waiting."""
        self._since = time.monotonic()

    def _waits_for(self, rank: Rank) -> str:
        """Which node waits for which node of which rank."""
        waiting = np.flatnonzero(rank.desk.status == ranks.WAIT)
        if not len(waiting):
            return f"has waited {self.timeout:g} s"
        own = int(waiting[0])
        edge = int(rank.queue.which[rank.queue.head[own]])
        node = int(rank.share.nodes[own])
        ends = rank.share.topology.edges[edge].tolist()
        peer = ends[1] if ends[0] == node else ends[0]
        return (
            f"has waited {self.timeout:g} s at node {node} for a message of node {peer} on rank "
            f"{int(rank.peer_of[edge])}, which hangs or cannot be reached"
        )

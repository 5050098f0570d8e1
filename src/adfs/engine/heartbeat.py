"""At regular positions ranks ask each other, without waiting, whether all must stop."""

from collections.abc import Callable

import numpy as np

from adfs.algorithms.base import Method, numbers_per_event
from adfs.network import Network
from adfs.problem.finite_sum import Problem

NUMBERS_PER_BEAT = 1 << 22  # read and written by a rank between two heartbeats
NUMBERS_BESIDE = 64  # what an event costs beside its vectors
MOST_EVENTS = 1 << 16


def heartbeat_interval(problem: Problem, method: Method) -> int:
    """Positions between two heartbeats: some hundredths of a second of work for each rank."""
    network = problem.network
    if network.is_whole or not hasattr(method.algorithm, "queued"):
        return method.beat or method.block
    numbers = numbers_per_event(
        problem.numbers_per_row, problem.n_features, method.parameters.p_comm
    )
    events = NUMBERS_PER_BEAT / (NUMBERS_BESIDE + numbers)
    return network.size * int(np.clip(events, 4, MOST_EVENTS))


class Heartbeat:
    """One exchange at each multiple of ``interval``; its result must be there at the next one.

    That is where all ranks then stop. A single process stops at once.

    Attributes
    ----------
    signal : int
        The signal that some rank had received, in the last complete exchange; 0 for none.
    saved : int
        The newest position that every rank has reported as saved; -1 for none.
    """

    def __init__(self, network: Network, interval: int) -> None:
        self._network, self.interval = network, interval
        self._is_complete: Callable[[], bool] | None = None
        self._started = -1
        self._own, self._largest = np.zeros(3, np.int64), np.zeros(3, np.int64)
        self._stop_at: int | None = None
        self._ignored = False
        self.signal, self.saved = 0, -1

    def next_after(self, position: int) -> int:
        """The next multiple."""
        return (position // self.interval + 1) * self.interval

    def is_due(self, position: int) -> bool:
        """Whether an exchange has to start here."""
        return position % self.interval == 0 and position != self._started

    def arrived(self) -> bool:
        """Whether the last exchange, if any, is complete."""
        if self._is_complete is not None and self._is_complete():
            self._is_complete = None
            self.saved = -int(self._largest[2])
            if self._largest[:2].any() and not self._ignored:
                delay = 0 if self._network.is_whole else self.interval
                self.signal, self._stop_at = int(self._largest[0]), self._started + delay
        return self._is_complete is None

    def start(self, position: int, signal: int, late: bool, saved: int) -> None:
        """Start an exchange, unless all stop here; the last one must have arrived."""
        self._started = position
        if not self.stops(position):
            self._own[:] = signal, int(late), -saved
            self._is_complete = self._network.begin_max(self._own, self._largest)
            if self._network.is_whole:
                self.arrived()

    def stops(self, position: int) -> bool:
        """Whether all ranks stop here."""
        return self._stop_at is not None and position >= self._stop_at

    def ignore(self) -> None:
        """The run is over: continue to the position of the other ranks, without stops."""
        self._ignored, self._stop_at = True, None

"""A question that ranks put to each other now and then, without waiting: must we stop?"""

from collections.abc import Callable

import numpy as np

from adfs.network import Network

NUMBERS_PER_BEAT = 1 << 22  # read and written by a rank between two heartbeats
NUMBERS_BESIDE = 64  # what an event costs beside its vectors
MOST_EVENTS = 1 << 16


def beat_of(size: int, numbers_per_event: float) -> int:
    """Positions between two heartbeats: some hundredths of a second of work for each rank."""
    each = NUMBERS_PER_BEAT / (NUMBERS_BESIDE + numbers_per_event)
    return size * int(np.clip(each, 4, MOST_EVENTS))


class Heartbeat:
    """One question at each multiple of ``beat``; the answer must be there at the next one.

    That is where all ranks then stop. A process alone stops at once.

    Attributes
    ----------
    signal : int
        The signal that some rank had, in the question answered last; 0 for none.
    saved : int
        The newest position that every rank is known to have saved; -1 for none.
    """

    def __init__(self, network: Network, beat: int) -> None:
        self._network, self.beat = network, beat
        self._is_there: Callable[[], bool] | None = None
        self._posted = -1
        self._told, self._heard = np.zeros(3, np.int64), np.zeros(3, np.int64)
        self._halt_at: int | None = None
        self._ignored = False
        self.signal, self.saved = 0, -1

    def next_after(self, position: int) -> int:
        """The next multiple."""
        return (position // self.beat + 1) * self.beat

    def is_due(self, position: int) -> bool:
        """Whether there is a question here that was not asked yet."""
        return position % self.beat == 0 and position != self._posted

    def arrived(self) -> bool:
        """Whether the last question, if any, is answered."""
        if self._is_there is not None and self._is_there():
            self._is_there = None
            self.saved = -int(self._heard[2])
            if self._heard[:2].any() and not self._ignored:
                delay = 0 if self._network.is_whole else self.beat
                self.signal, self._halt_at = int(self._heard[0]), self._posted + delay
        return self._is_there is None

    def post(self, position: int, signal: int, late: bool, saved: int) -> None:
        """Ask, unless this is where all halt; the last answer must have arrived."""
        self._posted = position
        if not self.halts(position):
            self._told[:] = signal, int(late), -saved
            self._is_there = self._network.begin_max(self._told, self._heard)
            if self._network.is_whole:
                self.arrived()

    def halts(self, position: int) -> bool:
        """Whether all ranks halt here."""
        return self._halt_at is not None and position >= self._halt_at

    def ignore(self) -> None:
        """The run is over: go on to where the others are, whatever they say."""
        self._ignored, self._halt_at = True, None

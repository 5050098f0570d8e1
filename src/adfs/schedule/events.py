"""A block of events: the unit in which schedules are drawn, timed and executed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_TICKS = np.zeros(0, np.int64)  # what kernels take for the times of the shared schedule


class Events(NamedTuple):
    """All events of a schedule from one position to another, in the order of the schedule.

    ``which[k] < E`` is the communication on that edge; ``which[k] = E + i`` is a local update at
    node ``i`` with its sample number ``sample[k]``.

    A position of the shared schedule is the index of an iteration of Algorithm 1, so event ``k`` is
    iteration ``start + k``. A position of the Poisson schedule is a whole unit of time; ``ticks``
    is the time of each event (`adfs.kernels.poisson.TICKS` ticks per unit), and ``end`` is the
    position where the block ends, because a unit of time can hold any number of events.
    """

    start: int
    which: NDArray[np.int32]
    sample: NDArray[np.int32]
    ticks: NDArray[np.int64] | None = None
    end: int | None = None

    @property
    def stop(self) -> int:
        """Position just after the last event."""
        return self.start + len(self.which) if self.end is None else self.end

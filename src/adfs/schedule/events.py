"""A block of events: the unit in which schedules are drawn, timed and executed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Events(NamedTuple):
    """Iterations ``start, start + 1, ...`` of Algorithm 1.

    ``which[k] < E`` is the communication on that edge; ``which[k] = E + i`` is a local update at
    node ``i`` with its sample number ``sample[k]``.
    """

    start: int
    which: NDArray[np.int32]
    sample: NDArray[np.int32]

    @property
    def stop(self) -> int:
        """Index just after the last event."""
        return self.start + len(self.which)

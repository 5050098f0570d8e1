"""Checkpoints of a run whose nodes are all in this process."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adfs.checkpoints.store import Store
from adfs.errors import CheckpointError
from adfs.runtime import keeping
from adfs.runtime.keeping import Hands, Tally
from adfs.runtime.runner import Run


class LocalKeeper:
    """Saves a run at every multiple of ``every`` positions, and takes it up again.

    A disk that refuses costs the checkpoint, not the run: ``complain`` is told, once.
    """

    def __init__(self, store: Store, every: int, complain: Callable[[str], Any]) -> None:
        self.store, self.every = store, every
        self._complain, self._failed = complain, False

    def save(self, run: Run) -> None:
        """Keep the run as it stands."""
        tally = Tally(run.iteration, run.counts, run.wall_time)
        try:
            keeping.save(
                self.store, run.position, _nodes(run), run.problem, run.state, _hands(run), tally,
                run.course,
            )  # fmt: skip
        except CheckpointError as error:
            if not self._failed:
                self._complain(str(error))
            self._failed = True

    def resume(self, run: Run) -> int | None:
        """Go on from the newest position that is whole; None if there is none."""
        nodes = _nodes(run)
        position = next(self.store.found(nodes.tolist()), None)
        if position is None:
            return None
        tally = keeping.load(
            self.store, position, nodes, run.problem, run.state, _hands(run), run.course
        )  # fmt: skip
        run.position, run.iteration = position, tally.iterations
        run.counts, run.wall_time = tally.counts, tally.seconds
        return position


def _nodes(run: Run) -> "np.ndarray[Any, np.dtype[np.int64]]":
    return np.arange(run.problem.n_nodes)


def _hands(run: Run) -> Hands:
    clock: Any = run.clock
    return Hands(clock.finish, clock.busy, clock.waiting)

"""Checkpoints of a run whose nodes are all in this process."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adfs.algorithms.base import message_counts
from adfs.checkpoints.store import Store
from adfs.errors import CheckpointError
from adfs.problems.finite_sum import Problem
from adfs.runtime import keeping
from adfs.runtime.keeping import Spent
from adfs.runtime.runner import Run
from adfs.schedule.events import Events


class LocalKeeper:
    """Saves a run at every multiple of ``every`` positions, and takes it up again.

    A disk that refuses costs the checkpoint, not the run: ``complain`` is told, once
    until it works again.
    """

    def __init__(
        self, store: Store, problem: Problem, every: int, complain: Callable[[str], Any]
    ) -> None:
        self.store, self.every = store, every
        self._complain, self._failed = complain, False
        self._edges, self._nodes = problem.topology.edges, np.arange(problem.n_nodes)
        self._tally = np.zeros((problem.n_nodes, 2), np.int64)

    def count(self, events: Events) -> None:
        """Note who executed the events."""
        n_edges = len(self._edges)
        times = np.bincount(events.which, minlength=n_edges + len(self._nodes))
        self._tally[:, 0] += times[n_edges:]
        np.add.at(self._tally[:, 1], self._edges[:, 0], times[:n_edges])

    def save(self, run: Run) -> None:
        """Keep the run as it stands."""
        try:
            keeping.save(
                self.store, run.position, self._nodes, run.problem, run.state, self._spent(run),
                run.course,
            )  # fmt: skip
            self._failed = False
        except CheckpointError as error:
            if not self._failed:
                self._complain(str(error))
            self._failed = True

    def resume(self, run: Run) -> int | None:
        """Go on from the newest position that is whole; None if there is none."""
        position = next(self.store.found(self._nodes.tolist()), None)
        if position is None:
            return None
        whole, run.wall_time = keeping.load(
            self.store, position, self._nodes, run.problem, run.state, self._spent(run)
        )
        keeping.put_whole_state(run.state, run.course, whole)
        updates, exchanges = self._tally.sum(axis=0).tolist()
        run.position, run.iteration = position, updates + exchanges
        run.counts = message_counts(updates, exchanges, run.problem.n_features)
        return position

    def _spent(self, run: Run) -> Spent:
        clock: Any = run.clock
        return Spent(clock.finish, clock.busy, clock.waiting, self._tally, run.wall_time)

"""Saving a run and continuing it: the same on one process and on ranks.

A node's arrays are its own, counts of its events included, so any number of processes can continue
from the files of any other number, also where files of a position come from different numbers.
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import attempt
from adfs.algorithms.base import Arrays, Method, MethodSetting, Vector
from adfs.engine.checkpoint_folder import CheckpointFolder, Loaded
from adfs.engine.run_controller import RunController
from adfs.engine.run_identity import identity_of
from adfs.engine.steppers import Stepper
from adfs.errors import CheckpointError, DataError, ParameterError
from adfs.problem.finite_sum import Problem

MOST_SKIPPED = 5  # files for which a resumed run prints why it does not use them
LEAST_STEPS = 5_000_000  # sample steps between two checkpoints: half a second of work or so


class Checkpoints(NamedTuple):
    """Where and how often a run is saved, and whether it continues from there.

    ``every`` is in positions of the schedule: events, rounds, or units of time under the Poisson
    schedule. An error of the disk costs a checkpoint, not the run: ``warn`` is called with the
    reason. ``report`` is called with a line that names the position where a resumed run begins.
    """

    folder: str | os.PathLike[str]
    every: int | None = None
    resume: bool = False
    warn: Callable[[str], Any] = warnings.warn
    report: Callable[[str], Any] = lambda message: None

    def interval(self, n_samples: int, work: float) -> int:
        """``every``, or by default some passes; a position takes ``work`` sample steps."""
        return self.every or max(1, round(max(LEAST_STEPS, 10 * n_samples) / work))

    def announce(self, resumed: int | None, skipped: Sequence[tuple[Any, str]]) -> None:
        """Report where the run begins, and which files were skipped."""
        for path, reason in skipped[:MOST_SKIPPED]:
            self.report(f"skipped: {os.fspath(path)} {reason}")
        if len(skipped) > MOST_SKIPPED:
            self.report(f"skipped: {len(skipped) - MOST_SKIPPED} more")
        if resumed is None:
            which = "no complete checkpoint" if skipped else "no checkpoint yet"
            self.report(f"{os.fspath(self.folder)} has {which}: starts at 0")
        else:
            self.report(f"continued from position {resumed}, saved in {os.fspath(self.folder)}")


class Checkpointer:
    """Saves at every multiple of ``every``, each process when it passes there.

    An error of the disk costs the checkpoint, not the run: ``warn`` is called, once until saving
    works again.
    """

    def __init__(
        self, store: CheckpointFolder, problem: Problem, every: int, warn: Callable[[str], Any]
    ) -> None:
        self.store, self.problem, self.every = store, problem, every
        self._warn, self._failed, self._has_gaps = warn, False, False
        self._passed, self._newest = 0, -1

    @property
    def saved(self) -> int:
        """Up to where this process has saved every position; -1 if it has not."""
        return -1 if self._has_gaps else self._newest

    def next_after(self, position: int) -> int:
        """The next position at which to save."""
        return (position // self.every + 1) * self.every

    def is_due(self, position: int) -> bool:
        """Whether to save here."""
        return position % self.every == 0 and position != self._passed

    def save(
        self, stepper: Stepper, controller: RunController, seconds: float, everywhere: int
    ) -> None:
        """Save the nodes; all processes have saved the position ``everywhere`` (-1: none)."""
        self._passed, arrays = stepper.position, stepper.arrays()
        run = {"controller": controller.state(), "seconds": seconds}
        nodes = {}
        for own, node in enumerate(self.problem.nodes.tolist()):
            rows = self.problem.node_rows(node)
            nodes[node] = {name: each[rows] for name, each in arrays.samples.items()}
            nodes[node] |= {name: each[own : own + 1] for name, each in arrays.nodes.items()}
        newest = everywhere if everywhere >= 0 else None
        try:
            self.store.save(stepper.position, run, nodes, newest, arrays.shared)
            self._newest, self._failed = stepper.position, False
        except CheckpointError as error:
            if not self._failed:
                self._warn(str(error))
            self._failed = self._has_gaps = True

    def close(self) -> None:
        """Remove what is no longer needed, now that all processes are done."""
        everywhere = min(self.problem.network.gather(self.saved))
        self.store.tidy(everywhere if everywhere >= 0 else None)

    def resume(self, stepper: Stepper, controller: RunController) -> tuple[int | None, float]:
        """Continue from the newest position that every process has; returns it and its seconds.

        Without such a position they are None and 0.
        """
        peers, nodes = self.problem.network.peers, self.problem.nodes.tolist()
        found = peers.gather(attempt(peers, lambda: list(self.store.valid_positions(nodes))))
        common = set(found[0]).intersection(*found[1:])
        if not common:
            return None, 0.0
        self._passed = self._newest = position = max(common)
        loaded = attempt(peers, lambda: self.store.load(position, nodes))
        stepper.restore(position, attempt(peers, lambda: self._put_in_place(loaded, stepper)))
        # Files of one position may differ in what decides the stop, if ``tol`` was changed between
        # two resumptions: all processes take that of the first one.
        runs = peers.gather(loaded.run)
        with self._same_run(position):
            controller.restore(runs[0]["controller"])
            return position, max(float(each["seconds"]) for each in runs)

    @contextlib.contextmanager
    def _same_run(self, position: int) -> Iterator[None]:
        """A valid file with content that this run does not write becomes a `DataError`."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{self.store.folder} holds something else at position {position} than this run "
                f"saves ({error}); name another --checkpoint folder."
            ) from None

    def _put_in_place(self, loaded: Loaded, stepper: Stepper) -> Arrays:
        """Write the arrays of samples and of the state's nodes; returns what the stepper restores.

        That is the arrays with one row per node, and the shared ones.
        """
        with self._same_run(loaded.position):
            own, of_state = stepper.arrays(), stepper.algorithm.arrays(stepper.state).nodes
            nodes = self.problem.nodes.tolist()
            for place, node in enumerate(nodes):
                for name, view in own.samples.items():
                    view[self.problem.node_rows(node)] = loaded.nodes[node][name]
                for name, view in of_state.items():
                    view[place] = loaded.nodes[node][name][0]
            rows = {
                name: np.concatenate([loaded.nodes[node][name] for node in nodes])
                for name in loaded.nodes[nodes[0]]
            }
            stored = Arrays({}, rows, loaded.shared)
            _require_like(own, stored)
            return stored


def _require_like(own: Arrays, stored: Arrays) -> None:
    """Refuse arrays that are missing, or have not the shapes that this run saves."""
    for name, array in own.nodes.items():
        if stored.nodes[name].shape != array.shape:
            raise ValueError(f"{name} has shape {stored.nodes[name].shape}, not {array.shape}")
    for name, array in own.shared.items():  # some grow during a run
        found = stored.shared[name]
        if found.ndim != array.ndim or (array.size and not found.size):
            raise ValueError(f"{name} has shape {found.shape}")


def open_checkpoints(
    wanted: Checkpoints,
    problem: Problem,
    name: str,
    setting: MethodSetting,
    warm_start: Vector | None,
    method: Method,
) -> Checkpointer:
    """Open the folder of a run: it can be written, and no other run uses it."""
    peers = problem.network.peers
    if not hasattr(method.algorithm, "arrays"):
        raise ParameterError(
            f"Algorithm {name!r} has no method `arrays`, which defines what a checkpoint holds; "
            "leave --checkpoint out."
        )
    identity = identity_of(problem, name, setting, warm_start)
    store = CheckpointFolder(wanted.folder, identity, peers.rank, peers.size)
    attempt(peers, store.open)
    attempt(peers, lambda: store.lock() if peers.rank == 0 else None)
    try:
        if not wanted.resume:
            attempt(peers, lambda: _require_new(store, problem.nodes))
    except BaseException:
        store.unlock()
        raise
    every = wanted.interval(problem.n_samples, method.work)
    return Checkpointer(store, problem, every, wanted.warn)


def _require_new(store: CheckpointFolder, nodes: NDArray[np.int64]) -> None:
    """Refuse to begin a run whose checkpoints are there already: they would be lost."""
    position = next(store.valid_positions(nodes.tolist()), None)
    if position is not None:
        raise ParameterError(
            f"--checkpoint {store.folder} holds this run up to position {position}; add --resume "
            "to continue from there, or name another folder to begin anew."
        )

"""Saving a run and continuing it: the same on one process and on ranks.

Each node saves its own arrays and the counts of its events. So a run can continue with another
number of processes, even if the files of one position come from different numbers of processes.
"""

import contextlib
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from adfs.agreement import attempt
from adfs.algorithms.base import Arrays, Method, MethodSetting, WarmStart
from adfs.engine.checkpoint_file import NOT_OURS
from adfs.engine.checkpoint_folder import CheckpointFolder, LoadedCheckpoint
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


class Checkpointer:
    """Saves at multiples of ``every``.

    ``saved`` is the last position that this process saved for all its nodes, -1 if there is none.
    """

    def __init__(
        self, store: CheckpointFolder, problem: Problem, wanted: Checkpoints, every: int
    ) -> None:
        self.store, self.problem, self.wanted, self.every = store, problem, wanted, every
        self.saved = -1
        self._passed, self._failed, self._has_gaps = 0, False, False

    def next_after(self, position: int) -> int:
        return (position // self.every + 1) * self.every

    def is_due(self, position: int) -> bool:
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
        try:
            self.store.save(stepper.position, run, nodes, everywhere, arrays.shared)
            self.saved = -1 if self._has_gaps else stepper.position
            self._failed = False
        except CheckpointError as error:
            if not self._failed:
                self.wanted.warn(str(error))
            self._failed = self._has_gaps = True
            self.saved = -1

    def close(self) -> None:
        """Remove what is no longer needed, now that all processes are done."""
        self.store.tidy(min(self.problem.network.gather(self.saved)))

    def resume(self, stepper: Stepper, controller: RunController) -> tuple[int | None, float]:
        """Continue from the newest position that all processes have saved.

        Returns the position, None if there is none, and the seconds that the run had taken.
        """
        peers, nodes = self.problem.network.peers, self.problem.nodes.tolist()
        found = peers.gather(attempt(peers, lambda: list(self.store.valid_positions(nodes))))
        common = set(found[0]).intersection(*found[1:])
        position, seconds = max(common, default=None), 0.0
        if position is not None:
            self._passed = self.saved = position
            loaded = attempt(peers, lambda: self.store.load(position, nodes))
            own = attempt(peers, lambda: self._put_in_place(position, loaded, stepper))
            stepper.restore(position, own)
            # Files of one position may differ in what decides the stop, if ``tol`` was changed
            # between two resumptions: all processes take that of the first one.
            runs = peers.gather(loaded.run)
            with self._same_run(position):
                controller.restore(runs[0]["controller"])
                seconds = max(float(each["seconds"]) for each in runs)
        skipped = peers.gather([f"{path} {why}" for path, why in self.store.skipped])
        if peers.rank == 0:
            self._report(position, list(dict.fromkeys(itertools.chain(*skipped))))
        return position, seconds

    def _report(self, position: int | None, skipped: list[str]) -> None:
        report, folder = self.wanted.report, os.fspath(self.wanted.folder)
        for each in skipped[:MOST_SKIPPED]:
            report(f"skipped: {each}")
        if len(skipped) > MOST_SKIPPED:
            report(f"skipped: {len(skipped) - MOST_SKIPPED} more")
        if position is not None:
            report(f"continued from position {position}, saved in {folder}")
        else:
            which = "no complete checkpoint" if skipped else "no checkpoint yet"
            report(f"{folder} has {which}: starts at 0")

    @contextlib.contextmanager
    def _same_run(self, position: int) -> Iterator[None]:
        """A valid file with content that this run does not write becomes a `DataError`."""
        try:
            yield
        except NOT_OURS as error:
            raise DataError(
                f"{self.store.folder} holds something else at position {position} than this run "
                f"saves ({error}); name another --checkpoint folder."
            ) from None

    def _put_in_place(self, position: int, loaded: LoadedCheckpoint, stepper: Stepper) -> Arrays:
        """Write arrays of samples and of the state's nodes; returns what the stepper restores."""
        with self._same_run(position):
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
            for name, array in own.nodes.items():
                if rows[name].shape != array.shape:
                    raise ValueError(f"{name} has shape {rows[name].shape}, not {array.shape}")
            for name, array in own.shared.items():  # some grow during a run
                found = loaded.shared[name]
                if found.ndim != array.ndim or (array.size and not found.size):
                    raise ValueError(f"{name} has shape {found.shape}")
            return Arrays({}, rows, loaded.shared)


@contextlib.contextmanager
def open_checkpoints(
    wanted: Checkpoints | None, problem: Problem, name: str, setting: MethodSetting,
    start: WarmStart | None, method: Method,
) -> Iterator[Checkpointer | None]:  # fmt: skip
    """Hold the folder of a run: it can be written, and no other run uses it."""
    if wanted is None:
        yield None
        return
    peers = problem.network.peers
    if not hasattr(method.algorithm, "arrays"):
        raise ParameterError(
            f"Algorithm {name!r} has no method `arrays`, which defines what a checkpoint holds; "
            "leave --checkpoint out."
        )
    identity = identity_of(problem, name, setting, start)
    store = CheckpointFolder(wanted.folder, identity, peers.rank, peers.size)

    def refuse_run_that_exists() -> None:
        position = next(store.valid_positions(problem.nodes.tolist()), None)
        if position is not None:  # its checkpoints would be lost
            raise ParameterError(
                f"--checkpoint {store.folder} holds this run up to position {position}; add "
                "--resume to continue from there, or name another folder to begin anew."
            )

    try:
        attempt(peers, store.open)
        attempt(peers, lambda: store.lock() if peers.rank == 0 else None)
        if not wanted.resume:
            attempt(peers, refuse_run_that_exists)
        # A position takes ``work`` sample steps; the default is some passes.
        steps = max(LEAST_STEPS, 10 * problem.n_samples)
        every = wanted.every or max(1, round(steps / method.work))
        yield Checkpointer(store, problem, wanted, every)
    finally:
        store.unlock()

"""What a run is at a position, as a checkpoint holds it: the same on one process and on ranks.

A node's arrays are its own, counts of its events among them, so any number of processes can go on
from what any other number saved, even where files of a position were saved by different numbers.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Arrays, Method, Setting, Vector
from adfs.checkpoints.identity import Identity, fingerprint
from adfs.checkpoints.store import Loaded, Store
from adfs.errors import CheckpointError, ParameterError
from adfs.kernels.rows import DenseRows
from adfs.problems.finite_sum import Problem
from adfs.runtime.course import Course
from adfs.runtime.stepping import Stepper

MOST_SKIPPED = 5  # files about which a resumed run says why it does not trust them
LEAST_STEPS = 5_000_000  # sample steps between two checkpoints: half a second of work or so


def _nothing(message: str) -> None:
    """Nobody listens."""


class Checkpoints(NamedTuple):
    """Where and how often a run is saved, and whether it goes on from what is there.

    ``every`` is in positions of the schedule: events, rounds, or units of time under the Poisson
    schedule. A disk that refuses costs a checkpoint, not the run: ``complain`` is called with the
    reason. ``tell`` is called with a line that says where a resumed run begins.
    """

    folder: str | os.PathLike[str]
    every: int | None = None
    resume: bool = False
    complain: Callable[[str], Any] = warnings.warn
    tell: Callable[[str], Any] = _nothing

    def interval(self, n_samples: int, work: float) -> int:
        """As asked; else some passes, where a position takes ``work`` sample steps."""
        return self.every or max(1, round(max(LEAST_STEPS, 10 * n_samples) / work))

    def announce(self, resumed: int | None, skipped: Sequence[tuple[Any, str]]) -> None:
        """Say where the run begins, and which files were passed over on the way there."""
        for path, reason in skipped[:MOST_SKIPPED]:
            self.tell(f"passed over: {os.fspath(path)} {reason}")
        if len(skipped) > MOST_SKIPPED:
            self.tell(f"passed over: {len(skipped) - MOST_SKIPPED} more")
        if resumed is None:
            which = "no whole checkpoint" if skipped else "no checkpoint yet"
            self.tell(f"{os.fspath(self.folder)} has {which}: starts at 0")
        else:
            self.tell(f"went on from position {resumed}, kept in {os.fspath(self.folder)}")


class Checkpointer:
    """Saves at every multiple of ``every``, each process when it passes there.

    A disk that refuses costs the checkpoint, not the run: ``complain`` is called, once until it
    works again.
    """

    def __init__(
        self, store: Store, problem: Problem, every: int, complain: Callable[[str], Any]
    ) -> None:
        self.store, self.problem, self.every = store, problem, every
        self._complain, self._failed, self._has_holes = complain, False, False
        self._passed, self._newest = 0, -1

    @property
    def kept(self) -> int:
        """Up to where this process has saved every position; -1 if it has not."""
        return -1 if self._has_holes else self._newest

    def next_after(self, position: int) -> int:
        """The next position at which to save."""
        return (position // self.every + 1) * self.every

    def is_due(self, position: int) -> bool:
        """Whether to save here."""
        return position % self.every == 0 and position != self._passed

    def save(self, stepper: Stepper, course: Course, seconds: float, everywhere: int) -> None:
        """Save the nodes as they stand; all processes have saved the position ``everywhere``."""
        self._passed, arrays = stepper.position, stepper.arrays()
        run = {"course": course.state(), "seconds": seconds}
        nodes = {
            node: {
                **{
                    name: each[self.problem.node_rows(node)]
                    for name, each in arrays.samples.items()
                },
                **{name: each[own : own + 1] for name, each in arrays.nodes.items()},
            }
            for own, node in enumerate(self.problem.nodes.tolist())
        }
        newest = everywhere if everywhere >= 0 else None
        try:
            self.store.save(stepper.position, run, nodes, newest, arrays.shared)
            self._newest, self._failed = stepper.position, False
        except CheckpointError as error:
            if not self._failed:
                self._complain(str(error))
            self._failed = self._has_holes = True

    def close(self) -> None:
        """Remove what is no longer needed, now that all processes are done."""
        everywhere = min(self.problem.network.gather(self.kept))
        self.store.tidy(everywhere if everywhere >= 0 else None)

    def resume(self, stepper: Stepper, course: Course) -> tuple[int | None, float]:
        """Go on from the newest position that every process has; None if there is none."""
        network, nodes = self.problem.network, self.problem.nodes.tolist()
        found = network.gather(network.attempt(lambda: list(self.store.found(nodes))))
        common = set(found[0]).intersection(*found[1:])
        if not common:
            return None, 0.0
        self._passed = self._newest = position = max(common)
        loaded = network.attempt(lambda: self.store.load(position, nodes))
        network.attempt(lambda: self._put_samples(loaded, stepper))
        stepper.restore(position, self._stored(loaded))
        # Files of one position may have different courses, if ``tol`` was changed between two
        # lives of the run: all processes take the first one's.
        told = network.gather(loaded.run)
        course.restore(told[0]["course"])
        return position, max(float(each["seconds"]) for each in told)

    def _put_samples(self, loaded: Loaded, stepper: Stepper) -> None:
        """Write the arrays of samples, and those of the state's nodes, where they belong."""
        arrays = stepper.arrays()
        of_state = stepper.algorithm.arrays(stepper.state).nodes
        for own, node in enumerate(self.problem.nodes.tolist()):
            for name, view in arrays.samples.items():
                view[self.problem.node_rows(node)] = loaded.nodes[node][name]
            for name, view in of_state.items():
                view[own] = loaded.nodes[node][name][0]

    def _stored(self, loaded: Loaded) -> Arrays:
        """The arrays with one row per node, and the shared ones."""
        first, *_ = (loaded.nodes[node] for node in self.problem.nodes.tolist())
        nodes = {
            name: np.concatenate([loaded.nodes[node][name] for node in self.problem.nodes.tolist()])
            for name in first
        }
        return Arrays({}, nodes, loaded.shared)


def open_checkpoints(
    wanted: Checkpoints, problem: Problem, name: str, setting: Setting, warm_start: Vector | None,
    method: Method,
) -> Checkpointer:  # fmt: skip
    """The folder of a run, shown to be writable and in use by nobody else."""
    network = problem.network
    if not hasattr(method.algorithm, "arrays"):
        raise ParameterError(
            f"Algorithm {name!r} does not say what a checkpoint holds (its method `arrays`); leave "
            "--checkpoint out."
        )
    identity = identity_of(problem, name, setting, warm_start)
    store = Store(wanted.folder, identity, network.rank, network.size)
    network.attempt(store.open)
    network.attempt(lambda: store.lock() if network.rank == 0 else None)
    try:
        if not wanted.resume:
            network.attempt(lambda: _require_new(store, problem.nodes))
    except BaseException:
        store.unlock()
        raise
    every = wanted.interval(problem.n_samples, method.work)
    return Checkpointer(store, problem, every, wanted.complain)


def _require_new(store: Store, nodes: NDArray[np.int64]) -> None:
    """Refuse to begin where this very run was saved before: what was saved would be lost."""
    position = next(store.found(nodes.tolist()), None)
    if position is not None:
        raise ParameterError(
            f"--checkpoint {store.folder} holds this run up to position {position}; add --resume "
            "to go on from there, or name another folder to begin anew."
        )


def identity_of(
    problem: Problem, name: str, setting: Setting, warm_start: Vector | None
) -> Identity:
    """Everything that a run's bits depend on, as far as this process knows it."""
    values = np.unique(problem.sigma)
    rule = setting.rule
    config = {
        "algorithm": name, "loss": problem.loss.name,
        "sigma": float(values[0]) if len(values) == 1 else problem.sigma.tolist(),
        "graph": problem.topology.name, "edges": fingerprint_of(problem.topology.edges),
        "nodes": problem.n_nodes, "features": problem.n_features,
        "parameters": rule if isinstance(rule, str) else fingerprint_of(rule.numbers()),
        "schedule": setting.schedule, "tau": float(setting.tau), "clock": setting.clock,
        "delays": repr(setting.delays),
        "warm_start": None if warm_start is None else fingerprint_of(warm_start),
    }  # fmt: skip
    data = {node: _fingerprint(problem, node) for node in problem.nodes.tolist()}
    return Identity(setting.seed, config, data)


def fingerprint_of(array: NDArray[Any]) -> str:
    """Digest of one array."""
    empty = np.empty(0)
    return fingerprint((np.atleast_2d(array),), empty, empty)


def _fingerprint(problem: Problem, node: int) -> str:
    part, rows = problem.node_rows(node), problem.rows
    if isinstance(rows, DenseRows):
        arrays: tuple[NDArray[Any], ...] = (rows.values[part],)
    else:
        arrays = (rows.values, rows.indices, rows.indptr[part.start : part.stop + 1])
    return fingerprint(arrays, problem.labels[part], problem.weights[part])

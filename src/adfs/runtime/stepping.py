"""Executing a schedule from position to position.

`BlockStepper` runs whole blocks: everything in one process, and on ranks the methods whose nodes
move together. `QueueStepper` is for pairwise methods on several ranks: each node has a queue of its
own events and goes on while another one waits for a message.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import (
    Arrays,
    Counts,
    Method,
    QueuedAlgorithm,
    Setting,
    Vector,
    arrays_of,
    message_counts,
)
from adfs.errors import ParameterError
from adfs.kernels import queues, ranks
from adfs.network import Ask, Part, Steps
from adfs.problems.finite_sum import Problem
from adfs.schedule.clock import CODES
from adfs.schedule.events import Events

DIFFERENT_BITS = (
    "The ranks computed different numbers from the same numbers, so their processors round "
    "differently; run on one type of CPU."
)


class RunPosition(NamedTuple):
    """Where a run stands when it is read, and what it has cost; of all nodes together."""

    position: int
    iteration: int
    idealized_time: float
    wall_time: float
    counts: Counts


class Stepper(Protocol):
    """Executes a method's schedule at the nodes of this process.

    Attributes
    ----------
    position : int
        Every event before it is done at every node here, once what was loaded is done.
    overlaps : bool
        Whether this process can go on while an evaluation of the others is under way.
    """

    position: int
    overlaps: bool
    keeps_tally: bool
    algorithm: Any
    state: Any

    @property
    def done(self) -> bool:
        """Whether what was loaded is executed."""
        ...

    def warm_up(self) -> None:
        """Compile or load what the loop will call."""
        ...

    def load(self, stop: int) -> None:
        """Take on the events up to a position; all before must be done."""
        ...

    def serve(self) -> bool:
        """Go on as far as possible without waiting; whether what was loaded is done."""
        ...

    def standing(self, wall_time: float) -> Steps[RunPosition]:
        """Where the run stands, of all processes together."""
        ...

    def arrays(self) -> Arrays:
        """Everything that a checkpoint holds."""
        ...

    def restore(self, position: int, stored: Arrays) -> None:
        """Go on from a position; the arrays of samples and of the state's nodes are in place."""
        ...

    def progress(self) -> int:
        """A number that changes whenever something was done."""
        ...

    def waits_for(self) -> str:
        """What it waits for, in words."""
        ...

    @property
    def seconds(self) -> float: ...
    @property
    def waits(self) -> NDArray[np.float64]: ...


def make_stepper(
    problem: Problem, method: Method, setting: Setting, theta: Vector | None
) -> Stepper:
    """The stepper for a method on the problem's network."""
    if problem.network.is_whole or not hasattr(method.algorithm, "queued"):
        return BlockStepper(problem, method, theta)
    return QueueStepper(problem, method, setting, theta)


class BlockStepper:
    """Runs a method's blocks of events one after another."""

    overlaps = False
    seconds = 0.0  # waited for messages, beyond what the network's waits count
    waits = np.empty((0, 2))

    def __init__(self, problem: Problem, method: Method, theta: Vector | None = None) -> None:
        self.problem, self.method, self.algorithm = problem, method, method.algorithm
        self.clock, self.source = method.clock, method.source
        self.state = self.algorithm.init(theta)
        self.position = self.iteration = 0
        self.counts = Counts()
        self.done = True
        # A checkpoint counts pairwise events at the nodes that take part, as ranks count them.
        self.tally = np.zeros((problem.n_nodes, 2), np.int64)
        self.keeps_tally = False
        self._pairwise = hasattr(self.algorithm, "queued")
        self._stop = 0

    def warm_up(self) -> None:
        """Compile or load what the loop will call: that belongs to set-up, not to ``wall_time``."""
        self.state = self.algorithm.step(self.state, self.source.draw(0, 0))
        stop = 1
        while not len((events := self.source.draw(0, stop)).which):
            stop *= 2
        self.clock.copy().advance(events)

    def load(self, stop: int) -> None:
        """Take on the events up to a position."""
        self._stop, self.done = stop, False

    def serve(self) -> bool:
        """Run them."""
        while self.position < self._stop:
            last = min(self._stop, self.position + self.method.block)
            events = self.source.draw(self.position, last)
            self.state = self.algorithm.step(self.state, events)
            self.clock.advance(events)
            self.counts = self.counts.plus(self.algorithm.counts(events))
            self.iteration += len(events.which)
            self.position = last
            if self.keeps_tally and self._pairwise:
                self._count(events)
        self.done = True
        return True

    def _count(self, events: Events) -> None:
        edges = self.problem.topology.edges
        times = np.bincount(events.which, minlength=len(edges) + self.problem.n_nodes)
        self.tally[:, 0] += times[len(edges) :]
        np.add.at(self.tally[:, 1], edges[:, 0], times[: len(edges)])

    def progress(self) -> int:
        """Where it is: changes whenever something was done."""
        return self.position

    def waits_for(self) -> str:
        """What it waits for."""
        return "the other ranks' part of a round"

    def standing(self, wall_time: float) -> Steps[RunPosition]:
        """The same everywhere but for the seconds; what processes computed alike must be equal."""
        digest = 0
        for array in arrays_of(self.algorithm, self.state).shared.values():
            digest = zlib.crc32(np.ascontiguousarray(array).tobytes(), digest)
        position, iteration, counts = self.position, self.iteration, self.counts
        time = self.clock.time
        own = [Part(np.empty(0), (wall_time, float(digest)))] * len(self.problem.nodes)
        _, told = yield Ask(0, 2, own)
        if len(np.unique(told[:, 1])) > 1:
            raise ParameterError(DIFFERENT_BITS)
        return RunPosition(position, iteration, time, float(told[:, 0].max()), counts)

    def arrays(self) -> Arrays:
        """The algorithm's, the clock's, and what was counted."""
        of_state = arrays_of(self.algorithm, self.state)
        per_node, shared = self.clock.arrays()
        own = {name: array[self.problem.nodes] for name, array in per_node.items()}
        counted = np.array([self.iteration, *self.counts], dtype=np.int64)
        if self._pairwise:
            own["tally"], counts = self.tally[self.problem.nodes], {}
        else:
            counts = {"counts": counted}
        return Arrays(
            of_state.samples, {**of_state.nodes, **own}, {**of_state.shared, **shared, **counts}
        )

    def restore(self, position: int, stored: Arrays) -> None:
        """Go on from a position."""
        self.position = position
        network = self.problem.network
        per_node, shared = self.clock.arrays()
        for name, view in per_node.items():
            view[...] = network.facts(stored.nodes[name])
        for name, view in shared.items():
            view[...] = stored.shared[name]
        if self._pairwise:
            self.tally = network.facts(stored.nodes["tally"])
            updates, exchanges = self.tally.sum(axis=0).tolist()
            self.iteration = updates + exchanges
            self.counts = message_counts(updates, exchanges, self.problem.n_features)
        else:
            self.iteration, *counts = stored.shared["counts"].tolist()
            self.counts = Counts(*counts)
        self.algorithm.restore(self.state, stored.shared)


class QueueStepper:
    """Runs the events of this rank's nodes, each node as far as it gets without a message.

    Attributes
    ----------
    tally : array of shape (own nodes, 2)
        Local updates of each node so far, and exchanges on edges whose first end it is.
    """

    overlaps = True
    keeps_tally = True

    def __init__(
        self, problem: Problem, method: Method, setting: Setting, theta: Vector | None = None
    ) -> None:
        if setting.delays.law != "constant":
            raise ParameterError(
                "Ranks time pairwise events with constant delays; use engine='local'."
            )
        network = problem.network
        self.problem, self.method = problem, method
        self.algorithm: QueuedAlgorithm[Any] = method.algorithm  # type: ignore[assignment]
        self.source, self.ends = method.source, network.ends
        self.peer_of = _peers(problem)
        self.clocks = _clocks(problem, setting)
        n, width = len(problem.nodes), problem.n_features + 1
        self.mailbox = ranks.Mailbox(np.full(n, ranks.DONE, np.int8), np.zeros((2 * n, width)))
        self.position, self.tally = 0, np.zeros((n, 2), np.int64)
        self.state = self.algorithm.init(theta)
        self.work, self._sequence = self.algorithm.queued(self.state)
        self.carrier = network.carrier(self)

    def warm_up(self) -> None:
        """Compile or load what the loop will call."""
        self.load(self.position)
        self.carrier.serve()

    @property
    def seconds(self) -> float:
        """Spent waiting for messages."""
        return float(self.carrier.seconds)

    @property
    def waits(self) -> NDArray[np.float64]:
        """When waits began and ended, if that is kept."""
        waits: NDArray[np.float64] = self.carrier.waits
        return waits

    @property
    def done(self) -> bool:
        """Whether every node has executed what was loaded."""
        return bool((self.mailbox.status == ranks.DONE).all())

    def load(self, stop: int) -> None:
        """Queue the events up to the position ``stop``."""
        events, here = self.source.draw(self.position, stop), self.problem.network.here
        count = np.zeros(len(self.problem.nodes), np.int64)
        queues.count_own(events.which, self.ends, here, count)
        self.queue = self._queue(count)
        a, total = self.algorithm.pass_time(self.state, events)
        queues.fill(
            self.queue, self.queue.head.copy(), events.which, events.sample, events.ticks, a, total,
            self.ends, here,
        )  # fmt: skip
        ranks.count_events(self.queue, self.ends, self.tally)
        ranks.begin(self.queue, self.mailbox)
        self.position = stop

    def _queue(self, count: NDArray[np.int64]) -> ranks.Queue:
        first = np.concatenate([[0], np.cumsum(count)])
        size = int(first[-1])
        weights = size if self._sequence.smoothness > 0.0 else 0
        return ranks.Queue(
            first, first[:-1].copy(), first[:-1].copy(), np.empty(size, np.int64),
            np.empty(size, np.int32), np.empty(size, np.int32), np.empty(weights + 1),
            np.empty(weights + 1),
        )  # fmt: skip

    def advance(self) -> int:
        """Run every node until it stands before a message or at its end; how many moved."""
        moved: int = ranks.advance(
            self.work, self.problem.rows, self.queue, self.clocks, self.mailbox
        )  # fmt: skip
        return moved

    def serve(self) -> bool:
        """Go on until all nodes are done, or until nothing has come for a while."""
        done: bool = self.carrier.serve()
        return done

    def progress(self) -> int:
        """Where it is: changes whenever a node has moved."""
        return int(self.queue.head.sum()) + int(self.position)

    def waits_for(self) -> str:
        """Which node waits for which node of which rank."""
        waiting = np.flatnonzero(self.mailbox.status == ranks.WAIT)
        if not len(waiting):
            return "the other ranks"
        own = int(waiting[0])
        edge = int(self.queue.which[self.queue.head[own]])
        node = int(self.problem.nodes[own])
        ends = self.problem.topology.edges[edge].tolist()
        peer = ends[1] if ends[0] == node else ends[0]
        return (
            f"a message to node {node} of node {peer} on rank {int(self.peer_of[edge])}, which "
            "hangs or cannot be reached"
        )

    def standing(self, wall_time: float) -> Steps[RunPosition]:
        """From each node its idealized time, the seconds of its rank, and what it executed."""
        position, n_features = self.position, self.problem.n_features
        finish, tally = self.clocks.finish.copy(), self.tally.copy()

        def parts() -> Iterator[Part]:
            for time, (updates, exchanges) in zip(finish, tally, strict=True):
                yield Part(np.empty(0), (time, wall_time, float(updates), float(exchanges)))

        _, facts = yield Ask(0, 4, parts())
        updates, exchanges = (int(total) for total in facts[:, 2:].sum(axis=0))
        return RunPosition(
            position, updates + exchanges, float(facts[:, 0].max()), float(facts[:, 1].max()),
            message_counts(updates, exchanges, n_features),
        )  # fmt: skip

    def arrays(self) -> Arrays:
        """The algorithm's, the clocks', and what was counted."""
        of_state, clocks = arrays_of(self.algorithm, self.state), self.clocks
        own = {
            "finish": clocks.finish, "busy": clocks.busy, "waiting": clocks.waiting,
            "tally": self.tally,
        }  # fmt: skip
        return Arrays(of_state.samples, {**of_state.nodes, **own}, of_state.shared)

    def restore(self, position: int, stored: Arrays) -> None:
        """Go on from a position."""
        self.position = position
        for name, view in self.arrays().nodes.items():
            view[...] = stored.nodes[name]
        self.algorithm.restore(self.state, stored.shared)


def _peers(problem: Problem) -> NDArray[np.int32]:
    """The rank at the far end of each edge that leaves this rank; -1 for all other edges."""
    network = problem.network
    owners = network.rank_of[problem.topology.edges].reshape(-1, 2)
    mine = owners == network.rank
    leaving = mine.sum(axis=1) == 1
    far = np.where(mine[:, 0], owners[:, 1], owners[:, 0])
    return np.where(leaving, far, -1).astype(np.int32)


def _clocks(problem: Problem, setting: Setting) -> ranks.NodeClocks:
    n_edges, own = problem.topology.n_edges, len(problem.nodes)
    nominal = setting.delays.nominal(n_edges, problem.n_nodes)
    return ranks.NodeClocks(
        CODES[setting.clock], nominal[n_edges:][problem.nodes].copy(), nominal[:n_edges].copy(),
        np.zeros(own), np.zeros(own), np.zeros(own),
    )  # fmt: skip

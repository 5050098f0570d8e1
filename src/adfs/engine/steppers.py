"""Executing a schedule from position to position.

`BlockStepper` runs whole blocks: all methods in one process, and on ranks the synchronous ones.
`QueueStepper` is for pairwise methods on several ranks: each node has a queue of its own events and
continues while another one waits for a message.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import (
    Arrays,
    Counts,
    Method,
    MethodSetting,
    QueuedAlgorithm,
    Vector,
    arrays_of,
    message_counts,
)
from adfs.errors import ParameterError
from adfs.kernels import rank_nodes
from adfs.network import Ask, Part, Steps
from adfs.problem.finite_sum import Problem
from adfs.schedule.clock import CODES
from adfs.schedule.events import Events

DIFFERENT_BITS = (
    "The ranks computed different numbers from the same numbers, so their processors round "
    "differently; run on one type of CPU."
)


class RunPosition(NamedTuple):
    """Position of a run at an evaluation, and its costs; of all nodes together."""

    position: int
    iteration: int
    idealized_time: float
    wall_time: float
    counts: Counts


class BlockStepper:
    """Runs a method's blocks of events one after another."""

    overlaps = keeps_tally = False
    seconds, waits = 0.0, np.empty((0, 2))  # the network's own waits are not counted here

    def __init__(self, problem: Problem, method: Method, theta: Vector | None = None) -> None:
        self.problem, self.method, self.algorithm = problem, method, method.algorithm
        self.clock, self.source = method.clock, method.source
        self.state = self.algorithm.init(theta)
        self.position, self.iteration, self.counts = 0, 0, Counts()
        # A checkpoint counts pairwise events at the nodes that take part, as ranks count them.
        self.tally = np.zeros((problem.n_nodes, 2), np.int64)
        self._pairwise = hasattr(self.algorithm, "queued")
        self._stop = 0

    @property
    def done(self) -> bool:
        """Whether the loaded events are executed."""
        return self.position >= self._stop

    def warm_up(self) -> None:
        """Compile or load what the loop will call: a part of set-up, not of ``wall_time``."""
        self.state = self.algorithm.step(self.state, self.source.draw(0, 0))
        stop = 1
        while not len((events := self.source.draw(0, stop)).which):
            stop *= 2
        self.clock.copy().advance(events)

    def load(self, stop: int) -> None:
        """Set the position to run to."""
        self._stop = stop

    def serve(self) -> bool:
        """Run all loaded events."""
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
        return True

    def _count(self, events: Events) -> None:
        edges = self.problem.topology.edges
        times = np.bincount(events.which, minlength=len(edges) + self.problem.n_nodes)
        self.tally[:, 0] += times[len(edges) :]
        np.add.at(self.tally[:, 1], edges[:, 0], times[: len(edges)])

    def progress(self) -> int:
        """Changes whenever something was executed."""
        return self.position

    def waits_for(self) -> str:
        """What it waits for, for a message."""
        return "the other ranks' part of a round"

    def run_position(self, wall_time: float) -> Steps[RunPosition]:
        """The same on all processes but for the seconds; refuses ranks with different results."""
        digest = 0
        for array in arrays_of(self.algorithm, self.state).shared.values():
            digest = zlib.crc32(np.ascontiguousarray(array).tobytes(), digest)
        position, iteration, counts = self.position, self.iteration, self.counts
        time = self.clock.time
        own = [Part(np.empty(0), (wall_time, float(digest)))] * len(self.problem.nodes)
        _, values = yield Ask(0, 2, own)
        if len(np.unique(values[:, 1])) > 1:
            raise ParameterError(DIFFERENT_BITS)
        return RunPosition(position, iteration, time, float(values[:, 0].max()), counts)

    def arrays(self) -> Arrays:
        """Everything that a checkpoint holds: of the algorithm, the clock, and counts."""
        samples, nodes, shared = arrays_of(self.algorithm, self.state)
        per_node, for_all = self.clock.arrays()
        nodes = nodes | {name: array[self.problem.nodes] for name, array in per_node.items()}
        if self._pairwise:
            return Arrays(
                samples, nodes | {"tally": self.tally[self.problem.nodes]}, shared | for_all
            )
        counts = np.array([self.iteration, *self.counts], dtype=np.int64)
        return Arrays(samples, nodes, shared | for_all | {"counts": counts})

    def restore(self, position: int, stored: Arrays) -> None:
        """Continue from a position; the arrays of samples and of the state's nodes are in place."""
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

    overlaps = keeps_tally = True

    def __init__(
        self, problem: Problem, method: Method, setting: MethodSetting, theta: Vector | None = None
    ) -> None:
        if setting.delays.law != "constant":
            raise ParameterError(
                "Ranks time pairwise events with constant delays; use engine='local'."
            )
        self.problem, self.method, self.source = problem, method, method.source
        self.algorithm: QueuedAlgorithm[Any] = method.algorithm  # type: ignore[assignment]
        self.state, self.position = self.algorithm.init(theta), 0
        self.ends, self.peer_of = problem.network.ends, _peers(problem)
        self.clocks = _clocks(problem, setting)
        n, width = len(problem.nodes), problem.n_features + 1
        self.mailbox = rank_nodes.Mailbox(
            np.full(n, rank_nodes.DONE, np.int8), np.zeros((2 * n, width))
        )
        self.tally = np.zeros((n, 2), np.int64)
        self.work = self.algorithm.queued(self.state)
        self.carrier = problem.network.carrier(self)

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
        """Begin and end of each wait, if recorded."""
        waits: NDArray[np.float64] = self.carrier.waits
        return waits

    @property
    def done(self) -> bool:
        """Whether every node has executed its loaded events."""
        return bool((self.mailbox.status == rank_nodes.DONE).all())

    def load(self, stop: int) -> None:
        """Queue the events up to the position ``stop``."""
        events, here = self.source.draw(self.position, stop), self.problem.network.here
        count = np.zeros((len(self.problem.nodes), 3), np.int64)
        rank_nodes.count_own(events.which, self.ends, here, count)
        a, total = self.algorithm.pass_time(self.state, events)
        self.queue = self._queue(count.sum(axis=1), len(a) > 1)
        rank_nodes.fill(
            self.queue, self.queue.head.copy(), events.which, events.sample, events.ticks, a, total,
            self.ends, here,
        )  # fmt: skip
        self.tally += count[:, :2]
        rank_nodes.begin(self.queue, self.mailbox)
        self.position = stop

    def _queue(self, count: NDArray[np.int64], weighted: bool) -> rank_nodes.Queue:
        first = np.concatenate([[0], np.cumsum(count)])
        size = int(first[-1])
        weights = size if weighted else 0
        return rank_nodes.Queue(
            first, first[:-1].copy(), first[:-1].copy(), np.empty(size, np.int64),
            np.empty(size, np.int32), np.empty(size, np.int32), np.empty(weights + 1),
            np.empty(weights + 1),
        )  # fmt: skip

    def advance(self) -> int:
        """Run every node until it needs a message or is done; how many moved."""
        moved: int = rank_nodes.advance(
            self.work, self.problem.rows, self.queue, self.clocks, self.mailbox
        )  # fmt: skip
        return moved

    def serve(self) -> bool:
        """Run until all nodes are done, or until no message has come for some time."""
        done: bool = self.carrier.serve()
        return done

    def progress(self) -> int:
        """Changes whenever a node has moved."""
        return int(self.queue.head.sum()) + int(self.position)

    def waits_for(self) -> str:
        """Which node waits for which node of which rank."""
        waiting = np.flatnonzero(self.mailbox.status == rank_nodes.WAIT_REMOTE)
        if not len(waiting):
            return "the other ranks"
        own = int(waiting[0])
        edge = int(self.queue.which[self.queue.head[own]])
        node = int(self.problem.nodes[own])
        ends = self.problem.topology.edges[edge].tolist()
        peer = ends[1] if ends[0] == node else ends[0]
        return (
            f"a message to node {node} of node {peer} on rank {int(self.peer_of[edge])}, which "
            "hangs or is not reachable"
        )

    def run_position(self, wall_time: float) -> Steps[RunPosition]:
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
        """Of the algorithm, the clocks, and counts."""
        samples, nodes, shared = arrays_of(self.algorithm, self.state)
        clocks = self.clocks
        own = {"finish": clocks.finish, "busy": clocks.busy, "waiting": clocks.waiting}
        return Arrays(samples, {**nodes, **own, "tally": self.tally}, shared)

    def restore(self, position: int, stored: Arrays) -> None:
        """Continue from a position."""
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


def _clocks(problem: Problem, setting: MethodSetting) -> rank_nodes.NodeClocks:
    n_edges, own = problem.topology.n_edges, len(problem.nodes)
    nominal = setting.delays.nominal(n_edges, problem.n_nodes)
    return rank_nodes.NodeClocks(
        CODES[setting.clock], nominal[n_edges:][problem.nodes].copy(), nominal[:n_edges].copy(),
        np.zeros(own), np.zeros(own), np.zeros(own),
    )  # fmt: skip


# Both have ``position`` (all events before it are executed at every node here, once ``done``) and
# ``overlaps``: whether this process can continue while an evaluation of others is under way.
Stepper = BlockStepper | QueueStepper


def make_stepper(
    problem: Problem, method: Method, setting: MethodSetting, theta: Vector | None
) -> Stepper:
    """The stepper of a method on the problem's network."""
    if problem.network.is_whole or not hasattr(method.algorithm, "queued"):
        return BlockStepper(problem, method, theta)
    return QueueStepper(problem, method, setting, theta)

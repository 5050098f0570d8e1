"""Executing a schedule from position to position.

`BlockStepper` runs whole blocks: all methods in one process, and on ranks the synchronous ones.
`QueueStepper` is for pairwise methods on several ranks: each node has a queue of its own events and
continues while another one waits for a message.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import (
    Arrays,
    Counts,
    Method,
    MethodSetting,
    WarmStart,
    arrays_of,
    copy_into,
    executed,
    first_state,
)
from adfs.algorithms.pairwise import Pairwise, exchange_counts
from adfs.engine.stopping import Spent
from adfs.errors import ParameterError
from adfs.kernels import rank_nodes
from adfs.network import Steps, ask_values
from adfs.problem.finite_sum import Problem
from adfs.schedule.clock import CODES

DIFFERENT_BITS = (
    "The ranks computed different numbers from the same numbers, so their processors round "
    "differently; run on one type of CPU."
)


class BlockStepper:
    """Runs a method's blocks of events one after another.

    All events before ``position`` are executed at every node here, once ``done``. A stepper that
    ``overlaps`` can continue while an evaluation of other processes is under way.
    """

    overlaps = keeps_tally = False
    carrier = None  # the network's own waits are not counted here

    def __init__(self, problem: Problem, method: Method, start: WarmStart | None = None) -> None:
        self.problem, self.method, self.algorithm = problem, method, method.algorithm
        self.clock, self.source = method.clock, method.source
        self.state = first_state(self.algorithm, start)
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
        self._stop = stop

    def serve(self) -> bool:
        """Execute loaded events as far as possible now; whether all are done."""
        while self.position < self._stop:
            last = min(self._stop, self.position + self.method.block)
            events = self.source.draw(self.position, last)
            self.state = self.algorithm.step(self.state, events)
            events = executed(self.algorithm, self.state, events)
            self.clock.advance(events)
            self.counts = self.counts.plus(self.algorithm.counts(events))
            self.iteration += len(events.which)
            self.position = last
            if self.keeps_tally and self._pairwise:
                edges = self.problem.topology.edges
                times = np.bincount(events.which, minlength=len(edges) + self.problem.n_nodes)
                self.tally[:, 0] += times[len(edges) :]
                np.add.at(self.tally[:, 1], edges[:, 0], times[: len(edges)])
        return True

    def progress(self) -> int:
        """Changes whenever something was executed."""
        return self.position

    def waits_for(self) -> str:
        """What it waits for, for a message."""
        return "the other ranks' part of a round"

    def spent(self, wall_time: float) -> Steps[Spent]:
        """The costs of all processes; refuses ranks with different results."""
        digest = 0
        for array in arrays_of(self.algorithm, self.state).shared.values():
            digest = zlib.crc32(np.ascontiguousarray(array).tobytes(), digest)
        now = Spent(self.position, self.clock.time, wall_time, self.iteration, self.counts)
        own = np.tile([wall_time, float(digest)], (len(self.problem.nodes), 1))
        _, values = yield ask_values(own)
        if len(np.unique(values[:, 1])) > 1:
            raise ParameterError(DIFFERENT_BITS)
        return now._replace(wall_time=float(values[:, 0].max()))

    def arrays(self) -> Arrays:
        """Everything that a checkpoint holds: of the algorithm, the clock, and counts."""
        samples, nodes, shared = arrays_of(self.algorithm, self.state)
        per_node, for_all = self.clock.arrays()
        if self._pairwise:
            per_node = per_node | {"tally": self.tally}
        else:
            counts = np.array([self.iteration, *self.counts], dtype=np.int64)
            for_all = for_all | {"counts": counts}
        own = {name: array[self.problem.nodes] for name, array in per_node.items()}
        return Arrays(samples, nodes | own, shared | for_all)

    def restore(self, position: int, stored: Arrays) -> None:
        """Continue from a position; the arrays of samples and of the state's nodes are in place."""
        self.position = position
        facts = self.problem.network.facts
        per_node, shared = self.clock.arrays()
        for name, view in per_node.items():
            view[...] = facts(stored.nodes[name])
        copy_into(shared, stored.shared)
        if self._pairwise:
            self.tally = facts(stored.nodes["tally"])
            self.iteration, self.counts = _totals(self.tally, self.problem.n_features)
        else:
            self.iteration, *counts = stored.shared["counts"].tolist()
            self.counts = Counts(*counts)
        of_state = self.algorithm.arrays(self.state).shared
        self.algorithm.restore(self.state, {name: stored.shared[name] for name in of_state})


class QueueStepper:
    """Runs the events of this rank's nodes, each node as far as it gets without a message.

    ``tally`` has one row per own node: its local updates so far, and the exchanges on edges whose
    first end it is.
    """

    overlaps = keeps_tally = True

    def __init__(
        self, problem: Problem, method: Method, setting: MethodSetting,
        start: WarmStart | None = None,
    ) -> None:  # fmt: skip
        if setting.delays.law != "constant":
            raise ParameterError(
                "Ranks time pairwise events with constant delays; use engine='local'."
            )
        self.problem, self.source = problem, method.source
        self.algorithm: Pairwise[Any] = method.algorithm  # type: ignore[assignment]
        self.state, self.position = first_state(self.algorithm, start), 0
        self.ends, self.peer_of = problem.network.ends, problem.network.peer_of
        n, width, n_edges = len(problem.nodes), problem.n_features + 1, problem.topology.n_edges
        nominal = setting.delays.nominal(n_edges, problem.n_nodes)
        self.clocks = rank_nodes.NodeClocks(
            CODES[setting.clock], nominal[n_edges:][problem.nodes].copy(), nominal[:n_edges].copy(),
            np.zeros(n), np.zeros(n), np.zeros(n),
        )  # fmt: skip
        self.mailbox = rank_nodes.Mailbox(
            np.full(n, rank_nodes.DONE, np.int8), np.zeros((2 * n, width))
        )
        self.tally = np.zeros((n, 2), np.int64)
        self.work = self.algorithm.queued(self.state)
        self.carrier = problem.network.carrier(self)

    @property
    def done(self) -> bool:
        return bool((self.mailbox.status == rank_nodes.DONE).all())

    def warm_up(self) -> None:
        self.load(self.position)
        self.carrier.serve()

    def load(self, stop: int) -> None:
        events, here = self.source.draw(self.position, stop), self.problem.network.here
        count = np.zeros((len(self.problem.nodes), 3), np.int64)
        rank_nodes.count_own(events.which, self.ends, here, count)
        self.tally += count[:, :2]
        a, total = self.algorithm.pass_time(self.state, events)
        first = np.concatenate([[0], np.cumsum(count.sum(axis=1))])
        size = int(first[-1])
        weights = size if len(a) > 1 else 0
        self.queue = rank_nodes.Queue(
            first, first[:-1].copy(), first[:-1].copy(), np.empty(size, np.int64),
            np.empty(size, np.int32), np.empty(size, np.int32), np.empty(weights + 1),
            np.empty(weights + 1),
        )  # fmt: skip
        rank_nodes.fill(
            self.queue, self.queue.head.copy(), events.which, events.sample, events.ticks, a, total,
            self.ends, here,
        )  # fmt: skip
        rank_nodes.begin(self.queue, self.mailbox)
        self.position = stop

    def advance(self) -> int:
        """Run every node until it needs a message or is done; how many moved."""
        moved: int = rank_nodes.advance(
            self.work, self.problem.rows, self.queue, self.clocks, self.mailbox
        )  # fmt: skip
        return moved

    def serve(self) -> bool:
        done: bool = self.carrier.serve()
        return done

    def progress(self) -> int:
        return int(self.queue.head.sum()) + int(self.position)

    def waits_for(self) -> str:
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

    def spent(self, wall_time: float) -> Steps[Spent]:
        position = self.position
        seconds = np.full(len(self.tally), wall_time)
        _, facts = yield ask_values(np.column_stack([seconds, self.clocks.finish, self.tally]))
        totals = _totals(facts[:, 2:], self.problem.n_features)
        return Spent(position, float(facts[:, 1].max()), float(facts[:, 0].max()), *totals)

    def arrays(self) -> Arrays:
        samples, nodes, shared = arrays_of(self.algorithm, self.state)
        clocks = self.clocks
        own = {"finish": clocks.finish, "busy": clocks.busy, "waiting": clocks.waiting}
        return Arrays(samples, {**nodes, **own, "tally": self.tally}, shared)

    def restore(self, position: int, stored: Arrays) -> None:
        self.position = position
        copy_into(self.arrays().nodes, stored.nodes)
        self.algorithm.restore(self.state, stored.shared)


def _totals(tally: NDArray[Any], n_features: int) -> tuple[int, Counts]:
    updates, exchanges = (int(total) for total in tally.sum(axis=0))
    return updates + exchanges, exchange_counts(updates + exchanges, exchanges, n_features)


Stepper = BlockStepper | QueueStepper


def make_stepper(
    problem: Problem, method: Method, setting: MethodSetting, start: WarmStart | None
) -> Stepper:
    if problem.network.is_whole or not hasattr(method.algorithm, "queued"):
        return BlockStepper(problem, method, start)
    return QueueStepper(problem, method, setting, start)

"""The one loop: load a block of events, execute it; now and then evaluate and decide.

One process and ranks run the same lines. All ranks take the same decisions, because these follow
from numbers that all of them have: evaluations, which are sums over all nodes, and heartbeats, by
which ranks ask each other at regular positions, without waiting, whether all must stop.
Where a stepper allows it, a rank continues while an evaluation is under way.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adfs.algorithms.base import Method, Vector, all_duals, numbers_per_event
from adfs.engine.checkpointer import Checkpointer
from adfs.engine.evaluation import Evaluation, Evaluator
from adfs.engine.execution import Spans
from adfs.engine.interrupts import Interrupts
from adfs.engine.run_controller import RunController
from adfs.engine.steppers import Stepper
from adfs.engine.stopping import Spent
from adfs.network import Poll, Steps
from adfs.problem.finite_sum import Problem

NUMBERS_PER_BEAT = 1 << 22  # read and written by a rank between two heartbeats
NUMBERS_BESIDE = 64  # what an event costs beside its vectors
MOST_EVENTS = 1 << 16
SECONDS_BETWEEN_LOOKS = 0.25  # of a watcher
STALE = 2.0  # seconds after which a watcher sees a new gap
RARELY = 50.0  # and as many times as long as the last evaluation took


class Outcome(NamedTuple):
    """Where a run is, its evaluation, and the duals of the samples here if there are any."""

    spent: Spent
    reading: Evaluation
    duals: Vector | None


class Heartbeat:
    """One exchange at each multiple of ``interval``; its result must be there at the next one.

    That is where all ranks then stop. A single process stops at once. ``signal`` is the signal that
    some rank had received in the last complete exchange (0: none), ``saved`` the newest position
    that every rank has reported as saved (-1: none), ``is_gap_wanted`` whether a watcher of some
    rank wants to see the gap. Between two exchanges of ranks there are some
    hundredths of a second of work for each of them.
    """

    def __init__(self, problem: Problem, method: Method) -> None:
        self._network, self.interval = problem.network, method.beat or method.block
        if not self._network.is_whole and hasattr(method.algorithm, "queued"):
            numbers = numbers_per_event(
                problem.numbers_per_row, problem.n_features, method.parameters.p_comm
            )
            events = NUMBERS_PER_BEAT / (NUMBERS_BESIDE + numbers)
            self.interval = self._network.size * int(np.clip(events, 4, MOST_EVENTS))
        self._is_complete: Callable[[], bool] | None = None
        self._started = -1
        self._own, self._largest = np.zeros(4, np.int64), np.zeros(4, np.int64)
        self._stop_at: int | None = None
        self._ignored = False
        self.signal, self.saved, self.is_gap_wanted = 0, -1, False

    def next_after(self, position: int) -> int:
        return (position // self.interval + 1) * self.interval

    def is_due(self, position: int) -> bool:
        return position % self.interval == 0 and position != self._started

    def arrived(self) -> bool:
        """Whether the last exchange, if any, is complete."""
        if self._is_complete is not None and self._is_complete():
            self._is_complete = None
            self.saved = -int(self._largest[2])
            self.is_gap_wanted = bool(self._largest[3]) and not self._ignored
            if self._largest[:2].any() and not self._ignored:
                delay = 0 if self._network.is_whole else self.interval
                self.signal, self._stop_at = int(self._largest[0]), self._started + delay
        return self._is_complete is None

    def start(self, position: int, signal: int, late: bool, saved: int, gap: bool) -> None:
        """Start an exchange, unless all stop here; the last one must have arrived."""
        self._started = position
        if not self.stops(position):
            self._own[:] = signal, int(late), -saved, int(gap)
            self._is_complete = self._network.begin_max(self._own, self._largest)
            if self._network.is_whole:
                self.arrived()

    def stops(self, position: int) -> bool:
        return self._stop_at is not None and position >= self._stop_at

    def ignore(self) -> None:
        """The run is over: continue to the position of the other ranks, without stops."""
        self._ignored, self._stop_at = True, None


@dataclass
class Loop:
    """Executes a run until a limit is met."""

    problem: Problem
    method: Method
    stepper: Stepper
    controller: RunController  # takes the decisions; the same on every rank
    interrupts: Interrupts
    checkpointer: Checkpointer | None
    evaluate: Evaluator
    keep_spans: bool
    seconds: float  # of executing events, up to the last pause
    since: float | None = None  # end of that pause, plus evaluations since then

    def __post_init__(self) -> None:
        self.network, self.peers = self.problem.network, self.problem.network.peers
        self.heartbeat = Heartbeat(self.problem, self.method)
        self.spans = Spans(self.keep_spans, self.network.clock)
        self._next_look = self._next_gap = 0.0  # of a watcher
        self._overlap_end = 0  # up to there an evaluation may be under way on some rank

    @property
    def wall_time(self) -> float:
        """Seconds of executing events, evaluations not counted."""
        return self.seconds + (0.0 if self.since is None else time.perf_counter() - self.since)

    def run(self) -> tuple[str, Outcome]:
        """Run until a limit is met; return the status and the last evaluation."""
        while True:
            self._run_to(self.controller.goal)
            stopped = self.stepper.position < self.controller.goal
            if stopped or self.controller.is_last():
                # Before an evaluation that an undisturbed or longer run would not make.
                self._save()
            started = time.perf_counter()
            pending = Poll(self.network.polls(self._outcome(self.wall_time)))
            with self.spans.of("reading"):
                pending.done()
            if not stopped and self.stepper.overlaps:
                self._overlap_end = self._ahead()
                self._run_to(self._overlap_end, pending)
            with self.spans.of("reading"):
                self._wait(pending.done, "the other ranks' part of an evaluation")
            self._evaluated(started)
            has_signal = functools.partial(self._has_signal, stopped)
            found = pending.result
            status = self.controller.decide(found.spent, found.reading, has_signal)
            if status is not None:
                self._drain()
                return status, found

    def _has_signal(self, stopped: bool) -> bool:
        """Whether a signal ends the run: at once in one process, for ranks when all have it."""
        if self.network.is_whole:
            return self.interrupts.received is not None
        return stopped and self.heartbeat.signal > 0

    def _ahead(self) -> int:
        """How far to go during an evaluation: to where no other can be due before."""
        position = self.stepper.position
        ahead = self.controller.sure_until(position)
        if self.checkpointer is not None:  # a checkpoint includes all evaluations before it
            ahead = min(ahead, self.checkpointer.next_after(position))
        return max(position, ahead)

    def _run_to(self, stop: int, pending: Poll[Outcome] | None = None) -> None:
        """Execute events up to a position, or until all stop or ``pending`` is complete."""
        stepper = self.stepper
        if stepper.position >= stop and stepper.done:
            return
        self.since = time.perf_counter()
        while stepper.position < stop or not stepper.done:
            if stepper.done and not self._load(stop, pending):
                break
            self._execute(pending)
            if pending is not None and self._poll(pending):
                break
        self.seconds, self.since = self.wall_time, None

    def _load(self, stop: int, pending: Poll[Outcome] | None = None) -> bool:
        """Load up to ``stop`` or the next heartbeat or checkpoint; False where all stop.

        False, too, where ``pending`` is complete before the last heartbeat is: the others may end
        the run by it, and would not come to their part of the heartbeat.
        """
        position, heartbeat, checkpointer = self.stepper.position, self.heartbeat, self.checkpointer
        if heartbeat.is_due(position):
            limit = self.controller.stopping.time_limit
            late = limit is not None and position > 0 and self.wall_time >= limit
            with self.spans.of("waiting"):
                self._wait(
                    lambda: heartbeat.arrived() or (pending is not None and self._poll(pending)),
                    "the other ranks' heartbeat",
                )
            if not heartbeat.arrived():
                return False
            if heartbeat.is_gap_wanted and position >= self._overlap_end:
                self._show_gap()
            saved = -1 if checkpointer is None else checkpointer.saved
            gap = self.controller.watcher is not None and time.perf_counter() >= self._next_gap
            heartbeat.start(position, self.interrupts.received or 0, late, saved, gap)
        if heartbeat.stops(position):
            return False
        stop = min(stop, heartbeat.next_after(position))
        if checkpointer is not None:
            stop = min(stop, checkpointer.next_after(position))
            if checkpointer.is_due(position):
                self._save()
        with self.spans.of("scheduling"):
            self.stepper.load(stop)
        return True

    def _execute(self, pending: Poll[Outcome] | None) -> None:
        """Execute the loaded events, at least until ``pending`` may have changed."""

        def served() -> bool:
            with self.spans.of("computing"):
                done = self.stepper.serve()
            self._show()
            return done or (pending is not None and self._poll(pending))

        try:
            self.peers.wait(served, self.stepper.waits_for, self.stepper.progress)
        except ConnectionError as error:
            self.peers.fail(str(error))

    def _wait(self, there: Callable[[], bool], what: str) -> None:
        """Wait for other ranks, and show progress meanwhile."""

        def ready() -> bool:
            if not (found := there()):
                self._show()
            return found

        self.peers.wait(ready, lambda: what)

    def _show(self) -> None:
        """Let the watcher, if any, see how far the run is, without an evaluation."""
        now = time.perf_counter()
        if self.controller.watcher is not None and now >= self._next_look:
            self._next_look = now + SECONDS_BETWEEN_LOOKS
            self.controller.show(Spent(self.stepper.position, 0.0, self.wall_time))

    def _show_gap(self) -> None:
        """An evaluation at this position of all ranks, which decides nothing and is not recorded.

        No rank has another one under way. The time does not count as that of events.
        """
        started, since = time.perf_counter(), self.since
        pending = Poll(self.network.polls(self._outcome(self.wall_time)))
        with self.spans.of("reading"):
            self._wait(pending.done, "the other ranks' part of an evaluation")
        self._evaluated(started)
        self.controller.show(pending.result.spent, pending.result.reading)
        assert since is not None
        self.since = since + time.perf_counter() - started

    def _evaluated(self, started: float) -> None:
        """Set when a watcher wants the next gap, after an evaluation that began then."""
        now = time.perf_counter()
        self._next_gap = now + max(STALE, RARELY * (now - started))

    def _poll(self, pending: Poll[Outcome]) -> bool:
        """Continue an evaluation; its seconds do not count as those of events."""
        started = time.perf_counter()
        with self.spans.of("reading"):
            done = pending.done()
        assert self.since is not None
        self.since += time.perf_counter() - started
        return done

    def _save(self) -> None:
        if self.checkpointer is not None:
            with self.spans.of("saving"):
                self.checkpointer.save(
                    self.stepper, self.controller, self.wall_time, self.heartbeat.saved
                )

    def _outcome(self, wall_time: float) -> Steps[Outcome]:
        """The position of the run and its evaluation, from a copy of this moment."""
        stepper = self.stepper
        algorithm, state = stepper.algorithm, stepper.state
        second = getattr(algorithm, "second_output", None)
        outputs = [algorithm.output(state)] + ([] if second is None else [second(state)])
        duals = all_duals(algorithm, state, self.problem)
        spent = yield from stepper.spent(wall_time)
        with np.errstate(over="ignore", invalid="ignore"):  # the status says it
            reading = yield from self.evaluate(self.problem, outputs, duals)
        return Outcome(spent, reading, duals)

    def _drain(self) -> None:
        """Bring all ranks to one position, so that no message is left under way."""
        furthest = max(self.network.gather(self.stepper.position))
        checkpointer, self.checkpointer = self.checkpointer, None
        self.heartbeat.ignore()
        self._run_to(furthest)
        self.peers.wait(self.heartbeat.arrived, lambda: "the other ranks' last heartbeat")
        if checkpointer is not None:
            checkpointer.close()

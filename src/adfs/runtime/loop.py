"""The one loop: take on a block, execute it; now and then evaluate and decide.

One process and ranks run the same lines. All ranks take the same decisions, because these follow
from what all of them know: evaluations, which are sums over all nodes, and heartbeats. Where a
stepper allows it, an evaluation is under way while a rank goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from adfs.network import Answer, Network, Steps
from adfs.problems.finite_sum import Problem
from adfs.runtime.checkpointer import Checkpointer
from adfs.runtime.course import Course
from adfs.runtime.evaluation import Evaluate, Reading, duals_of, models, reading_steps
from adfs.runtime.heartbeat import Heartbeat
from adfs.runtime.signals import Interrupts
from adfs.runtime.spans import Spans
from adfs.runtime.stepping import RunPosition, Stepper

T = TypeVar("T")
Outcome = tuple[RunPosition, Reading]


class Loop:
    """Turns a run until a limit is met.

    Parameters
    ----------
    problem : Problem
    stepper : Stepper
    course : Course
        Takes the decisions; the same on every rank.
    heartbeat : Heartbeat
    checkpointer : Checkpointer, optional
    spans : Spans, optional
        Where the seconds go.
    seconds : float
        Of earlier lives of a resumed run.
    evaluate : Evaluate, optional
        What models are worth, where that is not the certificate of the problem.
    """

    def __init__(
        self,
        problem: Problem,
        stepper: Stepper,
        course: Course,
        heartbeat: Heartbeat,
        checkpointer: Checkpointer | None = None,
        spans: Spans | None = None,
        seconds: float = 0.0,
        evaluate: Evaluate = reading_steps,
    ) -> None:
        self.problem, self.network = problem, problem.network
        self.stepper, self.course, self.heartbeat = stepper, course, heartbeat
        self.checkpointer, self.spans = checkpointer, spans or Spans()
        self._evaluate = evaluate
        self._seconds = seconds  # of executing events, up to when it last paused
        self._since: float | None = None  # when it went on, less evaluations since then

    @property
    def wall_time(self) -> float:
        """Seconds of executing events, evaluations not counted."""
        return self._seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    def go(self, interrupts: Interrupts) -> tuple[str, Reading]:
        """Turn until a limit is met; return the status and the last reading."""
        while True:
            self._run_to(self.course.goal, interrupts)
            halted = self.stepper.position < self.course.goal
            if self.checkpointer is not None and (halted or self.course.is_last()):
                # Before a reading that an undisturbed or longer run would not make.
                self._save(self.checkpointer)
            pending = self._begin_evaluation()
            if not halted and self.stepper.overlaps:
                self._run_to(self._ahead(), interrupts, pending)
            standing, reading = self._finish(pending)
            by_signal = lambda: self._signal(halted, interrupts)  # noqa: B023, E731
            status = self.course.note(standing, reading, by_signal)
            if status is not None:
                self._drain(interrupts)
                return status, reading

    def _signal(self, halted: bool, interrupts: Interrupts) -> bool:
        """Whether a signal ends the run: one process knows at once, ranks when all know."""
        if self.network.is_whole:
            return interrupts.received is not None
        return halted and self.heartbeat.signal > 0

    def _ahead(self) -> int:
        """How far to go while a reading is on its way: where no reading will be wanted before."""
        position = self.stepper.position
        ahead = self.course.sure_until(position)
        if self.checkpointer is not None:  # what is saved includes all readings before it
            ahead = min(ahead, self.checkpointer.next_after(position))
        return max(position, ahead)

    def _run_to(
        self, stop: int, interrupts: Interrupts, pending: Pending[Outcome] | None = None
    ) -> None:
        """Execute events up to a position, fewer if all agree to halt or ``pending`` is there."""
        if self.stepper.position >= stop and self.stepper.done:
            return
        self._since = time.perf_counter()
        self._execute_to(stop, interrupts, pending)
        self._seconds, self._since = self.wall_time, None

    def _execute_to(
        self, stop: int, interrupts: Interrupts, pending: Pending[Outcome] | None
    ) -> None:
        stepper = self.stepper
        while stepper.position < stop or not stepper.done:
            if stepper.done:
                if not self._may_pass(interrupts):
                    return
                with self.spans.of("scheduling"):
                    stepper.load(min(stop, *self._next_cuts()))
            self._turn(pending)
            if pending is not None and self._poll(pending):
                return

    def _turn(self, pending: Pending[Outcome] | None) -> None:
        """Execute what is loaded, at least until ``pending`` may have moved."""

        def served() -> bool:
            with self.spans.of("computing"):
                done = self.stepper.serve()
            return done or (pending is not None and self._poll(pending))

        try:
            self.network.wait(served, self.stepper.waits_for, self.stepper.progress)
        except ConnectionError as error:
            self.network.give_up(str(error))

    def _next_cuts(self) -> Iterator[int]:
        position = self.stepper.position
        yield self.heartbeat.next_after(position)
        if self.checkpointer is not None:
            yield self.checkpointer.next_after(position)

    def _may_pass(self, interrupts: Interrupts) -> bool:
        """Heartbeat and checkpoint of this position, if it has one; False where all halt."""
        position = self.stepper.position
        if self.heartbeat.is_due(position):
            limit = self.course.stopping.time_limit
            late = limit is not None and position > 0 and self.wall_time >= limit
            with self.spans.of("waiting"):
                self.network.wait(self.heartbeat.arrived, lambda: "the other ranks' heartbeat")
            saved = -1 if self.checkpointer is None else self.checkpointer.kept
            self.heartbeat.post(position, interrupts.received or 0, late, saved)
        if self.heartbeat.halts(position):
            return False
        if self.checkpointer is not None and self.checkpointer.is_due(position):
            self._save(self.checkpointer)
        return True

    def _save(self, checkpointer: Checkpointer) -> None:
        with self.spans.of("saving"):
            checkpointer.save(self.stepper, self.course, self.wall_time, self.heartbeat.saved)

    def _begin_evaluation(self) -> Pending[Outcome]:
        with self.spans.of("reading"):
            pending = Pending(self.network, self._outcome(self.wall_time))
            pending.poll()
        return pending

    def _outcome(self, wall_time: float) -> Steps[Outcome]:
        """Where the run stands and what it is worth, from a copy of this moment."""
        stepper, problem = self.stepper, self.problem
        outputs = models(stepper.algorithm, stepper.state)
        duals = duals_of(stepper.algorithm, stepper.state, int(problem.nodes[0]))
        if stepper.overlaps and duals is not None:
            kept = {node: duals(node) for node in problem.nodes.tolist()}
            duals = kept.__getitem__
        standing = yield from stepper.standing(wall_time)
        with np.errstate(over="ignore", invalid="ignore"):  # told by the run's status
            reading = yield from self._evaluate(problem, outputs, duals)
        return standing, reading

    def _poll(self, pending: Pending[Outcome]) -> bool:
        started = time.perf_counter()
        with self.spans.of("reading"):
            there = pending.poll()
        assert self._since is not None
        self._since += time.perf_counter() - started
        return there

    def _finish(self, pending: Pending[Outcome]) -> Outcome:
        with self.spans.of("reading"):
            self.network.wait(pending.poll, lambda: "the other ranks' part of an evaluation")
        return pending.result

    def _drain(self, interrupts: Interrupts) -> None:
        """Bring all ranks to one position, so that no message is left on its way."""
        furthest = max(self.network.gather(self.stepper.position))
        checkpointer, self.checkpointer = self.checkpointer, None
        self.heartbeat.ignore()
        self._run_to(furthest, interrupts)
        self.network.wait(self.heartbeat.arrived, lambda: "the other ranks' last heartbeat")
        if checkpointer is not None:
            checkpointer.close()


class Pending(Generic[T]):
    """Work that asks for sums over all nodes, which may take a while to come."""

    def __init__(self, network: Network, steps: Steps[T]) -> None:
        self._network, self._steps = network, steps
        self._answers: Iterator[Answer | None] | None = None
        self.done = False
        self.result: T

    def poll(self) -> bool:
        """Go as far as possible without waiting; whether the result is there."""
        answer: Any = None
        while not self.done:
            if self._answers is not None:
                answer = next(self._answers)
                if answer is None:
                    return False
            try:
                ask = next(self._steps) if answer is None else self._steps.send(answer)
                self._answers = self._network.answers(ask)
            except StopIteration as end:
                self.result, self.done = end.value, True
        return True

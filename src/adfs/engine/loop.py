"""The one loop: load a block of events, execute it; now and then evaluate and decide.

One process and ranks run the same lines. All ranks take the same decisions, because these follow
from numbers that all of them have: evaluations, which are sums over all nodes, and heartbeats.
Where a stepper allows it, a rank continues while an evaluation is under way.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from adfs.engine.checkpointer import Checkpointer
from adfs.engine.evaluation import Evaluation, Evaluator, duals_of, evaluation_steps, models
from adfs.engine.execution import Spans
from adfs.engine.heartbeat import Heartbeat
from adfs.engine.interrupts import Interrupts
from adfs.engine.run_controller import RunController
from adfs.engine.steppers import RunPosition, Stepper
from adfs.network import Poll, Steps
from adfs.problem.finite_sum import Problem

Outcome = tuple[RunPosition, Evaluation]


class Loop:
    """Executes a run until a limit is met.

    Parameters
    ----------
    problem : Problem
    stepper : Stepper
    controller : RunController
        Takes the decisions; the same on every rank.
    heartbeat : Heartbeat
    interrupts : Interrupts
    checkpointer : Checkpointer, optional
    spans : Spans, optional
        Where the seconds go.
    seconds : float
        Spent by a resumed run before its checkpoint.
    evaluate : Evaluator, optional
        What models are worth, where that is not the certificate of the problem.
    """

    def __init__(
        self,
        problem: Problem,
        stepper: Stepper,
        controller: RunController,
        heartbeat: Heartbeat,
        interrupts: Interrupts,
        checkpointer: Checkpointer | None = None,
        spans: Spans | None = None,
        seconds: float = 0.0,
        evaluate: Evaluator = evaluation_steps,
    ) -> None:
        self.problem, self.network = problem, problem.network
        self.peers = self.network.peers
        self.stepper, self.controller, self.heartbeat = stepper, controller, heartbeat
        self.interrupts, self.checkpointer = interrupts, checkpointer
        self.spans = spans or Spans()
        self._evaluate = evaluate
        self._seconds = seconds  # of executing events, up to the last pause
        self._since: float | None = None  # end of that pause, plus evaluations since then

    @property
    def wall_time(self) -> float:
        """Seconds of executing events, evaluations not counted."""
        return self._seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    def run(self) -> tuple[str, Evaluation]:
        """Run until a limit is met; return the status and the last evaluation."""
        while True:
            self._run_to(self.controller.goal)
            stopped = self.stepper.position < self.controller.goal
            if self.checkpointer is not None and (stopped or self.controller.is_last()):
                # Before an evaluation that an undisturbed or longer run would not make.
                self._save(self.checkpointer)
            pending = Poll(self.network.polls(self._outcome(self.wall_time)))
            with self.spans.of("reading"):
                pending.done()
            if not stopped and self.stepper.overlaps:
                self._run_to(self._ahead(), pending)
            with self.spans.of("reading"):
                self.peers.wait(pending.done, lambda: "the other ranks' part of an evaluation")
            by_signal = lambda: self._has_signal(stopped)  # noqa: B023, E731
            status = self.controller.decide(*pending.result, by_signal)
            if status is not None:
                self._drain()
                return status, pending.result[1]

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
        if self.stepper.position >= stop and self.stepper.done:
            return
        self._since = time.perf_counter()
        self._execute_to(stop, pending)
        self._seconds, self._since = self.wall_time, None

    def _execute_to(self, stop: int, pending: Poll[Outcome] | None) -> None:
        stepper = self.stepper
        while stepper.position < stop or not stepper.done:
            if stepper.done:
                if not self._may_pass():
                    return
                with self.spans.of("scheduling"):
                    stepper.load(min(stop, *self._next_cuts()))
            self._execute(pending)
            if pending is not None and self._poll(pending):
                return

    def _execute(self, pending: Poll[Outcome] | None) -> None:
        """Execute the loaded events, at least until ``pending`` may have changed."""

        def served() -> bool:
            with self.spans.of("computing"):
                done = self.stepper.serve()
            return done or (pending is not None and self._poll(pending))

        try:
            self.peers.wait(served, self.stepper.waits_for, self.stepper.progress)
        except ConnectionError as error:
            self.peers.fail(str(error))

    def _poll(self, pending: Poll[Outcome]) -> bool:
        """Continue an evaluation; its seconds do not count as those of events."""
        started = time.perf_counter()
        with self.spans.of("reading"):
            done = pending.done()
        assert self._since is not None
        self._since += time.perf_counter() - started
        return done

    def _next_cuts(self) -> Iterator[int]:
        position = self.stepper.position
        yield self.heartbeat.next_after(position)
        if self.checkpointer is not None:
            yield self.checkpointer.next_after(position)

    def _may_pass(self) -> bool:
        """Heartbeat and checkpoint of this position, if they are due; False where all stop."""
        position = self.stepper.position
        if self.heartbeat.is_due(position):
            limit = self.controller.stopping.time_limit
            late = limit is not None and position > 0 and self.wall_time >= limit
            with self.spans.of("waiting"):
                self.peers.wait(self.heartbeat.arrived, lambda: "the other ranks' heartbeat")
            saved = -1 if self.checkpointer is None else self.checkpointer.saved
            self.heartbeat.start(position, self.interrupts.received or 0, late, saved)
        if self.heartbeat.stops(position):
            return False
        if self.checkpointer is not None and self.checkpointer.is_due(position):
            self._save(self.checkpointer)
        return True

    def _save(self, checkpointer: Checkpointer) -> None:
        with self.spans.of("saving"):
            checkpointer.save(self.stepper, self.controller, self.wall_time, self.heartbeat.saved)

    def _outcome(self, wall_time: float) -> Steps[Outcome]:
        """The position of the run and its evaluation, from a copy of this moment."""
        stepper, problem = self.stepper, self.problem
        outputs = models(stepper.algorithm, stepper.state)
        duals = duals_of(stepper.algorithm, stepper.state, int(problem.nodes[0]))
        if stepper.overlaps and duals is not None:
            copies = {node: duals(node) for node in problem.nodes.tolist()}
            duals = copies.__getitem__
        position = yield from stepper.run_position(wall_time)
        with np.errstate(over="ignore", invalid="ignore"):  # the status says it
            reading = yield from self._evaluate(problem, outputs, duals)
        return position, reading

    def _drain(self) -> None:
        """Bring all ranks to one position, so that no message is left under way."""
        furthest = max(self.network.gather(self.stepper.position))
        checkpointer, self.checkpointer = self.checkpointer, None
        self.heartbeat.ignore()
        self._run_to(furthest)
        self.peers.wait(self.heartbeat.arrived, lambda: "the other ranks' last heartbeat")
        if checkpointer is not None:
            checkpointer.close()

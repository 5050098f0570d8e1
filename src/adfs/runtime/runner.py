"""The one loop: draw a block, move, advance the clock; now and then evaluate and decide."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adfs.algorithms.base import Counts, Method, Vector
from adfs.problems.finite_sum import Problem
from adfs.runtime.evaluation import Reading, read
from adfs.runtime.pace import Pace
from adfs.runtime.signals import Interrupts
from adfs.runtime.stopping import Spent, Stopping
from adfs.runtime.trace import Trace


@dataclass
class Progress:
    """What a callback or a progress bar is told after each evaluation."""

    iteration: int
    idealized_time: float
    wall_time: float
    reading: Reading
    tol: float


Callback = Callable[[Progress], Any]


@dataclass
class Run:
    """A run in progress."""

    problem: Problem
    method: Method
    stopping: Stopping
    pace: Pace
    warm_start: Vector | None = None
    callbacks: tuple[Callback, ...] = ()
    trace: Trace = field(default_factory=Trace)
    counts: Counts = field(default_factory=Counts)
    iteration: int = 0
    wall_time: float = 0.0

    def __post_init__(self) -> None:
        self.algorithm, self.clock = self.method.algorithm, self.method.clock
        self.state = self.algorithm.init(self.warm_start)
        self._warm_up()

    def _warm_up(self) -> None:
        """Compile or load what the loop will call: that belongs to set-up, not to ``wall_time``."""
        self.state = self.algorithm.step(self.state, self.method.source.draw(0, 0))
        self.clock.copy().advance(self.method.source.draw(0, 1))

    def go(self, interrupts: Interrupts) -> tuple[str, Reading]:
        """Turn the algorithm until a limit is met; return the status and the last reading."""
        reading = self.evaluate()
        size = max(1.0, abs(reading.objective), reading.duality_gap)
        budget = self.stopping.budget(self.method.rho, self._error(reading))
        while True:
            error = self._error(reading)
            if interrupts.received is not None and error > self.stopping.tol:
                return "interrupted", reading
            spent = Spent(self.iteration, self.clock.time, self.wall_time)
            status = self.stopping.verdict(reading.duality_gap / size, error, spent, budget)
            if status is not None:
                return status, reading
            stop = min(budget, self.iteration + self.pace.events(spent, error))
            self.advance(stop, interrupts)
            reading = self.evaluate()

    def _error(self, reading: Reading) -> float:
        """What is to fall to ``tol``."""
        if self.stopping.measure == "suboptimality" and reading.suboptimality is not None:
            return reading.suboptimality
        return reading.relative_gap

    def advance(self, stop: int, interrupts: Interrupts) -> None:
        """Events up to ``stop``, or fewer if interrupted or out of time."""
        started, so_far = time.perf_counter(), self.wall_time
        limit = self.stopping.time_limit
        while self.iteration < stop and interrupts.received is None:
            last = min(stop, self.iteration + self.method.block)
            events = self.method.source.draw(self.iteration, last)
            self.state = self.algorithm.step(self.state, events)
            self.clock.advance(events)
            self.counts = self.counts.plus(self.algorithm.counts(events))
            self.iteration = events.stop
            self.wall_time = so_far + time.perf_counter() - started
            if limit is not None and self.wall_time >= limit:
                break

    def evaluate(self) -> Reading:
        """Read the state, record it, tell the callbacks; not counted in ``wall_time``."""
        reading = read(self.problem, self.algorithm, self.state)
        self.trace.append(
            iteration=self.iteration, idealized_time=self.clock.time, wall_time=self.wall_time,
            **self.counts._asdict(), objective=reading.objective,
            suboptimality=reading.suboptimality, duality_gap=reading.duality_gap,
            consensus_error=reading.consensus_error,
        )  # fmt: skip
        progress = Progress(
            self.iteration, self.clock.time, self.wall_time, reading, self.stopping.tol
        )
        for callback in self.callbacks:
            callback(progress)
        return reading

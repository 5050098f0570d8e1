"""The one loop: draw a block, move, advance the clock; now and then evaluate and decide."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adfs.algorithms.base import Algorithm, Counts, Vector
from adfs.problems.finite_sum import Problem
from adfs.runtime.evaluation import Reading, read
from adfs.runtime.signals import Interrupts
from adfs.runtime.stopping import Stopping
from adfs.runtime.trace import Trace
from adfs.schedule.clock import Clock
from adfs.schedule.law import Drawer
from adfs.theory.parameters import Parameters

BLOCK = 1 << 14
SHORTEST_INTERVAL = 2_000


@dataclass
class Progress:
    """What a callback or a progress bar is told after each evaluation."""

    iteration: int
    idealized_time: float
    wall_time: float
    reading: Reading
    tol: float


Callback = Callable[[Progress], Any]


def events_to_next_evaluation(rho: float, left: float, slope: float) -> int:
    """Events until a look is worth its cost, which is about that of a pass over the data.

    As many as the remaining ``left`` factors e need at the ``slope`` seen last, which lies between
    once and twice theory's (docs/tuning.md); at least one and at most eight of theory's factors e.
    """
    events = 1.1 * left / min(2.0 * rho, max(rho, slope))
    return max(SHORTEST_INTERVAL, math.ceil(min(8.0 / rho, max(1.0 / rho, events))))


@dataclass
class Run:
    """A run in progress."""

    problem: Problem
    algorithm: Algorithm[Any]
    parameters: Parameters
    drawer: Drawer
    clock: Clock
    stopping: Stopping
    warm_start: Vector | None = None
    interval: int = 0
    callbacks: tuple[Callback, ...] = ()
    trace: Trace = field(default_factory=Trace)
    counts: Counts = field(default_factory=Counts)
    iteration: int = 0
    wall_time: float = 0.0

    def __post_init__(self) -> None:
        self.state = self.algorithm.init(self.warm_start)
        self._left = (0, math.inf)  # the last evaluation: its iteration, and the factors e left
        self._warm_up()

    def _warm_up(self) -> None:
        """Compile or load what the loop will call: that belongs to set-up, not to ``wall_time``."""
        self.state = self.algorithm.step(self.state, self.drawer.draw(0, 0))
        self.clock.copy().advance(self.drawer.draw(0, 1))

    def go(self, interrupts: Interrupts) -> tuple[str, Reading]:
        """Turn the algorithm until a limit is met; return the status and the last reading."""
        reading = self.evaluate()
        size = max(1.0, abs(reading.objective), reading.duality_gap)
        budget = self.stopping.budget(self.parameters.rho, reading.relative_gap)
        while True:
            if interrupts.received is not None and reading.relative_gap > self.stopping.tol:
                return "interrupted", reading
            status = self.stopping.verdict(
                reading.duality_gap / size, reading.relative_gap, self.iteration, self.wall_time,
                budget,
            )  # fmt: skip
            if status is not None:
                return status, reading
            self.advance(min(budget, self.iteration + self._events_to_go(reading)), interrupts)
            reading = self.evaluate()

    def _events_to_go(self, reading: Reading) -> int:
        """A function of the readings so far, so that every engine looks at the same iterations."""
        if self.interval:
            return self.interval
        left = math.log(reading.relative_gap / self.stopping.tol)
        slope = (self._left[1] - left) / max(1, self.iteration - self._left[0])
        self._left = (self.iteration, left)
        return events_to_next_evaluation(self.parameters.rho, left, slope)

    def advance(self, stop: int, interrupts: Interrupts) -> None:
        """Events up to ``stop``, or fewer if interrupted or out of time."""
        started, so_far = time.perf_counter(), self.wall_time
        limit = self.stopping.time_limit
        while self.iteration < stop and interrupts.received is None:
            events = self.drawer.draw(self.iteration, min(stop, self.iteration + BLOCK))
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

"""The one loop: draw a block, move, advance the clock; now and then evaluate and decide."""

import time
from dataclasses import dataclass, field
from typing import Protocol

from adfs.algorithms.base import Counts, Method, Vector
from adfs.problems.finite_sum import Problem
from adfs.runtime.course import Callback, Course, Standing
from adfs.runtime.evaluation import Reading, read
from adfs.runtime.pace import Looks, Pace
from adfs.runtime.signals import Interrupts
from adfs.runtime.stopping import Stopping
from adfs.runtime.trace import Trace
from adfs.schedule.events import Events


class Keeper(Protocol):
    """Keeps what a run has, at every multiple of ``every`` positions."""

    every: int

    def count(self, events: Events) -> None:
        """Take note of events that were executed."""
        ...

    def save(self, run: "Run") -> None:
        """Keep the run as it stands."""
        ...


@dataclass
class Run:
    """A run in progress, all nodes in this process.

    ``position`` is its place in the schedule, ``iteration`` the number of events executed: the same
    under the shared schedule; under the Poisson schedule a position is a unit of time.
    """

    problem: Problem
    method: Method
    stopping: Stopping
    pace: Pace
    warm_start: Vector | None = None
    callbacks: tuple[Callback, ...] = ()
    keeper: Keeper | None = None
    looks: Looks = field(default_factory=Looks)
    counts: Counts = field(default_factory=Counts)
    position: int = 0
    iteration: int = 0
    wall_time: float = 0.0

    def __post_init__(self) -> None:
        self.algorithm, self.clock = self.method.algorithm, self.method.clock
        self.course = Course(self.stopping, self.pace, self.method.rho, self.callbacks, self.looks)
        self.state = self.algorithm.init(self.warm_start)
        self._warm_up()

    @property
    def trace(self) -> Trace:
        """One row for each reading so far."""
        return self.course.trace

    def _warm_up(self) -> None:
        """Compile or load what the loop will call: that belongs to set-up, not to ``wall_time``."""
        self.state = self.algorithm.step(self.state, self.method.source.draw(0, 0))
        stop = 1
        while not len((events := self.method.source.draw(0, stop)).which):
            stop *= 2
        self.clock.copy().advance(events)

    def go(self, interrupts: Interrupts) -> tuple[str, Reading]:
        """Turn the algorithm until a limit is met; return the status and the last reading."""
        while True:
            self.advance(self.course.goal, interrupts)
            halted = self.position < self.course.goal
            if self.keeper is not None and (halted or self.course.is_last()):
                # Before a reading that an undisturbed or longer run would not make.
                self.keeper.save(self)
            reading = self.read()
            status = self.course.note(
                self.standing(), reading, lambda: interrupts.received is not None
            )
            if status is not None:
                return status, reading

    def advance(self, stop: int, interrupts: Interrupts) -> None:
        """Events up to the position ``stop``, or fewer if interrupted or out of time."""
        started, so_far = time.perf_counter(), self.wall_time
        limit = self.stopping.time_limit
        while self.position < stop and interrupts.received is None:
            last = min(stop, self.position + self.method.block, self._next_kept())
            events = self.method.source.draw(self.position, last)
            self.state = self.algorithm.step(self.state, events)
            self.clock.advance(events)
            self.counts = self.counts.plus(self.algorithm.counts(events))
            self.position = events.stop
            self.iteration += len(events.which)
            self.wall_time = so_far + time.perf_counter() - started
            self._keep(events)
            if limit is not None and self.wall_time >= limit:
                break

    def _keep(self, events: Events) -> None:
        if self.keeper is not None:
            self.keeper.count(events)
            if self.position % self.keeper.every == 0:
                self.keeper.save(self)

    def _next_kept(self) -> int:
        """The next position at which the run is kept."""
        if self.keeper is None:
            return self.position + self.method.block
        return (self.position // self.keeper.every + 1) * self.keeper.every

    def read(self) -> Reading:
        """What the state is worth; not counted in ``wall_time``."""
        return read(self.problem, self.algorithm, self.state)

    def standing(self) -> Standing:
        """Where the run stands."""
        return Standing(self.position, self.iteration, self.clock.time, self.wall_time, self.counts)

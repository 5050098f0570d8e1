"""The course of a run, whoever turns it: what was read, when to read again, when it is over."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adfs.runtime.evaluation import Reading
from adfs.runtime.pace import Looks, Pace
from adfs.runtime.stepping import RunPosition
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
class Course:
    """Takes readings in order; a function of them alone, so that every engine takes the same.

    Attributes
    ----------
    goal : int
        Position of the next reading.
    wanted : int
        The same without the budget.
    """

    stopping: Stopping
    pace: Pace
    rho: float
    callbacks: tuple[Callback, ...] = ()
    looks: Looks = field(default_factory=Looks)
    trace: Trace = field(default_factory=Trace)
    goal: int = 0
    wanted: int = 0
    size: float = math.nan
    budget: int = 0

    def note(
        self, standing: RunPosition, reading: Reading, interrupted: Callable[[], bool]
    ) -> str | None:
        """Record a reading; the status with which to stop, or None after setting the next goal.

        ``interrupted`` is asked when the callbacks have been told: one of them may be what stops.
        """
        self._record(standing, reading)
        error = self._error(reading)
        if math.isnan(self.size):
            self.size = max(1.0, abs(reading.objective), reading.duality_gap)
            self.budget = self.stopping.budget(self.rho, error)
        if interrupted() and error > self.stopping.tol:
            return "interrupted"
        decides = not self.looks.left or standing.position != self.goal
        spent = Spent(standing.position, standing.idealized_time, standing.wall_time)
        growth = reading.duality_gap / self.size
        status = self.stopping.verdict(growth, error, spent, self.budget)
        if not decides and standing.position < self.budget:
            status = None
        if status is None:
            if decides:
                self.looks.divide(standing.position, self.pace.events(spent, error))
            self._aim(standing.position + self.looks.next())
        return status

    def _aim(self, position: int) -> None:
        """Read next there, or at the end of the budget; a longer budget would go on there."""
        self.wanted, self.goal = position, min(position, self.budget)

    def sure_until(self, position: int) -> int:
        """From a reading at ``position``, how far there will be no other, whatever it says."""
        return min(position + self.looks.least(position, self.pace.least), self.budget)

    def is_last(self) -> bool:
        """Whether the next reading is at the end of the budget."""
        return not math.isnan(self.size) and self.goal >= self.budget

    def _record(self, standing: RunPosition, reading: Reading) -> None:
        self.trace.append(
            iteration=standing.iteration, idealized_time=standing.idealized_time,
            wall_time=standing.wall_time, **standing.counts._asdict(), objective=reading.objective,
            suboptimality=reading.suboptimality, duality_gap=reading.duality_gap,
            consensus_error=reading.consensus_error,
        )  # fmt: skip
        progress = Progress(
            standing.iteration, standing.idealized_time, standing.wall_time, reading,
            self.stopping.tol,
        )  # fmt: skip
        for callback in self.callbacks:
            callback(progress)

    def _error(self, reading: Reading) -> float:
        """What is to fall to ``tol``."""
        if self.stopping.measure == "suboptimality" and reading.suboptimality is not None:
            return reading.suboptimality
        return reading.relative_gap

    def state(self) -> dict[str, Any]:
        """Plain values from which ``restore`` goes on."""
        return {
            "goal": self.wanted, "size": self.size, "budget": self.budget,
            "looks": [self.looks.left, self.looks.rest],
            "pace": {"kind": type(self.pace).__name__, "memory": self.pace.state()},
            "trace": self.trace.to_dict(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Take up the course that a run of the same config had."""
        self.size = float(state["size"])
        if state["pace"]["kind"] == type(self.pace).__name__:  # another one starts afresh
            self.pace.restore(state["pace"]["memory"])
        self.trace = Trace.from_dict(state["trace"])
        first = self.trace["duality_gap"][0], self.trace["objective"][0]
        error = float(first[0] or 0.0) / max(1.0, abs(float(first[1] or 0.0)))
        # A resumed run may ask for a smaller tol, which needs more events, or for fewer of them.
        self.budget = self.stopping.budget(self.rho, error)
        left, rest = state.get("looks", (0, 0))
        if self.looks.shortest is None:  # a run that is no longer watched: on to what decides
            self._aim(int(state["goal"]) + rest)
        else:
            self._aim(int(state["goal"]))
            self.looks.left, self.looks.rest = left, rest

"""The decisions of a run: when to evaluate, and when to stop."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adfs.engine.evaluation import Evaluation
from adfs.engine.evaluation_policy import DisplayEvaluations, EvaluationPolicy
from adfs.engine.stopping import Spent, Stopping
from adfs.engine.trace import Trace
from adfs.problem.certificate import relative


@dataclass
class Progress:
    """The argument of a callback or a progress bar after each evaluation."""

    iteration: int
    idealized_time: float
    wall_time: float
    reading: Evaluation
    tol: float


Callback = Callable[[Progress], Any]


@dataclass
class RunController:
    """Decides from the evaluations alone, in their order, so that every engine decides the same."""

    stopping: Stopping
    policy: EvaluationPolicy
    rho: float
    ceiling: float = math.inf
    callbacks: tuple[Callback, ...] = ()
    display: DisplayEvaluations = field(default_factory=DisplayEvaluations)
    trace: Trace = field(default_factory=Trace)
    goal: int = 0  # position of the next evaluation
    wanted: int = 0  # the same without the iteration limit
    size: float = math.nan  # the larger of objective and gap at the first evaluation
    budget: int = 0  # the iteration limit

    def decide(self, at: Spent, reading: Evaluation, interrupted: Callable[[], bool]) -> str | None:
        """Record an evaluation; the status with which to stop, or None after setting the next goal.

        ``interrupted`` is called after the callbacks, because one of them may interrupt.
        """
        self._record(at, reading)
        is_known = self.stopping.measure == "suboptimality" and reading.suboptimality is not None
        error = reading.suboptimality if is_known else reading.relative_gap
        assert error is not None
        if math.isnan(self.size):
            self.size = max(abs(reading.objective), reading.duality_gap)
            self.budget = self.stopping.budget(self.rho, error, self.ceiling)
        if interrupted() and error > self.stopping.tol:
            return "interrupted"
        decides = not self.display.left or at.position != self.goal
        growth = relative(reading.duality_gap, self.size)
        status = self.stopping.verdict(growth, error, at, self.budget)
        if not decides and at.position < self.budget:
            status = None
        if status is None:
            if decides:
                self.display.divide(at.position, self.policy.events(at, error))
            self._set_goal(at.position + self.display.next())
        return status

    def _set_goal(self, position: int) -> None:
        """Evaluate next there, or at the iteration limit; with a higher limit, there."""
        self.wanted, self.goal = position, min(position, self.budget)

    def sure_until(self, position: int) -> int:
        """How far after an evaluation at ``position`` there will be no other, for any result."""
        return min(position + self.display.least(position, self.policy.least), self.budget)

    def is_last(self) -> bool:
        """Whether the next evaluation is at the iteration limit."""
        return not math.isnan(self.size) and self.goal >= self.budget

    def _record(self, at: Spent, reading: Evaluation) -> None:
        self.trace.append(
            iteration=at.iteration, idealized_time=at.idealized_time, wall_time=at.wall_time,
            **at.counts._asdict(), objective=reading.objective,
            suboptimality=reading.suboptimality, duality_gap=reading.duality_gap,
            consensus_error=reading.consensus_error,
        )  # fmt: skip
        progress = Progress(
            at.iteration, at.idealized_time, at.wall_time, reading, self.stopping.tol
        )
        for callback in self.callbacks:
            callback(progress)

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint; their names are a part of its format."""
        return {
            "goal": self.wanted, "size": self.size, "budget": self.budget,
            "display": [self.display.left, self.display.rest],
            "policy": {"kind": type(self.policy).__name__, "memory": self.policy.memory},
            "trace": self.trace.to_dict(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the `state` of a run of the same identity."""
        self.size = float(state["size"])
        if state["policy"]["kind"] == type(self.policy).__name__:  # another one starts anew
            self.policy.restore(state["policy"]["memory"])
        self.trace = Trace.from_dict(state["trace"])
        first = self.trace["duality_gap"][0], self.trace["objective"][0]
        error = relative(float(first[0] or 0.0), float(first[1] or 0.0))
        # A resumed run may have a smaller tol, which needs more events, or a lower limit.
        self.budget = self.stopping.budget(self.rho, error, self.ceiling)
        left, rest = state.get("display", (0, 0))
        if self.display.shortest is None:  # no display any more: on to the policy's evaluation
            self._set_goal(int(state["goal"]) + rest)
        else:
            self._set_goal(int(state["goal"]))
            self.display.left, self.display.rest = left, rest

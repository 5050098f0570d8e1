"""The decisions of a run: when to evaluate, and when to stop."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adfs.algorithms.base import Method
from adfs.engine.evaluation import Evaluation
from adfs.engine.stopping import Spent, Stopping
from adfs.engine.trace import Trace
from adfs.problem.certificate import relative

HALF_A_DECADE = 0.5 * math.log(10.0)
MOST_GROWTH = 2.0
FEWEST_IN_LIMIT = 40  # evaluations of a curve with a clock limit
FLAT = 1e-300
LONG_ENOUGH = 4.0  # factors e by theory, after which stratified draws are judged
PATIENCE = 2.0  # times theory's events
TO_DRAW = 10  # evaluations of a displayed curve, about


class EvaluationPolicy:
    """Decides how many events come before the next evaluation, which costs about a pass.

    It is a function of earlier evaluations and of the clock alone, so that every engine evaluates
    at the same iterations. There are never fewer events than ``least``: ranks continue that far
    while an evaluation is under way. ``memory`` is all that it keeps of earlier evaluations; a part
    of every checkpoint.
    """

    def __init__(self, least: int, memory: Sequence[float] = ()) -> None:
        self.least, self.memory = least, list(memory)

    def events(self, spent: Spent, error: float) -> int:
        """Events until the next evaluation, given the relative error of this one."""
        raise NotImplementedError

    def restore(self, memory: list[float]) -> None:
        self.memory = memory

    def _slope(self, spent: Spent, error: float) -> float:
        """Factors e per event since the last evaluation in the memory; almost 0 without a gain."""
        before, self.memory[1:] = self.memory[1:], [spent.position, error]
        if not before or not 0.0 < error < before[1]:
            return FLAT
        return math.log(before[1] / error) / max(1, spent.position - int(before[0]))


class Every(EvaluationPolicy):
    """A fixed number of events."""

    def events(self, spent: Spent, error: float) -> int:
        return self.least


class ToTolerance(EvaluationPolicy):
    """As few evaluations as possible until ``tol``.

    As many events as the remaining factors e need at the slope between the last two evaluations,
    which lies between once and ``fastest`` times theory's (docs/tuning.md); at least one and at
    most eight of theory's factors e. No margin: one more evaluation now and then costs less than
    going too far every time.

    The memory is the iteration of the last evaluation, the factors e that were left, and the
    ``tol`` from which they were counted.
    """

    def __init__(self, rho: float, tol: float, shortest: int, fastest: float = 2.0) -> None:
        super().__init__(max(shortest, math.ceil(1.0 / rho)), [0, math.inf, tol])
        self.rho, self.tol, self.fastest = rho, tol, fastest

    def events(self, spent: Spent, error: float) -> int:
        left = math.log(error / self.tol)
        slope = (self.memory[1] - left) / max(1, spent.position - self.memory[0])
        self.memory = [spent.position, left, self.tol]
        events = left / min(self.fastest * self.rho, max(self.rho, slope))
        return max(self.least, math.ceil(min(8.0 / self.rho, events)))

    def restore(self, memory: list[float]) -> None:
        iteration, left, tol = memory
        # The factors e are left to this ``tol``.
        self.memory = [int(iteration), left + math.log(tol / self.tol), self.tol]


class Cautious(EvaluationPolicy):
    """As `ToTolerance`, where theory's rate is only a bound, often far from the true one.

    Intervals double from ``shortest`` on, until the last slope shows that the goal is nearer.
    """

    def __init__(self, tol: float, shortest: int) -> None:
        super().__init__(shortest, [shortest / MOST_GROWTH])
        self.tol = tol

    def events(self, spent: Spent, error: float) -> int:
        needed = 1.1 * math.log(error / self.tol) / self._slope(spent, error)
        self.memory[0] = max(self.least, min(MOST_GROWTH * self.memory[0], needed))
        return math.ceil(self.memory[0])


class EvenCurve(EvaluationPolicy):
    """An evaluation each half decade of error, for comparisons and figures.

    Intervals grow at most by a factor 2, from ``shortest`` on, so that the curve has a start too;
    with a clock limit there are at least some 40, and the last one falls on the limit.
    """

    def __init__(self, shortest: int, clock_limit: float | None = None) -> None:
        super().__init__(1, [shortest / MOST_GROWTH])
        self.shortest, self.clock_limit = shortest, clock_limit

    def events(self, spent: Spent, error: float) -> int:
        half = HALF_A_DECADE / self._slope(spent, error)
        wanted = min(MOST_GROWTH * self.memory[0], max(self.shortest, half))
        if self.clock_limit is not None and spent.idealized_time > 0.0:
            per_event = spent.idealized_time / spent.position
            left = (self.clock_limit - spent.idealized_time) / per_event
            wanted = min(wanted, self.clock_limit / FEWEST_IN_LIMIT / per_event, left + 1.0)
        self.memory[0] = max(1.0, wanted)
        return math.ceil(self.memory[0])


class DisplayEvaluations:
    """Extra evaluations for plotting, between those of a policy; they never affect stopping.

    So a run with them ends at the same iteration and with the same bits as one without. There are
    at least ``shortest`` events between two of them; without it there are none.
    """

    def __init__(self, shortest: int | None = None) -> None:
        self.shortest = shortest
        self.left = self.rest = 0  # parts, and events, until the policy's own evaluation

    def divide(self, position: int, events: int) -> None:
        """Into parts as long as a tenth of the run so far, ``events`` after ``position``."""
        self.left, self.rest = max(1, events // self._part(position, events)), events

    def next(self) -> int:
        """Events to the next evaluation."""
        size = self.rest // self.left
        self.left, self.rest = self.left - 1, self.rest - size
        return size

    def least(self, position: int, events: int) -> int:
        """Fewest events between two evaluations, where the policy has at least ``events``."""
        if self.left:
            return self.rest // self.left
        return min(events, self._part(position, events))

    def _part(self, position: int, events: int) -> int:
        if self.shortest is None:
            return events
        return max(self.shortest, math.ceil((position + events) / TO_DRAW))


def choose_policy(
    method: Method, tol: float, evaluate_every: Any, is_long: bool
) -> tuple[EvaluationPolicy, DisplayEvaluations]:
    """The policy of a run to ``tol``, and its display; a long run is evaluated more often."""
    display = DisplayEvaluations(method.shortest if evaluate_every == "curve" else None)
    if callable(evaluate_every):
        return evaluate_every(method), display
    if evaluate_every not in (None, "curve"):
        return Every(int(evaluate_every)), display
    if method.sharp and not is_long:
        return ToTolerance(method.rho, tol, method.shortest, method.fastest), display
    return Cautious(tol, method.shortest), display


class DrawWatch:
    """Lets a run with stratified draws go on with independent ones if these seem to fail.

    Theory needs ``needed(error)`` events for an error, with independent draws. The draws seem to
    fail if a stretch of some factors e by theory took more than `PATIENCE` times as many events as
    theory needs for what was gained. The decision follows from evaluations alone, and holds from a
    position that no process can have reached: it is the same on every engine.
    """

    def __init__(self, source: Any, needed: Callable[[float], float], rho: float) -> None:
        self.source, self.needed = source, needed
        self.stretch = LONG_ENOUGH / rho if rho > 0.0 else math.inf
        self.since: tuple[int, float] | None = None  # where the stretch began, and its error

    def look(self, position: int, error: float, least: int) -> None:
        """Take an evaluation; no process goes further than ``least`` before it is complete."""
        if self.independent_from is not None or error <= 0.0:
            return
        if self.since is not None and position - self.since[0] < self.stretch:
            return
        if self.since is not None:
            gained = self.needed(error) - self.needed(self.since[1])
            if position - self.since[0] > PATIENCE * gained:
                self.source.independent_from = position + least
        self.since = position, error

    @property
    def independent_from(self) -> int | None:
        """From which event on samples are drawn independently; None if they are not."""
        found: int = self.source.independent_from
        return None if found == sys.maxsize else found

    def switched(self, end: int) -> int | None:
        """From which event on samples were drawn independently, of a run to ``end``."""
        found = self.independent_from
        return None if found is None or found >= end else found

    def state(self) -> dict[str, Any]:
        return {"since": self.since, "independent_from": self.independent_from}

    def restore(self, state: dict[str, Any]) -> None:
        position, error = state["since"]
        self.since = int(position), float(error)
        if state["independent_from"] is not None:
            self.source.independent_from = int(state["independent_from"])


def watch_draws(method: Method) -> DrawWatch | None:
    """A watch where the method's draws can change; None otherwise."""
    if not hasattr(method.source, "independent_from"):
        return None
    needed = method.needed or (lambda error: math.log(1.0 / error) / method.rho)
    return DrawWatch(method.source, needed, method.rho)


@dataclass
class Progress:
    """The argument of a callback after each evaluation, the ``reading``.

    A display sees it between evaluations too, with the last reading and the idealized time of that.
    ``predicted`` are the events after which theory expects ``tol``, from the first evaluation.
    """

    iteration: int
    idealized_time: float
    wall_time: float
    reading: Evaluation
    tol: float
    stopping: Stopping = field(default_factory=Stopping)
    predicted: float = math.inf


Callback = Callable[[Progress], Any]


@dataclass
class RunController:
    """Decides from the evaluations alone, in their order, so that every engine decides the same."""

    stopping: Stopping
    policy: EvaluationPolicy
    rho: float
    ceiling: float
    callbacks: tuple[Callback, ...]
    display: DisplayEvaluations
    watcher: Callback | None = None  # called between evaluations too; it shows, and decides nothing
    trace: Trace = field(default_factory=Trace)
    goal: int = 0  # position of the next evaluation
    wanted: int = 0  # the same without the iteration limit
    size: float = math.nan  # the larger of objective and gap at the first evaluation
    budget: int = 0  # the iteration limit
    predicted: float = math.inf  # events that theory needs
    shown: Progress | None = None  # what the watcher saw last
    draws: DrawWatch | None = None  # of a stratified schedule

    def decide(self, at: Spent, reading: Evaluation, interrupted: Callable[[], bool]) -> str | None:
        """Record an evaluation; the status with which to stop, or None after setting the next goal.

        ``interrupted`` is called after the callbacks, because one of them may interrupt.
        """
        error = self.stopping.error(reading)
        if math.isnan(self.size):
            self.size = max(abs(reading.objective), reading.duality_gap)
            self._plan(error)
        self._record(at, reading)
        if interrupted() and error > self.stopping.tol:
            return "interrupted"
        decides = not self.display.left or at.position != self.goal
        growth = relative(reading.duality_gap, self.size)
        status = self.stopping.verdict(growth, error, at, self.budget)
        if not decides and at.position < self.budget:
            status = None
        if status is None:
            if decides:
                if self.draws is not None:
                    self.draws.look(at.position, error, self.policy.least)
                self.display.divide(at.position, self.policy.events(at, error))
            self._set_goal(at.position + self.display.next())
        return status

    def _plan(self, first_error: float) -> None:
        """The iteration limit, and what theory predicts."""
        self.budget = self.stopping.budget(self.rho, first_error, self.ceiling)
        if self.rho > 0.0 and math.isfinite(first_error):
            self.predicted = math.log(max(first_error / self.stopping.tol, 1.0)) / self.rho

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
        self.show(at, reading)
        assert self.shown is not None
        for callback in self.callbacks:
            callback(self.shown)

    def show(self, at: Spent, reading: Evaluation | None = None) -> None:
        """Show the watcher how far the run is, with an evaluation or else the last one."""
        if reading is not None:
            self.shown = Progress(
                at.iteration, at.idealized_time, at.wall_time, reading, self.stopping.tol,
                self.stopping, self.predicted,
            )  # fmt: skip
        elif self.shown is not None:
            self.shown = replace(self.shown, iteration=at.position, wall_time=at.wall_time)
        if self.watcher is not None and self.shown is not None:
            self.watcher(self.shown)

    def state(self) -> dict[str, Any]:
        """Plain values for a checkpoint; their names are a part of its format."""
        draws = {} if self.draws is None else {"draws": self.draws.state()}
        return {
            "goal": self.wanted, "size": self.size, "budget": self.budget,
            "display": [self.display.left, self.display.rest],
            "policy": {"kind": type(self.policy).__name__, "memory": self.policy.memory},
            "trace": self.trace.to_dict(), **draws,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the `state` of a run of the same identity."""
        self.size = float(state["size"])
        if self.draws is not None:
            self.draws.restore(state["draws"])
        if state["policy"]["kind"] == type(self.policy).__name__:  # another one starts anew
            self.policy.restore(state["policy"]["memory"])
        self.trace = Trace.from_dict(state["trace"])
        first = self.trace["duality_gap"][0], self.trace["objective"][0]
        error = relative(float(first[0] or 0.0), float(first[1] or 0.0))
        # A resumed run may have a smaller tol, which needs more events, or a lower limit.
        self._plan(error)
        last: Any = self.trace.last()
        at = Spent(last["iteration"], last["idealized_time"], last["wall_time"], last["iteration"])
        values = [last[name] for name in Evaluation._fields[2:-1]]
        self.show(at, Evaluation._make([np.empty(0), np.empty((0, 0)), *values, math.nan]))
        left, rest = state.get("display", (0, 0))
        if self.display.shortest is None:  # no display any more: on to the policy's evaluation
            self._set_goal(int(state["goal"]) + rest)
        else:
            self._set_goal(int(state["goal"]))
            self.display.left, self.display.rest = left, rest

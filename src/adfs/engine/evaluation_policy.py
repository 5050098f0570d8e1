"""When to evaluate a run: an evaluation costs about a pass over the data.

A policy is a function of earlier evaluations and of the clock alone, so that every engine evaluates
at the same iterations.
"""

import math
from typing import Any

from adfs.algorithms.base import Method
from adfs.engine.stopping import Spent

HALF_A_DECADE = 0.5 * math.log(10.0)
MOST_GROWTH = 2.0
FEWEST_IN_LIMIT = 40  # evaluations of a curve with a clock limit
FLAT = 1e-300
TO_DRAW = 10  # evaluations of a displayed curve, about


class EvaluationPolicy:
    """Decides how many events come before the next evaluation.

    There are never fewer than ``least``: ranks continue that far while an evaluation is under way.
    ``memory`` is all that it keeps of earlier evaluations; a part of every checkpoint.
    """

    def __init__(self, least: int, memory: list[float]) -> None:
        self.least, self.memory = least, memory

    def events(self, spent: Spent, error: float) -> int:
        """Events until the next evaluation, given the relative error of this one."""
        raise NotImplementedError

    def restore(self, memory: list[float]) -> None:
        self.memory = memory


class Every(EvaluationPolicy):
    """A fixed number of events."""

    def __init__(self, interval: int) -> None:
        super().__init__(interval, [])

    def events(self, spent: Spent, error: float) -> int:
        return self.least


class ToTolerance(EvaluationPolicy):
    """As few evaluations as possible until ``tol``.

    As many events as the remaining factors e need at the slope between the last two evaluations,
    which lies between once and twice theory's (docs/tuning.md); at least one and at most eight of
    theory's factors e. No margin: one more evaluation now and then costs less than going too far
    every time.

    The memory is the iteration of the last evaluation, the factors e that were left, and the
    ``tol`` from which they were counted.
    """

    def __init__(self, rho: float, tol: float, shortest: int) -> None:
        super().__init__(max(shortest, math.ceil(1.0 / rho)), [0, math.inf, tol])
        self.rho, self.tol = rho, tol

    def events(self, spent: Spent, error: float) -> int:
        left = math.log(error / self.tol)
        slope = (self.memory[1] - left) / max(1, spent.position - self.memory[0])
        self.memory = [spent.position, left, self.tol]
        events = left / min(2.0 * self.rho, max(self.rho, slope))
        return max(self.least, math.ceil(min(8.0 / self.rho, events)))

    def restore(self, memory: list[float]) -> None:
        iteration, left, tol = memory
        # The factors e are left to this ``tol``.
        self.memory = [int(iteration), left + math.log(tol / self.tol), self.tol]


class _Growing(EvaluationPolicy):
    """Intervals grow from ``shortest`` on, and follow the slope of the error.

    The memory is the last interval, and iteration and error of the last evaluation, if any.
    """

    def __init__(self, shortest: int, least: int) -> None:
        super().__init__(least, [shortest / MOST_GROWTH])

    def _slope(self, spent: Spent, error: float) -> float:
        """Factors e per event since the last evaluation; almost 0 where the error did not fall."""
        before, self.memory[1:] = self.memory[1:], [spent.position, error]
        if not before or not 0.0 < error < before[1]:
            return FLAT
        return math.log(before[1] / error) / max(1, spent.position - int(before[0]))


class Cautious(_Growing):
    """As `ToTolerance`, where theory's rate is only a bound, often far from the true one.

    Intervals double from ``shortest`` on, until the last slope shows that the goal is nearer.
    """

    def __init__(self, tol: float, shortest: int) -> None:
        super().__init__(shortest, shortest)
        self.tol = tol

    def events(self, spent: Spent, error: float) -> int:
        needed = 1.1 * math.log(error / self.tol) / self._slope(spent, error)
        self.memory[0] = max(self.least, min(MOST_GROWTH * self.memory[0], needed))
        return math.ceil(self.memory[0])


class EvenCurve(_Growing):
    """An evaluation each half decade of error, for comparisons and figures.

    Intervals grow at most by a factor 2, from ``shortest`` on, so that the curve has a start too;
    with a clock limit there are at least some 40, and the last one falls on the limit.
    """

    def __init__(self, shortest: int, clock_limit: float | None = None) -> None:
        super().__init__(shortest, 1)
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
        self.left, self.rest = 1, events
        if self.shortest is not None:
            self.left = max(1, events // self._part(position, events))

    def next(self) -> int:
        """Events to the next evaluation."""
        size = self.rest // self.left
        self.left, self.rest = self.left - 1, self.rest - size
        return size

    def least(self, position: int, events: int) -> int:
        """Fewest events between two evaluations, where the policy has at least ``events``."""
        if self.left:
            return self.rest // self.left
        return events if self.shortest is None else min(events, self._part(position, events))

    def _part(self, position: int, events: int) -> int:
        assert self.shortest is not None
        return max(self.shortest, math.ceil((position + events) / TO_DRAW))


def choose_policy(
    method: Method, tol: float, evaluate_every: Any, is_long: bool
) -> tuple[EvaluationPolicy, DisplayEvaluations]:
    """The policy of a run that is to end at ``tol``, and its evaluations for display.

    A long run is evaluated more often than once per time in which theory expects a factor e.
    """
    display = DisplayEvaluations(method.shortest if evaluate_every == "curve" else None)
    if callable(evaluate_every):
        return evaluate_every(method), display
    if evaluate_every not in (None, "curve"):
        return Every(int(evaluate_every)), display
    if method.sharp and not is_long:
        return ToTolerance(method.rho, tol, method.shortest), display
    return Cautious(tol, method.shortest), display

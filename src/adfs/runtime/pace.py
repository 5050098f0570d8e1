"""When to look: evaluations cost about a pass over the data, so they are placed with care.

A pace is a function of the readings and of the clock alone, so that every engine looks at the same
iterations.
"""

import math
from typing import Protocol

from adfs.runtime.stopping import Spent

HALF_A_DECADE = 0.5 * math.log(10.0)
MOST_GROWTH = 2.0
LOOKS = 40
FLAT = 1e-300
TO_DRAW = 10  # looks of a curve, about


class Pace(Protocol):
    """Decides how many events come before the next evaluation.

    ``least`` is a promise: never fewer. Ranks go on that far while a reading is on its way.
    """

    least: int

    def events(self, spent: Spent, error: float) -> int:
        """Events to go, given what was spent so far and the relative error just read."""
        ...

    def state(self) -> list[float]:
        """What it remembers of former readings."""
        ...

    def restore(self, state: list[float]) -> None:
        """Remember that."""
        ...


class Every:
    """A fixed number of events."""

    def __init__(self, interval: int) -> None:
        self.interval = self.least = interval

    def events(self, spent: Spent, error: float) -> int:
        """Always the same."""
        return self.interval

    def state(self) -> list[float]:
        """Nothing."""
        return []

    def restore(self, state: list[float]) -> None:
        """Nothing to remember."""


class ToTolerance:
    """As few looks as the stop needs: for people who want the model.

    As many events as the remaining factors e need at the slope seen last, which lies between once
    and twice theory's (docs/tuning.md); at least one and at most eight of theory's factors e. No
    margin: one more look now and then costs less than going too far every time.
    """

    def __init__(self, rho: float, tol: float, shortest: int) -> None:
        self.rho, self.tol = rho, tol
        self.least = max(shortest, math.ceil(1.0 / rho))
        self._last = (0, math.inf)  # the last evaluation: its iteration, and the factors e left

    def events(self, spent: Spent, error: float) -> int:
        """Events until a look is worth its cost."""
        left = math.log(error / self.tol)
        slope = (self._last[1] - left) / max(1, spent.iteration - self._last[0])
        self._last = (spent.iteration, left)
        events = left / min(2.0 * self.rho, max(self.rho, slope))
        return max(self.least, math.ceil(min(8.0 / self.rho, events)))

    def state(self) -> list[float]:
        """The last evaluation, and the ``tol`` from which its factors e were counted."""
        return [*self._last, self.tol]

    def restore(self, state: list[float]) -> None:
        """The last evaluation, seen from this ``tol``."""
        self._last = (int(state[0]), state[1] + math.log(state[2] / self.tol))


class _Growing:
    """A pace whose intervals grow from ``shortest`` on, and that watches the slope of the error."""

    def __init__(self, shortest: int) -> None:
        self._interval = shortest / MOST_GROWTH
        self._slope = _Slope()

    def state(self) -> list[float]:
        """The last interval, and the last reading."""
        return [self._interval, *(self._slope.last or ())]

    def restore(self, state: list[float]) -> None:
        """The last interval, and the last reading if there was one."""
        self._interval = state[0]
        self._slope.last = (int(state[1]), state[2]) if len(state) > 1 else None


class Cautious(_Growing):
    """The same where theory's rate is only a bound, often far from what is seen.

    Intervals double from ``shortest`` on, until the slope seen last says that the goal is nearer.
    """

    def __init__(self, tol: float, shortest: int) -> None:
        super().__init__(shortest)
        self.tol, self.least = tol, shortest

    def events(self, spent: Spent, error: float) -> int:
        """Events until the goal, or twice as many as the last time."""
        needed = 1.1 * math.log(error / self.tol) / self._slope.seen(spent, error)
        self._interval = max(self.least, min(MOST_GROWTH * self._interval, needed))
        return math.ceil(self._interval)


class EvenCurve(_Growing):
    """A curve worth drawing: a look each half decade of error, for people who want to compare.

    Intervals grow at most by a factor 2, from ``shortest`` on, so that the start is seen too; with
    a clock limit there are at least some 40 looks, and the last one falls on the limit.
    """

    def __init__(self, shortest: int, clock_limit: float | None = None) -> None:
        super().__init__(shortest)
        self.shortest, self.clock_limit, self.least = shortest, clock_limit, 1

    def events(self, spent: Spent, error: float) -> int:
        """Events until the error has fallen by another half decade, at the slope seen last."""
        half = HALF_A_DECADE / self._slope.seen(spent, error)
        wanted = min(MOST_GROWTH * self._interval, max(self.shortest, half))
        if self.clock_limit is not None and spent.idealized_time > 0.0:
            per_event = spent.idealized_time / spent.iteration
            left = (self.clock_limit - spent.idealized_time) / per_event
            wanted = min(wanted, self.clock_limit / LOOKS / per_event, left + 1.0)
        self._interval = max(1.0, wanted)
        return math.ceil(self._interval)


class Looks:
    """Readings between those of a pace, for the eye: they are recorded and decide nothing.

    So a run that is watched ends where, and with the bits with which, it would end unwatched.

    Parameters
    ----------
    shortest : int, optional
        Fewest events between two of them; without it there are none.
    """

    def __init__(self, shortest: int | None = None) -> None:
        self.shortest = shortest
        self.left = self.rest = 0  # parts, and events, until the pace's own reading

    def divide(self, position: int, events: int) -> None:
        """Into parts as long as a tenth of the run so far, ``events`` after ``position``."""
        self.left, self.rest = 1, events
        if self.shortest is not None:
            self.left = max(1, events // self._part(position, events))

    def next(self) -> int:
        """Events to the next reading."""
        size = self.rest // self.left
        self.left, self.rest = self.left - 1, self.rest - size
        return size

    def least(self, position: int, events: int) -> int:
        """Fewest events from a reading to the next, where the pace promises ``events``."""
        if self.left:
            return self.rest // self.left
        return events if self.shortest is None else min(events, self._part(position, events))

    def _part(self, position: int, events: int) -> int:
        assert self.shortest is not None
        return max(self.shortest, math.ceil((position + events) / TO_DRAW))


class _Slope:
    """Factors e an event between the last two readings; next to nothing where it did not fall."""

    def __init__(self) -> None:
        self.last: tuple[int, float] | None = None

    def seen(self, spent: Spent, error: float) -> float:
        """The slope up to this reading."""
        before, self.last = self.last, (spent.iteration, error)
        if before is None or not 0.0 < error < before[1]:
            return FLAT
        return math.log(before[1] / error) / max(1, spent.iteration - before[0])

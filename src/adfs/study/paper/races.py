"""Races: the times of methods to one accuracy, each run only once and timed as often as needed.

Delays and costs never change an iterate of a method with given parameters (docs/time-model.md). So
a run is done once per choice of parameters: its events until it arrives are counted, and the clocks
of other delays and other costs go over the same events.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import REGISTRY, Method, MethodSetting, first_state
from adfs.engine.evaluation import objectives
from adfs.errors import ParameterError
from adfs.problem.finite_sum import Problem
from adfs.study.comparison import Curve
from adfs.study.contenders import CLOCK_LIMIT_FACTOR, REFERENCE
from adfs.study.paper.claims import UNKNOWN, AtLeast

GROWTH = 1.05  # of the position from one evaluation to the next
FIRST_EFOLDS, FIRST_SHARP = 0.25, 2.0  # of theory's, before the first evaluation
MOST_EFOLDS = 100.0  # of theory's; a run that needs more has not arrived
LEAST_OF_THEORY = 0.2  # of the time that theory proves: what no run with a theorem was faster than
DUAL_GRADIENTS = ("msda", "ssda", "esdacd")  # slow to run: only where theory lets them arrive


class Race(NamedTuple):
    """Times of all methods on one problem, one network and one seed; ADFS's is known."""

    times: dict[str, AtLeast]

    @property
    def rivals(self) -> dict[str, AtLeast]:
        return {name: time for name, time in self.times.items() if name != REFERENCE}

    @property
    def rival(self) -> str:
        """The fastest method that is not ADFS."""
        arrived = {name: time.value for name, time in self.rivals.items() if time.exact}
        return min(arrived, key=lambda name: arrived[name]) if arrived else ""

    @property
    def ratio(self) -> AtLeast:
        """The time of that method over ADFS's: above 1, ADFS is the fastest."""
        if self.rival:
            return self.times[self.rival].over(self.times[REFERENCE])
        least = min((time.value for time in self.rivals.values()), default=0.0)
        return AtLeast(least, exact=False).over(self.times[REFERENCE])


class RacedRuns:
    """All runs on one problem, to a mean suboptimality over nodes of ``tol``, relative to F*."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self._best = problem.optimum().objective
        self._runs: dict[Any, _Run] = {}

    def race(
        self, mine: AtLeast, rivals: Sequence[str], setting: MethodSetting, to_the_end: bool = False
    ) -> Race:
        """ADFS, whose time is given, and its rivals, each as long as it can be the fastest of them.

        With ``to_the_end``, each until 5 times ADFS's time. Methods that do not take the problem
        are left out.
        """
        times = {REFERENCE: mine}
        limit = CLOCK_LIMIT_FACTOR * mine.value
        for name in rivals:
            try:
                times[name] = self.time(name, setting, limit)
            except ParameterError:  # too many features for Newton's matrix
                continue
            if times[name].exact and not to_the_end:
                limit = min(limit, times[name].value)
        return Race(times)

    def time(self, name: str, setting: MethodSetting, limit: float) -> AtLeast:
        """Idealized time until it arrives, or more than ``limit``."""
        method = REGISTRY[name](self.problem, setting)
        if name in DUAL_GRADIENTS and LEAST_OF_THEORY * self._theory(method) > limit:
            return AtLeast(limit, exact=False)
        key = name, setting.seed, setting.schedule, _numbers(method.parameters)
        if key not in self._runs:
            self._runs[key] = _Run(self.problem, method, self._best)
        clock, position = method.clock, 0
        for before, after in itertools.pairwise(self._runs[key].points()):
            if after[1] <= self.tol:
                curve = Curve(*np.array([before, after], dtype=float).T)
                arrived = math.ceil(curve.first_reach(self.tol) or 0.0)
                clock.advance(method.source.draw(position, arrived))
                return AtLeast(clock.time)
            clock.advance(method.source.draw(position, after[0]))
            position = after[0]
            if clock.time > limit:
                return AtLeast(clock.time, exact=False)
        return UNKNOWN

    def _theory(self, method: Method) -> float:
        """Idealized time to ``tol`` at the proven rate."""
        clock = method.clock.copy()
        clock.advance(method.source.draw(0, 1))
        return math.log(1.0 / self.tol) / method.rho * clock.time


class _Run:
    """A run of a method, which goes on when later points are asked for; its clock stands still."""

    def __init__(self, problem: Problem, method: Method, best: float) -> None:
        self.problem, self.method, self.best = problem, method, best
        self.state = first_state(method.algorithm, None)
        self.seen = [(0, self._error())]

    def points(self) -> Iterator[tuple[int, float]]:
        """Positions and errors there; ends where theory's rate has long arrived, or it diverged."""
        most = MOST_EFOLDS / self.method.rho
        for k in itertools.count():
            if k == len(self.seen):
                position, error = self.seen[-1]
                if position > most or not math.isfinite(error):
                    return
                self._go_on(position)
            yield self.seen[k]

    def _go_on(self, position: int) -> None:
        method = self.method
        first = min(method.shortest, FIRST_EFOLDS / method.rho)
        if method.sharp:
            first = FIRST_SHARP / method.rho
        stop = max(position + 1, int(GROWTH * position), int(first))
        while position < stop:
            events = method.source.draw(position, min(stop, position + method.block))
            self.state, position = method.algorithm.step(self.state, events), events.stop
        self.seen.append((position, self._error()))

    def _error(self) -> float:
        found = objectives(self.problem, self.method.algorithm.output(self.state))
        return float(np.mean(found) - self.best) / abs(self.best)


def _numbers(parameters: Any) -> Any:
    """What the iterates depend on, of any method's parameters."""
    numbers = getattr(parameters, "numbers", None)
    return numbers().tobytes() if callable(numbers) else repr(parameters)

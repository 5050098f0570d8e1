"""When a run ends, and its status."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from adfs.checks import choice, positive, whole

STATUSES = ("converged", "max_iter", "time_limit", "interrupted", "diverged")
MEASURES = ("duality_gap", "suboptimality")
BLOW_UP = 1e8


class Spent(NamedTuple):
    """Position of a run in its schedule, and its costs so far; of all nodes together."""

    position: int
    idealized_time: float
    wall_time: float
    iteration: int = 0  # events executed
    counts: Any = None  # `adfs.algorithms.base.Counts`


@dataclass(frozen=True)
class Stopping:
    """Limits of a run; a number out of range cannot be built.

    ``measure`` is what falls to ``tol``, relative to ``|F|``: the duality gap, which needs
    no optimum, or the mean over nodes of the suboptimality, where the optimum is known.
    """

    tol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    clock_limit: float | None = None
    measure: str = "duality_gap"

    def __post_init__(self) -> None:
        measure = choice("measure", self.measure, MEASURES).replace("_", " ")
        what = f"it is the relative {measure} at which a run stops, for example 1e-6"
        positive("tol", self.tol, what)
        if self.max_iter is not None:
            whole("max_iter", self.max_iter, hint="leave it out for the default")
        units = (("time_limit", "(seconds)"), ("clock_limit", "(units of one proximal step)"))
        for name, unit in units:
            limit = getattr(self, name)
            if limit is not None and limit != math.inf:
                positive(name, limit, f"leave it out for no limit {unit}")

    def error(self, reading: Any) -> float:
        """The relative measure of an evaluation."""
        if self.measure == "suboptimality" and reading.suboptimality is not None:
            return float(reading.suboptimality)
        return float(reading.relative_gap)

    def verdict(self, growth: float, error: float, spent: Spent, budget: int) -> str | None:
        """The status with which to stop now, or None to continue.

        ``error`` is the relative measure. ``growth`` is the gap over the size of the problem at the
        start: the relative gap alone does not detect divergence, because it is divided by an
        objective that grows with it.
        """
        if not growth <= BLOW_UP or not math.isfinite(error):
            return "diverged"
        if error <= self.tol:
            return "converged"
        if spent.position >= budget:
            return "max_iter"
        times = ((spent.wall_time, self.time_limit), (spent.idealized_time, self.clock_limit))
        late = any(limit is not None and time >= limit for time, limit in times)
        return "time_limit" if late else None

    def budget(self, rho: float, first_gap: float, ceiling: float = math.inf) -> int:
        """Most iterations: as given, or well beyond what theory's rate needs for ``tol``.

        Without it a run with a ``tol`` below the precision of certificates would never end; nor
        would, without the ``ceiling``, a run with a tiny ``rho``.
        """
        if self.max_iter is not None:
            return int(self.max_iter)
        if not math.isfinite(first_gap):
            return 0
        efolds = math.log(max(first_gap, self.tol) / self.tol) + 30.0
        return math.ceil(min(efolds / rho if rho > 0.0 else math.inf, ceiling))

"""When a run ends, and the word for it."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from adfs.errors import ParameterError

STATUSES = ("converged", "max_iter", "time_limit", "interrupted", "diverged")
MEASURES = ("duality_gap", "suboptimality")
BLOW_UP = 1e8


class Spent(NamedTuple):
    """What a run has used up."""

    iteration: int
    idealized_time: float
    wall_time: float


@dataclass(frozen=True)
class Stopping:
    """Limits of a run; a number out of range cannot be built.

    ``measure`` is what falls to ``tol``, relative to ``max(1, |F|)``: the duality gap, which needs
    no optimum, or the mean over nodes of the suboptimality, for studies where the optimum is known.
    """

    tol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    clock_limit: float | None = None
    measure: str = "duality_gap"

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ParameterError(
                f"measure={self.measure!r} is unknown; choose one of {', '.join(MEASURES)}."
            )
        if not (self.tol > 0 and math.isfinite(self.tol)):
            raise ParameterError(
                f"tol={self.tol:g} must be > 0: it is the relative "
                f"{self.measure.replace('_', ' ')} at which a run stops. Use for example 1e-6."
            )
        if self.max_iter is not None and not (self.max_iter >= 0 and self.max_iter % 1 == 0):
            raise ParameterError(
                f"max_iter={self.max_iter} must be a whole number >= 0, or None for no limit."
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise ParameterError(f"time_limit={self.time_limit:g} s must be > 0, or None.")
        if self.clock_limit is not None and not self.clock_limit > 0:
            raise ParameterError(
                f"clock_limit={self.clock_limit:g} must be > 0 (in units of one proximal step), "
                "or None."
            )

    def verdict(self, growth: float, error: float, spent: "Spent", budget: int) -> str | None:
        """The status with which to stop now, or None to go on.

        ``error`` is the relative measure. ``growth`` is the gap over the size of the problem at the
        start: the relative gap alone never tells a run that blows up, because it is divided by an
        objective that grows with it.
        """
        if not growth <= BLOW_UP or not math.isfinite(error):
            return "diverged"
        if error <= self.tol:
            return "converged"
        if spent.iteration >= budget:
            return "max_iter"
        if self.time_limit is not None and spent.wall_time >= self.time_limit:
            return "time_limit"
        if self.clock_limit is not None and spent.idealized_time >= self.clock_limit:
            return "time_limit"
        return None

    def budget(self, rho: float, first_gap: float) -> int:
        """Most iterations: as given, or well beyond what theory's rate needs for ``tol``.

        Without it a ``tol`` below what double precision can certify would never end.
        """
        if self.max_iter is not None:
            return int(self.max_iter)
        if not math.isfinite(first_gap):
            return 0
        efolds = math.log(max(first_gap, self.tol) / self.tol) + 30.0
        return math.ceil(efolds / rho)

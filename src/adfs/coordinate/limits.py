"""When a run of APCG ends."""

import math
import time
from dataclasses import dataclass

from adfs.coordinate.plan import Plan
from adfs.coordinate.reading import Reading
from adfs.coordinate.scalars import at_least_zero, number, whole
from adfs.coordinate.smooth import Smooth
from adfs.errors import ParameterError

CONVEX_PASSES = 10_000  # default budget where no linear rate gives one
BLOW_UP = 1e8


@dataclass(frozen=True)
class Limits:
    """Tolerance, budget, deadline (by ``time.perf_counter``) and iterations between looks."""

    tol: float
    max_iter: int
    deadline: float
    check_every: int

    def verdict(self, reading: Reading, first: float) -> str | None:
        """The status with which to stop now, or None to go on."""
        if not reading.residual <= BLOW_UP * first:
            return "diverged"
        if self.tol > 0.0 and reading.error <= self.tol:
            return "converged"
        if reading.iteration >= self.max_iter:
            return "max_iter"
        return "time_limit" if time.perf_counter() >= self.deadline else None


def set_limits(
    f: Smooth,
    plan: Plan,
    tol: float,
    max_iter: int | None,
    time_limit: float | None,
    check_every: int | None,
    started: float,
) -> Limits:
    """Limits as a user gives them, checked and filled in."""
    if at_least_zero("tol", tol) == 0.0 and max_iter is None and time_limit is None:
        raise ParameterError("tol=0 never stops a run; give max_iter or time_limit too.")
    if time_limit is not None and not number(time_limit) > 0.0:
        raise ParameterError(f"time_limit={time_limit!r} must be a number of seconds > 0, or None.")
    budget = _budget(f, plan, tol) if max_iter is None else whole("max_iter", max_iter, 0)
    every = 10 * f.size if check_every is None else whole("check_every", check_every, 1)
    deadline = math.inf if time_limit is None else started + number(time_limit)
    return Limits(float(tol), budget, deadline, every)


def _budget(f: Smooth, plan: Plan, tol: float) -> int:
    """Iterations after which a tolerance that can be reached has been reached.

    ``|xi|^2 <= 8 (max D)^2 / (min D) (F(x_t) - F*)``, and the last factor shrinks by 1 - rho.
    """
    parameters = plan.parameters
    if parameters.rho is None:
        return CONVEX_PASSES * f.size
    spread = float(f.majorant.max()) / parameters.sigma_A
    efolds = 2.0 * math.log(1.0 / max(tol, 1e-16)) + 3.0 * math.log(max(spread, 1.0)) + 30.0
    return plan.trial_length + math.ceil(efolds / parameters.rho)

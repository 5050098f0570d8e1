"""What Newton's method and L-BFGS share: one evaluation per event, and the test of a trial point.

Every node computes the losses and derivatives of its samples at the trial point, an all-reduce adds
them, and every node, holding the same numbers, does the same next. The test needs one value and one
slope, no evaluation more.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from adfs.algorithms import all_reduce
from adfs.algorithms.base import Algorithm, Counts, Matrix, Named, Vector
from adfs.problem.certificate import objective_at_zero
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.threads import one_blas_thread

ARMIJO = 1e-4
TURN = 0.8  # most slope up, over the slope down at the start, at a point taken for its slope
# Of F, or of F(0) if more: above what summing a million losses loses, below any sensible tolerance.
ROUNDING = 1e-12
SHORTEST, LONGEST = 0.1, 0.5  # of a step that failed


def sufficient(
    objective: float, slope: float, size: float, trial_objective: float, trial_slope: float,
    at_zero: float = 0.0,
) -> bool:  # fmt: skip
    """Armijo's rule; where F has no digits left, the slopes decide.

    With ``phi(s) = F(theta + s direction)``, ``slope = phi'(0) < 0`` and ``trial_slope = phi'(s)``
    the rule is ``phi(s) <= phi(0) + 1e-4 s phi'(0)``. Close to the optimum its right-hand side is
    ``phi(0)`` but for rounding, so a point that is no worse than that is taken if ``phi'(s) <= -0.8
    phi'(0)``: the approximate Wolfe condition of Hager and Zhang (2005, equation 2.3), the same as
    Armijo's with constant 0.1 where F is quadratic. A step short enough always passes, so no run
    can be stuck in rejected steps. ``at_zero`` is ``F(0)``, whose rounding a small F may have.
    """
    if trial_objective <= objective + ARMIJO * size * slope:
        return True
    no_worse = trial_objective <= objective + ROUNDING * max(at_zero, abs(objective))
    return no_worse and trial_slope <= -TURN * slope


def shortened(size: float, slope: float, trial_slope: float) -> float:
    """A shorter step: where the straight line through both slopes is zero, 0.1 to 0.5 of it."""
    zero = slope / (slope - trial_slope) if trial_slope > slope else LONGEST
    return size * min(LONGEST, max(SHORTEST, zero))


def along(direction: Vector, gradient: Vector) -> float:
    """Slope of F in a direction."""
    return float(direction @ gradient)


@dataclass
class DescentState:
    """The point taken last with its value and gradient, and the step tried from it."""

    trial: Vector
    theta: Vector
    objective: float
    gradient: Vector
    direction: Vector
    slope: float = 0.0

    def vectors(self) -> Named:
        """What every rank holds alike, for checkpoints."""
        return {name: getattr(self, name) for name in ("trial", "theta", "gradient", "direction")}

    def take_vectors(self, shared: Named) -> None:
        """The vectors of a checkpoint."""
        for name in self.vectors():
            setattr(self, name, shared[name])


D = TypeVar("D", bound=DescentState)


class Descent(Algorithm[D]):
    """A descent method on the sum of all nodes; ``numbers`` are summed in one evaluation."""

    def __init__(self, problem: Problem, parameters: Any, numbers: int) -> None:
        self.problem, self.parameters, self.numbers = problem, parameters, numbers
        self._at_zero = objective_at_zero(problem)

    def step(self, state: D, events: Events) -> D:
        """One evaluation per event."""
        with one_blas_thread():
            for _ in range(len(events.which)):
                self._evaluate(state)
        return state

    def _evaluate(self, state: D) -> None:
        """Evaluate the trial point, take it or not, and choose the next one."""
        raise NotImplementedError

    def _is_good(self, state: D, size: float, objective: float, slope: float) -> bool:
        """Whether the trial point is taken; the first one is, whatever its value."""
        first = np.isinf(state.objective)
        return bool(first) or sufficient(
            state.objective, state.slope, size, objective, slope, self._at_zero
        )

    def output(self, state: D) -> Matrix:
        """The point taken last, at every node."""
        return np.tile(state.theta, (len(self.problem.nodes), 1))

    def counts(self, events: Events) -> Counts:
        """Every sample's gradient, and one sum over the tree."""
        return all_reduce.evaluations(self.problem, self.numbers, len(events.which))

"""Whether a trial point is good enough, from one value and one slope: no evaluation more."""

from adfs.algorithms.base import Vector

ARMIJO = 1e-4
TURN = 0.8  # most slope up, over the slope down at the start, at a point taken for its slope
ROUNDING = 1e-12  # of F: above what summing a million losses loses, below what anybody asks for
SHORTEST, LONGEST = 0.1, 0.5  # of a step that failed


def sufficient(
    objective: float, slope: float, size: float, trial_objective: float, trial_slope: float
) -> bool:
    """Armijo's rule; where F has no digits left, the slopes decide.

    With ``phi(s) = F(theta + s direction)``, ``slope = phi'(0) < 0`` and ``trial_slope = phi'(s)``
    the rule is ``phi(s) <= phi(0) + 1e-4 s phi'(0)``. Close to the optimum its right-hand side is
    ``phi(0)`` but for rounding, so a point that is no worse than that is taken if ``phi'(s) <= -0.8
    phi'(0)``: the approximate Wolfe condition of Hager and Zhang (2005, equation 2.3), the same as
    Armijo's with constant 0.1 where F is quadratic. A step short enough always passes, so no run
    can be stuck in rejected steps.
    """
    if trial_objective <= objective + ARMIJO * size * slope:
        return True
    no_worse = trial_objective <= objective + ROUNDING * max(1.0, abs(objective))
    return no_worse and trial_slope <= -TURN * slope


def shortened(size: float, slope: float, trial_slope: float) -> float:
    """A shorter step: where the straight line through both slopes is zero, 0.1 to 0.5 of it."""
    zero = slope / (slope - trial_slope) if trial_slope > slope else LONGEST
    return size * min(LONGEST, max(SHORTEST, zero))


def along(direction: Vector, gradient: Vector) -> float:
    """Slope of F in a direction."""
    return float(direction @ gradient)

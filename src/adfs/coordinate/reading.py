"""What a run knows about its answer: a certified point near ``x_t``.

One step ``x+ = prox_{psi / D}(x_t - grad f_A(x_t) / D)`` with a diagonal D above the Hessian does
not increase F, gives exact zeros and bounds, and comes with a subgradient of F at ``x+``:

    xi = grad f_A(x+) - grad f_A(x_t) + D (x_t - x+).

(The prox says ``D (x_t - x+) - grad f_A(x_t)`` is a subgradient of psi at ``x+``.) If f_A is
``sigma_A``-strongly convex on Ker(A)^perp and Assumption 1 holds, xi lies in that subspace, and
minimising ``F(x+) + <xi, h> + sigma_A |h|^2 / 2`` over h in it proves
``F(x+) - F* <= |xi|^2 / (2 sigma_A)``.
"""

import math
from dataclasses import dataclass

import numpy as np

from adfs.coordinate.penalties import Psi
from adfs.coordinate.smooth import Smooth
from adfs.coordinate.vectors import Vector, norm


@dataclass(frozen=True, eq=False)
class Reading:
    """One look at a run.

    Attributes
    ----------
    iteration : int
    x : array
        The point ``x+``, one full proximal step after ``x_t``.
    residual : float
        ``|xi|``, the norm of a subgradient of F at x.
    error : float
        ``residual / |grad f_A(0)|``: what ``tol`` is compared with.
    gap : float
        Proven bound on ``F(x) - F*``; inf where ``sigma_A`` is 0.
    objective : float or None
    x_t, v_t : arrays
        The iterates of Algorithm 2.
    """

    iteration: int
    x: Vector
    residual: float
    error: float
    gap: float
    objective: float | None
    x_t: Vector
    v_t: Vector


class Reader:
    """Reads states of one problem; errors are relative to the gradient at zero.

    Where that is zero, they are relative to the first residual: no other number has its units.
    """

    def __init__(self, f: Smooth, psi: Psi, sigma_A: float, start: Vector) -> None:
        self._f, self._psi, self._sigma_A = f, psi, sigma_A
        # A coordinate that f_A does not see may take any step.
        self._majorant = np.where(f.majorant > 0.0, f.majorant, 1.0)
        self.unit = norm(f.gradient(np.zeros(f.size))) or self._step(start)[1] or 1.0

    def read(self, iteration: int, x: Vector, v: Vector) -> Reading:
        """Take the proximal step and measure it: two gradients."""
        after, residual = self._step(x)
        gap = 0.5 * residual * (residual / self._sigma_A) if self._sigma_A > 0.0 else math.inf
        return Reading(
            iteration, after, residual, residual / self.unit, gap, self.objective(after), x, v
        )

    def _step(self, x: Vector) -> tuple[Vector, float]:
        """``x+`` and ``|xi|``."""
        d = self._majorant
        slope = self._f.gradient(x)
        after = self._psi.prox_all(1.0 / d, x - slope / d)
        return after, norm(self._f.gradient(after) - slope + d * (x - after))

    def objective(self, x: Vector) -> float | None:
        """``F(x)``; None if it is not known."""
        smooth, separable = self._f.value(x), self._psi.value(x)
        return None if smooth is None or separable is None else smooth + separable

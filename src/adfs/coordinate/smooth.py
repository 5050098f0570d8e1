"""The smooth part ``f_A`` by its coordinate gradients, and what every smooth part offers."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from adfs.coordinate.geometry import Geometry
from adfs.coordinate.scalars import returned, returned_value
from adfs.coordinate.state import LazyPoint, State
from adfs.coordinate.vectors import LEAST, Vector, in_range, numbers
from adfs.errors import ParameterError

PARTIAL = "gradient(i, y)"


class Smooth(Protocol):
    """What APCG asks of ``f_A``."""

    size: int
    M: Vector  # f_A is M_i-smooth along coordinate i
    majorant: Vector  # a diagonal D with f_A(x + h) <= f_A(x) + <grad f_A(x), h> + h'Dh/2

    def gradient(self, x: Vector) -> Vector:
        """All coordinates of the gradient."""
        ...

    def value(self, x: Vector) -> float | None:
        """``f_A(x)``; None if it is not known."""
        ...

    def geometry(self) -> Geometry | None:
        """``R`` and ``sigma_A``; None if they cannot be computed."""
        ...

    def bounded_on(self, kernel: Any) -> bool:
        """Whether f_A is constant along these directions."""
        ...

    def refresh(self, state: State) -> None:
        """Compute again what is kept up to date by small additions."""
        ...

    def partial(self, i: int, state: State) -> float:
        """``grad_i f_A(y)``."""
        ...

    def follow(self, i: int, to_anchor: float, to_offset: float, state: State) -> None:
        """What coordinate ``i``'s move changes beside its own two numbers."""
        ...


class SmoothFunction:
    """A convex function given by its coordinate gradients.

    Parameters
    ----------
    gradient : callable
        ``gradient(i, y)`` returns the i-th partial derivative at y. ``y[j]`` is computed when
        asked for, in O(1); ``np.asarray(y)`` gives all coordinates.
    M : array
        One positive number a coordinate: the gradient's i-th entry is M_i-Lipschitz in x_i.
    value : callable, optional
        ``value(x)`` returns the function at an array; without it the result has no objective.

    Notes
    -----
    Strong convexity cannot be found by calling: give ``sigma_A`` (and ``R``, if it holds on a
    subspace only) to `apcg`, or the convex form is used.

    Examples
    --------
    >>> f = SmoothFunction(lambda i, y: 2.0 * y[i] - 1.0, M=[2.0, 2.0])
    >>> f.gradient(np.zeros(2)).tolist()
    [-1.0, -1.0]
    """

    def __init__(
        self,
        gradient: Callable[[int, LazyPoint | Vector], float],
        M: ArrayLike,
        value: Callable[[Vector], float] | None = None,
    ) -> None:
        if not callable(gradient):
            raise ParameterError(f"gradient={gradient!r} must be callable as gradient(i, y).")
        if value is not None and not callable(value):
            raise ParameterError(f"value={value!r} must be callable as value(x), or None.")
        self.M = in_range("M", numbers("M", M), LEAST)
        if self.M.ndim != 1 or not self.M.size or self.M.min() <= 0.0:
            raise ParameterError(
                "M must hold one number > 0 for each coordinate: how fast the i-th partial "
                "derivative changes along coordinate i."
            )
        self.size = len(self.M)
        # A convex function with these M_i has a Hessian of trace at most sum M_i.
        self.majorant = np.full(self.size, self.M.sum())
        self._partial, self._value = gradient, value

    def gradient(self, x: Vector) -> Vector:
        """See `Smooth`."""
        return np.array([returned(PARTIAL, self._partial(i, x)) for i in range(self.size)])

    def value(self, x: Vector) -> float | None:
        """See `Smooth`."""
        return None if self._value is None else returned_value("value(x)", self._value(x), x)

    def geometry(self) -> Geometry | None:
        """See `Smooth`."""
        return None

    def bounded_on(self, kernel: Any) -> bool:
        """See `Smooth`."""
        return True

    def refresh(self, state: State) -> None:
        """See `Smooth`."""

    def partial(self, i: int, state: State) -> float:
        """See `Smooth`."""
        return returned(PARTIAL, self._partial(i, state.y))

    def follow(self, i: int, to_anchor: float, to_offset: float, state: State) -> None:
        """See `Smooth`."""

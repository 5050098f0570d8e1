"""The separable part ``sum_i psi_i(x_i)``: by name, or by its proximal operator."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.coordinate.scalars import returned, returned_value
from adfs.coordinate.vectors import Vector, in_range, not_negative, numbers, one_each
from adfs.errors import ParameterError
from adfs.kernels.apcg import Separable, separable_prox


class Psi(Protocol):
    """A penalty once the number of coordinates is known."""

    @property
    def active(self) -> NDArray[np.bool_]:
        """Where ``psi_i`` is not zero."""
        ...

    def prox(self, i: int, eta: float, z: float) -> float:
        """Minimiser of ``(x - z)^2 / (2 eta) + psi_i(x)``."""
        ...

    def prox_all(self, eta: Vector, z: Vector) -> Vector:
        """The same for all coordinates at once."""
        ...

    def value(self, x: Vector) -> float | None:
        """``sum_i psi_i(x_i)``; None if it is not known."""
        ...

    def feasible(self, x: Vector) -> Vector:
        """The point nearest to x where psi is finite; x itself if nothing is known of that."""
        ...


class Penalty:
    """``psi_i(x) = l1_i |x| + l2_i x^2 / 2``, and infinity outside ``[low_i, high_i]``.

    Name what you need; what is not named is not there: ``Penalty()`` is zero, ``Penalty(l1=0.1)``
    the lasso's, ``Penalty(low=0)`` non-negativity, ``Penalty(l1=0.1, low=0)`` both.

    Parameters
    ----------
    l1, l2 : float or array, >= 0
        Strengths, for all coordinates or one each; 0 where there is no such term.
    low, high : float or array
        Bounds of a box; -inf and inf where there is none.

    Notes
    -----
    A quadratic term is worth more in the smooth part (`LeastSquares` has ``ridge``, a `Quadratic`
    its diagonal): there it makes ``sigma_A`` larger, here it is not seen by the theorem.

    Examples
    --------
    >>> Penalty(l1=0.5, low=0.0)
    Penalty(l1=0.5, low=0.0)
    """

    def __init__(
        self,
        l1: ArrayLike = 0.0,
        l2: ArrayLike = 0.0,
        low: ArrayLike = -math.inf,
        high: ArrayLike = math.inf,
    ) -> None:
        self.l1 = in_range("l1", not_negative("l1", numbers("l1", l1)))
        self.l2 = in_range("l2", not_negative("l2", numbers("l2", l2)))
        self.low, self.high = numbers("low", low, True), numbers("high", high, True)

    def on(self, size: int) -> "NamedPsi":
        """The penalty on ``size`` coordinates."""
        l1, l2 = one_each("l1", self.l1, size), one_each("l2", self.l2, size)
        low, high = one_each("low", self.low, size, True), one_each("high", self.high, size, True)
        empty = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
        if len(empty):
            i = empty[0]
            raise ParameterError(
                f"The box of coordinate {i} is empty: low={low[i]:g} and high={high[i]:g}; "
                "low <= high is needed, and a point between them."
            )
        return NamedPsi(Separable(l1, l2, low, high))

    def __repr__(self) -> str:
        default = {"l1": 0.0, "l2": 0.0, "low": -math.inf, "high": math.inf}
        given = {name: getattr(self, name) for name in default}
        said = [
            f"{name}={value.item() if value.ndim == 0 else f'<{value.size} values>'}"
            for name, value in given.items()
            if value.ndim > 0 or value.item() != default[name]
        ]
        return f"Penalty({', '.join(said)})"


class NamedPsi:
    """A `Penalty` on a known number of coordinates, as the kernels read it."""

    def __init__(self, terms: Separable) -> None:
        self.terms = terms
        self.active: NDArray[np.bool_] = (
            (terms.l1 > 0) | (terms.l2 > 0) | (terms.low > -np.inf) | (terms.high < np.inf)
        )

    def prox(self, i: int, eta: float, z: float) -> float:
        """See `Psi`."""
        return float(separable_prox(self.terms, i, eta, z))

    def prox_all(self, eta: Vector, z: Vector) -> Vector:
        """See `Psi`."""
        free = np.sign(z) * np.maximum(np.abs(z) - eta * self.terms.l1, 0.0)
        shrunk = free / (1.0 + eta * self.terms.l2)
        return np.asarray(np.clip(shrunk, self.terms.low, self.terms.high))

    def value(self, x: Vector) -> float:
        """See `Psi`."""
        if (x < self.terms.low).any() or (x > self.terms.high).any():
            return math.inf
        return float(self.terms.l1 @ np.abs(x) + 0.5 * (self.terms.l2 @ x**2))

    def feasible(self, x: Vector) -> Vector:
        """See `Psi`."""
        return np.asarray(np.clip(x, self.terms.low, self.terms.high))


class ProxPenalty:
    """Any separable penalty, by its proximal operator.

    Parameters
    ----------
    prox : callable
        ``prox(i, eta, z)`` returns the minimiser of ``(x - z)^2 / (2 eta) + psi_i(x)``.
    active : array of bool, optional
        Where ``psi_i`` is not zero; elsewhere ``prox`` is not called. By default everywhere.
    value : callable, optional
        ``value(i, x)`` returns ``psi_i(x)``; without it the result has no objective.

    Examples
    --------
    >>> absolute = ProxPenalty(lambda i, eta, z: max(abs(z) - eta, 0.0) * (1 if z > 0 else -1))
    >>> absolute.on(3).prox(0, 0.5, 2.0)
    1.5
    """

    def __init__(
        self,
        prox: Callable[[int, float, float], float],
        active: ArrayLike | None = None,
        value: Callable[[int, float], float] | None = None,
    ) -> None:
        if not callable(prox):
            raise ParameterError(f"prox={prox!r} must be callable as prox(i, eta, z).")
        if value is not None and not callable(value):
            raise ParameterError(f"value={value!r} must be callable as value(i, x), or None.")
        self.function, self.active, self.value = prox, active, value

    def on(self, size: int) -> "CalledPsi":
        """The penalty on ``size`` coordinates."""
        active = np.ones(size, bool) if self.active is None else np.asarray(self.active)
        if active.shape != (size,) or active.dtype != bool:
            raise ParameterError(
                f"active must hold one True or False for each of the {size} coordinates; it has "
                f"shape {active.shape} and type {active.dtype}."
            )
        return CalledPsi(self.function, active, self.value)


class CalledPsi:
    """A `ProxPenalty` on a known number of coordinates."""

    def __init__(
        self,
        function: Callable[[int, float, float], float],
        active: NDArray[np.bool_],
        value: Callable[[int, float], float] | None,
    ) -> None:
        self._function, self.active, self._value = function, active, value

    def prox(self, i: int, eta: float, z: float) -> float:
        """See `Psi`."""
        return returned("prox(i, eta, z)", self._function(i, eta, z)) if self.active[i] else z

    def prox_all(self, eta: Vector, z: Vector) -> Vector:
        """See `Psi`."""
        triples = zip(range(len(z)), eta.tolist(), z.tolist(), strict=True)
        return np.array([self.prox(i, step, target) for i, step, target in triples])

    def value(self, x: Vector) -> float | None:
        """See `Psi`."""
        if self._value is None:
            return None
        pairs = [(i, float(x[i])) for i in np.flatnonzero(self.active).tolist()]
        return sum(returned_value("value(i, x)", self._value(i, at), at) for i, at in pairs)

    def feasible(self, x: Vector) -> Vector:
        """See `Psi`."""
        return x

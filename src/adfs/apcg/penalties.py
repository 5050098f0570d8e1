"""Separable penalties ``psi``: built in, by a user's proximal operator, or by name."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.apcg import array_checks as check
from adfs.apcg.array_checks import Vector
from adfs.errors import ParameterError
from adfs.kernels.apcg import Separable, separable_prox


class Penalty:
    """``psi_i(x) = l1_i |x| + l2_i x^2 / 2``, and infinity outside ``[low_i, high_i]``.

    Name the terms you need; the others are absent: ``Penalty()`` is zero, ``Penalty(l1=0.1)`` the
    lasso's, ``Penalty(low=0)`` non-negativity, ``Penalty(l1=0.1, low=0)`` both.

    Parameters
    ----------
    l1, l2 : float or array, >= 0
        Strengths, one for all coordinates or one per coordinate; 0 where there is no such term.
    low, high : float or array
        Bounds of a box; -inf and inf where there is none.

    Notes
    -----
    A quadratic term is worth more in the smooth part (`LeastSquares` has ``ridge``, a `Quadratic`
    its diagonal): there it makes ``sigma_A`` larger, here the theorem does not use it.

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
        self.l1, self.l2 = check.strengths("l1", l1), check.strengths("l2", l2)
        self.low, self.high = check.numbers("low", low, True), check.numbers("high", high, True)
        self.terms = Separable(self.l1, self.l2, self.low, self.high)
        self.active: NDArray[np.bool_] = np.asarray(
            (self.l1 > 0) | (self.l2 > 0) | (self.low > -np.inf) | (self.high < np.inf)
        )

    def on(self, size: int) -> "Penalty":
        """The penalty on ``size`` coordinates, one number per coordinate in each term."""
        terms = self.terms._asdict()
        each = [check.one_each(name, terms[name], size, infinite=True) for name in terms]
        low, high = each[2:]
        empty = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
        if len(empty):
            i = empty[0]
            raise ParameterError(
                f"The box of coordinate {i} is empty: low={low[i]:g} and high={high[i]:g}; "
                "low <= high is needed, and a point between them."
            )
        return Penalty(*each)

    def prox(self, i: int, eta: float, z: float) -> float:
        """Minimiser of ``(x - z)^2 / (2 eta) + psi_i(x)``."""
        return float(separable_prox(self.terms, i, eta, z))

    def prox_all(self, eta: Vector, z: Vector) -> Vector:
        """The same for all coordinates at once."""
        free = np.sign(z) * np.maximum(np.abs(z) - eta * self.l1, 0.0)
        return np.asarray(np.clip(free / (1.0 + eta * self.l2), self.low, self.high))

    def value(self, x: Vector) -> float:
        """``sum_i psi_i(x_i)``."""
        if (x < self.low).any() or (x > self.high).any():
            return math.inf
        return float(self.l1 @ np.abs(x) + 0.5 * (self.l2 @ x**2))

    def feasible(self, x: Vector) -> Vector:
        """The point nearest to x where psi is finite."""
        return np.asarray(np.clip(x, self.low, self.high))

    def __repr__(self) -> str:
        defaults = (0.0, 0.0, -math.inf, math.inf)
        given = [
            f"{name}={array.item() if array.ndim == 0 else f'<{array.size} values>'}"
            for (name, array), default in zip(self.terms._asdict().items(), defaults, strict=True)
            if array.ndim > 0 or array.item() != default
        ]
        return f"Penalty({', '.join(given)})"


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
        check.require_callable("prox", prox, "i, eta, z")
        check.require_callable("value", value, "i, x", optional=True)
        self.active: Any = active
        self._prox, self._value = prox, value

    def on(self, size: int) -> "ProxPenalty":
        """The penalty on ``size`` coordinates."""
        active = np.ones(size, bool) if self.active is None else np.asarray(self.active)
        if active.shape != (size,) or active.dtype != bool:
            raise ParameterError(
                f"active must hold one True or False for each of the {size} coordinates; it has "
                f"shape {active.shape} and type {active.dtype}."
            )
        return ProxPenalty(self._prox, active, self._value)

    def prox(self, i: int, eta: float, z: float) -> float:
        """Minimiser of ``(x - z)^2 / (2 eta) + psi_i(x)``."""
        return check.returned("prox(i, eta, z)", self._prox(i, eta, z)) if self.active[i] else z

    def prox_all(self, eta: Vector, z: Vector) -> Vector:
        """The same for all coordinates, one after another."""
        triples = zip(range(len(z)), eta.tolist(), z.tolist(), strict=True)
        return np.array([self.prox(i, step, target) for i, step, target in triples])

    def value(self, x: Vector) -> float | None:
        """``sum_i psi_i(x_i)``; None if it is not known."""
        if self._value is None:
            return None
        pairs = [(i, float(x[i])) for i in np.flatnonzero(self.active).tolist()]
        return sum(check.returned_value("value(i, x)", self._value(i, at), at) for i, at in pairs)

    def feasible(self, x: Vector) -> Vector:
        """The point itself: where psi is finite is not known."""
        return x


AnyPenalty: TypeAlias = Penalty | ProxPenalty
PenaltyName: TypeAlias = str | tuple[Any, ...]

NUMBERS = {"zero": [], "l1": ["l1"], "l2": ["l2"], "box": ["low", "high"]}


def penalty_of(psi: AnyPenalty | PenaltyName | None) -> AnyPenalty:
    """The penalty of a name; its numbers are one for all coordinates or one per coordinate.

    Examples
    --------
    >>> penalty_of(("box", 0.0, 1.0))
    Penalty(low=0.0, high=1.0)
    """
    if psi is None:
        return Penalty()
    if isinstance(psi, Penalty | ProxPenalty):
        return psi
    name, *given = psi if isinstance(psi, tuple) and psi else (psi,)
    wanted = NUMBERS.get(name) if isinstance(name, str) else None
    if wanted is None or len(given) != len(wanted):
        raise ParameterError(
            f"psi={psi!r} must be 'zero', ('l1', strength), ('l2', strength) or "
            "('box', low, high), a Penalty, a ProxPenalty or None."
        )
    return Penalty(**dict(zip(wanted, given, strict=True)))

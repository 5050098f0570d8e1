"""The parameters of generalized APCG as one frozen object that its theorem allows."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.coordinate.vectors import Vector, not_negative, one_each
from adfs.errors import ParameterError
from adfs.kernels import sampling
from adfs.kernels.apcg import Rule
from adfs.randomness import stream_key

FORMS = ("strongly-convex", "convex")
LARGEST_RHO = 1.0 - 1e-9  # rho = 1 would make the scale of all differences zero
LEAST_RHO = 1e-15  # 1 - rho must not be 1
LEAST_SHARE = 2.0**-24  # of 1 / N: tables for sampling know shares to 2^-32 of 1 / N
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ApcgParameters:
    """Smoothness, geometry, sampling and rate of one run, checked against Appendix A.

    Parameters
    ----------
    form : str
        ``strongly-convex`` (Corollary 1) or ``convex`` (Corollary 2).
    M, R, p : arrays, one number a coordinate
        Smoothness along the coordinate, ``R_i = e_i' A^+ A e_i`` and the probability.
    sigma_A : float
        Strong convexity on Ker(A)^perp; in the convex form only the certificate uses it.
    active : array of bool
        Where ``psi_i`` is not zero; Assumption 1 asks for ``R_i = 1`` there.
    S : float, optional
        At least ``S_limit = max_i sqrt(M_i R_i) / p_i``, which is the default.

    Examples
    --------
    >>> ones = np.ones(4)
    >>> ApcgParameters("strongly-convex", ones, ones, ones / 4, 0.25, ones > 0).rho
    0.125
    """

    form: str
    M: Vector
    R: Vector
    p: Vector
    sigma_A: float
    active: NDArray[np.bool_]
    S: float = 0.0

    def __post_init__(self) -> None:
        self._check_form()
        self._check_resistances()
        self._check_probabilities()
        self._check_strong_convexity()
        if self.S == 0.0:
            # rho = sqrt(sigma_A) / S must stay below 1; a constant f_A asks nothing of S.
            least = 0.0 if self.form == "convex" else math.sqrt(self.sigma_A) / LARGEST_RHO
            object.__setattr__(self, "S", max(self.S_limit, least) or 1.0)
        self._check_s()

    def _check_form(self) -> None:
        if self.form not in FORMS:
            raise ParameterError(
                f"form={self.form!r} is unknown; choose auto, {' or '.join(FORMS)}."
            )
        if not (self.sigma_A >= 0.0 and math.isfinite(self.sigma_A)):
            raise ParameterError(f"sigma_A={self.sigma_A:g} must be finite and >= 0.")
        if self.form == "strongly-convex" and self.sigma_A == 0.0:
            raise ParameterError(
                "The strongly convex form needs sigma_A > 0 and none was found: give sigma_A, add "
                "a ridge, or use form='convex'."
            )

    def _check_resistances(self) -> None:
        if not_negative("R", self.R).max() > 1.0 + ROUNDING:
            raise ParameterError(
                f"R must be <= 1, it is the diagonal of a projector; its largest "
                f"entry is {self.R.max():g}."
            )
        wrong = np.flatnonzero(self.active & (np.abs(self.R - 1.0) > ROUNDING))
        if len(wrong):
            raise ParameterError(
                f"Assumption 1 needs R_i = 1 or psi_i = 0: coordinate {wrong[0]} has a penalty and "
                f"R={self.R[wrong[0]]:.6g}. Leave R out to use A = I."
            )

    def _check_probabilities(self) -> None:
        total = not_negative("p", self.p).sum()
        if abs(total - 1.0) > ROUNDING:
            raise ParameterError(f"p sums to {total:.10g}; probabilities must sum to 1.")
        never = np.flatnonzero((self.p == 0.0) & (self.R > 0.0))
        if len(never):
            raise ParameterError(
                f"p[{never[0]}]=0, but coordinate {never[0]} has R={self.R[never[0]]:.3g}: it must "
                "be sampled now and then, or it would never be optimised."
            )
        rare = np.flatnonzero((self.p < LEAST_SHARE / self.size) & (self.R > 0.0))
        if len(rare):
            raise ParameterError(
                f"p[{rare[0]}]={self.p[rare[0]]:.3g} is below {LEAST_SHARE / self.size:.3g}, the "
                f"least probability with which one of {self.size} coordinates can be drawn; "
                f"raise it."
            )

    def _check_strong_convexity(self) -> None:
        wrong = np.flatnonzero(self.sigma_A * self.R > self.M * (1.0 + ROUNDING))
        if len(wrong):
            i = wrong[0]
            raise ParameterError(
                f"sigma_A={self.sigma_A:.6g} is too large: strong convexity implies sigma_A R_i <= "
                f"M_i, and coordinate {i} has R={self.R[i]:.6g} and M={self.M[i]:.6g}."
            )

    def _check_s(self) -> None:
        if not (self.S_limit * (1.0 - ROUNDING) <= self.S and math.isfinite(self.S)):
            i = int(np.argmax(self._ratios()))
            raise ParameterError(
                f"S={self.S:.6g} is below {self.S_limit:.6g} = max_i sqrt(M_i R_i) / p_i, the "
                f"least that Appendix A allows; coordinate {i} binds. Raise S (lower rho), or "
                f"raise p[{i}]."
            )
        if self.rho is not None and not LEAST_RHO <= self.rho < 1.0:
            raise ParameterError(
                f"rho={self.rho:.6g} is outside [{LEAST_RHO:g}, 1), where 1 - rho is neither 0 nor "
                "1 in floating point. Give another sigma_A, or use form='convex'."
            )

    def _ratios(self) -> Vector:
        """``sqrt(M_i R_i) / p_i``, 0 where f_A does not depend on ``x_i``."""
        bound = np.sqrt(self.M * self.R)
        return np.divide(bound, self.p, out=np.zeros_like(bound), where=bound > 0.0)

    @property
    def S_limit(self) -> float:
        """``max_i sqrt(M_i R_i) / p_i``."""
        return float(self._ratios().max())

    @property
    def rho(self) -> float | None:
        """Corollary 1's rate ``sqrt(sigma_A) / S``; None in the convex form."""
        return math.sqrt(self.sigma_A) / self.S if self.form == "strongly-convex" else None

    @property
    def p_R(self) -> float:
        """Corollary 2's ``min_i p_i / R_i``."""
        seen = self.R > 0.0
        return float((self.p[seen] / self.R[seen]).min()) if seen.any() else 1.0

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.p)

    def rule(self) -> Rule:
        """What the kernels read."""
        inverse_p = np.divide(1.0, self.p, out=np.zeros(self.size), where=self.p > 0.0)
        pull = self.R * inverse_p
        if self.rho is None:
            return Rule(0.0, 1.0, 1.0 / self.S / self.S, inverse_p, pull)
        return Rule(1.0, (1.0 - self.rho) / (1.0 + self.rho), 0.0, inverse_p, pull)

    def clock(self) -> Vector:
        """Scale, ``S^2 A_0 / B_0 = 3 / p_R^2``, alpha and step before the first iteration."""
        if self.rho is None:
            return np.array([1.0, 3.0 / self.p_R / self.p_R, 0.0, 0.0])
        return np.array([1.0, 0.0, self.rho, self.rho / self.sigma_A])

    def __str__(self) -> str:
        rate = f"S={self.S:.6g}, p_R={self.p_R:.6g}"
        if self.rho is not None:
            rate = f"sigma_A={self.sigma_A:.6g}, rho={self.rho:.6g}"
        return (
            f"{self.form} form, {self.size} coordinates, {rate}, p in [{self.p.min():.3g}, "
            f"{self.p.max():.3g}], R in [{self.R.min():.3g}, {self.R.max():.3g}]"
        )


class Sampler:
    """Coordinates drawn with probabilities p: number t depends on the seed and t alone."""

    def __init__(self, p: Vector, seed: int) -> None:
        self._key = stream_key(seed, "apcg")
        self._table = np.zeros(len(p), np.int64)
        sampling.build_alias(p, self._table)

    def draw(self, start: int, stop: int) -> NDArray[np.int32]:
        """Coordinates of iterations ``start`` to ``stop``."""
        which = np.empty(stop - start, np.int32)
        # Hashing wraps around 2^64, which NumPy reports when kernels run uncompiled.
        with np.errstate(over="ignore"):
            sampling.draw_which(which, start, self._key, self._table)
        return which


def best_sampling(form: str, M: Vector, R: Vector) -> Vector:
    """The probabilities of the best proven rate.

    Corollary 1: ``rho`` is largest if all ``p_i / sqrt(M_i R_i)`` are equal. Corollary 2 has two
    terms: S is least for ``a_i`` proportional to ``sqrt(M_i R_i)``, and ``1 / p_R`` for ``b_i``
    proportional to ``R_i``. With p proportional to ``max(a_i, b_i)``, which sum to at most 2, both
    are within a factor 2 of their least, whatever the (unknown) distance to the optimum.
    Shares that no table can hold are raised, at the price of a millionth of the rate.
    """
    weights = np.sqrt(M * R)
    if form == "convex" or not weights.any():
        weights = np.maximum(_shares(weights), _shares(R))
    if not weights.any():
        weights = np.ones(len(M))  # f_A is constant and nothing has to be done
    shares = _shares(weights)
    rare = (R > 0.0) & (shares < 2.0 * LEAST_SHARE / len(M))
    return _shares(np.where(rare, 2.0 * LEAST_SHARE / len(M), shares)) if rare.any() else shares


def _shares(weights: Vector) -> Vector:
    total = weights.sum()
    return np.asarray(weights / total) if total > 0.0 else weights


def given_sampling(p: object, size: int) -> Vector:
    """Probabilities that a user gives: ``uniform``, or one number a coordinate."""
    if isinstance(p, str):
        if p != "uniform":
            raise ParameterError(f"p={p!r} is unknown; give 'uniform', numbers, or None.")
        return np.full(size, 1.0 / size)
    return one_each("p", p, size)  # type: ignore[arg-type]

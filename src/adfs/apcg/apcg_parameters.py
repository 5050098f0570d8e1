"""Parameters of APCG, checked against Appendix A, and how they are chosen for a problem."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.apcg.array_checks import Vector, not_negative, one_each
from adfs.apcg.geometry import DENSE, Geometry
from adfs.apcg.smooth import Smooth
from adfs.checks import as_float, finite, positive
from adfs.errors import DataError, ParameterError
from adfs.kernels import sampling
from adfs.kernels.apcg import Rule
from adfs.randomness import stream_key
from adfs.schedule.sampling_law import alias_table

FORMS = ("strongly-convex", "convex")
LARGEST_RHO = 1.0 - 1e-9  # rho = 1 would make the scale of all differences zero
LEAST_RHO = 1e-15  # 1 - rho must not be 1
LEAST_SHARE = 2.0**-24  # of 1 / N: tables for sampling hold shares to 2^-32 of 1 / N
ROUNDING = 1e-9
NEGLIGIBLE = 1e-14  # sigma_A below this share of max M_i is not worth a linear rate


@dataclass(frozen=True, eq=False)
class ApcgParameters:
    """Smoothness, geometry, sampling and rate of one run, checked against Appendix A.

    Parameters
    ----------
    form : str
        ``strongly-convex`` (Corollary 1) or ``convex`` (Corollary 2).
    M, R, p : arrays, one number per coordinate
        Smoothness along the coordinate, ``R_i = e_i' A^+ A e_i`` and the probability.
    sigma_A : float
        Strong convexity on Ker(A)^perp; in the convex form only the certificate uses it.
    active : array of bool
        Where ``psi_i`` is not zero; Assumption 1 needs ``R_i = 1`` there.
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
        self._check_coordinates()
        if self.S == 0.0:
            # rho = sqrt(sigma_A) / S must stay below 1; a constant f_A allows any S.
            least = 0.0 if self.form == "convex" else math.sqrt(self.sigma_A) / LARGEST_RHO
            object.__setattr__(self, "S", max(self.S_limit, least) or 1.0)
        self._check_rate()

    def _check_form(self) -> None:
        if self.form not in FORMS:
            raise ParameterError(
                f"form={self.form!r} is unknown; choose auto, {' or '.join(FORMS)}."
            )
        finite("sigma_A", self.sigma_A, least=0)
        if self.form == "strongly-convex" and self.sigma_A == 0.0:
            raise ParameterError(
                "The strongly convex form needs sigma_A > 0 and none was found: give sigma_A, add "
                "a ridge, or use form='convex'."
            )

    def _check_coordinates(self) -> None:
        M, R, p = self.M, not_negative("R", self.R), not_negative("p", self.p)
        if R.max() > 1.0 + ROUNDING:
            raise ParameterError(
                f"R must be <= 1, it is the diagonal of a projector; its largest entry is "
                f"{R.max():g}."
            )
        for i in np.flatnonzero(self.active & (np.abs(R - 1.0) > ROUNDING)):
            raise ParameterError(
                f"Assumption 1 needs R_i = 1 or psi_i = 0: coordinate {i} has a penalty and "
                f"R={R[i]:.6g}. Leave R out to use A = I."
            )
        if abs(p.sum() - 1.0) > ROUNDING:
            raise ParameterError(f"p sums to {p.sum():.10g}; probabilities must sum to 1.")
        least = LEAST_SHARE / self.size
        for i in np.flatnonzero((p < least) & (R > 0.0)):
            raise ParameterError(
                f"p[{i}]={p[i]:.3g} must be >= {least:.3g}, the least probability with "
                f"{self.size} coordinates: coordinate {i} has R={R[i]:.3g}, so it must be sampled. "
                "Raise it."
            )
        for i in np.flatnonzero(self.sigma_A * R > M * (1.0 + ROUNDING)):
            raise ParameterError(
                f"sigma_A={self.sigma_A:.6g} is too large: strong convexity implies sigma_A R_i <= "
                f"M_i, and coordinate {i} has R={R[i]:.6g} and M={M[i]:.6g}."
            )

    def _check_rate(self) -> None:
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
        """The constants that the kernels read."""
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


class CoordinateSampler:
    """Coordinates drawn with probabilities p: number t depends on the seed and t alone."""

    def __init__(self, p: Vector, seed: int) -> None:
        self._key = stream_key(seed, "apcg")
        self._table = alias_table(p)

    def draw(self, start: int, stop: int) -> NDArray[np.int32]:
        which = np.empty(stop - start, np.int32)
        sampling.draw_which(which, start, self._key, self._table)
        return which


def best_sampling(form: str, M: Vector, R: Vector) -> Vector:
    """The probabilities of the best proven rate.

    Corollary 1: ``rho`` is largest if all ``p_i / sqrt(M_i R_i)`` are equal. Corollary 2 has two
    terms: S is least for ``a_i`` proportional to ``sqrt(M_i R_i)``, and ``1 / p_R`` for ``b_i``
    proportional to ``R_i``. With p proportional to ``max(a_i, b_i)``, which sum to at most 2, both
    are within a factor 2 of their least, whatever the (unknown) distance to the optimum.
    Shares that are too small for a table are raised, at the price of a millionth of the rate.
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


def choose(
    f: Smooth,
    active: NDArray[np.bool_],
    p: ArrayLike | str | None = None,
    R: ArrayLike | None = None,
    sigma_A: float | None = None,
    form: str = "auto",
    rho: float | None = None,
    S: float | None = None,
) -> ApcgParameters:
    """Parameters for ``f`` with a penalty on the ``active`` coordinates."""
    convexity = None if sigma_A is None else finite("sigma_A", sigma_A, least=0)
    given = None if R is None else not_negative("R", one_each("R", R, f.size))
    geometry = _geometry(f, active, given, convexity)
    if form == "auto":
        useful = geometry.sigma_A > NEGLIGIBLE * f.M.max()
        form = "strongly-convex" if useful else "convex"
    if p is None:
        p = best_sampling(form, f.M, geometry.R)
    elif isinstance(p, str):
        if p != "uniform":
            raise ParameterError(f"p={p!r} is unknown; give 'uniform', numbers, or None.")
        p = np.full(f.size, 1.0 / f.size)
    given_s = _given_s(form, geometry.sigma_A, rho, S)
    return ApcgParameters(
        form, f.M, geometry.R, one_each("p", p, f.size), geometry.sigma_A, active, given_s
    )


def _geometry(
    f: Smooth, active: NDArray[np.bool_], R: Vector | None, sigma_A: float | None
) -> Geometry:
    if R is not None and sigma_A is not None:
        return Geometry(R, sigma_A)
    if sigma_A is not None and f.size > DENSE:
        return Geometry.plain(f.size, sigma_A)  # nothing cheap to compare it with
    computed = f.geometry()
    if computed is None:
        return Geometry(np.ones(f.size) if R is None else R, sigma_A or 0.0)
    if R is not None:
        return Geometry(R, _convexity_for(R, computed))
    natural = _allowed(f, active, computed)
    if sigma_A is None:
        return natural
    if sigma_A > natural.sigma_A * (1.0 + 1e-6):
        raise ParameterError(
            f"sigma_A={sigma_A:.6g} is above {natural.sigma_A:.6g}, the strong convexity of this "
            "function; give a lower bound, or leave it out."
        )
    return Geometry(natural.R, sigma_A)


def _allowed(f: Smooth, active: NDArray[np.bool_], computed: Geometry) -> Geometry:
    """``Ker(A) = Ker(H)`` where Assumption 1 allows it, else ``A = I``."""
    if (active & (computed.R < 1.0)).any():
        return Geometry.plain(f.size)  # H is singular, so lambda_min(H) = 0
    if computed.kernel is not None and computed.kernel.size and not f.bounded_on(computed.kernel):
        raise DataError(
            "f_A is unbounded below: H is singular and b is not in its range. Change b, or add a "
            "penalty that bounds x."
        )
    return computed


def _convexity_for(R: Vector, computed: Geometry) -> float:
    """``sigma_A`` for an R that the user gives without it."""
    if (np.abs(R - 1.0) <= ROUNDING).all():
        return computed.sigma_A if computed.full else 0.0
    if np.allclose(R, computed.R, rtol=0.0, atol=1e-6):
        return computed.sigma_A
    raise ParameterError(
        "R is given without sigma_A, and is neither 1 nor the diagonal of the projector on "
        "Ker(H)^perp that was computed; give sigma_A too, or leave R out."
    )


def _given_s(form: str, sigma_A: float, rho: float | None, S: float | None) -> float:
    """The S that a user gives, by itself or by ``rho``; 0 for the best."""
    if rho is not None and S is not None:
        raise ParameterError("Give rho or S, not both: rho = sqrt(sigma_A) / S.")
    if rho is not None:
        if form == "convex":
            raise ParameterError("The convex form has no rho; give S, or sigma_A > 0.")
        if not 0.0 < as_float(rho) < 1.0:
            raise ParameterError(f"rho={rho!r} must be a number in (0, 1), or None.")
        return math.sqrt(sigma_A) / as_float(rho)
    return 0.0 if S is None else positive("S", S)

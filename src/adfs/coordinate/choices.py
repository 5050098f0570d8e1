"""From a problem and what the user insists on to `ApcgParameters`."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.coordinate.geometry import DENSE, Geometry
from adfs.coordinate.parameters import (
    FORMS,
    ROUNDING,
    ApcgParameters,
    best_sampling,
    given_sampling,
)
from adfs.coordinate.scalars import at_least_zero, number, positive
from adfs.coordinate.smooth import Smooth
from adfs.coordinate.vectors import Vector, not_negative, one_each
from adfs.errors import DataError, ParameterError

NEGLIGIBLE = 1e-14  # sigma_A below so much of max M_i is not worth a linear rate


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
    if form not in ("auto", *FORMS):
        raise ParameterError(f"form={form!r} is unknown; choose auto, {' or '.join(FORMS)}.")
    convexity = None if sigma_A is None else at_least_zero("sigma_A", sigma_A)
    given = None if R is None else not_negative("R", one_each("R", R, f.size))
    geometry = _geometry(f, active, given, convexity)
    if form == "auto":
        useful = geometry.sigma_A > NEGLIGIBLE * f.M.max()
        form = "strongly-convex" if useful else "convex"
    sampling = best_sampling(form, f.M, geometry.R) if p is None else given_sampling(p, f.size)
    return ApcgParameters(
        form, f.M, geometry.R, sampling, geometry.sigma_A, active,
        _wanted_s(form, geometry.sigma_A, rho, S),
    )  # fmt: skip


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


def _wanted_s(form: str, sigma_A: float, rho: float | None, S: float | None) -> float:
    """The S that a user asks for, in the words of the form; 0 for the best."""
    if rho is not None and S is not None:
        raise ParameterError("Give rho or S, not both: rho = sqrt(sigma_A) / S.")
    if rho is not None:
        if form == "convex":
            raise ParameterError("The convex form has no rho; give S, or sigma_A > 0.")
        if not 0.0 < number(rho) < 1.0:
            raise ParameterError(f"rho={rho!r} must be a number in (0, 1), or None.")
        return math.sqrt(sigma_A) / number(rho)
    return 0.0 if S is None else positive("S", S)

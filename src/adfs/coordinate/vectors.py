"""Vectors that users give: one number for all coordinates or one each, checked in one place."""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.errors import DataError, ParameterError

Vector: TypeAlias = NDArray[np.float64]

REAL = "biuf"  # NumPy's kinds of types that hold real numbers
LEAST, LARGEST = 1e-50, 1e50  # products of four such numbers are far from the ends of float64


def numbers(name: str, values: ArrayLike, infinite: bool = False) -> Vector:
    """``values`` as float64, without NaN and, unless allowed, without infinities."""
    array = _real(name, values)
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        kind = "not NaN" if infinite else "finite"
        raise DataError(
            f"{name} has {int(bad.sum())} entries that are not allowed: all must be {kind}."
        )
    return array


def _real(name: str, values: ArrayLike) -> Vector:
    try:
        given = np.asarray(values)
        refuse_unreal(name, given.dtype, "O")
        # What is beyond float64 becomes infinite, which has its own sentence.
        with np.errstate(over="ignore"):
            return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} must be real numbers; {type(values).__name__} is not.") from None


def refuse_unreal(name: str, dtype: Any, also: str = "") -> None:
    """Stop at complex numbers, text and dates, which a cast would change without a word."""
    if dtype.kind not in REAL + also:
        raise DataError(f"{name} must be real numbers; its type is {dtype}.")


def one_each(name: str, values: ArrayLike, size: int, infinite: bool = False) -> Vector:
    """``values`` as a vector of ``size`` entries; a single number is repeated."""
    array = numbers(name, values, infinite)
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape != (size,):
        raise DataError(
            f"{name} has shape {array.shape}; give one number, or one for each of the {size} "
            "coordinates."
        )
    return array


def not_negative(name: str, array: Vector) -> Vector:
    """The same array, if no entry is negative."""
    if array.size and array.min() < 0.0:
        raise ParameterError(f"{name} must be >= 0 everywhere; its least entry is {array.min():g}.")
    return array


def in_range(name: str, array: Vector, least: float = 0.0) -> Vector:
    """The same array, if its largest magnitude is 0 or in ``[least, LARGEST]``."""
    largest = float(np.abs(array).max(initial=0.0))
    if largest > LARGEST or 0.0 < largest < least:
        allowed = f"between {least:g} and" if least else "at most"
        raise DataError(
            f"{name} has {largest:.3g} as its largest magnitude; it must be {allowed} "
            f"{LARGEST:g}, or squares leave the range of floating point. Choose other units."
        )
    return array


def norm(array: Vector) -> float:
    """Euclidean norm whose squares neither overflow nor vanish."""
    largest = float(np.abs(array).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of 2: dividing by it is exact
    return unit * float(np.linalg.norm(array / unit))

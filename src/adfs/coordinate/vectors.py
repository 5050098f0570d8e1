"""Vectors that users give: one number for all coordinates or one each, checked in one place."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.errors import DataError, ParameterError

Vector: TypeAlias = NDArray[np.float64]


def numbers(name: str, values: ArrayLike, infinite: bool = False) -> Vector:
    """``values`` as float64, without NaN and, unless allowed, without infinities."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be real numbers; {type(values).__name__} is not.") from None
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        kind = "not NaN" if infinite else "finite"
        raise DataError(
            f"{name} has {int(bad.sum())} entries that are not allowed: all must be {kind}."
        )
    return array


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


def whole(name: str, value: int, least: int) -> int:
    """``value`` as an int, at least ``least``."""
    if isinstance(value, bool) or not (value >= least and value % 1 == 0):
        raise ParameterError(f"{name}={value} must be a whole number >= {least}.")
    return int(value)

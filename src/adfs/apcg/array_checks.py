"""Checks of the vectors and matrices that users give, and of what their functions return."""

import math
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.errors import DataError, ParameterError

Vector: TypeAlias = NDArray[np.float64]

REAL = "biuf"  # NumPy's kinds of types that hold real numbers
LEAST, LARGEST = 1e-50, 1e50  # products of four such numbers are far from the ends of float64


def numbers(name: str, values: ArrayLike, infinite: bool = False) -> Vector:
    """``values`` as float64, without NaN and, unless allowed, without infinities."""
    try:
        given = np.asarray(values)
        require_real(name, given.dtype, "O")
        with np.errstate(over="ignore"):  # numbers beyond float64 become infinite
            array = np.array(given, dtype=np.float64)
    except DataError:
        raise
    except (TypeError, ValueError):
        raise DataError(f"{name} must be real numbers; {type(values).__name__} is not.") from None
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        kind = "not NaN" if infinite else "finite"
        raise DataError(
            f"{name} has {int(bad.sum())} entries that are not allowed: all must be {kind}."
        )
    return array


def require_real(name: str, dtype: Any, also: str = "") -> None:
    """Refuse complex numbers, text and dates: a cast would change them without a warning."""
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
    if array.size and array.min() < 0.0:
        raise ParameterError(f"{name} must be >= 0 everywhere; its least entry is {array.min():g}.")
    return array


def strengths(name: str, values: ArrayLike) -> Vector:
    """Numbers >= 0 whose squares are in the range of floating point."""
    return in_range(name, not_negative(name, numbers(name, values)))


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


def require_callable(name: str, function: object, arguments: str, optional: bool = False) -> None:
    if not (callable(function) or (optional and function is None)):
        end = ", or None" if optional else ""
        raise ParameterError(f"{name}={function!r} must be callable as {name}({arguments}){end}.")


def returned(call: str, value: Any) -> float:
    """What a user's function returned, as a float: a number, or an array without dimensions."""
    if isinstance(value, float):  # np.float64 too: the usual case, in the loop of iterations
        return float(value)
    single = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(single, Real) or isinstance(single, bool):
        what = repr(value)
        if isinstance(value, np.ndarray):
            what = f"an array of shape {value.shape} and type {value.dtype}"
        raise DataError(f"{call} must return one real number; it returned {what}.")
    return float(single)


def returned_value(call: str, value: Any, at: Any) -> float:
    """The same for the value of a function, which must not be NaN at a finite point."""
    found = returned(call, value)
    if math.isnan(found) and np.isfinite(at).all():
        raise DataError(f"{call} returned NaN at a finite point; it must be a number everywhere.")
    return found


def norm(array: Vector) -> float:
    """Euclidean norm whose squares neither overflow nor vanish."""
    largest = float(np.abs(array).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of 2: dividing by it is exact
    return unit * float(np.linalg.norm(array / unit))

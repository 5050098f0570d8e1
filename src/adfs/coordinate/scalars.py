"""Single numbers: those that users give, and those that their functions return."""

import math
from typing import Any

import numpy as np

from adfs.errors import DataError, ParameterError


def is_number(value: object) -> bool:
    """Whether it is one real number: Python's or NumPy's, True and False apart."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def number(value: Any) -> float:
    """``value`` as a float: NaN if it is no number, infinite if it is beyond all floats."""
    try:
        return float(value) if is_number(value) else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def whole(name: str, value: Any, least: int) -> int:
    """``value`` as an int, at least ``least``."""
    if not is_number(value) or not (value >= least and value % 1 == 0):
        raise ParameterError(f"{name}={value!r} must be a whole number >= {least}.")
    return int(value)


def positive(name: str, value: Any) -> float:
    """``value`` as a finite float > 0."""
    found = number(value)
    if not (found > 0.0 and math.isfinite(found)):
        raise ParameterError(f"{name}={value!r} must be a finite number > 0, or None.")
    return found


def at_least_zero(name: str, value: Any) -> float:
    """``value`` as a finite float >= 0."""
    found = number(value)
    if not (found >= 0.0 and math.isfinite(found)):
        raise ParameterError(f"{name}={value!r} must be a finite number >= 0.")
    return found


def returned(call: str, value: Any) -> float:
    """What a user's function returned, as a float: a number, or an array without dimensions."""
    if isinstance(value, float):  # np.float64 too: the usual case, in the loop of iterations
        return float(value)
    single = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not is_number(single):
        what = repr(value)
        if isinstance(value, np.ndarray):
            what = f"an array of shape {value.shape} and type {value.dtype}"
        raise DataError(f"{call} must return one real number; it returned {what}.")
    return float(single)


def returned_value(call: str, value: Any, at: Any) -> float:
    """The same for the value of a function, which is not NaN at a finite point."""
    found = returned(call, value)
    if math.isnan(found) and np.isfinite(at).all():
        raise DataError(f"{call} returned NaN at a finite point; it must be a number everywhere.")
    return found

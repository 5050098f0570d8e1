"""Checks of arguments that occur in many places. A message says the rule, the value, the way out.

Every check returns the value as a plain Python object, and raises a `ParameterError` (or the given
``error``) for anything else. Truth values are not numbers here. ``hint`` is the end of the message,
the way out: "leave it out for no limit".
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from adfs.errors import AdfsError, ParameterError, shortened

LONGEST_VALUE = 40  # letters of a value in a message
Kind = type[AdfsError]


def whole(
    name: str,
    value: Any,
    least: int = 0,
    most: int | None = None,
    hint: str = "",
    error: Kind = ParameterError,
) -> int:
    """A whole number from ``least`` to ``most``; a float that is whole is one too.

    Examples
    --------
    >>> whole("max_iter", 1e3)
    1000
    >>> whole("n_nodes", 0, least=1, hint="try 4")
    Traceback (most recent call last):
    adfs.errors.ParameterError: n_nodes=0 must be a whole number >= 1; try 4.
    """
    highest = math.inf if most is None else most
    if not (_is_real(value) and least <= value <= highest and value < math.inf and value % 1 == 0):
        wanted = f">= {least}" if most is None else f"from {least} to {most}"
        raise error(_sentence(name, value, f"a whole number {wanted}", hint))
    return int(value)


def finite(name: str, value: Any, least: float | None = None, hint: str = "") -> float:
    """A finite number, ``>= least`` where that is given.

    Examples
    --------
    >>> finite("tau", 5, least=0)
    5.0
    >>> finite("tau", -1.5, least=0, hint="raise it")
    Traceback (most recent call last):
    adfs.errors.ParameterError: tau=-1.5 must be a finite number >= 0; raise it.
    """
    number, rule = as_float(value), "a finite number" + ("" if least is None else f" >= {least:g}")
    if not math.isfinite(number) or (least is not None and number < least):
        raise ParameterError(_sentence(name, value, rule, hint))
    return number


def positive(name: str, value: Any, hint: str = "") -> float:
    """A finite number > 0."""
    number = as_float(value)
    if not 0.0 < number < math.inf:
        raise ParameterError(_sentence(name, value, "a finite number > 0", hint))
    return number


def choice(name: str, value: Any, choices: Iterable[str], error: Kind = ParameterError) -> str:
    """One of some names.

    Examples
    --------
    >>> choice("clock", "blocking", ("nonblocking", "rendezvous"))
    Traceback (most recent call last):
    adfs.errors.ParameterError: clock='blocking' is unknown; choose one of nonblocking, rendezvous.
    """
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise error(f"{_label(name, value)} is unknown; choose one of {', '.join(known)}.")
    return value


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that a mistyped or shortened word most likely stands for, if there is one."""

    def begins(text: str, start: str) -> bool:
        return text.startswith(start) and len(start.strip("-")) >= 3

    known = sorted(names, key=len)
    same = [name for name in known if name.casefold() == word.casefold()]
    longer = [name for name in known if begins(name, word)]
    shorter = [name for name in reversed(known) if begins(word, name)]
    from difflib import get_close_matches  # slow to import

    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return next(iter([*same, *longer, *shorter, *close]), None)


def flag(name: str, value: Any) -> bool:
    """True or False, Python's or NumPy's."""
    if type(value).__name__ not in ("bool", "bool_"):  # NumPy is not imported for this
        raise ParameterError(_sentence(name, value, "True or False", ""))
    return bool(value)


def as_float(value: Any) -> float:
    """``value`` as a float: NaN if it is not a number, infinite if it is larger than all floats."""
    try:
        return float(value) if _is_real(value) else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _sentence(name: str, value: Any, rule: str, hint: str) -> str:
    return f"{_label(name, value)} must be {rule}{hint and '; '}{hint}."


def _label(name: str, value: Any) -> str:
    """``name=value``, or the value alone where there is no name."""
    if isinstance(value, Real) and not isinstance(value, bool | Integral):
        shown = repr(float(value)).removesuffix(".0")
    else:
        shown = shortened(repr(value), LONGEST_VALUE)
    return f"{name}={shown}" if name else shown

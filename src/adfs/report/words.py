"""Numbers and small words as the page writes them."""

import math
import re

UNKNOWN = "\N{EN DASH}"


def number(value: float | int | None, digits: int = 4) -> str:
    """A number for people.

    Examples
    --------
    >>> number(1234567), number(0.000012345), number(float("nan")), number(None), number(2.5)
    ('1,234,567', '1.234e-5', 'not finite', '\N{EN DASH}', '2.5')
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "not finite"
    size = abs(value)
    if 1e3 <= size < 1e9:
        return f"{value:,.0f}" if size >= 10 ** (digits - 1) else f"{value:,.{digits}g}"
    return re.sub(r"e([+-])0*(\d)", _exponent, f"{value:.{digits}g}")


def _exponent(match: re.Match[str]) -> str:
    return f"e{'-' if match[1] == '-' else ''}{match[2]}"


def span(low: float, high: float, digits: int = 4) -> str:
    """One number, or the two ends of a range."""
    if low == high or number(low, digits) == number(high, digits):
        return number(low, digits)
    return f"{number(low, digits)} to {number(high, digits)}"


def percent(share: float) -> str:
    """A share.

    Examples
    --------
    >>> percent(0.873), percent(0.0123), percent(0.0), percent(1e-5)
    ('87 %', '1.2 %', '0 %', '< 0.1 %')
    """
    if not math.isfinite(share):
        return UNKNOWN
    if 0.0 < share < 1e-3:
        return "< 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 or share <= 0 else f"{100 * share:.2g} %"


def seconds(value: float) -> str:
    """A time with its unit."""
    if value < 1e-3:
        return f"{number(1e6 * value, 3)} µs"
    return f"{number(1e3 * value, 3)} ms" if value < 1.0 else f"{number(value, 3)} s"


def count(amount: int, word: str, many: str | None = None) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "node"), count(2500, "node")
    ('1 node', '2,500 nodes')
    """
    return f"{amount:,} {word if amount == 1 else many or word + 's'}"

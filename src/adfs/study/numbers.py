"""Numbers as text, for tables, reports and messages; lists and tables as text.

Examples
--------
>>> number(1234567), number(0.000012345), number(2.5), number(None), number(float("nan"))
('1,234,567', '1.234e-05', '2.5', '-', 'not finite')
>>> number_range(1, 1), number_range(2, 1500)
('1', '2 to 1,500')
>>> percent(0.873), percent(0.0123), percent(0.0), percent(1e-5)
('87 %', '1.2 %', '0 %', '< 0.1 %')
>>> seconds(0.0000125), seconds(0.25), seconds(3600)
('12.5 µs', '250 ms', '3,600 s')
>>> count(1, "node"), count(2500, "node"), count(2, "proximity", "proximities")
('1 node', '2,500 nodes', '2 proximities')
>>> listing(["a"]), listing(["a", "b", "c"])
('a', 'a, b and c')
"""

import math
from collections.abc import Collection, Sequence

UNKNOWN = "-"


def number(value: float | int | None, digits: int = 4) -> str:
    """Whole numbers in full, others to ``digits`` digits; commas between 1,000 and 10^9."""
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "not finite"
    if max(1e3, 10.0 ** (digits - 1)) <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def number_range(low: float, high: float) -> str:
    """One number, or the two ends of a range if their texts differ."""
    ends = number(low), number(high)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def percent(share: float) -> str:
    if not math.isfinite(share):
        return UNKNOWN
    if 0.0 < share < 1e-3:
        return "< 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 or share <= 0 else f"{100 * share:.2g} %"


def seconds(value: float) -> str:
    if value < 1e-3:
        return f"{number(1e6 * value, 3)} µs"
    return f"{number(1e3 * value, 3)} ms" if value < 1.0 else f"{number(value, 3)} s"


def count(amount: int, noun: str, plural: str | None = None) -> str:
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def listing(items: Sequence[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def aligned(
    headers: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()
) -> str:
    """Columns two spaces apart; those numbered in ``right`` are aligned to the right.

    Examples
    --------
    >>> print(aligned(["name", "n"], [["adfs", "9"], ["msda", "100"]], right=[1]), end="")
    name    n
    adfs    9
    msda  100
    """
    lines = [headers, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headers))]
    text = ""
    for line in lines:
        cells = (
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        text += "  ".join(cells).rstrip() + "\n"
    return text

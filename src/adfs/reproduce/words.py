"""Numbers, sentences and tables as people read them."""

import math
import textwrap
from collections.abc import Sequence

WIDTH = 96
Cell = str | int | float | bool | None


def show(value: Cell) -> str:
    """A cell of a table: four digits, commas where they help, ``-`` for what is not known.

    Examples
    --------
    >>> [show(value) for value in (1024, 0.12345678, 54321.6, None, True)]
    ['1,024', '0.1235', '54,322', '-', 'yes']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def paragraph(text: str, heading: str = "") -> str:
    """Text broken into lines, beside its heading."""
    return textwrap.fill(
        text, WIDTH, initial_indent=heading, subsequent_indent=" " * len(heading),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def columns(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Aligned columns; those of numbers lean to the right."""
    lines = [list(headers), *([show(value) for value in row] for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headers))]
    right = [all(not isinstance(row[k], str) for row in rows) for k in range(len(headers))]
    shown = (
        "  ".join(
            cell.rjust(width) if leans else cell.ljust(width)
            for cell, width, leans in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )
    return "\n".join(shown)


def listing(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"

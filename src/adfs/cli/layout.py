"""Facts and tables as text: aligned, and on a narrow terminal below each other."""

import sys
import textwrap
from collections.abc import Iterable, Sequence

from adfs.cli import terminal

NARROWEST = 24  # columns below which nothing is gained by breaking lines


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Lines ``name  text`` with the texts below each other."""
    rows = list(pairs)
    width = max(len(name) for name, _ in rows)
    return "".join(_broken(f"{name:<{width}}  ", text) for name, text in rows)


def _broken(name: str, text: str) -> str:
    """A fact on as many lines as a terminal needs; one line in a file or a pipe."""
    room = terminal.columns(sys.stdout)
    if room is None or len(name) + len(text) <= room:
        return f"{name}{text}\n"
    hang = len(name) if room - len(name) >= NARROWEST else 2
    lines = textwrap.wrap(
        text, max(NARROWEST, room - 1 - hang), break_on_hyphens=False, break_long_words=False
    )
    body = ("\n" + " " * hang).join(lines)
    return f"{name}{body}\n" if hang == len(name) else f"{name.rstrip()}\n{' ' * hang}{body}\n"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Aligned columns; those numbered in ``right`` lean to the right.

    Where a terminal is too narrow for them, each row is a block of facts instead.
    """
    lines = [list(headers), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headers))]
    room = terminal.columns(sys.stdout)
    if room is not None and sum(widths) + 2 * len(widths) - 2 > room:
        return "\n".join(facts(zip(headers, row, strict=True)) for row in rows)
    return "".join(_aligned(line, widths, right) for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    cells = (
        cell.rjust(width) if k in right else cell.ljust(width)
        for k, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return "  ".join(cells).rstrip() + "\n"

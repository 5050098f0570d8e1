"""What a study of the paper found: claims beside measurements, tables and pictures; text and JSON.

Whether a claim holds is decided from the numbers by `verdict`, never written down beforehand.
"""

import math
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adfs.storage import csv_bytes, json_bytes, json_value, write_whole
from adfs.study.numbers import number
from adfs.study.plots.style import figure_images
from adfs.study.text_tables import aligned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 96
YES, NO, PARTLY, OPEN = "yes", "no", "partly", "not decided"
TableCell = str | int | float | bool | None
Rows = list[tuple[TableCell, ...]]


def show(value: TableCell) -> str:
    """A cell of a table: four digits, commas where they help, ``-`` for what is not known.

    Examples
    --------
    >>> [show(value) for value in (1024, 0.12345678, 54321.6, None, True)]
    ['1,024', '0.1235', '54,322', '-', 'yes']
    """
    if isinstance(value, bool):
        return YES if value else NO
    if isinstance(value, str):
        return value
    return number(None if value is None or math.isnan(value) else value)


def verdict(cases: Iterable[bool | None]) -> str:
    """``yes`` if all cases hold, ``no`` if none does, else ``partly``.

    Cases that are not known (None) do not count, but without them nothing is ``yes``.

    Examples
    --------
    >>> verdict([True, True]), verdict([False]), verdict([True, False]), verdict([])
    ('yes', 'no', 'partly', 'not decided')
    >>> verdict([True, False, None]), verdict([False, None]), verdict([True, None])
    ('partly', 'no', 'not decided')
    """
    found = {None if case is None else bool(case) for case in cases}
    if {True, False} <= found:
        return PARTLY
    if False in found:
        return NO
    return YES if found == {True} else OPEN


def _paragraph(text: str, heading: str = "") -> str:
    """Text broken into lines, beside its heading."""
    return textwrap.fill(
        text, WIDTH, initial_indent=heading, subsequent_indent=" " * len(heading),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """What the paper claims, what was measured, and whether it holds (see `verdict`)."""

    paper: str
    measured: str
    holds: str

    def __str__(self) -> str:
        paper = _paragraph(self.paper, "The paper:  ")
        measured = _paragraph(self.measured, "Measured:   ")
        return f"{paper}\n{measured}\nHolds:      {self.holds}"


@dataclass(frozen=True)
class ResultTable:
    """Rows under headers; ``name`` is its file's. One that is not ``shown`` is only written."""

    name: str
    title: str
    headers: tuple[str, ...]
    rows: Rows
    shown: bool = True

    def __str__(self) -> str:
        columns = range(len(self.headers))
        right = [k for k in columns if all(not isinstance(row[k], str) for row in self.rows)]
        texts = [[show(value) for value in row] for row in self.rows]
        return f"{_paragraph(self.title)}\n{aligned(self.headers, texts, right)}".rstrip("\n")

    def to_csv(self) -> bytes:
        """All digits; what is not known is empty."""
        return csv_bytes([self.headers, *json_value(self.rows)])

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        rows = json_value(self.rows)
        return {"name": self.name, "title": self.title, "headers": list(self.headers), "rows": rows}


class Picture(NamedTuple):
    """A picture that is drawn when it is saved; ``size`` in inches."""

    name: str
    size: tuple[float, float]
    draw: Callable[["Figure"], Any]


@dataclass(frozen=True)
class Report:
    """A study from its setting to its verdicts.

    Attributes
    ----------
    name, title : str
    setting : list of str
        Sentences: problem, graphs, parameters, time model, seeds, data.
    claims : list of Claim
    tables : list of ResultTable
    remarks : list of str
        Where the results differ from the paper, and why.
    pictures : list of Picture
    quick : bool
        Whether this is the small version.
    interrupted : bool
        Whether a signal ended it early; claims are then judged on what was finished.

    Examples
    --------
    >>> claim = Claim("n < 4", "n = 3", verdict([3 < 4]))
    >>> report = Report("small", "A small one", ["By counting."], [claim], [])
    >>> report.holds
    'yes'
    >>> print(report)
    small: A small one
    <BLANKLINE>
    By counting.
    <BLANKLINE>
    The paper:  n < 4
    Measured:   n = 3
    Holds:      yes
    """

    name: str
    title: str
    setting: list[str]
    claims: list[Claim]
    tables: list[ResultTable]
    remarks: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    quick: bool = False
    interrupted: bool = False

    @property
    def holds(self) -> str:
        """All claims together."""
        found = {claim.holds for claim in self.claims}
        if len(found) == 1:
            return found.pop()
        return PARTLY if found else OPEN

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.title}"]
        if self.quick:
            parts.append("A quick version: the same at a small size, constants may differ.")
        if self.interrupted:
            parts.append("Interrupted: this is what was finished.")
        parts.append(_paragraph(" ".join(self.setting)))
        parts += [str(table) for table in self.tables if table.shown and table.rows]
        parts += [str(claim) for claim in self.claims]
        parts += [_paragraph(remark, "Remark:     ") for remark in self.remarks]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pictures, ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "quick": self.quick,
            "interrupted": self.interrupted,
            "setting": self.setting,
            "claims": [vars(claim) for claim in self.claims],
            "holds": self.holds,
            "remarks": self.remarks,
            "tables": [table.to_dict() for table in self.tables],
        }

    def save(self, folder: Path) -> list[Path]:
        """Write report.txt, report.json, each table as CSV and, with matplotlib, each picture."""
        folder.mkdir(parents=True, exist_ok=True)
        contents = {
            "report.txt": f"{self}\n".encode(),
            "report.json": json_bytes(self.to_dict()),
            **{f"{table.name}.csv": table.to_csv() for table in self.tables},
        }
        for picture in self.pictures:
            for kind, image in figure_images(picture.size, picture.draw).items():
                contents[f"{picture.name}.{kind}"] = image
        for name, content in contents.items():
            write_whole(folder / name, content)
        return [folder / name for name in contents]

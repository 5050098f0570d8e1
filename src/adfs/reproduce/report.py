"""What a reproduction found: claims beside measurements, tables and pictures; for people and JSON.

Whether a claim holds is decided from the numbers by `verdict`, never written down beforehand.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adfs.reproduce.words import Cell, columns, paragraph
from adfs.runtime.model import finite
from adfs.storage import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

YES, NO, PARTLY, OPEN = "yes", "no", "partly", "not decided"
KINDS = ("png", "pdf")


def verdict(cases: Iterable[bool]) -> str:
    """``yes`` if all cases hold, ``no`` if none does, ``partly``; ``not decided`` without cases.

    Examples
    --------
    >>> verdict([True, True]), verdict([False]), verdict([True, False]), verdict([])
    ('yes', 'no', 'partly', 'not decided')
    """
    found = {bool(case) for case in cases}
    return {(True,): YES, (False,): NO, (False, True): PARTLY}.get(tuple(sorted(found)), OPEN)


@dataclass(frozen=True)
class Claim:
    """What the paper claims, what was measured, and whether it holds (see `verdict`)."""

    paper: str
    measured: str
    holds: str

    def __str__(self) -> str:
        return "\n".join([
            paragraph(self.paper, "The paper:  "),
            paragraph(self.measured, "Measured:   "),
            f"Holds:      {self.holds}",
        ])  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Rows under headings; ``name`` is its file's. One that is not ``shown`` is only written."""

    name: str
    title: str
    headers: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    shown: bool = True

    def __str__(self) -> str:
        return f"{paragraph(self.title)}\n{columns(self.headers, self.rows)}"

    def to_csv(self) -> bytes:
        """All digits; what is not known is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.headers)
        for row in self.rows:
            writer.writerow("" if _plain(value) is None else _plain(value) for value in row)
        return text.getvalue().encode()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        rows = [[_plain(value) for value in row] for row in self.rows]
        return {"name": self.name, "title": self.title, "headers": list(self.headers), "rows": rows}


class Picture(NamedTuple):
    """A picture that is drawn when it is asked for; ``size`` in inches."""

    name: str
    size: tuple[float, float]
    draw: Callable[["Figure"], Any]


@dataclass(frozen=True)
class Report:
    """A reproduction from its setting to its verdicts.

    Attributes
    ----------
    name, title : str
    setting : list of str
        Sentences: problem, graphs, parameters, time model, seeds, data.
    claims : list of Claim
    tables : list of Table
    remarks : list of str
        Where the results differ from the paper, and why.
    pictures : list of Picture
    quick : bool
        Whether this is the small version.
    interrupted : bool
        Whether a signal ended it early; claims then rest on what was finished.

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
    tables: list[Table]
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
        parts = [f"{self.name}: {self.title}", *self._notes(), paragraph(" ".join(self.setting))]
        parts += [str(table) for table in self.tables if table.shown and table.rows]
        parts += [str(claim) for claim in self.claims]
        parts += [paragraph(remark, "Remark:     ") for remark in self.remarks]
        return "\n\n".join(parts)

    def _notes(self) -> list[str]:
        notes = []
        if self.quick:
            notes.append("A quick version: the same at a small size, constants may differ.")
        if self.interrupted:
            notes.append("Interrupted: this is what was finished.")
        return notes

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
            "report.json": json.dumps(self.to_dict(), indent=1, allow_nan=False).encode() + b"\n",
            **{f"{table.name}.csv": table.to_csv() for table in self.tables},
            **self._drawn(),
        }
        for name, content in contents.items():
            write_whole(folder / name, content)
        return [folder / name for name in contents]

    def _drawn(self) -> dict[str, bytes]:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            return {}
        files = {}
        for picture in self.pictures:
            figure = Figure(figsize=picture.size, layout="constrained")
            picture.draw(figure)
            for kind in KINDS:
                buffer = io.BytesIO()
                figure.savefig(buffer, format=kind, dpi=150)
                files[f"{picture.name}.{kind}"] = buffer.getvalue()
        return files


def _plain(value: Any) -> Cell:
    """A value that JSON and CSV have; what is not finite is not known."""
    value = value.item() if hasattr(value, "item") else value
    return finite(value) if isinstance(value, float) else value

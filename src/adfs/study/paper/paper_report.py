"""What a study of the paper found: claims, tables and pictures, as text, JSON, CSV and images."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adfs.storage import csv_bytes, json_bytes, json_value, write_whole
from adfs.study.numbers import aligned, number
from adfs.study.paper.claims import NO, OPEN, PARTLY, YES, Claim, paragraph
from adfs.study.plots.style import figure_images

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TableCell = str | float | None
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
        return f"{paragraph(self.title)}\n{aligned(self.headers, texts, right)}".rstrip("\n")


class Picture(NamedTuple):
    """A picture that is drawn when it is saved; ``size`` in inches."""

    name: str
    size: tuple[float, float]
    draw: Callable[["Figure"], Any]


@dataclass(frozen=True)
class Report:
    """A study from its setting to its verdicts.

    ``setting`` has sentences: problem, graphs, parameters, time model, seeds, data; ``remarks`` say
    where the results differ from the paper, and why. Where a signal ended the study early
    (``interrupted``), claims are judged on what was finished.
    """

    name: str
    title: str
    setting: list[str]
    claims: list[Claim]
    tables: list[ResultTable] = field(default_factory=list)
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
        parts.append(paragraph(" ".join(self.setting)))
        parts += [str(table) for table in self.tables if table.shown and table.rows]
        parts += [str(claim) for claim in self.claims]
        parts += [paragraph(remark, "Remark:     ") for remark in self.remarks]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pictures, ready for JSON."""
        found = {
            **vars(self),
            "claims": [vars(claim) for claim in self.claims],
            "tables": [
                {name: value for name, value in vars(table).items() if name != "shown"}
                for table in self.tables
            ],
            "holds": self.holds,
        }
        del found["pictures"]
        return dict(json_value(found))

    def save(self, folder: Path) -> list[Path]:
        """Write report.txt, report.json, each table as CSV and, with matplotlib, each picture."""
        folder.mkdir(parents=True, exist_ok=True)
        contents = {"report.txt": f"{self}\n".encode(), "report.json": json_bytes(self.to_dict())}
        for table in self.tables:
            contents[f"{table.name}.csv"] = csv_bytes([table.headers, *json_value(table.rows)])
        for picture in self.pictures:
            for kind, image in figure_images(picture.size, picture.draw).items():
                contents[f"{picture.name}.{kind}"] = image
        for name, content in contents.items():
            write_whole(folder / name, content)
        return [folder / name for name in contents]

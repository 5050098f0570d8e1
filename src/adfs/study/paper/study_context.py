"""What a study of the paper is given (samples, threads, a folder, signals), and what it returns.

A `Report` has claims, tables and pictures: as text, JSON, CSV and images.
"""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from adfs.data import datasets
from adfs.data.generators import higgs_like, sparse_text, two_gaussians
from adfs.data.partition import partition
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import is_drawn, live_bars, seconds_left
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.storage import csv_bytes, json_bytes, json_value, write_whole
from adfs.study.compare import compare
from adfs.study.comparison import Comparison
from adfs.study.numbers import aligned, number
from adfs.study.paper import TEXT, is_on_disk
from adfs.study.paper.claims import NO, OPEN, PARTLY, YES, Claim, paragraph
from adfs.study.plots.style import Figure, figure_images
from adfs.threads import one_blas_thread

ROWS = 57_594  # as many as the part of Higgs that is commonly at hand
GENERATED = {
    "higgs": (partial(higgs_like, ROWS), "generated rows that look like Higgs"),
    "covtype": (partial(two_gaussians, ROWS, 54), "two Gaussian clouds"),
    TEXT: (partial(sparse_text, 7_770, 8_315), "generated sparse text"),
}
TableCell = str | float | None
Rows = list[tuple[TableCell, ...]]
Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True)
class StudyContext:
    """The argument of every study."""

    name: str = "study"  # of what is reproduced
    quick: bool = False  # the same at a size that ends within a minute
    jobs: int = 2  # threads; kernels hold no lock, so two threads use two cores
    folder: Path | None = None  # where finished runs are kept, and loaded from
    interrupts: Interrupts = field(default_factory=Interrupts)  # checked between pieces of work
    progress: Callable[[float], object] = lambda share: None  # called with the share done
    quiet: bool = False  # no bars on a terminal
    lines: bool = False  # a line about a comparison from time to time, where there are no bars

    @property
    def interrupted(self) -> bool:
        """Whether to end with what is finished."""
        return self.interrupts.received is not None

    def map(
        self, work: Callable[[Item], Found | None], items: Sequence[Item], costs: Sequence[float]
    ) -> list[Found]:
        """Results of ``work`` in the order of ``items``, without those that a signal prevented.

        ``costs`` are what the items cost in any unit, for the time remaining. After a signal, work
        in progress returns None and no other item is begun.
        """
        total, done, started, lock = sum(costs), 0.0, time.monotonic(), Lock()
        bars = live_bars() if is_drawn(False if self.quiet else None) else None
        task = bars and bars.add_task(self.name, total=1.0, text="", ends=math.inf)

        def one(item: Item, cost: float) -> Found | None:
            nonlocal done
            if self.interrupted:
                return None
            found = work(item)
            with lock:
                done += cost
                share, now = done / total, time.monotonic()
                self.progress(share)
                if bars:
                    ends = now + seconds_left(now - started, share)
                    bars.update(task, completed=share, text=f"{100 * share:.0f} %", ends=ends)
            return found

        with one_blas_thread(), bars or nullcontext(), ThreadPoolExecutor(self.jobs) as pool:
            results = list(pool.map(one, items, costs))
        return [result for result in results if result is not None]

    def compare(
        self, problem: Problem, algorithms: Sequence[str], label: str, **options: Any
    ) -> Comparison:
        """`adfs.compare` with these threads, signals and folder (there under ``runs/label``).

        After a signal, as while samples were loaded, no run starts: the comparison has only the
        runs that the folder had, and is marked as interrupted.
        """
        return compare(
            problem, algorithms, jobs=self.jobs,
            progress=False if self.quiet else self.lines or None,
            folder=None if self.folder is None else self.folder / "runs" / label,
            interrupts=self.interrupts, **options,
        )  # fmt: skip


class Pool(NamedTuple):
    """Rows and labels, and a phrase that says where they come from."""

    X: Any
    y: NDArray[np.float64]
    source: str

    @classmethod
    def load(cls, name: str) -> "Pool":
        """The named set if it is on disk, else generated rows."""
        if not is_on_disk(name):
            generate, like = GENERATED[name]
            X, y = generate(seed=0)
            return cls(X, y, f"{like} ({len(y):,} rows; {name} is not on disk)")
        X, y = datasets.load(name)
        return cls(X, y, f"{name}, {len(y):,} rows of {datasets.locate(name).name}")

    def problem(self, topology: Topology, m: int, sigma: float, seed: int = 0) -> Problem:
        """Logistic regression on ``m`` rows per node, drawn with overlap (Appendix E)."""
        shards = partition(self.X, self.y, topology.n_nodes, how="draw", m=m, seed=seed)
        return Problem(shards, "logistic", sigma, topology)


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
    draw: Callable[[Figure], Any]


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

"""`adfs compare --suite`: all methods on fixed problems, as tables of what each needs.

Each problem is compared twice, under both charges for elementary steps (`Costs`).
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms.base import REGISTRY
from adfs.checks import choice
from adfs.data.files import load_data
from adfs.data.partition import partition
from adfs.engine.interrupts import Interrupts
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.randomness import generator
from adfs.storage import json_value
from adfs.study.compare import compare
from adfs.study.comparison import BAND, Comparison
from adfs.study.contenders import REFERENCE, Contender, choose_contenders, refusal
from adfs.study.numbers import aligned, number

CHARGES = ("paper", "measured")
HEADERS = (
    "method", "idealized time", "over the fastest", "measured costs", "messages", "bytes", "passes",
    "seconds",
)  # fmt: skip
AXES_SHOWN = ("n_comm", "bytes", "passes", "wall_time")

UNEQUAL = "dirichlet:0.1"


class SuiteProblem(NamedTuple):
    """A problem by its data, its graph, and how its rows are divided.

    ``rows`` are so many rows drawn from the data; ``m`` rows per node are drawn with
    ``how="draw"``.
    """

    name: str
    data: str
    graph: str
    sigma: float
    tau: float = 5.0
    how: str = "draw"
    m: int | None = None
    rows: int | None = None

    def load(self) -> Problem:
        """The problem with logistic loss."""
        X, y = load_data(self.data)
        if self.rows is not None:
            kept = generator(0, "suite/rows").choice(X.shape[0], self.rows, replace=False)
            X, y = X[np.sort(kept)], y[np.sort(kept)]
        topology = Topology.parse(self.graph)
        shards = partition(X, y, topology.n_nodes, self.how, seed=0, m=self.m)
        return Problem(shards, "logistic", self.sigma, topology)

    @property
    def about(self) -> str:
        """What it is, in words."""
        rows = f"{self.m:,} rows drawn per node" if self.m else f"rows divided {self.how}"
        some = f"{self.rows:,} rows of " if self.rows else ""
        return (
            f"{some}{self.data}, {self.graph}, {rows}, sigma {self.sigma:g} per node, "
            f"tau {self.tau:g}"
        )


SUITES = {
    "paper": (
        SuiteProblem("higgs", "higgs", "grid:4x4", 1.0, m=1_000),
        SuiteProblem("covtype", "covtype", "grid:4x4", 1.0, m=1_000),
        SuiteProblem("higgs-slow-network", "higgs", "grid:4x4", 1.0, tau=50.0, m=1_000),
    ),
    "sparse": (
        SuiteProblem("a9a", "a9a", "grid:3x3", 0.1, m=500),
        SuiteProblem("mushrooms", "mushrooms", "ring:9", 0.01, how="even"),
        SuiteProblem("reuters", "reuters-money-fx", "grid:3x3", 0.1, how="even"),
    ),
    "unequal": (
        SuiteProblem("a9a-sorted", "a9a", "grid:3x3", 0.1, how="sorted", rows=4_500),
        SuiteProblem("covtype-shares", "covtype", "grid:4x4", 1.0, how=UNEQUAL, rows=16_000),
        SuiteProblem("higgs-shares", "higgs", "star:9", 0.1, how=UNEQUAL, rows=4_500),
    ),
}  # fmt: skip


class Row(NamedTuple):
    """What a method needs until the accuracy: None where it did not arrive."""

    label: str
    time: float | None  # idealized, the paper's charge: median over seeds
    band: tuple[float, float]  # quartiles
    end: float  # where its runs ended
    measured: float | None  # idealized, measured costs
    others: tuple[float | None, ...]  # by AXES_SHOWN


@dataclass(frozen=True)
class SuiteResult:
    """One problem of a suite, compared under both charges."""

    problem: SuiteProblem
    tol: float
    paper: Comparison
    measured: Comparison

    @property
    def rows(self) -> list[Row]:
        """One per method, the fastest first, those that did not arrive last."""
        found = [self._row(label) for label in self.paper.labels]
        return sorted(found, key=lambda row: (row.time is None, row.time or 0.0, row.label))

    def _row(self, label: str) -> Row:
        times = self.paper.times_to(label, self.tol)
        quartiles = np.quantile([math.inf if t is None else t for t in times], (BAND[0], BAND[2]),
                                method="nearest")  # fmt: skip
        return Row(
            label,
            self.paper.time_to(label, self.tol),
            (float(quartiles[0]), float(quartiles[1])),
            self.paper.end_of(label),
            self.measured.time_to(label, self.tol),
            tuple(self.paper.time_to(label, self.tol, axis) for axis in AXES_SHOWN),
        )

    def texts(self) -> list[list[str]]:
        """The rows as text; the fastest is marked."""
        rows = self.rows
        best = rows[0].time if rows else None
        found = []
        for row in rows:
            if row.time is None:
                found.append([row.label, f"> {number(row.end)}", *[""] * (len(HEADERS) - 2)])
                continue
            low, high = row.band
            above = number(high) if math.isfinite(high) else f"> {number(row.end)}"
            spread = "" if low == high else f" [{number(low)}, {above}]"
            ratio = row.time / best if best else 1.0
            n_comm, size, passes, seconds = row.others
            found.append([
                row.label, number(row.time) + spread,
                "fastest" if row.time == best else f"{ratio:.2f}",
                number(row.measured), number(n_comm), number(size), number(passes, 3),
                number(seconds, 2),
            ])  # fmt: skip
        return found

    def __str__(self) -> str:
        left = [f"{name} left out: {reason}\n" for name, reason in self.paper.left_out.items()]
        table = aligned(HEADERS, self.texts(), range(1, len(HEADERS)))
        return f"{self.problem.name}: {self.problem.about}\n{table}{''.join(left)}"

    def to_markdown(self) -> str:
        """The table for a page."""
        lines = [HEADERS, ["---", *["---:"] * (len(HEADERS) - 1)], *self.texts()]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"### {self.problem.name}\n\nThe data: {self.problem.about}.\n\n{table}\n"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        names = ("time", "measured", "end")
        rows = [
            {"label": row.label, "band": row.band, **{name: getattr(row, name) for name in names},
             **dict(zip(AXES_SHOWN, row.others, strict=True))}
            for row in self.rows
        ]  # fmt: skip
        return dict(json_value({"problem": self.problem._asdict(), "tol": self.tol, "rows": rows}))


def run_suite(
    suite: str,
    algorithms: Sequence[str] | None = None,
    tol: float = 1e-6,
    seeds: int = 3,
    seed: int = 0,
    jobs: int = 1,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    interrupts: Interrupts | None = None,
    after: Callable[[SuiteResult], None] = lambda result: None,
) -> list[SuiteResult]:
    """Compare methods on the problems of a suite.

    Parameters
    ----------
    suite : {"paper", "sparse", "unequal"}
    algorithms : sequence of str, optional
        As for `compare`; all registered methods by default.
    tol : float
        The accuracy: a run ends there, or at 5 times the idealized time of ``adfs``.
    seeds, seed, jobs, progress, interrupts
        As for `compare`.
    folder : path, optional
        Keep all runs here, and take finished ones from here.
    after : callable
        Called with each finished problem.
    """
    results: list[SuiteResult] = []
    for problem in SUITES[choice("suite", suite, tuple(SUITES))]:
        built = problem.load()
        contenders = _contenders(algorithms)
        kind = (built.loss.name, built.n_features)
        reasons = {each.label: refusal(each, *kind) for each in contenders}
        names = [label for label, reason in reasons.items() if reason is None]
        found = []
        for charge in CHARGES:
            place = None if folder is None else Path(folder, suite, f"{problem.name}-{charge}")
            found.append(compare(
                built, names, tol, problem.tau, seed=seed, seeds=seeds, jobs=jobs, folder=place,
                progress=progress, costs=charge, interrupts=interrupts,
            ))  # fmt: skip
            if found[-1].interrupted:
                return results
        left_out = {label: reason for label, reason in reasons.items() if reason is not None}
        paper = replace(found[0], left_out=left_out)
        results.append(SuiteResult(problem, tol, paper, found[1]))
        after(results[-1])
    return results


def _contenders(algorithms: Sequence[str] | None) -> list[Contender]:
    """Those that are named, or one for each registered method, the reference first."""
    if algorithms is not None:
        return choose_contenders(algorithms, "logistic")
    return [Contender(name) for name in sorted(REGISTRY, key=lambda n: (n != REFERENCE, n))]

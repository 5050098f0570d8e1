"""What a comparison found: runs, curves, times to an accuracy, and the table of these times."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.checks import positive
from adfs.display import data_frame, html_table, plot_function
from adfs.engine.trace import Trace
from adfs.errors import ParameterError
from adfs.problem.certificate import certified_text, relative
from adfs.storage import csv_bytes, json_value
from adfs.study import convergence_curves
from adfs.study.contenders import CLOCK_LIMIT_FACTOR, REFERENCE
from adfs.study.numbers import number
from adfs.study.plots.comparison_plot import AXES
from adfs.study.text_tables import aligned

ACCURACIES = (1e-2, 1e-4, 1e-6, 1e-8)
NOT_TRIED, NOT_MEASURABLE = "-", "n/a"
# An optimum serves to measure an accuracy if it is certified to a hundredth of it.
MARGIN = 100.0
BAND = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class RunRecord:
    """One run.

    ``jobs`` is how many ran at a time when it was computed: beyond one, its wall times are not
    clean. ``reused`` says that it was taken from a folder instead of computed. ``proven_rate`` is
    the rate per iteration that a theorem promises, or None where there is no theorem.
    """

    label: str
    algorithm: str
    rule: str
    seed: int
    status: str
    trace: Trace
    parameters: str
    setup_time: float
    jobs: int = 1
    reused: bool = False
    proven_rate: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Runs of several algorithms on one problem, measured against its certified optimum.

    Attributes
    ----------
    config : dict
        Everything needed to do it again, in plain values.
    optimum, optimum_gap : float
        ``F*``, and a proven bound on how far it lies above the minimum.
    records : list of RunRecord
        Algorithm after algorithm, in the order asked for; without the runs that did not start.
    interrupted : bool
        Whether a signal, ``signal``, ended it early.
    clock_limit : float or None
        Idealized time at which runs were stopped, where it was not given too.
    failures : tuple of str
        Files that could not be written.
    left_out : dict
        Algorithms that do not take the problem, each with its reason; empty where they were named.
    objective_at_zero : float
        ``F(0)``, to whose rounding ``optimum_gap`` is a measurement.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(80, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    >>> comparison = adfs.compare(problem, ["adfs", "adfs:paper"], tol=1e-6, seeds=3)
    >>> comparison.labels
    ['adfs', 'adfs:paper']
    >>> comparison.time_to("adfs", 1e-6) < comparison.time_to("adfs:paper", 1e-6)
    True
    """

    config: dict[str, Any]
    optimum: float
    optimum_gap: float
    records: list[RunRecord]
    interrupted: bool = False
    clock_limit: float | None = None
    signal: int | None = None
    failures: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    objective_at_zero: float = math.nan

    @property
    def labels(self) -> list[str]:
        """Those with at least one run, in the order asked for."""
        return list(dict.fromkeys(record.label for record in self.records))

    def runs(self, label: str) -> list[RunRecord]:
        """Runs under a label, one per seed."""
        found = [record for record in self.records if record.label == label]
        if not found:
            raise ParameterError(
                f"label={label!r} has no run here; choose one of {', '.join(self.labels)}."
            )
        return found

    @property
    def relative_optimum_gap(self) -> float:
        """``optimum_gap / |F*|``."""
        return relative(self.optimum_gap, self.optimum)

    @property
    def gap_text(self) -> str:
        """The relative gap of the optimum as text."""
        gap, at_zero = self.optimum_gap, self.objective_at_zero
        return certified_text(self.relative_optimum_gap, gap, at_zero, ".1e")

    def refusal(self, accuracy: float) -> str | None:
        """Why an accuracy cannot be measured against this optimum, or None if it can."""
        return refusal(accuracy, self.relative_optimum_gap)

    def curves(self, label: str, axis: str = "idealized_time") -> list[convergence_curves.Curve]:
        """Suboptimality against an axis, one curve per seed."""
        n_samples = self.config["problem"]["n_samples"]
        return [
            convergence_curves.curve(record.trace, axis, n_samples) for record in self.runs(label)
        ]

    def times_to(
        self, label: str, accuracy: float, axis: str = "idealized_time"
    ) -> list[float | None]:
        """Where each seed's suboptimality first falls to ``accuracy``; None where it did not.

        Log-linear between evaluations.
        """
        positive("accuracy", accuracy, "try 1e-6")
        if (reason := self.refusal(accuracy)) is not None:
            raise ParameterError(reason)
        return [
            convergence_curves.first_reach(curve, accuracy) for curve in self.curves(label, axis)
        ]

    def time_to(self, label: str, accuracy: float, axis: str = "idealized_time") -> float | None:
        """Median of `times_to` over seeds; None unless more than half arrived."""
        times = self.times_to(label, accuracy, axis)
        median = np.median([math.inf if time is None else time for time in times])
        return float(median) if math.isfinite(median) else None

    def end_of(self, label: str, axis: str = "idealized_time") -> float:
        """Where the runs ended: the last value of the axis, median over seeds."""
        return float(np.median([curve.x[-1] for curve in self.curves(label, axis)]))

    def band(
        self, label: str, axis: str = "idealized_time", quantiles: Sequence[float] = BAND
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Places on the axis, and quantiles of the suboptimality over seeds there."""
        return convergence_curves.band(self.curves(label, axis), quantiles)

    def table(
        self, accuracies: Sequence[float] = ACCURACIES, axis: str = "idealized_time"
    ) -> "AccuracyTable":
        """Median time to each accuracy, one row per label; ``str`` of it is a text table."""
        return AccuracyTable(self, accuracies, axis)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        seeds = len({record.seed for record in self.records})
        return (
            f"Comparison({', '.join(self.labels)}; {seeds} seed{'s' * (seeds != 1)}, "
            f"optimum={self.optimum:.10g})"
        )

    def _repr_html_(self) -> str:
        table = self.table()
        return html_table(table.texts, table.title, table.headers)

    def plot(self, ax: Any = None, axis: str = "idealized_time") -> Any:
        """Draw suboptimality against ``axis``, with a band over seeds; the matplotlib axes."""
        return plot_function("comparison_plot", "draw_comparison")(self, ax, axis)

    def to_frame(self) -> Any:
        """One row per run, as a pandas DataFrame."""
        runs = self._run_values()
        return data_frame({name: [run[name] for run in runs] for name in (runs[0] if runs else ())})

    def _run_values(self) -> list[dict[str, Any]]:
        """Plain values of each run, with the last row of its trace."""
        runs = [{**vars(record), **record.trace.last()} for record in self.records]
        for run in runs:
            del run["trace"], run["parameters"]
        return runs

    def to_dict(self) -> dict[str, Any]:
        """All of it but the curves, ready for JSON; what is not known is None."""
        found: dict[str, Any] = json_value(
            {
                "optimum": self.optimum,
                "optimum_gap": self.optimum_gap,
                "interrupted": self.interrupted,
                "clock_limit": self.clock_limit,
                "left_out": self.left_out,
                "tables": {axis: self.table(axis=axis).to_dict() for axis in AXES},
                "runs": self._run_values(),
            }
        )
        return found


def refusal(accuracy: float, relative_gap: float) -> str | None:
    """Why ``accuracy`` cannot be measured if the optimum is certified to ``relative_gap``, or None.

    However small the gap, the value of ``F`` has no more digits than double precision.
    """
    known = max(relative_gap, convergence_curves.FLOOR)
    if known <= accuracy / MARGIN:
        return None
    return (
        f"accuracy {accuracy:g} cannot be measured: the optimum is certified to {known:.1e} only, "
        f"and must be to a hundredth of the accuracy; ask for {MARGIN * known:.1e} or more."
    )


class Cell(NamedTuple):
    """Median over seeds, None where not reached, and how it is written."""

    value: float | None
    text: str


class AccuracyRow(NamedTuple):
    """One label: a cell per accuracy, how its runs ended, and where (median over seeds)."""

    label: str
    cells: tuple[Cell, ...]
    status: str
    end: float


class AccuracyTable(list[AccuracyRow]):
    """Time to accuracy: one row per label, with the notes that belong below the rows."""

    def __init__(self, comparison: Comparison, accuracies: Sequence[float], axis: str) -> None:
        self.accuracies, self.axis = tuple(accuracies), axis
        super().__init__(_row(comparison, label, accuracies, axis) for label in comparison.labels)
        self.notes = tuple(_notes(comparison, self))

    @property
    def headers(self) -> list[str]:
        """Of the columns."""
        return ["algorithm", *(f"{accuracy:.0e}" for accuracy in self.accuracies), "status"]

    @property
    def texts(self) -> list[list[str]]:
        """The rows as they are printed."""
        return [[row.label, *(cell.text for cell in row.cells), row.status] for row in self]

    @property
    def title(self) -> str:
        """What the numbers are."""
        return f"{AXES[self.axis]}, until the suboptimality is"

    def __str__(self) -> str:
        columns = aligned(self.headers, self.texts, range(1, len(self.accuracies) + 1))
        return f"{self.title}\n{columns}" + "".join(f"{note}\n" for note in self.notes)

    def to_dict(self) -> list[dict[str, Any]]:
        """One object per row, ready for JSON."""
        names = self.headers[1:-1]
        return [
            {
                "label": row.label,
                "status": row.status,
                "end": json_value(row.end),
                "times": {name: cell.value for name, cell in zip(names, row.cells, strict=True)},
                "texts": [cell.text for cell in row.cells],
            }
            for row in self
        ]


def _row(comparison: Comparison, label: str, accuracies: Sequence[float], axis: str) -> AccuracyRow:
    runs = comparison.runs(label)
    counts = Counter(run.status for run in runs).most_common()
    status = ", ".join(name if len(runs) == 1 else f"{k} {name}" for name, k in counts)
    cells = tuple(_cell(comparison, label, accuracy, axis) for accuracy in accuracies)
    return AccuracyRow(label, cells, status, comparison.end_of(label, axis))


def _cell(comparison: Comparison, label: str, accuracy: float, axis: str) -> Cell:
    if comparison.refusal(accuracy) is not None:
        return Cell(None, NOT_MEASURABLE)
    value = comparison.time_to(label, accuracy, axis)
    if value is not None:
        return Cell(value, number(value))
    statuses = [run.status for run in comparison.runs(label)]
    if 2 * statuses.count("diverged") >= len(statuses):
        return Cell(None, "diverged")
    if accuracy < comparison.config["tol"] and set(statuses) == {"converged"}:
        return Cell(None, NOT_TRIED)
    return Cell(None, f"> {number(comparison.end_of(label, axis))}")


def _notes(comparison: Comparison, table: AccuracyTable) -> Iterable[str]:
    """What cells mean; the certificate, the seeds, the clock limit, and algorithms left out."""
    reasons = filter(None, map(comparison.refusal, table.accuracies))
    yield from [f"n/a: {reason}" for reason in reasons][:1]
    if NOT_TRIED in {cell.text for row in table for cell in row.cells}:
        yield f"-: not tried, runs stop at tol={comparison.config['tol']:g}"
    if table.axis == "wall_time" and any(record.jobs > 1 for record in comparison.records):
        yield "wall times are not clean: several runs shared the machine (jobs > 1)"
    yield f"F* = {comparison.optimum:.12g}, certified: relative gap {comparison.gap_text}"
    n_seeds = len(comparison.config["seeds"])
    if n_seeds > 1:
        yield f"medians of {n_seeds} seeds"
    if comparison.clock_limit is not None:
        why = f"{CLOCK_LIMIT_FACTOR:g} times what {REFERENCE} needed for tol"
        if comparison.config["clock_limit"] is not None:
            why = "as given"
        yield f"limit of a run: idealized time {number(comparison.clock_limit)}, {why}"
    yield from (f"{name} left out: {reason}" for name, reason in comparison.left_out.items())


def to_csv(tables: Sequence[AccuracyTable]) -> bytes:
    """One line for each axis and label; empty where an accuracy was not reached."""
    rows = [
        [table.axis, row.label, *(cell.value for cell in row.cells), row.end, row.status]
        for table in tables
        for row in table
    ]
    return csv_bytes([["axis", *tables[0].headers[:-1], "end", "status"], *rows])

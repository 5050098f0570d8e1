"""What a comparison found: runs, curves, times to an accuracy, and the table of these times."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.checks import choice, positive
from adfs.display import data_frame, html_table, plot_function
from adfs.engine.trace import Trace
from adfs.errors import ParameterError
from adfs.problem.certificate import certified_text, relative
from adfs.storage import csv_bytes, json_value
from adfs.study.contenders import CLOCK_LIMIT_FACTOR, REFERENCE
from adfs.study.numbers import aligned, count, number

AXES = {
    "idealized_time": "idealized time, in units of one proximal step",
    "iteration": "iterations",
    "passes": "passes over the data",
    "n_comm": "messages",
    "bytes": "bytes sent",
    "wall_time": "wall time of this machine, in seconds",
}
ACCURACIES = (1e-2, 1e-4, 1e-6, 1e-8)
NOT_TRIED, NOT_MEASURABLE = "-", "n/a"
# An optimum serves to measure an accuracy if it is certified to a hundredth of it.
MARGIN = 100.0
BAND = (0.25, 0.5, 0.75)
FLOOR = float(np.finfo(np.float64).eps)  # below it, a relative error is rounding
Vector = NDArray[np.float64]


class Curve(NamedTuple):
    """A run's suboptimality against an axis; NaN or infinite where the run blew up.

    Between two evaluations the logarithm of the error is taken as linear in the axis: linear
    convergence is what the theorems promise.
    """

    x: Vector
    error: Vector
    iteration: Vector | None = None

    @classmethod
    def of(cls, trace: Trace, axis: str, n_samples: int) -> "Curve":
        """Of a trace; a pass is as many proximal steps and gradients as there are samples."""

        def column(name: str) -> Vector:
            return np.array(trace[name], dtype=float)  # NaN where it is not known

        passes = choice("axis", axis, AXES) == "passes"
        x = (column("n_prox") + column("n_grad")) / n_samples if passes else column(axis)
        return cls(x, column("suboptimality"), column("iteration"))

    def first_reach(self, accuracy: float) -> float | None:
        """Where the error first falls to ``accuracy``, log-linear between evaluations, or None.

        Methods arrive at the end of an iteration, never inside it: with few and long ones that
        matters.

        Examples
        --------
        >>> halfway = Curve(np.array([0.0, 10.0]), np.array([1.0, 1e-4]))
        >>> round(halfway.first_reach(1e-2), 9)
        5.0
        """
        below = np.flatnonzero(self.error <= accuracy)
        if not len(below):
            return None
        k = int(below[0])
        if k == 0 or not np.isfinite(self.error[k - 1]):
            return float(self.x[k])
        # Errors of the size of rounding, zero or negative ones too, count as rounding.
        low = np.log(max(self.error[k], min(FLOOR, accuracy)))
        high = np.log(self.error[k - 1])
        share = (high - np.log(accuracy)) / (high - low)
        if self.iteration is not None:
            count = max(1.0, self.iteration[k] - self.iteration[k - 1])
            share = min(1.0, np.ceil(share * count) / count)
        return float(self.x[k - 1] + share * (self.x[k] - self.x[k - 1]))

    def finite_part(self) -> "Curve":
        """The curve up to where it blows up, if it does."""
        wild = np.flatnonzero(~np.isfinite(self.error))
        stop = int(wild[0]) if len(wild) else len(self.x)
        return Curve(self.x[:stop], self.error[:stop])


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

    def curves(self, label: str, axis: str = "idealized_time") -> list[Curve]:
        """Suboptimality against an axis, one curve per seed."""
        n_samples = self.config["problem"]["n_samples"]
        return [Curve.of(run.trace, axis, n_samples) for run in self.runs(label)]

    def times_to(
        self, label: str, accuracy: float, axis: str = "idealized_time"
    ) -> list[float | None]:
        """Where each seed first falls to ``accuracy``, log-linear between evaluations, or None."""
        positive("accuracy", accuracy, "try 1e-6")
        if (reason := self.refusal(accuracy)) is not None:
            raise ParameterError(reason)
        return [curve.first_reach(accuracy) for curve in self.curves(label, axis)]

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
    ) -> tuple[Vector, NDArray[np.float64]]:
        """Places on the axis, and quantiles of the suboptimality over seeds there.

        The places are those where some run was evaluated. A run that has ended keeps its last
        error, and the band ends where the middle run does: beyond that it would tell more about
        when runs stop than about how they converge. Errors have shape (len(quantiles), number of
        places).
        """
        parts = [curve.finite_part() for curve in self.curves(label, axis)]
        finite = [part for part in parts if len(part.x)]
        if not finite:
            return np.empty(0), np.empty((len(quantiles), 0))
        if len(finite) == 1:
            return finite[0].x, np.tile(finite[0].error, (len(quantiles), 1))
        end = np.median([each.x[-1] for each in finite])
        places = np.unique(np.concatenate([each.x for each in finite]))
        x = np.append(places[places < end], end)
        logs = [np.interp(x, each.x, np.log(np.maximum(each.error, FLOOR))) for each in finite]
        return x, np.exp(np.quantile(logs, quantiles, axis=0))

    def table(
        self, accuracies: Sequence[float] = ACCURACIES, axis: str = "idealized_time"
    ) -> "AccuracyTable":
        """Median time to each accuracy, one row per label; ``str`` of it is a text table."""
        return AccuracyTable(self, accuracies, axis)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        seeds = count(len({record.seed for record in self.records}), "seed")
        return f"Comparison({', '.join(self.labels)}; {seeds}, optimum={self.optimum:.10g})"

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
        names = ("optimum", "optimum_gap", "interrupted", "clock_limit", "left_out")
        tables = {axis: self.table(axis=axis).to_dict() for axis in AXES}
        values = {name: getattr(self, name) for name in names}
        return dict(json_value({**values, "tables": tables, "runs": self._run_values()}))


def refusal(accuracy: float, relative_gap: float) -> str | None:
    """Why ``accuracy`` cannot be measured if the optimum is certified to ``relative_gap``, or None.

    However small the gap, the value of ``F`` has no more digits than double precision.
    """
    known = max(relative_gap, FLOOR)
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
        self.title = f"{AXES[axis]}, until the suboptimality is"
        self.headers = ["algorithm", *(f"{accuracy:.0e}" for accuracy in accuracies), "status"]
        super().__init__(self._row(comparison, label) for label in comparison.labels)
        self.texts = [[row.label, *(cell.text for cell in row.cells), row.status] for row in self]
        self.notes = tuple(self._notes(comparison))

    def _row(self, comparison: Comparison, label: str) -> AccuracyRow:
        statuses = [run.status for run in comparison.runs(label)]
        counts, one = Counter(statuses).most_common(), len(statuses) == 1
        status = ", ".join(name if one else f"{k} {name}" for name, k in counts)
        end = comparison.end_of(label, self.axis)

        def cell(accuracy: float) -> Cell:
            if comparison.refusal(accuracy) is not None:
                return Cell(None, NOT_MEASURABLE)
            value = comparison.time_to(label, accuracy, self.axis)
            if value is not None:
                return Cell(value, number(value))
            if 2 * statuses.count("diverged") >= len(statuses):
                return Cell(None, "diverged")
            if accuracy < comparison.config["tol"] and set(statuses) == {"converged"}:
                return Cell(None, NOT_TRIED)
            return Cell(None, f"> {number(end)}")

        return AccuracyRow(label, tuple(map(cell, self.accuracies)), status, end)

    def _notes(self, comparison: Comparison) -> Iterable[str]:
        """What cells mean; the certificate, the seeds, the clock limit, and algorithms left out."""
        config = comparison.config
        reasons = filter(None, map(comparison.refusal, self.accuracies))
        yield from [f"n/a: {reason}" for reason in reasons][:1]
        if any(NOT_TRIED in row for row in self.texts):
            yield f"-: not tried, runs stop at tol={config['tol']:g}"
        if self.axis == "wall_time" and any(record.jobs > 1 for record in comparison.records):
            yield "wall times are not clean: several runs shared the machine (jobs > 1)"
        yield f"F* = {comparison.optimum:.12g}, certified: relative gap {comparison.gap_text}"
        if len(config["seeds"]) > 1:
            yield f"medians of {len(config['seeds'])} seeds"
        if comparison.clock_limit is not None:
            why = f"{CLOCK_LIMIT_FACTOR:g} times what {REFERENCE} needed for tol"
            why = why if config["clock_limit"] is None else "as given"
            yield f"limit of a run: idealized time {number(comparison.clock_limit)}, {why}"
        yield from (f"{name} left out: {reason}" for name, reason in comparison.left_out.items())

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


def to_csv(tables: Sequence[AccuracyTable]) -> bytes:
    """One line for each axis and label; empty where an accuracy was not reached."""
    rows = [
        [table.axis, row.label, *(cell.value for cell in row.cells), row.end, row.status]
        for table in tables
        for row in table
    ]
    return csv_bytes([["axis", *tables[0].headers[:-1], "end", "status"], *rows])

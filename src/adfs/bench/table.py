"""Time to accuracy as a table: for people, for CSV and for JSON."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from adfs.bench.contenders import PATIENCE, REFERENCE
from adfs.plots.comparison import AXES
from adfs.runtime.model import finite

if TYPE_CHECKING:
    from adfs.bench.comparison import Comparison, RunRecord

ACCURACIES = (1e-2, 1e-4, 1e-6, 1e-8)
NOT_TRIED, NOT_MEASURABLE = "-", "n/a"


class Cell(NamedTuple):
    """Median over seeds, None where not reached, and how it is written."""

    value: float | None
    text: str


class Row(NamedTuple):
    """One label: a cell an accuracy, how its runs ended, and where (median over seeds)."""

    label: str
    cells: tuple[Cell, ...]
    status: str
    end: float


class Table(list[Row]):
    """Rows under the accuracies, with the notes that belong below them."""

    def __init__(
        self, rows: Iterable[Row], accuracies: Sequence[float], axis: str, notes: Sequence[str]
    ) -> None:
        super().__init__(rows)
        self.accuracies, self.axis, self.notes = tuple(accuracies), axis, tuple(notes)

    def __str__(self) -> str:
        headers = ["algorithm", *(f"{accuracy:.0e}" for accuracy in self.accuracies), "status"]
        lines = [headers]
        lines += [[row.label, *(cell.text for cell in row.cells), row.status] for row in self]
        widths = [max(len(line[k]) for line in lines) for k in range(len(headers))]
        text = f"{AXES[self.axis]}, until the suboptimality is\n"
        for line in lines:
            middle = (c.rjust(w) for c, w in zip(line[1:-1], widths[1:-1], strict=True))
            text += "  ".join([line[0].ljust(widths[0]), *middle, line[-1]]) + "\n"
        return text + "".join(f"{note}\n" for note in self.notes)

    def to_dict(self) -> list[dict[str, Any]]:
        """One object a row, ready for JSON."""
        return [
            {
                "label": row.label,
                "status": row.status,
                "end": finite(row.end),
                "times": {
                    f"{accuracy:.0e}": cell.value
                    for accuracy, cell in zip(self.accuracies, row.cells, strict=True)
                },
                "texts": [cell.text for cell in row.cells],
            }
            for row in self
        ]


def make_table(comparison: "Comparison", accuracies: Sequence[float], axis: str) -> Table:
    """The table of a comparison along one axis."""
    reasons = [comparison.refusal(accuracy) for accuracy in accuracies]
    rows = [_row(comparison, label, accuracies, axis) for label in comparison.labels]
    notes = [f"n/a: {reason}" for reason in reasons if reason is not None][:1]
    texts = {cell.text for row in rows for cell in row.cells}
    if NOT_TRIED in texts:
        notes.append(f"-: not tried, runs stop at tol={comparison.config['tol']:g}")
    if axis == "wall_time" and any(record.jobs > 1 for record in comparison.records):
        notes.append("wall times are not clean: several runs shared the machine (jobs > 1)")
    notes.extend(_explanations(comparison))
    return Table(rows, accuracies, axis, notes)


def _row(comparison: "Comparison", label: str, accuracies: Sequence[float], axis: str) -> Row:
    runs = comparison.runs(label)
    cells = tuple(_cell(comparison, label, runs, accuracy, axis) for accuracy in accuracies)
    counts = Counter(run.status for run in runs)
    words = [status if len(runs) == 1 else f"{k} {status}" for status, k in counts.most_common()]
    return Row(label, cells, ", ".join(words), comparison.end_of(label, axis))


def _cell(
    comparison: "Comparison", label: str, runs: list["RunRecord"], accuracy: float, axis: str
) -> Cell:
    if comparison.refusal(accuracy) is not None:
        return Cell(None, NOT_MEASURABLE)
    value = comparison.time_to(label, accuracy, axis)
    if value is not None:
        return Cell(value, number(value))
    statuses = [run.status for run in runs]
    if 2 * statuses.count("diverged") >= len(runs):
        return Cell(None, "diverged")
    if accuracy < comparison.config["tol"] and set(statuses) == {"converged"}:
        return Cell(None, NOT_TRIED)
    return Cell(None, f"> {number(comparison.end_of(label, axis))}")


def _explanations(comparison: "Comparison") -> list[str]:
    """The certificate, the seeds and the limit on the clock, and who does not take part."""
    n_seeds = len(comparison.config["seeds"])
    notes = [
        f"F* = {comparison.optimum:.12g}, certified: no more than {comparison.optimum_gap:.1e} "
        f"above the minimum ({comparison.relative_optimum_gap:.1e} relative)"
    ]
    if n_seeds > 1:
        notes.append(f"medians of {n_seeds} seeds")
    if comparison.clock_limit is not None:
        given = comparison.config["clock_limit"] is not None
        why = "as given" if given else f"{PATIENCE:g} times what {REFERENCE} needed for tol"
        notes.append(f"limit of a run: idealized time {number(comparison.clock_limit)}, {why}")
    notes += [f"{name} left out: {reason}" for name, reason in comparison.left_out.items()]
    return notes


def number(value: float) -> str:
    """Four digits, with commas while that is readable."""
    return f"{value:,.0f}" if 1000 <= value < 1e9 else f"{value:.4g}"


def to_csv(tables: Sequence[Table]) -> bytes:
    """One line for each axis and label; empty where an accuracy was not reached."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    accuracies = [f"{accuracy:.0e}" for accuracy in tables[0].accuracies]
    writer.writerow(["axis", "algorithm", *accuracies, "end", "status"])
    for table in tables:
        for row in table:
            values = ["" if cell.value is None else repr(cell.value) for cell in row.cells]
            writer.writerow([table.axis, row.label, *values, repr(row.end), row.status])
    return text.getvalue().encode()

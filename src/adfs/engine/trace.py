"""The record of a run: one row per evaluation, the same columns everywhere."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adfs.display import data_frame, html_table, plot_function
from adfs.storage import csv_bytes, write_whole

COLUMNS = (
    "iteration", "idealized_time", "wall_time", "n_prox", "n_grad", "n_comm", "bytes",
    "objective", "suboptimality", "duality_gap", "consensus_error",
)  # fmt: skip
SHOWN = ("iteration", "idealized_time", "objective", "duality_gap")
ROWS_SHOWN = 20  # in a notebook
Value = float | int | None


class Trace:
    """Rows of numbers under fixed `COLUMNS`; unknown values are None, and empty in CSV.

    Examples
    --------
    >>> trace = Trace()
    >>> trace.append(iteration=0, objective=1.5)
    >>> trace.to_dict()["objective"]
    [1.5]
    >>> len(trace)
    1
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[Value]] = {name: [] for name in COLUMNS}

    def append(self, **row: Value) -> None:
        """Add a row; columns left out are None."""
        unknown = set(row) - set(COLUMNS)
        if unknown:
            raise KeyError(f"A trace has no column {sorted(unknown)[0]!r}.")
        for name in COLUMNS:
            value = row.get(name)
            # The repr of a NumPy number has its type in it, which no reader of CSV expects.
            self._columns[name].append(value.item() if isinstance(value, np.generic) else value)

    def to_dict(self) -> dict[str, list[Value]]:
        """Columns as lists, copied."""
        return {name: list(values) for name, values in self._columns.items()}

    @classmethod
    def from_dict(cls, columns: Mapping[str, Sequence[Value]]) -> "Trace":
        """The trace that has these columns."""
        trace = cls()
        trace._columns = {name: list(columns[name]) for name in COLUMNS}
        return trace

    def __getitem__(self, column: str) -> list[Value]:
        return list(self._columns[column])

    def __len__(self) -> int:
        return len(self._columns["iteration"])

    def __repr__(self) -> str:
        if not len(self):
            return "Trace(empty)"
        last = self.last()
        shown = ", ".join(f"{name}={last[name]:.6g}" for name in SHOWN if last[name] is not None)
        return f"Trace({len(self)} rows, the last with {shown})"

    def _repr_html_(self) -> str:
        rows = list(zip(*self._columns.values(), strict=True))
        cells = [["" if v is None else f"{v:.6g}" for v in row] for row in rows[-ROWS_SHOWN:]]
        return html_table(cells, f"Trace, the last {len(cells)} of {len(rows)} rows", COLUMNS)

    def to_frame(self) -> Any:
        """The same as a pandas DataFrame."""
        return data_frame(self._columns)

    def plot(self, ax: Any = None, rho: float | None = None, tol: float | None = None) -> Any:
        """Draw gap and suboptimality against idealized time; the matplotlib axes.

        ``rho`` adds the line ``(1 - rho)^t``, ``tol`` a line at the tolerance.
        """
        return plot_function("comparison_plot", "draw_convergence")(self, ax, rho, tol)

    def last(self) -> dict[str, Value]:
        """The newest row."""
        return {name: values[-1] for name, values in self._columns.items()}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a complete file with all rows; numbers keep every digit."""
        rows = zip(*self._columns.values(), strict=True)
        write_whole(path, csv_bytes([COLUMNS, *rows]))

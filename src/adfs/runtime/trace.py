"""The record of a run: one row an evaluation, the same columns everywhere."""

import csv
import io
import os
from collections.abc import Mapping, Sequence

import numpy as np

from adfs.storage import write_whole

COLUMNS = (
    "iteration", "idealized_time", "wall_time", "n_prox", "n_grad", "n_comm", "bytes",
    "objective", "suboptimality", "duality_gap", "consensus_error",
)  # fmt: skip
Value = float | int | None


class Trace:
    """Rows of numbers under fixed `COLUMNS`; what is not known is None, and empty in CSV.

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
            # NumPy's numbers write themselves with their type, which no reader of CSV expects.
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

    def last(self) -> dict[str, Value]:
        """The newest row."""
        return {name: values[-1] for name, values in self._columns.items()}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all rows, whole or not at all; numbers keep every digit."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in zip(*self._columns.values(), strict=True):
            writer.writerow("" if value is None else repr(value) for value in row)
        write_whole(path, text.getvalue().encode())

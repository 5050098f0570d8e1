"""A run folder: it says what it holds, keeps what is finished, and is never half written.

::

    config.json        problem, time model, algorithms, seeds, versions, command line
    runs/*.csv         one trace a run
    runs/*.json        status, set-up time, parameters, proven rate; written last to vouch for both
    comparison.json    the optimum with its certificate, tables along every axis, how runs ended
    table.csv          the tables once more
    convergence.png    and .pdf, where matplotlib is installed

A run's file name carries a digest of everything the run depends on, so runs of other comparisons
stand beside it unharmed.
"""

import csv
import hashlib
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from adfs.bench import table
from adfs.bench.comparison import Comparison, RunRecord
from adfs.bench.identity import FORMAT, digest
from adfs.errors import DataError
from adfs.plots.comparison import AXES, pictures
from adfs.runtime.trace import COLUMNS, Trace, Value
from adfs.storage import write_whole

FINISHED = ("converged", "max_iter", "time_limit", "diverged")
CONFIG, SUMMARY, TABLE, PICTURE, RUNS = (
    "config.json", "comparison.json", "table.csv", "convergence", "runs",
)  # fmt: skip
OURS = (CONFIG, SUMMARY, TABLE, f"{PICTURE}.png", f"{PICTURE}.pdf")
# A folder belongs to one problem under one time model; algorithms, seeds and limits may be added.
BELONGS_TO = ("problem", "tau", "clock", "delays")


class RunFolder:
    """A folder that this comparison may write to: new, empty of our names, or its own."""

    def __init__(self, path: str | os.PathLike[str], config: dict[str, Any]) -> None:
        self.path = Path(path)
        found = check_place(path)
        for name in BELONGS_TO if found else ():
            if not _same(name, found.get(name), config[name]):
                raise DataError(
                    f"{path} holds a comparison with another {name}; choose another folder."
                )

    def open(self, config: dict[str, Any]) -> None:
        """Make the folder and say what it is going to hold."""
        try:
            (self.path / RUNS).mkdir(parents=True, exist_ok=True)
            write_whole(self.path / CONFIG, _json(config))
        except OSError as error:
            raise _unusable(self.path, error) from None

    def place(self, label: str, identity: dict[str, Any]) -> Path:
        """Where a run's trace is kept; its summary lies beside it, with suffix .json."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{label}-seed{identity['seed']}").lstrip(".")
        return self.path / RUNS / f"{name}-{digest(identity)}.csv"

    def load(self, label: str, identity: dict[str, Any]) -> RunRecord | None:
        """The run if it is here, finished and undamaged; otherwise None, and it has to run."""
        place = self.place(label, identity)
        # Whatever is wrong with a file, the answer is the same: do not trust it.
        try:
            content, summary = place.read_bytes(), json.loads(_beside(place).read_bytes())
            if summary != _summary_of(summary["record"], identity, content):
                return None
            record = summary["record"]
            # Without the second, it was written by a version that did not know it.
            if record["status"] not in FINISHED or "proven_rate" not in record:
                return None
            return RunRecord(**record, trace=_read_trace(content), reused=True)
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def save(self, record: RunRecord, identity: dict[str, Any]) -> None:
        """Keep a finished run: the trace first, then the summary that vouches for it."""
        place = self.place(record.label, identity)
        record.trace.to_csv(place)
        summary = _summary_of(_plain(record), identity, place.read_bytes())
        write_whole(_beside(place), _json(summary))

    def finish(self, comparison: Comparison, axis: str) -> list[str]:
        """Write summary, table and pictures; return what could not be written, as sentences."""
        tables = [comparison.table(axis=name) for name in AXES]
        contents = {
            CONFIG: _json(comparison.config),
            SUMMARY: _json(comparison.to_dict()),
            TABLE: table.to_csv(tables),
        }
        for kind, content in pictures(comparison, axis, comparison.config["tol"]).items():
            contents[f"{PICTURE}.{kind}"] = content
        failures = []
        for name, content in contents.items():
            try:
                write_whole(self.path / name, content)
            except OSError as error:
                failures.append(unwritten(self.path / name, error))
        return failures


def check_place(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Refuse a place that is not ours to write to; the config of a comparison that is there."""
    folder = Path(path)
    try:
        if not os.fspath(path) or (folder.exists() and not folder.is_dir()):
            raise DataError(f"{os.fspath(path)!r} must name a folder; choose another.")
        there = [name for name in OURS if (folder / name).exists()]
    except OSError as error:
        raise _unusable(path, error) from None
    if not there:
        return {}
    if CONFIG not in there:
        raise DataError(
            f"{path} holds {there[0]} but no {CONFIG}, so it is not a folder of `compare`; choose "
            "another, or remove that file."
        )
    return _read_config(folder / CONFIG)


def _unusable(path: str | os.PathLike[str], error: OSError) -> DataError:
    return DataError(
        f"{path} must be a folder for results, but cannot be used: {error.strerror}; choose "
        "another."
    )


def unwritten(path: Path, error: OSError) -> str:
    """The sentence for a file that the system refused."""
    return f"{path} could not be written: {error.strerror or error}; what was there is intact."


def _beside(place: Path) -> Path:
    return place.with_suffix(".json")


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        config = None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise DataError(
            f"{path} was not written by `compare` ({FORMAT}), or is damaged; choose another "
            "folder, or remove that file and the ones beside it."
        )
    return config


def _same(name: str, found: Any, wanted: Any) -> bool:
    if name == "problem":
        return isinstance(found, dict) and found.get("fingerprint") == wanted["fingerprint"]
    return bool(found == wanted)


def _plain(record: RunRecord) -> dict[str, Any]:
    """The record without its trace, and as if computed."""
    fields = dict(vars(replace(record, reused=False)))
    del fields["trace"], fields["reused"]
    return fields


def _summary_of(record: dict[str, Any], identity: dict[str, Any], content: bytes) -> dict[str, Any]:
    """What is written beside a trace; its checksum covers the trace and the rest of itself."""
    summary = {"format": FORMAT, "identity": identity, "record": record}
    found = hashlib.sha256(json.dumps(summary, sort_keys=True).encode())
    found.update(content)
    return {**summary, "checksum": found.hexdigest()}


def _read_trace(content: bytes) -> Trace:
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    if tuple(rows[0]) != COLUMNS or len(rows) < 2:
        raise ValueError("not a trace")
    trace = Trace()
    for row in rows[1:]:
        trace.append(**dict(zip(COLUMNS, map(_value, row), strict=True)))
    return trace


def _value(text: str) -> Value:
    """A number as `Trace` writes it; whole numbers have no point."""
    if text == "":
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)

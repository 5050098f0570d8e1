"""A run folder: it says what it holds, keeps what is finished, and is never half written.

::

    config.json        problem, time model, algorithms, seeds, versions, command line
    runs/*.csv         one trace per run
    runs/*.json        status, set-up time, parameters, proven rate; written last, with a checksum
    comparison.json    the optimum with its certificate, tables along every axis, how runs ended
    table.csv          the tables once more
    convergence.png    and .pdf, where matplotlib is installed

A run's file name has a digest of everything the run depends on, so the runs of several comparisons
can be in one folder.
"""

import contextlib
import csv
import io
import json
import os
import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import adfs
from adfs.algorithms.base import MethodSetting
from adfs.costs import processor
from adfs.engine.stopping import Stopping
from adfs.engine.trace import Trace
from adfs.errors import DataError
from adfs.problem.finite_sum import Problem
from adfs.storage import digest, json_bytes, json_value, write_whole
from adfs.study.comparison import AXES, Comparison, RunRecord, to_csv
from adfs.study.contenders import Contender, Job
from adfs.study.plots.comparison_plot import draw_comparison
from adfs.study.plots.style import figure_images

FORMAT = "adfs comparison 2"  # 2: suboptimality is relative to |F*| alone
PACKAGES = ("numpy", "scipy", "numba")
DIGITS = 16  # of a digest in a file's name: 64 bits
CONFIG, SUMMARY, TABLE, RUNS = "config.json", "comparison.json", "table.csv", "runs"
FILES = (CONFIG, SUMMARY, TABLE, "convergence.png", "convergence.pdf")
# A folder belongs to one problem under one time model; algorithms, seeds and limits may be added.
BELONGS_TO = ("problem", "tau", "clock", "delays", "costs")
LIMITS = ("tol", "clock_limit", "time_limit", "max_iter")


def describe(
    problem: Problem,
    setting: MethodSetting,
    contenders: Sequence[Contender],
    seeds: list[int],
    stopping: Stopping,
) -> dict[str, Any]:
    """Everything needed to compute a comparison again, in plain values."""
    sigma = np.unique(problem.sigma)
    return {
        "format": FORMAT,
        "problem": {
            "loss": problem.loss.name,
            **{name: getattr(problem, name) for name in ("n_samples", "n_features", "n_nodes")},
            "storage": "dense" if len(problem.rows) == 1 else "sparse",
            "graph": problem.topology.name,
            "n_edges": problem.topology.n_edges,
            "sigma": float(sigma[0]) if len(sigma) == 1 else problem.sigma.tolist(),
            "fingerprint": fingerprint(problem),
        },
        "tau": setting.tau,
        "clock": setting.clock,
        "delays": json_value(asdict(setting.delays)),
        "costs": setting.costs.to_dict(),
        "algorithms": [{"label": each.label, **each._asdict()} for each in contenders],
        "seeds": seeds,
        **{name: getattr(stopping, name) for name in LIMITS},
        **describe_machine(),
    }


def fingerprint(problem: Problem) -> str:
    """Digest of everything that the problem's solution and the algorithms' steps depend on."""
    arrays = (
        *problem.rows, problem.labels, problem.weights, problem.offsets, problem.sigma,
        problem.topology.edges,
    )  # fmt: skip
    parts: list[Any] = [f"{problem.loss.identity} {problem.n_features}"]
    for array in map(np.ascontiguousarray, arrays):
        memory = array.reshape(-1).view(np.uint8).data  # not copied
        parts += [f"{array.dtype.str}{array.shape}", memory]
    return digest(*parts)


def describe_machine() -> dict[str, Any]:
    """Versions and the machine: without them wall times mean nothing."""
    versions = {"python": platform.python_version(), "adfs": adfs.__version__}
    versions |= {name: metadata.version(name) for name in PACKAGES}
    return {
        "versions": versions,
        "cpu": processor(),
        "cores": os.cpu_count() or 1,
        "platform": platform.platform(),
    }


def run_identity(config: dict[str, Any], job: Job, stopping: Stopping) -> dict[str, Any]:
    """Everything that a run depends on; limits as they were in force."""
    return {
        "problem": config["problem"]["fingerprint"],
        **job[0]._asdict(),
        "seed": job[1],
        **{name: config[name] for name in ("tau", "clock", "delays", "costs")},
        **{name: getattr(stopping, name) for name in LIMITS},
        "adfs": config["versions"]["adfs"],
    }


def run_digest(identity: dict[str, Any]) -> str:
    return digest(json.dumps(identity, sort_keys=True))[:DIGITS]


class RunFolder:
    """A folder for a comparison: new, without files of these names, or of the same problem.

    ``failures`` are the messages about files that could not be written: a full disk must not cost
    a result, which is still in memory.
    """

    def __init__(self, path: str | os.PathLike[str], config: dict[str, Any]) -> None:
        self.path, self.failures = Path(path), list[str]()
        found = check_place(path)
        for name in BELONGS_TO if found else ():
            kept, wanted = found.get(name), config[name]
            if name == "problem" and isinstance(kept, dict):  # its graph may have another name
                kept, wanted = kept.get("fingerprint"), wanted["fingerprint"]
            if kept != wanted:
                raise DataError(
                    f"{path} holds a comparison with another {name}; choose another folder."
                )

    def open(self, config: dict[str, Any]) -> None:
        """Make the folder and write what it is going to hold."""
        try:
            (self.path / RUNS).mkdir(parents=True, exist_ok=True)
            write_whole(self.path / CONFIG, json_bytes(config))
        except OSError as error:
            raise _unusable(self.path, error) from None

    def place(self, label: str, identity: dict[str, Any]) -> Path:
        """The file of a run's trace; its summary has the same name with suffix .json."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{label}-seed{identity['seed']}").lstrip(".")
        return self.path / RUNS / f"{name}-{run_digest(identity)}.csv"

    def load(self, label: str, identity: dict[str, Any]) -> RunRecord | None:
        """The run if it is here, finished and undamaged; otherwise None."""
        place = self.place(label, identity)
        # Whatever is wrong with a file, the run is computed again.
        try:
            content = place.read_bytes()
            summary = json.loads(place.with_suffix(".json").read_bytes())
            record = summary["record"]
            if summary != _summary_of(record, identity, content):
                return None
            return RunRecord(**record, trace=_read_trace(content), reused=True)
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def save(self, record: RunRecord, identity: dict[str, Any]) -> None:
        """Keep a run if it is finished: the trace first, then the summary with its checksum."""
        if record.status == "interrupted":
            return
        place = self.place(record.label, identity)
        kept = {**vars(record)}
        del kept["trace"], kept["reused"]
        with self._noting_failure(place):
            record.trace.to_csv(place)
            summary = _summary_of(kept, identity, place.read_bytes())
            write_whole(place.with_suffix(".json"), json_bytes(summary))

    def finish(self, comparison: Comparison, axis: str) -> None:
        tol = comparison.config["tol"]
        images = figure_images(
            (9.0, 5.0), lambda figure: draw_comparison(comparison, figure.add_subplot(), axis, tol)
        )
        contents = {
            CONFIG: json_bytes(comparison.config),
            SUMMARY: json_bytes(comparison.to_dict()),
            TABLE: to_csv([comparison.table(axis=name) for name in AXES]),
            **{f"convergence.{kind}": content for kind, content in images.items()},
        }
        for name, content in contents.items():
            with self._noting_failure(self.path / name):
                write_whole(self.path / name, content)

    @contextlib.contextmanager
    def _noting_failure(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or error
            self.failures.append(f"{path} could not be written: {why}; what was there is intact.")


def check_place(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The config of a comparison that is there, if any; files of others raise an error."""
    folder = Path(path)
    try:
        if not os.fspath(path) or (folder.exists() and not folder.is_dir()):
            raise DataError(f"{os.fspath(path)!r} must name a folder; choose another.")
        there = [name for name in FILES if (folder / name).exists()]
    except OSError as error:
        raise _unusable(path, error) from None
    if not there:
        return {}
    if CONFIG not in there:
        raise DataError(
            f"{path} holds {there[0]} but no {CONFIG}, so it is not a folder of `compare`; choose "
            "another, or remove that file."
        )
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError):
        config = None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise DataError(
            f"{folder / CONFIG} was not written by `compare` ({FORMAT}), or is damaged; choose "
            "another folder, or remove that file and the ones beside it."
        )
    return config


def _unusable(path: str | os.PathLike[str], error: OSError) -> DataError:
    return DataError(
        f"{path} must be a folder for results, but cannot be used: {error.strerror}; choose "
        "another."
    )


def _summary_of(record: dict[str, Any], identity: dict[str, Any], content: bytes) -> dict[str, Any]:
    """What is written beside a trace; its checksum covers the trace and the rest of itself."""
    summary = {"format": FORMAT, "identity": identity, "record": record}
    return {**summary, "checksum": digest(json.dumps(summary, sort_keys=True), content)}


def _read_trace(content: bytes) -> Trace:
    """Whole numbers have no point; what is not known is empty."""
    trace = Trace()
    for row in csv.DictReader(io.StringIO(content.decode(), newline="")):
        trace.append(**{
            name: None if not text else int(text) if text.lstrip("-").isdigit() else float(text)
            for name, text in row.items()
        })  # fmt: skip
    return trace

"""`adfs predict`: one prediction per row, and how good the predictions are."""

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.cli import files, output
from adfs.cli.problem_arguments import load_all
from adfs.data.tables import parquet_bytes
from adfs.errors import shortened
from adfs.graphs.topology import Topology
from adfs.model import Model, Vector, plain
from adfs.network import Network
from adfs.quality import Quality, knows_any, phrase, quality
from adfs.storage import csv_bytes

FIRST_ROWS = 10  # shown on a terminal


def run(args: argparse.Namespace) -> int:
    """Load both, predict, write, and measure where there are labels."""
    model = Model.load(args.model)
    rows, labels = load_all(args.data, model.columns)
    scores = np.concatenate([model.decision(X) for X in rows])
    values = _values(model, scores, args.proba)
    # The targets of a regression can always measure it, unknown labels cannot.
    measured = None
    if labels is not None and (model.classes is None or knows_any(model.classes, labels)):
        measured = _judge(model, scores, labels)
    if args.out is not None:
        files.write(args.out, _content(args.out, values, _headers(model, args.proba)))
    if args.json:
        facts = {
            "n_samples": len(values),
            "kind": "probability" if args.proba else "value" if model.classes is None else "label",
            "predictions": values if args.out is None else None,
            "measure": measured,
            **output.values(args, "model", "data", "out"),
        }
        output.emit_json(facts)
        return 0
    if args.out is None:
        shown = values[:FIRST_ROWS] if output.is_terminal(sys.stdout) else values
        output.emit(_lines(shown))
        if len(shown) < len(values):
            output.note(
                f"... {len(values) - len(shown):,} more of {len(values):,}; --out FILE writes all"
            )
    if labels is not None:
        sentence = f"{phrase(measured)} on {len(labels):,} samples" if measured else _unknown(model)
        output.note(sentence) if args.out is None else output.emit(sentence + "\n")
    return 0


def _content(path: str, values: list[Any], headers: list[str]) -> bytes:
    """A file of predictions: CSV, Parquet or .npy by its suffix, else one line per prediction."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, np.array(values), allow_pickle=False)
        return buffer.getvalue()
    if suffix not in (".csv", ".parquet"):
        return _lines(values).encode()
    rows = [value if isinstance(value, list) else [value] for value in values]
    if suffix == ".csv":
        return csv_bytes([headers, *rows])
    return parquet_bytes(dict(zip(headers, zip(*rows, strict=True), strict=True)))


def _headers(model: Model, proba: bool) -> list[str]:
    if not proba:
        return ["prediction"]
    labels = model.meta["classes"]
    return [f"probability of {label}" for label in (labels if len(labels) > 2 else labels[1:])]


def _values(model: Model, scores: Vector, proba: bool) -> list[Any]:
    """Probabilities, labels (whole numbers without a point), or values."""
    if proba:
        shares = model.probabilities(scores)
        return list((shares if scores.ndim == 2 else shares[:, 1]).tolist())
    if model.classes is None:
        return list(scores.tolist())
    names = {label: plain(label) for label in model.meta["classes"]}
    return [names[label] for label in model.labels(scores).tolist()]


def _lines(values: list[Any]) -> str:
    """One line per prediction; of several classes the probabilities in their order."""
    rows = (value if isinstance(value, list) else [value] for value in values)
    return "".join(f"{' '.join(map(str, row))}\n" for row in rows)


def _unknown(model: Model) -> str:
    shown = shortened(", ".join(map(str, model.meta["classes"])), 80)
    return f"no accuracy: none of the labels is one of the model's ({shown})"


def judge(
    model: Model, rows: list[Any], labels: NDArray[Any], with_curves: bool = False
) -> Quality:
    """How good a model's predictions are on rows with labels, in this process."""
    scores = np.concatenate([model.decision(X) for X in rows])
    return _judge(model, scores, labels, with_curves)


def _judge(
    model: Model, scores: Vector, labels: NDArray[Any], with_curves: bool = False
) -> Quality:
    return quality(model, Network(Topology.single()), [scores], [labels], with_curves=with_curves)

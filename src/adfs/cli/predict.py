"""`adfs predict`: one prediction per row, and how good the predictions are."""

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.cli import files, output
from adfs.cli.problem_arguments import load_all
from adfs.errors import shortened
from adfs.model import Model, Vector, plain

# What each regression loss is about; classifiers are judged by their accuracy.
ERRORS = {"squared": "mean_squared_error"}
OTHER_ERROR = "mean_absolute_error"


def run(args: argparse.Namespace) -> int:
    """Load both, predict, write, and measure where there are labels."""
    model = Model.load(args.model)
    rows, labels = load_all(args.data, model.columns)
    scores = np.concatenate([model.decision(X) for X in rows])
    values = _values(model, scores, args.proba)
    # The targets of a regression can always measure it, unknown labels cannot.
    measured = None
    if labels is not None and (model.classes is None or np.isin(labels, model.classes).any()):
        measured = measure(model, scores, labels)
    text = "".join(f"{_line(value)}\n" for value in values)
    if args.out is not None:
        files.write(args.out, text.encode())
    if args.json:
        facts = {
            "n_samples": len(values),
            "kind": "probability" if args.proba else "value" if model.classes is None else "label",
            "predictions": values if args.out is None else None,
            "measure": dict([measured]) if measured else None,
            **output.values(args, "model", "data", "out"),
        }
        output.emit_json(facts)
        return 0
    if args.out is None:
        output.emit(text)
    if labels is not None:
        quality = f"{phrase(*measured)} on {len(labels):,} samples" if measured else _unknown(model)
        output.note(quality) if args.out is None else output.emit(quality + "\n")
    return 0


def _values(model: Model, scores: Vector, proba: bool) -> list[Any]:
    """Probabilities, labels (whole numbers without a point), or values."""
    if proba:
        shares = model.probabilities(scores)
        return list((shares if scores.ndim == 2 else shares[:, 1]).tolist())
    if model.classes is None:
        return list(scores.tolist())
    names = {label: plain(label) for label in model.meta["classes"]}
    return [names[label] for label in model.labels(scores).tolist()]


def _line(value: Any) -> str:
    """A prediction as text; of several classes the probabilities in their order."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _unknown(model: Model) -> str:
    shown = shortened(", ".join(map(str, model.meta["classes"])), 80)
    return f"no accuracy: none of the labels is one of the model's ({shown})"


def measure(model: Model, scores: Vector, labels: NDArray[Any]) -> tuple[str, float]:
    """Name and value of the measure that fits the model's loss."""
    name, total = summed(model, scores, labels)
    return name, total / len(labels)


def summed(model: Model, scores: Vector, labels: NDArray[Any]) -> tuple[str, float]:
    """The same without the division by the number of samples."""
    if model.loss.binary:
        return "accuracy", float(np.sum(model.labels(scores) == labels))
    name = ERRORS.get(model.loss.name, OTHER_ERROR)
    residual = scores - labels
    with np.errstate(over="ignore"):
        errors = residual**2 if name.endswith("squared_error") else abs(residual)
    return name, float(np.sum(errors))


def phrase(name: str, value: float) -> str:
    if name == "accuracy":
        return f"accuracy {100 * value:.2f} %"
    return f"{name.replace('_', ' ')} {value:.6g}"

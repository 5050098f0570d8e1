"""`adfs predict`: one prediction per row, on stdout or in a file."""

import argparse
from typing import Any

from adfs.cli import files, options, output
from adfs.cli.arguments import Command, Option
from adfs.errors import shortened

EXAMPLES = """\
examples:
  adfs predict model.npz test.txt > labels.txt
  adfs predict model.npz breast-cancer --proba --out probabilities.txt
  adfs predict model.npz breast-cancer --json

Predictions go to stdout and the accuracy (or error) to stderr; with --out the predictions go to
the file and the accuracy to stdout. Columns that the data do not have count as zero. Exit codes: 0
done, 2 bad input, 1 the program or its environment failed, 130 and 143 interrupted."""


def run(args: argparse.Namespace) -> int:
    """Load both, predict, write, and measure where there are labels."""
    import numpy as np

    from adfs.cli.problem_arguments import load_all
    from adfs.model import Model

    model = Model.load(args.model)
    rows, labels = load_all(args.data)
    scores = np.concatenate([model.decision(X) for X in rows])
    values = _values(model, scores, args.proba)
    text = "".join(f"{value}\n" for value in values)
    if args.out is not None:
        files.write(args.out, text.encode())
    if args.json:
        output.emit_json(_record(args, model, values, scores, labels))
        return 0
    if args.out is None:
        output.emit(text)
    if labels is not None:
        quality = _quality(model, scores, labels)
        output.note(quality) if args.out is None else output.emit(quality + "\n")
    return 0


def _record(
    args: argparse.Namespace, model: Any, values: list[Any], scores: Any, labels: Any
) -> dict[str, Any]:
    """The same as plain values; predictions that went to a file are not repeated."""
    from adfs.cli.metrics import measure

    known = labels is not None and _are_known(model, labels)
    name, value = measure(model, scores, labels) if known else (None, None)
    return {
        "n_samples": len(values),
        "kind": "probability" if args.proba else "value" if model.classes is None else "label",
        "predictions": values if args.out is None else None,
        "measure": {name: value} if name else None,
        "model": args.model,
        "data": args.data,
        "out": args.out,
    }


def _values(model: Any, scores: Any, proba: bool) -> list[Any]:
    """Probabilities, labels (whole numbers without a point), or values."""
    from adfs.model import plain

    if proba:
        values: list[Any] = model.probabilities(scores)[:, 1].tolist()
        return values
    if model.classes is None:
        return list(scores.tolist())
    names = {label: plain(label) for label in model.meta["classes"]}
    return [names[label] for label in model.labels(scores).tolist()]


def _quality(model: Any, scores: Any, labels: Any) -> str:
    """Accuracy or error, unless none of the labels is one of the model's."""
    from adfs.cli.metrics import measure, phrase

    if not _are_known(model, labels):
        shown = shortened(", ".join(map(str, model.meta["classes"])), 80)
        return f"no accuracy: none of the labels is one of the model's ({shown})"
    return phrase(*measure(model, scores, labels)) + f" on {len(labels):,} samples"


def _are_known(model: Any, labels: Any) -> bool:
    """Whether these labels can measure the model; the targets of a regression always can."""
    import numpy as np

    return model.classes is None or bool(np.isin(labels, model.classes).any())


COMMAND = Command(
    "predict",
    "predict with a trained model",
    "Print one prediction per row with a model that `adfs train --out` wrote: a label of the "
    "training data, a probability, or for regressions a value; and how good the predictions are, "
    "where the data hold labels.",
    EXAMPLES,
    run,
    (
        Option("MODEL", "a file that `adfs train --out` wrote", options.INPUT),
        Option("DATA", options.DATA_HELP + "; y is not needed", options.INPUT),
    ),
    options.PREDICT,
)

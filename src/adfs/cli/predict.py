"""`adfs predict`: a model's answer for each row, on stdout or in a file."""

import argparse
from typing import Any

from adfs.cli import options, output

EXAMPLE = """\
examples:
  adfs predict model.npz test.txt > labels.txt
  adfs predict model.npz a9a.t --proba --out probabilities.txt

Predictions go to stdout and the accuracy (or error) to stderr; with --out the predictions go to
the file and the accuracy to stdout. Columns that the data lacks count as zero."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands, "predict", run, help="predict with a trained model",
        description="Print one prediction a row, in the labels of the training data.",
        epilog=EXAMPLE,
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="a file that `adfs train --out` wrote")
    parser.add_argument("data", metavar="DATA", help=options.DATA_HELP + "; y is not needed")
    parser.add_argument(
        "--proba",
        action="store_true",
        help="print the probability of the larger label instead (logistic)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the predictions here")


def run(args: argparse.Namespace) -> int:
    """Load both, predict, write, judge."""
    import numpy as np

    from adfs.cli.data import input_files, load_all
    from adfs.runtime.model import Model

    output.check_writable("--out", args.out)
    output.check_distinct({"--out": args.out}, input_files(args.data, args.model))
    model = Model.load(args.model)
    rows, labels = load_all(args.data)
    scores = np.concatenate([model.decision(X) for X in rows])
    text = "".join(f"{value}\n" for value in _values(model, scores, args.proba))
    judgement = None if labels is None else _judge(model, scores, labels)
    if args.out is None:
        output.emit(text)
    else:
        output.write(args.out, text.encode())
    if judgement:
        output.note(judgement) if args.out is None else output.emit(judgement + "\n")
    return 0


def _values(model: Any, scores: Any, proba: bool) -> list[Any]:
    """What to print: probabilities, labels (whole numbers as such), or values."""
    from adfs.runtime.model import plain

    if proba:
        values: list[Any] = model.probabilities(scores)[:, 1].tolist()
        return values
    if model.classes is None:
        return list(scores.tolist())
    names = {label: plain(label) for label in model.meta["classes"]}
    return [names[label] for label in model.labels(scores).tolist()]


def _judge(model: Any, scores: Any, labels: Any) -> str:
    """Accuracy or error, unless the labels are not the model's."""
    import numpy as np

    from adfs.cli.metrics import measure, phrase

    if model.classes is not None and not np.isin(labels, model.classes).any():
        shown = ", ".join(map(str, model.meta["classes"]))
        return f"no accuracy: none of the labels is one of the model's ({shown})"
    return phrase(*measure(model, scores, labels)) + f" on {len(labels):,} samples"

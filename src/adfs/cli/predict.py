"""`adfs predict`: a model's answer for each row, on stdout or in a file."""

import argparse
from typing import Any

from adfs.cli import options, output
from adfs.cli.parser import add_command

EXAMPLE = """\
examples:
  adfs predict model.npz test.txt > labels.txt
  adfs predict model.npz breast-cancer --proba --out probabilities.txt
  adfs predict model.npz breast-cancer --json

Predictions go to stdout and the accuracy (or error) to stderr; with --out the predictions go to
the file and the accuracy to stdout. Columns that the data lacks count as zero. Exit codes: 0 done,
2 bad input, 1 the program or its surroundings failed, 130 and 143 interrupted."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands, "predict", run, help="predict with a trained model",
        description="Print one prediction a row with a model that `adfs train --out` wrote: a "
        "label of the training data, a probability, or for regressions a value; and how good the "
        "predictions are, where the data hold labels.",
        epilog=EXAMPLE,
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="a file that `adfs train --out` wrote")
    parser.add_argument("data", metavar="DATA", help=options.DATA_HELP + "; y is not needed")
    parser.add_argument(
        "--proba",
        action="store_true",
        help="print the probability of the larger label instead (logistic)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the predictions here, one a line")
    options.add_json(parser)


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
    values = _values(model, scores, args.proba)
    text = "".join(f"{value}\n" for value in values)
    if args.out is not None:
        output.write(args.out, text.encode())
    if args.json:
        output.emit_json(_record(args, model, values, scores, labels))
        return 0
    if args.out is None:
        output.emit(text)
    judgement = None if labels is None else _judge(model, scores, labels)
    if judgement:
        output.note(judgement) if args.out is None else output.emit(judgement + "\n")
    return 0


def _record(
    args: argparse.Namespace, model: Any, values: list[Any], scores: Any, labels: Any
) -> dict[str, Any]:
    """The same in plain values; predictions that went to a file are not repeated."""
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
    from adfs.cli.metrics import measure, phrase

    if not _are_known(model, labels):
        shown = ", ".join(map(str, model.meta["classes"]))
        return f"no accuracy: none of the labels is one of the model's ({shown})"
    return phrase(*measure(model, scores, labels)) + f" on {len(labels):,} samples"


def _are_known(model: Any, labels: Any) -> bool:
    """Whether the model can be judged by these labels; targets always do."""
    import numpy as np

    return model.classes is None or bool(np.isin(labels, model.classes).any())

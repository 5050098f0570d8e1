"""What `adfs train` is given besides the samples: a test set, a model to start from, a folder."""

import argparse
from typing import TYPE_CHECKING, Any, Literal

from adfs.cli import output
from adfs.errors import DataError

if TYPE_CHECKING:
    from adfs.runtime.checkpointer import Checkpoints
    from adfs.runtime.model import Model, Vector


def load_test(args: argparse.Namespace, known: int) -> Any:
    """Rows and labels of ``--test``, None without; the training data has ``known`` features."""
    from adfs.cli.data import load_all

    if args.test is None:
        return None
    rows, labels = load_all(args.test)
    if labels is None:
        raise DataError(f"--test {args.test} must hold the labels y, but has none; save them too.")
    width = max(X.shape[1] for X in rows)
    if width > known:
        raise DataError(
            f"--test {args.test} has {width} features but the training data has {known}; give "
            f"--n-features {width}, or check the files."
        )
    return rows, labels


def theta_of(model: "Model", args: argparse.Namespace, width: int) -> "Vector":
    """A model's coefficients in this problem's ``width`` columns; what it does not know is zero."""
    import numpy as np

    known = width - args.intercept
    if model.n_features > known:
        raise DataError(
            f"--warm-start {args.warm_start} has {model.n_features} features but the data has "
            f"{known}; give --n-features {model.n_features}, or another model."
        )
    theta = np.zeros(width)
    theta[: model.n_features] = model.coef[: model.n_features]
    if args.intercept and model.intercept:
        theta[-1] = model.coef[-1]
    return theta


def readings(args: argparse.Namespace) -> int | Literal["curve"] | None:
    """How often to evaluate: whoever asks for a trace or a report wants to see a curve."""
    watched = args.trace is not None or args.report is not None
    return args.evaluate_every or ("curve" if watched else None)


def checkpoints_of(args: argparse.Namespace) -> "Checkpoints | None":
    """What the arguments say about checkpoints."""
    from adfs.runtime.checkpointer import Checkpoints

    if args.checkpoint is None:
        return None
    return Checkpoints(
        args.checkpoint, args.checkpoint_every, args.resume, output.note, output.note
    )  # fmt: skip

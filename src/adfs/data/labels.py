"""Labels: any two values become -1 and 1, counted over all shards; targets are numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import Peers, attempt
from adfs.errors import DataError, shortened
from adfs.losses import Loss


def classes_of(targets: NDArray[Any], loss: Loss, peers: Peers) -> NDArray[Any] | None:
    """The two classes over all processes, the larger one last; None for a regression."""
    if not loss.binary:
        return None
    classes = attempt(peers, lambda: distinct(targets))
    gathered = peers.gather(classes.tolist() if classes.dtype.kind == "O" else classes)
    if peers.size > 1:
        of_all = [np.asarray(each) for each in gathered]
        classes = attempt(peers, lambda: distinct(np.concatenate(of_all)))
    attempt(peers, lambda: _require_two(classes, loss))
    return classes


def encode(targets: NDArray[Any], loss: Loss, classes: NDArray[Any] | None) -> NDArray[np.float64]:
    """Labels as the kernels need them: -1 and 1 for classes, else the targets as they are."""
    if classes is not None:
        return code(targets, classes)
    if targets.dtype.kind not in "fiub":
        raise DataError(
            f"loss {loss.name!r} needs numbers as targets, not {targets.dtype}; "
            "for classes use a loss such as logistic."
        )
    return targets.astype(np.float64)


def code(targets: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """-1 for the first class and 1 for the second."""
    return np.where(targets == classes[1], 1.0, -1.0)


def distinct(targets: NDArray[Any]) -> NDArray[Any]:
    """The different labels in order; two numbers are found without a sorted copy of all of them."""
    if targets.dtype.kind in "fiub":
        ends = np.array([targets.min(), targets.max()])
        if ends[0] != ends[1] and ((targets == ends[0]) | (targets == ends[1])).all():
            return ends
    try:
        return np.unique(targets)
    except TypeError:
        raise DataError(
            "Labels of different kinds are mixed, for example words and numbers or None; "
            "give two values of one kind."
        ) from None


def _require_two(classes: NDArray[Any], loss: Loss) -> None:
    if len(classes) == 1:
        raise DataError(
            f"All labels are {shortened(str(classes[0]), 40)} (one class); loss {loss.name!r} "
            "needs two classes over all shards. Check the labels, or use a regression loss such as "
            "squared."
        )
    if len(classes) != 2:
        shown = ", ".join(shortened(str(value), 20) for value in classes[:4])
        raise DataError(
            f"There are {len(classes)} different labels ({shown}, ...); loss {loss.name!r} needs "
            "exactly two. Train one class against the rest, or use a regression loss such as "
            "squared."
        )

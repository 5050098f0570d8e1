"""Labels: any two values become -1 and 1, judged over all shards; targets are numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.errors import DataError
from adfs.losses import Loss


def encode(targets: NDArray[Any], loss: Loss) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """Labels as the kernels want them, and the two classes (the larger one is coded 1)."""
    if loss.binary:
        classes = distinct(targets)
        require_two(classes, loss)
        return code(targets, classes), classes
    if targets.dtype.kind not in "fiub":
        raise DataError(
            f"loss {loss.name!r} needs numbers as targets, not {targets.dtype}; "
            "for classes use a loss such as logistic."
        )
    return targets.astype(np.float64), None


def code(targets: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """-1 for the first class and 1 for the second."""
    return np.where(targets == classes[1], 1.0, -1.0)


def require_two(classes: NDArray[Any], loss: Loss) -> None:
    """Refuse labels that are not of two kinds."""
    if len(classes) != 2:
        raise DataError(_wrong_count(classes, loss))


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


def _wrong_count(classes: NDArray[Any], loss: Loss) -> str:
    if len(classes) == 1:
        return (
            f"All labels are {classes[0]!s} (one class); loss {loss.name!r} needs two classes "
            "over all shards. Check the labels, or use a regression loss such as squared."
        )
    shown = ", ".join(str(value) for value in classes[:4])
    return (
        f"There are {len(classes)} different labels ({shown}, ...); loss {loss.name!r} needs "
        "exactly two. Train one class against the rest, or use a regression loss such as squared."
    )

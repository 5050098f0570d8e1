"""Labels: any two values become -1 and 1, judged over all shards; targets are numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.errors import DataError
from adfs.losses import Loss
from adfs.network import Network


def classes_of(targets: NDArray[Any], loss: Loss, network: Network) -> NDArray[Any] | None:
    """The two classes over all processes, the larger one last; None for a regression."""
    if not loss.binary:
        return None
    own = network.attempt(lambda: distinct(targets))
    told = network.gather(own.tolist()) if own.dtype.kind == "O" else network.gather(own)
    classes = (
        own
        if network.is_whole
        else network.attempt(lambda: distinct(np.concatenate([np.asarray(each) for each in told])))
    )
    network.attempt(lambda: require_two(classes, loss))
    return classes


def encode(targets: NDArray[Any], loss: Loss, classes: NDArray[Any] | None) -> NDArray[np.float64]:
    """Labels as the kernels want them: -1 and 1 for classes, else the targets as they are."""
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

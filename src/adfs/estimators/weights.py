"""Weights of samples and of classes.

With several classes, one against the rest, a class's weight has no unique meaning; each estimator
follows scikit-learn's of the same name (docs/estimators.md).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import gather_from_all
from adfs.checks import finite
from adfs.errors import DataError, ParameterError
from adfs.estimators.fit_group import FitGroup, union
from adfs.estimators.node_layout import RowLayout

Vector = NDArray[np.float64]


def sample_weights(given: Any, n_samples: int, ranks: FitGroup) -> Vector:
    """One weight per row: ones, the same for all, or as given; some of them > 0 on some rank."""
    weights = ranks.each(lambda: _checked(given, n_samples))
    found = gather_from_all(ranks.peers, bool(weights.any()))
    nothing = DataError("All sample weights are zero, so nothing can be learnt; check them.")
    ranks.require(any(found), nothing)
    return weights


def _checked(given: Any, n_samples: int) -> Vector:
    if given is None:
        return np.ones(n_samples)
    try:
        weights = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be numbers, but: {error}; convert it.") from None
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise DataError(
            f"sample_weight must have one entry per row, but sample_weight.shape is "
            f"{weights.shape} for {n_samples} rows; pass one array of that length."
        )
    bad = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(bad):
        raise DataError(f"sample_weight has {bad[0]:g}; weights are finite and >= 0.")
    return weights


def classes_of(y: NDArray[Any], weights: Vector, ranks: FitGroup) -> NDArray[Any]:
    """The labels of all ranks in order, without those whose rows all have weight 0."""
    classes = ranks.each(lambda: np.unique(y[weights > 0.0]))
    if not ranks.alone:
        classes, _ = union(ranks, classes, "Labels")
    single = DataError(
        f"Among the rows of weight > 0 there is only one class, {classes.tolist()[0]!r}; a "
        "classifier needs two classes or more. Check the labels and the weights."
    )
    ranks.require(len(classes) > 1, single)
    return classes


def check_class_weight(class_weight: Any) -> None:
    """Refuse anything but None, "balanced" and a dict from labels to weights >= 0."""
    if class_weight is None or _balanced(class_weight):
        return
    if not isinstance(class_weight, Mapping):
        raise ParameterError(
            f"class_weight={class_weight!r} must be None, 'balanced' or a dict from label to "
            "weight; pass one of them."
        )
    for label, weight in class_weight.items():
        finite(f"class_weight[{label!r}]", weight, least=0, hint="use 1 for no weight")


def check_labels(class_weight: Any, classes: NDArray[Any]) -> None:
    """Refuse weights of unknown labels while some known label has none."""
    if class_weight is None or _balanced(class_weight):
        return
    known = _plain(classes)
    missing = [label for label in known if label not in class_weight]
    if missing and len(class_weight) > len(known) - len(missing):
        raise ParameterError(
            f"class_weight has an entry that is no label while the label {missing[0]!r} has none; "
            f"the labels are {', '.join(map(repr, known))}."
        )


def weight_of_each(
    class_weight: Any, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: RowLayout
) -> Vector:
    """One weight per class; ``balanced`` is ``sum w / (n_classes * sum of w over the class)``.

    The sums are over the rows of all nodes.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if _balanced(class_weight):
        masses = layout.add_up(
            lambda own: [weights[own][y[own] == label].sum() for label in classes]
        )
        return np.asarray(masses.sum() / (len(classes) * masses))
    return np.array([float(class_weight.get(label, 1.0)) for label in _plain(classes)])


def each_row_its_own(
    class_weight: Any, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: RowLayout
) -> list[Vector]:
    """Every row has the weight of its class; ``balanced`` balances each problem by itself.

    As scikit-learn's ``OneVsRestClassifier(LogisticRegression(class_weight="balanced"))``.
    """
    if _balanced(class_weight) and len(classes) > 2:
        found = []
        for label in classes:
            own = np.array([False, True])
            heavy = weight_of_each("balanced", own, y == label, weights, layout)
            found.append(weights * np.where(y == label, heavy[1], heavy[0]))
        return found
    heavy = weight_of_each(class_weight, classes, y, weights, layout)
    # Rows whose label is not among the classes have weight 0 already.
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return [weights * heavy[places]] * (1 if len(classes) == 2 else len(classes))


def the_class_against_ones(
    class_weight: Any, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: RowLayout
) -> list[Vector]:
    """In its own problem a class has its weight, and all other rows have one: liblinear's rule."""
    if class_weight is None or len(classes) == 2:
        return each_row_its_own(class_weight, classes, y, weights, layout)
    heavy = weight_of_each(class_weight, classes, y, weights, layout)
    pairs = zip(classes, heavy, strict=True)
    return [weights * np.where(y == label, weight, 1.0) for label, weight in pairs]


def _plain(classes: NDArray[Any]) -> list[Any]:
    """The labels as a dict has them."""
    return [label.item() if isinstance(label, np.generic) else label for label in classes]


def _balanced(class_weight: Any) -> bool:
    return isinstance(class_weight, str) and class_weight == "balanced"

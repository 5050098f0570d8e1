"""Weights of samples and of classes.

One against the rest, with several classes, has no one meaning of a class's weight; each estimator
keeps to what scikit-learn does under its name (docs/estimators.md).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.errors import DataError, ParameterError
from adfs.estimators.company import Company
from adfs.estimators.layout import Layout
from adfs.estimators.names import union
from adfs.estimators.options import number

Vector = NDArray[np.float64]


def sample_weights(given: Any, n_samples: int, company: Company) -> Vector:
    """One weight a row: ones, the same for all, or as given; somewhere some of them > 0."""
    weights = company.each(lambda: _checked(given, n_samples))
    heavy = company.some(bool(weights.any()))
    company.each(lambda: _require_some(heavy))
    return weights


def _require_some(heavy: bool) -> None:
    if not heavy:
        raise DataError("All sample weights are zero, so nothing can be learnt; check them.")


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
            f"sample_weight must have one entry a row, but sample_weight.shape is {weights.shape} "
            f"for {n_samples} rows; pass one array of that length."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        worst = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise DataError(f"sample_weight has {worst:g}; weights are finite and >= 0.")
    return weights


def classes_of(y: NDArray[Any], weights: Vector, company: Company) -> NDArray[Any]:
    """The labels of all ranks in order; those of rows that weigh nothing are not there."""
    classes = company.each(lambda: np.unique(y[weights > 0.0]))
    if not company.alone:
        classes, _ = union(company, classes, "Labels")
    company.each(lambda: _require_two(classes))
    return classes


def _require_two(classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise DataError(
            f"Among the rows of weight > 0 there is only one class, {classes.tolist()[0]!r}; a "
            "classifier needs two classes or more. Check the labels and the weights."
        )


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is no weight of classes."""
    if class_weight is None or _balanced(class_weight):
        return
    if not isinstance(class_weight, Mapping):
        raise ParameterError(
            f"class_weight={class_weight!r} must be None, 'balanced' or a dict from label to "
            "weight; pass one of them."
        )
    for label, weight in class_weight.items():
        checked = number(f"class_weight[{label!r}]", weight, "a weight >= 0")
        if not 0.0 <= checked < np.inf:
            raise ParameterError(
                f"class_weight[{label!r}]={weight!r} must be a finite number >= 0; use 1 for none."
            )


def check_labels(class_weight: Any, classes: NDArray[Any]) -> None:
    """Refuse weights of labels that are not there while some that are have none."""
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
    class_weight: Any, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: Layout
) -> Vector:
    """One weight a class; ``balanced`` is ``sum w / (n_classes * sum of w over the class)``.

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
    class_weight: Any, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: Layout
) -> list[Vector]:
    """Rows weigh as their class does; ``balanced`` balances each problem by itself.

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
    together = weights * _spread(heavy, classes, y)
    return [together] * n_models(classes)


def the_class_against_ones(
    class_weight: Any, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: Layout
) -> list[Vector]:
    """In its own problem a class has its weight, and all other rows have one: liblinear's rule."""
    if class_weight is None or len(classes) == 2:
        return each_row_its_own(class_weight, classes, y, weights, layout)
    heavy = weight_of_each(class_weight, classes, y, weights, layout)
    pairs = zip(classes, heavy, strict=True)
    return [weights * np.where(y == label, weight, 1.0) for label, weight in pairs]


def n_models(classes: NDArray[Any]) -> int:
    """One for two classes, else one a class."""
    return 1 if len(classes) == 2 else len(classes)


def _plain(classes: NDArray[Any]) -> list[Any]:
    """The labels as a dict has them."""
    return [label.item() if isinstance(label, np.generic) else label for label in classes]


def _balanced(class_weight: Any) -> bool:
    return isinstance(class_weight, str) and class_weight == "balanced"


def _spread(heavy: Vector, classes: NDArray[Any], y: NDArray[Any]) -> Vector:
    """The weight of each row's class; rows whose class is not there weigh nothing already."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.asarray(heavy[places])

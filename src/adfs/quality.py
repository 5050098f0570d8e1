"""How good predictions are: accuracy, log-loss, AUC and confusion of classes; R2 and errors.

Everything but the AUC is a sum over samples, so nodes add up their own. The AUC needs the scores of
all samples in one place, one number each; above `MOST_SCORES` samples it is left out. For a page,
the ROC curve comes with the AUC, and residuals are counted in bins, which add up over nodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.data.shards import slice_rows
from adfs.model import ROWS_AT_ONCE, Model, class_probabilities, finite
from adfs.network import Network
from adfs.problem.finite_sum import Problem
from adfs.run import Result
from adfs.threads import one_blas_thread

MOST_SCORES = 10_000_000
MOST_CLASSES = 100  # of a confusion matrix
MOST_POINTS = 200  # of a ROC curve
N_BINS, SPAN = 29, 3.5  # of residuals: bins, and where the outer ones begin, in units of the RMSE
Array = NDArray[np.float64]
Quality = dict[str, Any]  # measures by name; None where one is not finite
# What a line about a model shows; the rest is in JSON and in the report.
TITLES = {
    "accuracy": ("accuracy", "{:.2%}"),
    "auc": ("AUC", "{:.4f}"),
    "log_loss": ("log-loss", "{:.4g}"),
    "r2": ("R2", "{:.4f}"),
    "root_mean_squared_error": ("RMSE", "{:.6g}"),
    "mean_absolute_error": ("MAE", "{:.6g}"),
}


def quality_of_rows(
    model: Model,
    problem: Problem,
    results: Sequence[Result],
    labels: NDArray[Any],
    chosen: NDArray[np.bool_] | None = None,
    with_curves: bool = False,
) -> Quality:
    """How well results, one or one per class, fit the rows of all nodes; called on all ranks.

    ``labels`` are those of the rows here, as the data had them. Of ``chosen`` rows there is no AUC.
    """
    theta = results[0].theta if len(results) == 1 else np.stack([each.theta for each in results])
    parts = [problem.node_rows(node) for node in problem.nodes.tolist()]
    with one_blas_thread():  # the same bits, however many cores a process may use
        scores = [_scores_on(problem, theta.T, part) for part in parts]
    own = [labels[part] for part in parts]
    if chosen is not None:
        scores = [each[chosen[part]] for each, part in zip(scores, parts, strict=True)]
        own = [each[chosen[part]] for each, part in zip(own, parts, strict=True)]
    return quality(model, problem.network, scores, own, chosen is None, with_curves)


def _scores_on(problem: Problem, theta: Array, part: slice) -> Array:
    """Scores of the rows of one node."""
    scores = np.empty((part.stop - part.start, *theta.shape[1:]))
    for first in range(part.start, part.stop, ROWS_AT_ONCE):
        last = min(part.stop, first + ROWS_AT_ONCE)
        rows = slice_rows(problem.rows, problem.n_features, first, last)
        scores[first - part.start : last - part.start] = rows @ theta
    return scores


def quality(
    model: Model,
    network: Network,
    scores: Sequence[Array],
    labels: Sequence[NDArray[Any]],
    has_auc: bool = True,
    with_curves: bool = False,
) -> Quality:
    """Measures of predictions, with one array of scores and of labels per node of this process.

    ``with_curves`` adds ``roc`` where there is an AUC, and ``residuals`` for a regression. Called
    on all ranks.
    """
    if model.classes is None:
        found = _of_values(network, scores, labels)
        if with_curves:
            found["residuals"] = _histogram(network, scores, labels, **found)
        return found
    found = _of_classes(model, network, scores, labels)
    n_samples = int(found.pop("n_samples"))
    if has_auc and len(model.meta["classes"]) == 2 and n_samples <= MOST_SCORES:
        own = [np.concatenate(scores), np.concatenate(labels) == model.classes[1]]
        all_scores, are_second = zip(*network.gather(own), strict=True)
        pair = np.concatenate(all_scores), np.concatenate(are_second)
        found["auc"] = area_under_curve(*pair)
        if with_curves and found["auc"] is not None:
            found["roc"] = roc_curve(*pair).tolist()
    return found


def _of_classes(
    model: Model, network: Network, scores: Sequence[Array], labels: Sequence[NDArray[Any]]
) -> Quality:
    classes = model.classes
    assert classes is not None
    k, size = len(classes), min(len(classes), MOST_CLASSES)
    sums = []
    for of_node, labels_of_node in zip(scores, labels, strict=True):
        # Labels that the model does not know are wrong predictions in no row of the matrix.
        truth, is_known = _places(classes, labels_of_node)
        chosen = of_node.argmax(axis=1) if of_node.ndim == 2 else (of_node > 0).astype(int)
        correct = np.count_nonzero(is_known & (chosen == truth))
        matrix = np.zeros((size, size))
        if k == size:
            np.add.at(matrix, (truth[is_known], chosen[is_known]), 1.0)
        loss = 0.0
        if model.loss.name == "logistic":
            share = class_probabilities(of_node)[np.arange(len(truth)), truth]
            with np.errstate(divide="ignore"):
                loss = -float(np.log(share[is_known]).sum())
        counts = [len(truth), correct, np.count_nonzero(is_known), loss]
        sums.append(np.concatenate([counts, matrix.ravel()]))
    total = network.sum_rows(np.array(sums), 4 + size * size)
    n_samples, correct, n_known, loss = total[:4].tolist()
    found: Quality = {"n_samples": n_samples, "accuracy": correct / n_samples}
    if model.loss.name == "logistic":
        found["log_loss"] = finite(loss / n_known if n_known else math.nan)
    if k == size:
        confusion = total[4:].reshape(k, k)
        found |= _precision_and_recall(confusion)
        found["confusion"] = confusion.astype(int).tolist()
    return found


def _places(classes: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Which class each label is, and whether it is one at all."""
    if (labels.dtype.kind in "UO") != (classes.dtype.kind in "UO"):
        return np.zeros(len(labels), dtype=int), np.zeros(len(labels), dtype=bool)
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return places, classes[places] == labels


def knows_any(classes: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Whether some label is one of the classes."""
    return bool(_places(classes, labels)[1].any())


def _precision_and_recall(confusion: Array) -> Quality:
    """Of the second class of two; the mean over more classes. One that never occurs counts zero."""
    right, chosen, true = np.diag(confusion), confusion.sum(axis=0), confusion.sum(axis=1)
    precision = np.divide(right, chosen, out=np.zeros_like(right), where=chosen > 0)
    recall = np.divide(right, true, out=np.zeros_like(right), where=true > 0)
    if len(right) == 2:
        return {"precision": float(precision[1]), "recall": float(recall[1])}
    return {"precision": float(precision.mean()), "recall": float(recall.mean())}


def _of_values(
    network: Network, scores: Sequence[Array], labels: Sequence[NDArray[Any]]
) -> Quality:
    counts = np.array([[len(y), np.sum(y)] for y in labels], dtype=np.float64)
    n_samples, total = network.sum_rows(counts, 2).tolist()
    mean, sums = total / n_samples, []
    with np.errstate(over="ignore", invalid="ignore"):
        for predicted, y in zip(scores, labels, strict=True):
            away = predicted - y
            sums.append([np.sum(away**2), np.sum(abs(away)), np.sum((y - mean) ** 2)])
        squares, absolute, spread = network.sum_rows(np.array(sums), 3).tolist()
    return {
        "r2": finite(1.0 - squares / spread if spread > 0.0 else math.nan),
        "mean_squared_error": finite(squares / n_samples),
        "root_mean_squared_error": finite(math.sqrt(squares / n_samples)),
        "mean_absolute_error": finite(absolute / n_samples),
    }


def _histogram(
    network: Network, scores: Sequence[Array], labels: Sequence[NDArray[Any]],
    root_mean_squared_error: float | None, **_: Any,
) -> Quality | None:  # fmt: skip
    """How many residuals, target minus prediction, are in each bin; the outer ones hold the rest.

    None if all residuals are 0, or one is not finite.
    """
    if not root_mean_squared_error:
        return None
    edges = SPAN * root_mean_squared_error * np.linspace(-1.0, 1.0, N_BINS + 1)
    pairs = zip(scores, labels, strict=True)
    rows = [np.histogram(np.clip(y - s, edges[0], edges[-1]), edges)[0] for s, y in pairs]
    counts = network.sum_rows(np.array(rows, dtype=np.float64), N_BINS)
    return {"edges": edges.tolist(), "counts": counts.astype(int).tolist()}


def roc_curve(scores: Array, is_second: NDArray[np.bool_]) -> Array:
    """Shares of the first and of the second class above each score; at most `MOST_POINTS` rows.

    Examples
    --------
    >>> roc_curve(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True])).tolist()
    [[0.0, 0.0], [0.0, 0.5], [0.5, 1.0], [1.0, 1.0]]
    """
    order = np.argsort(-scores)
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)  # of equal scores
    above = np.append(0, ends + 1)
    second = np.append(0, np.cumsum(is_second[order])[ends])
    curve = np.column_stack([above - second, second]) / [np.sum(~is_second), np.sum(is_second)]
    if len(curve) <= MOST_POINTS:
        return curve
    along = np.searchsorted(curve.sum(axis=1), np.linspace(0.0, 2.0, MOST_POINTS))
    return np.asarray(curve[np.unique(along)])


def area_under_curve(scores: Array, is_second: NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve: how often a sample of the second class scores higher; ties half.

    Examples
    --------
    >>> area_under_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    0.75
    """
    n_second = int(np.count_nonzero(is_second))
    n_first = len(scores) - n_second
    if not n_first or not n_second:
        return None
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(count) - (count - 1) / 2  # of equal scores
    ranks = float(mean_rank[place][is_second].sum())
    return (ranks - n_second * (n_second + 1) / 2) / (n_first * n_second)


def texts_of(found: Quality, titles: Mapping[str, tuple[str, str]] = TITLES) -> dict[str, str]:
    """The main measures as texts, by title.

    Examples
    --------
    >>> texts_of({"accuracy": 0.975, "auc": None, "log_loss": 0.1})
    {'accuracy': '97.50 %', 'AUC': 'unknown', 'log-loss': '0.1'}
    """
    texts = {}
    for name, (title, form) in titles.items():
        if name in found:
            value = found[name]
            texts[title] = "unknown" if value is None else form.format(value).replace("%", " %")
    return texts


def phrase(found: Quality) -> str:
    """The same in one line."""
    return ", ".join(f"{title} {text}" for title, text in texts_of(found).items())

"""The model on a page: its largest coefficients, and how good its predictions are."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from adfs.model import Model, Vector
from adfs.quality import TITLES, Quality, texts_of
from adfs.study.numbers import number
from adfs.study.report.convergence_chart import ticks

MOST_ROWS, ROWS_PER_CLASS = 15, 6  # coefficients of a model, and of one of several classes
MOST_TABLES = 12  # classes whose coefficients are shown
MOST_CELLS = 20  # classes of a confusion matrix that is shown
MEASURES = {**TITLES, "precision": ("precision", "{:.2%}"), "recall": ("recall", "{:.2%}")}
BarRow = tuple[str, tuple[float, float] | None, str, list[tuple[str, str]]]
SIDE = 240.0  # of a ROC curve, in pixels
WIDTH, HEIGHT = 320.0, 150.0  # of a histogram


def describe_model(model: Model, quality: Mapping[str, Quality | None]) -> dict[str, Any]:
    """What the parts ``model`` and ``quality`` of a page show; ``quality`` is by name of the data.

    ``headline`` is the one number for the top of the page, of the last data that have it.
    """
    known = {name: found for name, found in quality.items() if found is not None}
    texts = {name: texts_of(found, MEASURES) for name, found in known.items()}
    titles = dict.fromkeys(title for each in texts.values() for title in each)
    is_small = len(model.meta["classes"]) <= MOST_CELLS
    return {
        "model": model,
        "coefficients": coefficient_tables(model),
        "names": list(known),
        "measures": [(title, *(each.get(title, "-") for each in texts.values()))
                     for title in titles],
        "headline": [
            (f"{title}, {name}", each[title], "")
            for name, each in list(texts.items())[-1:]
            for title in ("accuracy", "R2")
            if title in each
        ],
        "matrices": _with(known, "confusion") if is_small else {},
        "roc": {name: (_path(each), texts[name]["AUC"])
                for name, each in _with(known, "roc").items()},
        "residuals": {name: histogram(each) for name, each in _with(known, "residuals").items()},
    }  # fmt: skip


def _with(known: Mapping[str, Quality], measure: str) -> dict[str, Any]:
    """A measure by the name of the data, where it is known."""
    return {name: found[measure] for name, found in known.items() if found.get(measure)}


def coefficient_tables(model: Model) -> list[tuple[Any, list[BarRow]]]:
    """The largest coefficients of each class, with its label.

    With a scaler they are ordered, and drawn, as per standard deviation of the feature.
    """
    coefs, names, scaler = np.atleast_2d(model.coef), model.feature_names, model.meta.get("scaler")
    scales = None if scaler is None else np.array(scaler["scales"])
    if len(coefs) == 1:
        return [(None, _largest(coefs[0], names, scales, MOST_ROWS))]
    pairs = zip(model.meta["classes"][:MOST_TABLES], coefs, strict=False)
    return [(label, _largest(row, names, scales, ROWS_PER_CLASS)) for label, row in pairs]


def _largest(coef: Vector, names: list[str], scales: Vector | None, most: int) -> list[BarRow]:
    """Rows of the largest coefficients, and of the intercept that may follow the features."""
    values = coef[: len(names)]
    effects = values if scales is None else values * scales
    sizes = np.where(np.isfinite(effects), np.abs(effects), 0.0)
    lengths = 50.0 * np.where(sizes > 0.0, effects, 0.0) / (sizes.max() or 1.0)
    rows: list[BarRow] = []
    for j in np.argsort(-sizes, kind="stable")[:most].tolist():
        length, texts = float(lengths[j]), [(number(values[j]), "")]
        texts += [] if scales is None else [(number(effects[j]), "")]
        bar = (50.0 + min(0.0, length), abs(length))
        rows.append((names[j], bar, "up" if length > 0.0 else "down", texts))
    if len(coef) > len(names):
        rows.append(("intercept", None, "", [(number(coef[-1]), ""), ("", "")][: len(texts)]))
    return rows


def _path(points: Sequence[Sequence[float]]) -> str:
    return "M" + "L".join(f"{SIDE * x:.1f} {SIDE * (1.0 - y):.1f}" for x, y in points)


def histogram(found: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Bars of residuals as one path, and the ticks below, in pixels."""
    counts = np.array(found["counts"], dtype=float)
    end = float(found["edges"][-1])
    places = np.linspace(0.0, WIDTH, len(counts) + 1).tolist()
    heights = (HEIGHT * counts / counts.max()).tolist()
    bars = (
        f"M{a + 0.5:.1f} {HEIGHT}V{HEIGHT - height:.1f}H{b - 0.5:.1f}V{HEIGHT}z"
        for (a, b), height in zip(pairwise(places), heights, strict=True)
    )
    marks = [sign * value for value in ticks(end, 3) for sign in (-1.0, 1.0) if value or sign > 0]
    return {
        "path": "".join(bars),
        "ticks": [(WIDTH * (0.5 + value / (2.0 * end)), number(value)) for value in marks],
        "n_samples": int(counts.sum()),
        "end": number(end),
    }

"""The model on a page: its largest coefficients, and how good its predictions are."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.model import Model
from adfs.quality import TITLES, Quality, texts_of
from adfs.study.numbers import number
from adfs.study.report.convergence_chart import ticks

MOST_ROWS, ROWS_PER_CLASS = 15, 6  # coefficients of a model, and of one of several classes
MOST_TABLES = 12  # classes whose coefficients are shown
MOST_CELLS = 20  # classes of a confusion matrix that is shown
MEASURES = {**TITLES, "precision": ("precision", "{:.2%}"), "recall": ("recall", "{:.2%}")}
SIDE = 240.0  # of a ROC curve, in pixels
WIDTH, HEIGHT = 320.0, 150.0  # of a histogram


def describe_model(model: Model, quality: Mapping[str, Quality | None]) -> dict[str, Any]:
    """What the parts ``model`` and ``quality`` of a page show; ``quality`` is by name of the data.

    ``headline`` is the one number for the top of the page, of the last data that have it.
    """
    known = {name: found for name, found in quality.items() if found is not None}
    texts = {name: texts_of(found, MEASURES) for name, found in known.items()}
    titles = list(dict.fromkeys(title for each in texts.values() for title in each))
    small = len(model.meta["classes"]) <= MOST_CELLS
    return {
        "model": model,
        "coefficients": coefficient_tables(model),
        "names": list(known),
        "measures": [[title, *(each.get(title, "-") for each in texts.values())] for title in titles],
        "headline": [
            (f"{title}, {name}", text, "")
            for name, each in list(texts.items())[-1:]
            for title, text in each.items()
            if title in ("accuracy", "R2")
        ],
        "matrices": {name: each["confusion"] for name, each in known.items()
                     if small and "confusion" in each},
        "roc": {name: (_path(each["roc"]), texts[name]["AUC"]) for name, each in known.items()
                if "roc" in each},
        "residuals": {name: histogram(each["residuals"]) for name, each in known.items()
                      if each.get("residuals")},
    }  # fmt: skip


def coefficient_tables(model: Model) -> list[tuple[Any, list[Any]]]:
    """The largest coefficients of each class: its label and, per row, name, bar and texts.

    With a scaler they are ordered, and drawn, as per standard deviation of the feature.
    """
    rows, classes = np.atleast_2d(model.coef), model.meta["classes"]
    scaler, names = model.meta.get("scaler"), model.feature_names
    scales = np.array(scaler["scales"]) if scaler else 1.0
    most = ROWS_PER_CLASS if len(rows) > 1 else MOST_ROWS
    tables = []
    for label, row in zip(classes if len(rows) > 1 else [None], rows[:MOST_TABLES], strict=False):
        effects = row[: model.n_features] * scales
        sizes = np.where(np.isfinite(effects), np.abs(effects), 0.0)
        lengths = 50.0 * np.where(sizes > 0.0, effects, 0.0) / (sizes.max() or 1.0)
        largest = np.argsort(-sizes, kind="stable")[:most].tolist()
        shown = [
            (names[j], (50.0 + min(0.0, lengths[j]), abs(lengths[j])),
             "up" if lengths[j] > 0.0 else "down",
             [(number(row[j]), ""), *([(number(effects[j]), "")] if scaler else [])])
            for j in largest
        ]  # fmt: skip
        if model.intercept:
            shown.append(("intercept", None, "", [(number(row[-1]), ""), *([("", "")] if scaler else [])]))
        tables.append((label, shown))
    return tables


def _path(points: Sequence[Sequence[float]]) -> str:
    return "M" + "L".join(f"{SIDE * x:.1f} {SIDE * (1.0 - y):.1f}" for x, y in points)


def histogram(found: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Bars of residuals as one path, and the ticks below, in pixels."""
    counts: NDArray[Any] = np.array(found["counts"], dtype=float)
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

"""A regularisation path: quality and coefficients against C."""

from typing import Any

import numpy as np

from adfs.regularization import RegularizationPath
from adfs.study.plots.style import BLUE, GREY, HUES, ORANGE, new_axes, tidy

MOST_LINES = 20  # coefficients drawn per class, the largest ones at the last C
TITLES = {
    "log_loss": "log-loss",
    "accuracy": "accuracy",
    "root_mean_squared_error": "root mean squared error",
}


def draw_path(path: RegularizationPath, axes: Any = None) -> Any:
    """Draw the deciding measure with its standard error on the left, coefficients on the right."""
    axes = new_axes(11.0, 4.2, columns=2) if axes is None else axes
    _draw_measure(path, axes[0])
    _draw_coefficients(path, axes[1])
    for ax in axes:
        ax.set(xscale="log", xlabel="C (weaker regularisation to the right)")
        if path.best_C is not None:
            ax.axvline(path.best_C, color=GREY, linewidth=1.0, zorder=0)
        tidy(ax, grid="y")
    axes[0].legend(frameon=False)
    return axes


def _draw_measure(path: RegularizationPath, ax: Any) -> None:
    name, C = path.measure, path.C
    train = np.array([point.train[name] for point in path.points], dtype=float)
    ax.plot(C, train, color=ORANGE, linestyle="--", marker="s", markersize=3, label="training")
    if path.cv is not None:
        mean, error = path.mean(), path.standard_error()
        label = f"{path.cv} folds, with standard error"
        ax.plot(C, mean, color=BLUE, marker="o", markersize=4, label=label)
        ax.fill_between(C, mean - error, mean + error, color=BLUE, alpha=0.18, linewidth=0.0)
    ax.set_ylabel(TITLES[name])


def _draw_coefficients(path: RegularizationPath, ax: Any) -> None:
    d = path.model.n_features
    coef = path.coef.reshape(len(path.points), -1, path.coef.shape[-1])[:, :, :d]
    for number in range(coef.shape[1]):
        lines, color = coef[:, number], HUES[number % len(HUES)]
        largest = np.argsort(-abs(lines[-1]), kind="stable")[:MOST_LINES]
        ax.plot(path.C, lines[:, largest], color=color, alpha=0.6, linewidth=1.2)
    ax.set_ylabel("coefficients" if d <= MOST_LINES else f"the {MOST_LINES} largest coefficients")

"""How fast a run converged: gap and suboptimality against idealized time, beside theory's rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adfs.plots.timeline import BLUE, GREY, INK
from adfs.runtime.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERMILION = "#D55E00"


def draw_convergence(
    trace: Trace, ax: Axes | None = None, rho: float | None = None, tol: float | None = None
) -> Axes:
    """Draw relative duality gap and suboptimality on a logarithmic scale.

    Parameters
    ----------
    trace : Trace
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    rho : float, optional
        Adds Theorem 1's rate: ``(1 - rho)^t`` from the first gap on.
    tol : float, optional
        Adds the relative gap that was asked for.

    Returns
    -------
    Axes
        With one labelled line each for what is known.
    """
    ax = _new_axes() if ax is None else ax
    time = _column(trace, "idealized_time")
    gap = _column(trace, "duality_gap") / np.maximum(1.0, abs(_column(trace, "objective")))
    suboptimality = _column(trace, "suboptimality")
    if rho is not None:
        bound = gap[0] * np.exp(np.log1p(-rho) * _column(trace, "iteration"))
        ax.plot(time, bound, color=INK, linewidth=1.2, dashes=(5, 3), label=r"theory, $(1-\rho)^t$")
    for values, color, label in (
        (gap, BLUE, "duality gap (certified)"),
        (suboptimality, VERMILION, "suboptimality, mean over nodes"),
    ):
        shown = values > 0  # a logarithm shows no zeros; NaN where nothing is known
        if shown.any():
            ax.plot(time[shown], values[shown], color=color, linewidth=1.8, label=label)
    if tol is not None:
        ax.axhline(tol, color=GREY, linewidth=1.0, zorder=0)
        ax.annotate("tol", (1.0, tol), xycoords=("axes fraction", "data"), xytext=(4, 0),
                    textcoords="offset points", va="center", color=INK)  # fmt: skip
    _finish(ax)
    return ax


def _column(trace: Trace, name: str) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in trace[name]], dtype=float)


def _new_axes() -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(8.0, 5.0), layout="constrained")[1]


def _finish(ax: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    ax.set_yscale("log")
    ax.set_xlim(left=0.0)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xlabel("idealized time, in units of one proximal step")
    ax.set_ylabel("relative error")
    ax.grid(axis="y", color=GREY, alpha=0.35, linewidth=0.6)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False)

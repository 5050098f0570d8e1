"""How fast one run or several algorithms converge; medians over seeds, with bands of quantiles."""

import numpy as np

from adfs.checks import choice
from adfs.engine.trace import Trace
from adfs.problem.certificate import relative
from adfs.study.comparison import AXES, Comparison
from adfs.study.plots import style as colours
from adfs.study.plots.style import GREY, INK, Axes, line_styles, new_axes, one_unit, tidy

MARKS = 12  # per line


def draw_comparison(
    comparison: Comparison,
    ax: Axes | None = None,
    axis: str = "idealized_time",
    tol: float | None = None,
) -> Axes:
    """Draw suboptimality on a logarithmic scale, one line and one band per algorithm.

    ``tol`` adds the accuracy at which runs stop, and cuts the axes there: at the end of the last
    run that reaches it, and at a tenth of it.
    """
    choice("axis", axis, AXES)
    ax = new_axes(9.0, 5.0) if ax is None else ax
    start, end = 0.0, 0.0
    for label, style in zip(comparison.labels, line_styles(comparison.labels), strict=True):
        x, band = comparison.band(label, axis)
        if len(x):
            start = max(start, band[1, 0])
            end = x[-1] if tol is not None and band[1, -1] <= tol and x[-1] > end else end
            # A logarithmic scale shows no zeros: errors of rounding size leave the picture.
            low, middle, high = np.where(band > 0, band, np.nan)
            every = max(1, len(x) // MARKS)
            ax.plot(x, middle, markevery=every, markersize=5, **style.options())
            if not np.array_equal(low, high, equal_nan=True):
                ax.fill_between(x, low, high, color=style.color, alpha=0.18, linewidth=0.0)
    ax.set(yscale="log", xlabel=AXES[axis])
    ax.set_ylabel(r"suboptimality, $(F(\theta) - F^*) / |F^*|$")
    if start > 0:  # a run that diverges must not flatten all others
        ax.set_ylim(top=min(ax.get_ylim()[1], 10.0 * start))
    if tol is not None:
        ax.axhline(tol, color=GREY, linewidth=1.0, zorder=0)
        ax.set_ylim(bottom=max(ax.get_ylim()[0], tol / 10.0))
    if end > 0:
        ax.set_xlim(right=min(ax.get_xlim()[1], 1.05 * end))
    ax.set_xlim(left=0.0)
    one_unit(ax)
    tidy(ax, grid="y", legend="beside")
    return ax


def draw_convergence(
    trace: Trace, ax: Axes | None = None, rho: float | None = None, tol: float | None = None
) -> Axes:
    """Draw relative duality gap and suboptimality of one run on a logarithmic scale, where known.

    ``rho`` adds the rate of Theorem 1, ``(1 - rho)^t``, beginning at the first gap; ``tol`` the
    relative gap that was requested.
    """
    ax = new_axes(8.0, 5.0) if ax is None else ax
    columns = {
        name: np.array(trace[name], dtype=float)  # NaN where it is not known
        for name in ("idealized_time", "iteration", "duality_gap", "objective", "suboptimality")
    }
    time = columns["idealized_time"]
    gap = np.array(list(map(relative, columns["duality_gap"], columns["objective"])))
    if rho is not None:
        bound = gap[0] * np.exp(np.log1p(-rho) * columns["iteration"])
        ax.plot(time, bound, color=INK, linewidth=1.2, dashes=(5, 3), label=r"theory, $(1-\rho)^t$")
    for values, color, label in (
        (gap, colours.BLUE, "duality gap (certified)"),
        (columns["suboptimality"], colours.VERMILION, "suboptimality, mean over nodes"),
    ):
        shown = values > 0  # a logarithmic scale shows no zeros; unknown values are NaN
        if shown.any():
            ax.plot(time[shown], values[shown], color=color, linewidth=1.8, label=label)
    if tol is not None:
        ax.axhline(tol, color=GREY, linewidth=1.0, zorder=0)
        ax.annotate("tol", (1.0, tol), xycoords=("axes fraction", "data"), xytext=(4, 0),
                    textcoords="offset points", va="center", color=INK)  # fmt: skip
    ax.set(yscale="log", xlabel=AXES["idealized_time"], ylabel="relative error")
    ax.set_xlim(left=0.0)
    one_unit(ax)
    tidy(ax, grid="y", legend="inside")
    return ax

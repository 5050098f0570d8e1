"""How fast algorithms converge beside each other: medians over seeds, bands of quantiles."""

from __future__ import annotations

import importlib
import io
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.plots.timeline import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {
    "idealized_time": "idealized time, in units of one proximal step",
    "iteration": "iterations",
    "passes": "passes over the data",
    "n_comm": "messages",
    "bytes": "bytes sent",
    "wall_time": "wall time of this machine, in seconds",
}

# Okabe and Ito's hues, told apart by colour-blind readers. Relatives share a hue and differ by
# dash and marker; an algorithm looks the same in every figure.
LOOKS = {
    "adfs": ("#0072B2", "-", "o"),
    "ns-adfs": ("#0072B2", "--", "o"),
    "point-saga": ("#E69F00", "-", "s"),
    "msda": ("#D55E00", "-", "^"),
    "ssda": ("#D55E00", "--", "v"),
    "esdacd": ("#CC79A7", "-", "D"),
    "dsba": ("#009E73", "-", "P"),
    "katyusha": ("#56B4E9", "-", "X"),
    "l-katyusha": ("#56B4E9", "--", "X"),
    "newton": (INK, "-", "*"),
    "lbfgs": (INK, "--", "p"),
}
UNKNOWN = ("#8C6D31", "-", "h")
VARIANTS = (
    (0, (1, 1)),
    (0, (4, 1, 1, 1)),
    (0, (6, 3)),
)  # other rules of an algorithm drawn already
MARKS = 12
QUANTILES = (0.25, 0.5, 0.75)
Matrix = NDArray[np.float64]


class Curves(Protocol):
    """What is drawn: labels such as ``dsba:theory``, and quantiles of the error for each."""

    @property
    def labels(self) -> list[str]:
        """In the order of the legend."""
        ...

    def band(self, label: str, axis: str, quantiles: Sequence[float]) -> tuple[Matrix, Matrix]:
        """Places on the axis, and a row of errors for each quantile."""
        ...


def draw_comparison(
    comparison: Curves,
    ax: Axes | None = None,
    axis: str = "idealized_time",
    quantiles: tuple[float, float, float] = QUANTILES,
    tol: float | None = None,
    xscale: str = "linear",
) -> Axes:
    """Draw suboptimality on a logarithmic scale, a line and a band for each algorithm.

    Parameters
    ----------
    comparison : Comparison
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    axis : str
        ``idealized_time``, ``iteration``, ``passes``, ``n_comm``, ``bytes`` or ``wall_time``.
    quantiles : three numbers
        Lower edge, line and upper edge of the bands over seeds; quartiles by default.
    tol : float, optional
        Adds the accuracy at which runs stop.
    xscale : {"linear", "log"}

    Returns
    -------
    Axes
        With one line an algorithm, labelled as in the legend.
    """
    if axis not in AXES:
        raise ParameterError(f"axis={axis!r} is unknown; choose one of {', '.join(AXES)}.")
    ax = _new_axes() if ax is None else ax
    start = 0.0
    for label, look in zip(comparison.labels, looks(comparison.labels), strict=True):
        x, (low, middle, high) = comparison.band(label, axis, quantiles)
        if len(x):
            start = max(start, middle[0])
            _draw_curve(ax, x, (low, middle, high), plain(label), look)
    if tol is not None:
        ax.axhline(tol, color=GREY, linewidth=1.0, zorder=0)
    _finish(ax, axis, start, xscale)
    return ax


def looks(labels: Sequence[str]) -> list[dict[str, Any]]:
    """Colour, dash and marker of each label; a second rule of one algorithm is hollow."""
    found: list[dict[str, Any]] = []
    seen: Counter[str] = Counter()
    for label in labels:
        name = label.partition(":")[0]
        color, dash, marker = LOOKS.get(name, UNKNOWN)
        look: dict[str, Any] = {"color": color, "linestyle": dash, "marker": marker}
        if seen[name]:
            look["linestyle"] = VARIANTS[(seen[name] - 1) % len(VARIANTS)]
            look["markerfacecolor"] = "white"
        seen[name] += 1
        found.append({**look, "linewidth": 2.4 if name == "adfs" else 1.6})
    return found


def plain(text: str) -> str:
    """Text that matplotlib neither typesets as mathematics nor hides from the legend."""
    escaped = text.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def _draw_curve(
    ax: Axes, x: Matrix, band: tuple[Matrix, Matrix, Matrix], label: str, look: dict[str, Any]
) -> None:
    # A logarithm shows no zeros: what is rounding or less leaves the picture.
    low, middle, high = (np.where(values > 0, values, np.nan) for values in band)
    every = max(1, len(x) // MARKS)
    ax.plot(x, middle, label=label, markevery=every, markersize=5, **look)
    if not np.array_equal(low, high, equal_nan=True):
        ax.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0.0)


def _new_axes() -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(9.0, 5.0), layout="constrained")[1]


def _finish(ax: Axes, axis: str, start: float, xscale: str) -> None:
    from matplotlib.ticker import FuncFormatter

    ax.set_yscale("log")
    ax.set_xscale(xscale)
    if start > 0:  # a run that blows up must not flatten all others
        ax.set_ylim(top=min(ax.get_ylim()[1], 10.0 * start))
    if xscale == "linear":
        ax.set_xlim(left=0.0)
    if axis != "wall_time":
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    ax.set_xlabel(AXES[axis])
    ax.set_ylabel(r"suboptimality, $(F(\theta) - F^*) / \max(1, |F^*|)$")
    ax.grid(axis="y", color=GREY, alpha=0.35, linewidth=0.6)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if ax.lines:
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def short(value: float) -> str:
    """A tick's number: commas while that is readable, then powers of ten."""
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:.3g}"


def pictures(comparison: Curves, axis: str, tol: float | None = None) -> dict[str, bytes]:
    """The figure as PNG and as PDF, by suffix; nothing where matplotlib is not installed."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return {}
    from matplotlib.figure import Figure

    ax = Figure(figsize=(9.0, 5.0), layout="constrained").add_subplot()
    draw_comparison(comparison, ax, axis, tol=tol)
    return {kind: _rendered(ax, kind) for kind in ("png", "pdf")}


def _rendered(ax: Axes, kind: str) -> bytes:
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format=kind, dpi=150)  # type: ignore[union-attr]
    return buffer.getvalue()

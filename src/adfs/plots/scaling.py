"""How the time to learn grows with the network, and what one machine would need instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from adfs.plots.comparison import short
from adfs.plots.synchrony import MARKERS, PALETTE
from adfs.plots.timeline import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float]]


def draw_scaling(
    measured: Mapping[str, Points],
    ax: Axes,
    theory: Mapping[str, Points],
    critical: Mapping[str, float],
    allowed: float,
) -> Axes:
    """Draw idealized time against the number of nodes, both logarithmic.

    Parameters
    ----------
    measured : mapping from a label to points (n, time)
        Lines with markers.
    ax : matplotlib Axes
    theory : mapping from the same labels
        Dashed lines in the colour of what was measured.
    critical : mapping from a label to a number of nodes
        Vertical lines, named.
    allowed : float
        The time counted as still the same; a grey line.

    Returns
    -------
    Axes
    """
    colors = dict(zip(measured, PALETTE, strict=False))
    for (label, points), marker in zip(measured.items(), MARKERS, strict=False):
        x, y = zip(*points, strict=True)
        ax.plot(x, y, color=colors[label], marker=marker, linewidth=1.8, label=label)
    for label, points in theory.items():
        x, y = zip(*points, strict=True)
        ax.plot(x, y, color=colors[label], linewidth=1.0, dashes=(4, 3), zorder=1)
    ax.plot([], [], color=INK, linewidth=1.0, dashes=(4, 3), label="theory, set at n = 1")
    ax.axhline(allowed, color=GREY, linewidth=1.0, zorder=0)
    ax.annotate("twice one node's time", (0.02, allowed), xycoords=("axes fraction", "data"),
                xytext=(0, 3), textcoords="offset points", color=INK)  # fmt: skip
    ax.set_xscale("log", base=4)
    ax.set_yscale("log")
    for label, n in critical.items():
        ax.axvline(n, color=colors[label], linewidth=1.2, linestyle=":")
        ax.annotate(f"critical size of the {label.partition(', ')[2] or label}: {n:.0f}", (n, 1.0),
                    xycoords=("data", "axes fraction"), xytext=(4, -4), va="top",
                    textcoords="offset points", color=colors[label])  # fmt: skip
    _finish(ax, sorted({n for points in measured.values() for n, _ in points}))
    return ax


def _finish(ax: Axes, sizes: list[float]) -> None:
    from matplotlib.ticker import FuncFormatter

    ax.set_xticks(sizes)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    ax.minorticks_off()
    ax.set_xlabel("number of nodes n, each with its own m samples")
    ax.set_ylabel("idealized time")
    ax.grid(color=GREY, alpha=0.35, linewidth=0.6)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))

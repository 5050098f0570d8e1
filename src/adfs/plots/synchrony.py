"""How much waiting costs: the constant of Theorem 2 beside its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from adfs.plots.timeline import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette without its yellow, which is lost on white, and a grey.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = "osD^vP*X"


def draw_constants(
    lines: Mapping[str, Sequence[tuple[float, float]]], ax: Axes, xlabel: str, bound: float
) -> Axes:
    """Draw the constant against ``tau`` or another number, one labelled line a graph.

    Parameters
    ----------
    lines : mapping from a label to points (x, constant)
        Up to eight; the same order gives the same colours.
    ax : matplotlib Axes
    xlabel : str
    bound : float
        Drawn as a horizontal line.

    Returns
    -------
    Axes
        Both axes logarithmic.
    """
    for (label, points), color, marker in zip(lines.items(), PALETTE, MARKERS, strict=False):
        x, y = zip(*points, strict=True)
        ax.plot(x, y, color=color, marker=marker, markersize=5, linewidth=1.5, label=label)
    ax.axhline(bound, color=INK, linewidth=1.2, dashes=(5, 3))
    ax.annotate(f"bound {bound:g}", (0.02, bound), xycoords=("axes fraction", "data"),
                xytext=(0, 3), textcoords="offset points", color=INK)  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(xlabel)
    ax.grid(color=GREY, alpha=0.35, linewidth=0.6)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax

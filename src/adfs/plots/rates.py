"""Times that theory predicts against measured ones: parallel to the diagonal if theory is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from adfs.plots.comparison import looks
from adfs.plots.timeline import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_rates(points: Mapping[str, Sequence[tuple[float, float]]], ax: Axes) -> Axes:
    """Draw measured against predicted times, one colour a method, both logarithmic.

    Parameters
    ----------
    points : mapping from an algorithm's name to pairs (predicted, measured)
    ax : matplotlib Axes

    Returns
    -------
    Axes
        With the diagonal, on which constants would be one.
    """
    for (name, pairs), look in zip(points.items(), looks(list(points)), strict=True):
        x, y = zip(*sorted(pairs), strict=True)
        ax.plot(x, y, label=name, **{**look, "linestyle": "none", "markersize": 7})
    ends = [value for pairs in points.values() for pair in pairs for value in pair]
    low, high = min(ends) / 1.5, max(ends) * 1.5
    for factor, style in ((1.0, "-"), (10.0, ":"), (0.1, ":")):
        ax.plot([low, high], [factor * low, factor * high], color=GREY, linewidth=1.0,
                linestyle=style, zorder=0)  # fmt: skip
    for factor, words in ((1.0, "measured = theory"), (0.1, "ten times less")):
        ax.annotate(words, (high / 1.1, factor * high / 1.1), rotation=45, color=INK, va="top",
                    rotation_mode="anchor", ha="right")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.set_xlabel("time for a factor e by Table 1, constants left out")
    ax.set_ylabel("measured time for a factor e")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax

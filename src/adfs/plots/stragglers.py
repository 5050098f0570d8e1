"""How many times longer methods take where delays are random or a node is slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from adfs.plots.comparison import looks
from adfs.plots.timeline import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_slowdowns(
    slowdowns: Mapping[str, Sequence[float]], worlds: Sequence[str], ax: Axes, title: str = ""
) -> Axes:
    """One point a method and world; where a method did not arrive it is missing.

    Parameters
    ----------
    slowdowns : mapping from a label to one multiple of its usual time for each world
    worlds : names of the worlds, left to right
    ax : matplotlib Axes
    title : str
    """
    places = np.arange(len(worlds), dtype=float)
    seen = [label for label, values in slowdowns.items() if np.isfinite(values).any()]
    for k, (label, look) in enumerate(zip(seen, looks(seen), strict=True)):
        shift = 0.6 * ((k + 0.5) / len(seen) - 0.5)
        if look["linestyle"] != "-":  # relatives differ by their dash, which points have not
            look["markerfacecolor"] = "white"
        ax.plot(places + shift, slowdowns[label], label=label, **{**look, "linestyle": "none"})
    ax.axhline(1.0, color=GREY, linewidth=1.0, zorder=0)
    ax.set_yscale("log")
    ax.set_xticks(places, list(worlds))
    ax.set_ylabel("multiple of the time under constant delays")
    ax.set_title(title, loc="left", fontsize=10)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False, fontsize=8, ncols=2)
    return ax

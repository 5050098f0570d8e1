"""Maps and cuts of a ratio of two times, as `adfs reproduce where-adfs-wins` draws them."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from adfs.study.plots.style import BLUE, GREY, HUES, INK, STYLES, VERMILION, Axes, Figure, tidy

FARTHEST = 3.0  # ratio of the darkest colour
DARK = 0.6  # share of the way to it, from which on text is white
RATIO = "time of the fastest other method / time of ADFS"


class MapCell(NamedTuple):
    """A ratio (a lower bound unless ``exact``) and the method it is to; None is not known."""

    ratio: float | None
    rival: str
    exact: bool = True

    @property
    def text(self) -> str:
        if self.ratio is None:
            return "?"
        return f"{'' if self.exact else '> '}{self.ratio:.2f}"


class RatioMap(NamedTuple):
    """Rows of cells from below, with the labels of both axes; ``base`` is a column and a row."""

    xlabel: str
    ylabel: str
    xticks: Sequence[str]
    yticks: Sequence[str]
    cells: Sequence[Sequence[MapCell]]
    base: tuple[int, int]


def shown_name(method: str) -> str:
    return STYLES[method].name if method in STYLES else method


def draw_maps(rows: Mapping[str, Sequence[RatioMap]], figure: Figure) -> None:
    """Draw maps side by side, one row per title; a line divides ratios above and below 1."""
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    count = max(len(maps) for maps in rows.values())
    axes = np.atleast_2d(figure.subplots(len(rows), count, squeeze=False))
    colors = LinearSegmentedColormap.from_list("ratio", [VERMILION, "#FFFFFF", BLUE])
    end = math.log(FARTHEST)
    image = None
    for line, (title, maps) in zip(axes, rows.items(), strict=True):
        for ax, one in zip(line, maps, strict=True):
            logs = [[math.log(cell.ratio or 1.0) for cell in row] for row in one.cells]
            image = ax.imshow(
                logs, cmap=colors, norm=Normalize(-end, end), origin="lower", aspect="auto"
            )
            _write_cells(ax, one, end)
            _draw_boundary(ax, one)
            ax.set_xticks(range(len(one.xticks)), one.xticks)
            ax.set_yticks(range(len(one.yticks)), one.yticks)
            ax.set(xlabel=one.xlabel, ylabel=one.ylabel)
            ax.tick_params(length=0)
            ax.spines[:].set_visible(False)
        line[0].set_title(title, loc="left", fontsize=11, fontweight="bold", pad=10)
        line[-1].set_title("dot: base point; thick line: ratio 1", loc="right", fontsize=9, pad=10)
    if image is not None:
        bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30, pad=0.02)
        ticks = [1 / 3, 1 / 2, 1.0, 2.0, 3.0]
        bar.set_ticks([math.log(tick) for tick in ticks])
        bar.set_ticklabels(["1/3", "1/2", "1", "2", "3"])
        bar.set_label(f"{RATIO}\n(blue: ADFS is the fastest)")
        bar.outline.set_visible(False)  # type: ignore[operator]


def _write_cells(ax: Axes, one: RatioMap, end: float) -> None:
    for row, cells in enumerate(one.cells):
        for column, cell in enumerate(cells):
            dark = abs(math.log(cell.ratio or 1.0)) > DARK * end
            color = "white" if dark else INK
            ax.annotate(cell.text, (column, row), xytext=(0, 1), textcoords="offset points",
                        ha="center", va="bottom", color=color, fontsize=11,
                        fontweight="bold")  # fmt: skip
            ax.annotate(shown_name(cell.rival), (column, row), xytext=(0, -2),
                        textcoords="offset points", ha="center", va="top", color=color,
                        fontsize=8)  # fmt: skip
    column, row = one.base
    ax.plot([column - 0.36], [row + 0.36], marker="o", color=INK, markersize=5, clip_on=False)


def _draw_boundary(ax: Axes, one: RatioMap) -> None:
    """A thick line between neighbouring cells of which only one has a ratio above 1."""
    wins = np.array([[(cell.ratio or 0.0) > 1.0 for cell in row] for row in one.cells])
    for row, column in np.ndindex(wins.shape):
        right, top = column + 0.5, row + 0.5
        if column + 1 < wins.shape[1] and wins[row, column] != wins[row, column + 1]:
            ax.plot([right, right], [row - 0.5, top], color=INK, linewidth=3.0)
        if row + 1 < wins.shape[0] and wins[row, column] != wins[row + 1, column]:
            ax.plot([column - 0.5, right], [top, top], color=INK, linewidth=3.0)
    ax.set(xlim=(-0.5, wins.shape[1] - 0.5), ylim=(-0.5, wins.shape[0] - 0.5))


class Cut(NamedTuple):
    """Cells along one axis, by the title of their line; ``base`` is the index of the base point.

    Points are joined where the axis is ``ordered``.
    """

    xlabel: str
    ticks: Sequence[str]
    lines: Mapping[str, Sequence[MapCell]]
    base: int
    ordered: bool = True


def draw_cuts(cuts: Sequence[Cut], figure: Figure) -> None:
    """Draw a ratio along several axes, side by side, with the rival's name at each point."""
    widths = [len(cut.ticks) for cut in cuts]
    axes = figure.subplots(1, len(cuts), sharey=True, squeeze=False, width_ratios=widths)[0]
    for ax, cut in zip(axes, cuts, strict=True):
        places = range(len(cut.ticks))
        for k, (label, cells) in enumerate(cut.lines.items()):
            values = [cell.ratio or np.nan for cell in cells]
            ax.plot(places, values, color=HUES[k], marker="os"[k % 2], markersize=6, label=label,
                    linewidth=1.2 if cut.ordered else 0.0)  # fmt: skip
            for x, (cell, value) in enumerate(zip(cells, values, strict=True)):
                others = [line[x].ratio or 0.0 for line in cut.lines.values()]
                above = value >= max(others)
                ax.annotate(shown_name(cell.rival), (x, value), xytext=(0, 7 if above else -7),
                            textcoords="offset points", ha="center", fontsize=8,
                            va="bottom" if above else "top", color=HUES[k],
                            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5,
                                  "alpha": 0.8})  # fmt: skip
        ax.axvline(cut.base, color=GREY, linewidth=6.0, alpha=0.25, zorder=0)
        ax.axhline(1.0, color=INK, linewidth=1.2, zorder=0)
        ax.set_yscale("log")
        ax.set_xticks(places, cut.ticks)
        ax.set_xlim(-0.5, len(cut.ticks) - 0.5)
        ax.set_xlabel(cut.xlabel)
        tidy(ax, grid="y")
    _ratio_ticks(
        axes[0], [cell.ratio for cut in cuts for line in cut.lines.values() for cell in line]
    )
    axes[0].set_ylabel(f"{RATIO}\n(above 1: ADFS is the fastest)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, [f"charge: {label}" for label in labels], loc="outside upper left", ncols=2,
        frameon=False,
    )  # fmt: skip


def _ratio_ticks(ax: Axes, ratios: Sequence[float | None]) -> None:
    """Few round numbers on a logarithmic axis."""
    known = [ratio for ratio in ratios if ratio] or [1.0]
    low, high = min(known) / 1.6, max(*known, 1.2) * 1.4
    ticks = [t for t in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if low <= t <= high]
    ax.set_ylim(low, high)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()

"""The paper's Figure 2 for any schedule: one line a node, boxes for what it does, and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.schedule.timeline import COMMUNICATE, COMPUTE, WAIT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From Okabe and Ito's palette: colour-blind readers tell them apart, and so does a grey printer.
BLUE, AMBER, GREY, INK = "#0072B2", "#F3C25B", "#A9AFB5", "#2B2F36"
LOOKS: dict[int, dict[str, Any]] = {
    COMPUTE: {"facecolor": BLUE, "edgecolor": "white", "label": "local update"},
    COMMUNICATE: {"facecolor": AMBER, "edgecolor": "white", "label": "communication"},
    WAIT: {"facecolor": "#F6F7F8", "edgecolor": GREY, "hatch": "////", "label": "waiting"},
}
HALF = 0.29  # of a box's height, where lines are 1 apart
# Beyond so many exchanges, arrows are a tangle and boxes tell the story better alone.
MOST_EXCHANGES = 150
# Where along an exchange its link may stand: beside the words in the middle.
PLACES = (0.14, 0.86, 0.24, 0.76)
LETTERS = 9.0  # size in points


def draw_timeline(
    intervals: NDArray[np.void],
    n_nodes: int,
    ax: Axes | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw what each node does when, in the manner of Figure 2.

    Parameters
    ----------
    intervals : array of dtype ``adfs.schedule.timeline.INTERVAL``
    n_nodes : int
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    names : sequence of str, optional
        One a node, top to bottom; its number by default.

    Returns
    -------
    Axes
        With one collection of boxes a kind of interval, labelled as in the legend. Boxes carry
        their event in the paper's notation, (A,C) or (D), where there is room. An exchange that
        holds both nodes is a link; where messages travel apart, each is an arrow from when it
        was sent to when it arrived.
    """
    labels = _labels(names, n_nodes)
    ax = _new_axes(n_nodes) if ax is None else ax
    _draw_frame(ax, intervals, labels)
    for kind in LOOKS:
        _draw_boxes(ax, intervals, kind)
    _draw_exchanges(ax, intervals[intervals["kind"] == COMMUNICATE])
    _draw_words(ax, intervals, labels)
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False)
    return ax


def _labels(names: Sequence[str] | None, n_nodes: int) -> list[str]:
    if names is None:
        return [str(i) for i in range(n_nodes)]
    if len(names) != n_nodes:
        raise ParameterError(
            f"{len(names)} names for {n_nodes} nodes; pass one per node, or none at all."
        )
    return list(names)


def _new_axes(n_nodes: int) -> Axes:
    import matplotlib.pyplot as plt

    height = 1.3 + min(0.62 * n_nodes, 14.0)
    _, ax = plt.subplots(figsize=(9.0, height), layout="constrained")
    return ax


def _draw_frame(ax: Axes, intervals: NDArray[np.void], labels: list[str]) -> None:
    """Axis, names, and a line for each node."""
    start = float(intervals["start"].min()) if len(intervals) else 0.0
    end = float(intervals["end"].max()) if len(intervals) else 1.0
    n_nodes = len(labels)
    margin = 0.01 * ((end - start) or 1.0)
    ax.hlines(np.arange(n_nodes), start, end, color=GREY, linewidth=1.0, zorder=1)
    ax.set_xlim(start - margin, end + margin)
    ax.set_ylim(n_nodes - 0.5, -0.5)
    every = -(-n_nodes // 40)
    ax.set_yticks(range(0, n_nodes, every), labels[::every])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("time, in units of one proximal step")
    ax.set_ylabel("node")
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)


def _draw_boxes(ax: Axes, intervals: NDArray[np.void], kind: int) -> None:
    from matplotlib.collections import PolyCollection

    rows = intervals[intervals["kind"] == kind]
    x0, x1, y = rows["start"], rows["end"], rows["node"]
    corners = [(x0, y - HALF), (x1, y - HALF), (x1, y + HALF), (x0, y + HALF)]
    boxes = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
    # Separators give way when boxes are many; hatches want no outline at all.
    width = 0.0 if kind == WAIT else min(1.2, 400.0 / (len(intervals) + 1))
    ax.add_collection(PolyCollection(list(boxes), linewidth=width, zorder=3, **LOOKS[kind]))


def _draw_exchanges(ax: Axes, rows: NDArray[np.void]) -> None:
    """Links if both messages of every exchange travel together, otherwise arrows."""
    if len(rows) > 2 * MOST_EXCHANGES:
        return
    times: dict[int, float] = {}
    together = all(times.setdefault(row["event"], row["sent"]) == row["sent"] for row in rows)
    if together:
        _draw_links(ax, rows[rows["node"] < rows["peer"]])
        return
    for row in rows:
        _draw_arrow(ax, row)


def _draw_links(ax: Axes, rows: NDArray[np.void]) -> None:
    """A line with a knob in both boxes, at the first place where no other link stands."""
    taken: list[tuple[float, int, int]] = []
    apart = 0.008 * np.ptp(ax.get_xlim())
    for row in rows[np.argsort(rows["event"])]:
        top, bottom = int(row["node"]), int(row["peer"])
        places = [row["sent"] + place * (row["received"] - row["sent"]) for place in PLACES]
        free = (x for x in places if not _crowded(x, top, bottom, taken, apart))
        x = next(free, places[0])
        taken.append((x, top, bottom))
        ax.plot([x, x], [top, bottom], color="white", linewidth=3.2, zorder=4)
        ax.plot([x, x], [top, bottom], color=INK, linewidth=1.3, marker="o", markersize=5, zorder=4)


def _crowded(
    x: float, top: int, bottom: int, taken: list[tuple[float, int, int]], apart: float
) -> bool:
    """Whether a link from line ``top`` to ``bottom`` at ``x`` would run along another one."""
    return any(
        abs(x - other) < apart and top <= low and high <= bottom for other, high, low in taken
    )


def _draw_arrow(ax: Axes, row: np.void) -> None:
    from matplotlib.patheffects import withStroke

    down = np.sign(row["node"] - row["peer"])
    look = {
        "arrowstyle": "-|>",
        "color": INK,
        "linewidth": 1.1,
        "shrinkA": 0.0,
        "shrinkB": 0.0,
        "path_effects": [withStroke(linewidth=2.6, foreground="white")],
    }
    begin = (row["sent"], row["peer"] + down * HALF)
    end = (row["received"], row["node"] - down * HALF)
    ax.annotate("", xy=end, xytext=begin, arrowprops=look, zorder=4)


def _draw_words(ax: Axes, intervals: NDArray[np.void], labels: list[str]) -> None:
    """Name the event inside boxes wide enough to hold it, as the paper writes a schedule."""
    from matplotlib.patheffects import withStroke

    points = ax.get_window_extent().width * 72.0 / ax.figure.dpi / np.ptp(ax.get_xlim())
    for row in intervals[intervals["kind"] != WAIT]:
        nodes = sorted({int(row["node"]), int(row["peer"])} - {-1})
        word = "(" + ",".join(labels[node] for node in nodes) + ")"
        # A letter is about 0.6 of its size wide; one and a half more keep clear of the links.
        if (row["end"] - row["start"]) * points < LETTERS * (0.6 * len(word) + 1.5):
            continue
        ax.text(
            (row["start"] + row["end"]) / 2,
            row["node"],
            word,
            ha="center",
            va="center",
            size=LETTERS,
            color="white" if row["kind"] == COMPUTE else INK,
            path_effects=[withStroke(linewidth=3, foreground=LOOKS[row["kind"]]["facecolor"])],
            zorder=5,
        )

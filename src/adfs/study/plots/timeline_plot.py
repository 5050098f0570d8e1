"""The paper's Figure 2 for any schedule: one line per node, boxes for its work, and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.schedule.timeline import COMMUNICATE, COMPUTE, WAIT
from adfs.study.plots.style import AMBER, BLUE, HALF, HATCHED, INK, draw_lines, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOXES: dict[int, dict[str, Any]] = {
    COMPUTE: {"facecolor": BLUE, "edgecolor": "white", "label": "local update"},
    COMMUNICATE: {"facecolor": AMBER, "edgecolor": "white", "label": "communication"},
    WAIT: {**HATCHED, "label": "waiting"},
}
# With more exchanges than this, arrows would hide the boxes.
MOST_EXCHANGES = 150
# Where along an exchange its link may be drawn: beside the text in the middle.
LINK_POSITIONS = (0.14, 0.86, 0.24, 0.76)
FONT_SIZE = 9.0  # points
MOST_LABELS = 40


def draw_timeline(
    intervals: NDArray[np.void],
    n_nodes: int,
    ax: Axes | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw what each node does when, in the style of Figure 2, on a new figure unless on ``ax``.

    ``intervals`` is of dtype ``adfs.schedule.timeline.INTERVAL``; ``names`` are one per node, top
    to bottom, its number by default. There is one collection of boxes per kind of interval,
    labelled as in the legend. Boxes that are wide enough contain their event in the paper's
    notation, (A,C) or (D). An exchange that occupies both nodes at once is a link; otherwise each
    message is an arrow from the time when it was sent to the time when it arrived.
    """
    labels = list(map(str, range(n_nodes))) if names is None else list(names)
    if len(labels) != n_nodes:
        raise ParameterError(
            f"{len(labels)} names for {n_nodes} nodes; pass one per node, or none at all."
        )
    ax = new_axes(9.0, 1.3 + min(0.62 * n_nodes, 14.0)) if ax is None else ax
    start = float(intervals["start"].min()) if len(intervals) else 0.0
    end = float(intervals["end"].max()) if len(intervals) else 1.0
    draw_lines(ax, start, end, labels, MOST_LABELS)
    margin = 0.01 * ((end - start) or 1.0)
    ax.set(xlim=(start - margin, end + margin), ylabel="node")
    ax.set_xlabel("time, in units of one proximal step")
    for kind in BOXES:
        _draw_boxes(ax, intervals, kind)
    _draw_exchanges(ax, intervals[intervals["kind"] == COMMUNICATE])
    _draw_events(ax, intervals, labels)
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False)
    return ax


def _draw_boxes(ax: Axes, intervals: NDArray[np.void], kind: int) -> None:
    from matplotlib.collections import PolyCollection

    rows = intervals[intervals["kind"] == kind]
    x0, x1, y = rows["start"], rows["end"], rows["node"]
    corners = (x0, y - HALF, x1, y - HALF, x1, y + HALF, x0, y + HALF)
    boxes = np.stack(corners, axis=-1).reshape(-1, 4, 2)
    # The more boxes, the thinner the lines between them; hatched boxes have no outline.
    width = 0.0 if kind == WAIT else min(1.2, 400.0 / (len(intervals) + 1))
    ax.add_collection(PolyCollection(list(boxes), linewidth=width, zorder=3, **BOXES[kind]))


def _draw_exchanges(ax: Axes, rows: NDArray[np.void]) -> None:
    """Links if both messages of every exchange travel together, otherwise arrows."""
    if len(rows) > 2 * MOST_EXCHANGES:
        return
    times: dict[int, float] = {}
    if all(times.setdefault(row["event"], row["sent"]) == row["sent"] for row in rows):
        _draw_links(ax, rows[rows["node"] < rows["peer"]])
        return
    from matplotlib.patheffects import withStroke

    arrow = {
        "arrowstyle": "-|>", "color": INK, "linewidth": 1.1, "shrinkA": 0.0, "shrinkB": 0.0,
        "path_effects": [withStroke(linewidth=2.6, foreground="white")],
    }  # fmt: skip
    for row in rows:
        down = np.sign(row["node"] - row["peer"])
        begin = (row["sent"], row["peer"] + down * HALF)
        end = (row["received"], row["node"] - down * HALF)
        ax.annotate("", xy=end, xytext=begin, arrowprops=arrow, zorder=4)


def _draw_links(ax: Axes, rows: NDArray[np.void]) -> None:
    """A line with a dot in both boxes, at the first position without another link."""
    taken: list[tuple[float, int, int]] = []
    apart = 0.008 * np.ptp(ax.get_xlim())
    for row in rows[np.argsort(rows["event"])]:
        top, bottom = int(row["node"]), int(row["peer"])
        places = [row["sent"] + place * (row["received"] - row["sent"]) for place in LINK_POSITIONS]
        # Beside another link that it would run along, the next position is tried.
        crowded = [
            any(abs(x - other) < apart and top <= low and high <= bottom
                for other, high, low in taken)
            for x in places
        ]  # fmt: skip
        x = places[crowded.index(False) if False in crowded else 0]
        taken.append((x, top, bottom))
        ax.plot([x, x], [top, bottom], color="white", linewidth=3.2, zorder=4)
        ax.plot([x, x], [top, bottom], color=INK, linewidth=1.3, marker="o", markersize=5, zorder=4)


def _draw_events(ax: Axes, intervals: NDArray[np.void], labels: list[str]) -> None:
    """Write the event into boxes that are wide enough, in the paper's notation."""
    from matplotlib.patheffects import withStroke

    points = ax.get_window_extent().width * 72.0 / ax.figure.dpi / np.ptp(ax.get_xlim())
    for row in intervals[intervals["kind"] != WAIT]:
        nodes = sorted({int(row["node"]), int(row["peer"])} - {-1})
        word = "(" + ",".join(labels[node] for node in nodes) + ")"
        # A letter is about 0.6 of its size wide; 1.5 more keep the text away from the links.
        if (row["end"] - row["start"]) * points < FONT_SIZE * (0.6 * len(word) + 1.5):
            continue
        outline = withStroke(linewidth=3, foreground=BOXES[row["kind"]]["facecolor"])
        ax.text(
            (row["start"] + row["end"]) / 2, row["node"], word, ha="center", va="center",
            size=FONT_SIZE, color="white" if row["kind"] == COMPUTE else INK,
            path_effects=[outline], zorder=5,
        )  # fmt: skip

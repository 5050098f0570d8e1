"""What each node of a schedule does when, as in the paper's Figure 2, and what each rank did."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.engine.execution import KINDS, Execution, Span
from adfs.schedule.timeline import COMMUNICATE, COMPUTE, WAIT
from adfs.study.numbers import percent
from adfs.study.plots import style
from adfs.study.plots.style import AMBER, BLUE, HALF, HATCHED, INK, Axes, draw_lines, new_axes

Vector = NDArray[np.float64]

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
MOST_LABELS, MOST_RANKS = 40, 32  # nodes and ranks that have a label
AREAS: dict[str, dict[str, Any]] = {
    "computing": {"facecolor": BLUE},
    "waiting": HATCHED,
    "scheduling": {"facecolor": style.GREEN},
    "reading": {"facecolor": style.PINK},
    "saving": {"facecolor": style.VERMILION},
}
COLUMNS = 1_000  # about one per pixel: shorter spans cannot be seen one by one
SHARE_WIDTH = 36.0  # points, of a column of shares


def draw_timeline(intervals: NDArray[np.void], n_nodes: int, ax: Axes | None = None) -> Axes:
    """Draw what each node does when, in the style of Figure 2, on a new figure unless on ``ax``.

    ``intervals`` is of dtype ``adfs.schedule.timeline.INTERVAL``. There is one collection of boxes
    per kind of interval, labelled as in the legend. Boxes that are wide enough contain their event
    in the paper's notation, (0,2) or (3). An exchange that occupies both nodes at once is a link;
    otherwise each message is an arrow from the time when it was sent to the time when it arrived.
    """
    ax = new_axes(9.0, 1.3 + min(0.62 * n_nodes, 14.0)) if ax is None else ax
    start = float(intervals["start"].min()) if len(intervals) else 0.0
    end = float(intervals["end"].max()) if len(intervals) else 1.0
    draw_lines(ax, start, end, list(map(str, range(n_nodes))), MOST_LABELS)
    margin = 0.01 * ((end - start) or 1.0)
    ax.set(xlim=(start - margin, end + margin), ylabel="node")
    ax.set_xlabel("time, in units of one proximal step")
    for kind in BOXES:
        _draw_boxes(ax, intervals, kind)
    _draw_exchanges(ax, intervals[intervals["kind"] == COMMUNICATE])
    _draw_events(ax, intervals)
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


def _draw_events(ax: Axes, intervals: NDArray[np.void]) -> None:
    """Write the event into boxes that are wide enough, in the paper's notation."""
    from matplotlib.patheffects import withStroke

    points = ax.get_window_extent().width * 72.0 / ax.figure.dpi / np.ptp(ax.get_xlim())
    for row in intervals[intervals["kind"] != WAIT]:
        nodes = sorted({int(row["node"]), int(row["peer"])} - {-1})
        word = "(" + ",".join(map(str, nodes)) + ")"
        # A letter is about 0.6 of its size wide; 1.5 more keep the text away from the links.
        if (row["end"] - row["start"]) * points < FONT_SIZE * (0.6 * len(word) + 1.5):
            continue
        outline = withStroke(linewidth=3, foreground=BOXES[row["kind"]]["facecolor"])
        ax.text(
            (row["start"] + row["end"]) / 2, row["node"], word, ha="center", va="center",
            size=FONT_SIZE, color="white" if row["kind"] == COMPUTE else INK,
            path_effects=[outline], zorder=5,
        )  # fmt: skip


def draw_ranks(ranks: Sequence[Execution], ax: Axes) -> Axes:
    """Draw the spans of all ranks on one axis of seconds: one filled area per rank and kind.

    If spans are shorter than a pixel, its column is split from top to bottom by the share of each
    kind. The shares of the whole time of a rank are beside its line. Each rank counts from its own
    beginning of the loop; ranks begin it within about one message of each other.
    """
    end = max((span[2] for each in ranks for span in each.spans), default=1.0)
    edges = np.linspace(0.0, end, COLUMNS + 1)
    for line, each in enumerate(ranks):
        base = np.full(COLUMNS, line + HALF)  # the axis points down
        for kind, share in column_shares(each.spans, edges).items():
            top = base - 2.0 * HALF * share
            if share.any():
                low, high = (np.append(values, values[-1]) for values in (base, top))  # per edge
                options = {"step": "post", "linewidth": 0.0, "zorder": 3, **AREAS[kind]}
                ax.fill_between(edges, low, high, label=f"_{kind}", **options)
            base = top
    draw_lines(ax, 0.0, end, [name_of(each) for each in ranks], MOST_RANKS)
    ax.set_xlim(0.0, end)
    whole = max((sum(each.seconds.values()) for each in ranks), default=0.0)
    # A rank keeps a limited number of spans, so the picture of a long run shows its beginning.
    part = f", the first {end:.3g} of {whole:.3g}" if end < 0.95 * whole else ""
    ax.set_xlabel(f"seconds in the loop{part}")
    _draw_legend(ax, ranks)
    return ax


def column_shares(spans: Sequence[Span], edges: Vector) -> dict[str, Vector]:
    """The share of each kind in the time of each column; a wait does not count as computing.

    Examples
    --------
    >>> spans = [("computing", 0.0, 2.0), ("waiting", 0.5, 1.0), ("reading", 2.0, 3.0)]
    >>> shares = column_shares(spans, np.array([0.0, 1.0, 2.0, 4.0]))
    >>> {kind: values.tolist() for kind, values in shares.items() if values.any()}
    {'computing': [0.5, 1.0, 0.0], 'waiting': [0.5, 0.0, 0.0], 'reading': [0.0, 0.0, 0.5]}
    """
    own = {
        kind: np.array([span[1:] for span in spans if span[0] == kind], dtype=float).reshape(-1, 2)
        for kind in KINDS
    }
    shares = {kind: _share(rows, edges) for kind, rows in own.items()}
    waits, computing = own["waiting"], own["computing"]
    if len(computing):  # a wait of compiled code lies inside a span of computing
        place = np.searchsorted(computing[:, 0], waits[:, 0], side="right") - 1
        inside = (place >= 0) & (waits[:, 0] < computing[place, 1])
        shares["computing"] -= _share(waits[inside], edges)
    return {kind: np.clip(values, 0.0, 1.0) for kind, values in shares.items()}


def _share(spans: NDArray[np.float64], edges: Vector) -> Vector:
    """Share of each column that the spans cover; they are in order and do not overlap."""
    if not len(spans):
        return np.zeros(len(edges) - 1)
    covered = np.concatenate([[0.0], np.cumsum(spans[:, 1] - spans[:, 0])])
    so_far = np.repeat(covered, 2)[1:-1]  # at each start and each end
    return np.asarray(np.diff(np.interp(edges, spans.ravel(), so_far)) / np.diff(edges))


def name_of(rank: Execution) -> str:
    """The rank and its nodes.

    Examples
    --------
    >>> name_of(Execution(0, [0, 1], {})), name_of(Execution(1, [3], {}))
    ('rank 0 (nodes 0, 1)', 'rank 1 (node 3)')
    >>> name_of(Execution(2, [4, 5, 6, 7, 9], {}))
    'rank 2 (5 nodes)'
    """
    listed = ", ".join(map(str, rank.nodes))
    one = f"node{'s' * (len(rank.nodes) > 1)} {listed}"
    return f"rank {rank.rank} ({one if len(rank.nodes) <= 4 else f'{len(rank.nodes)} nodes'})"


def used_kinds(ranks: Sequence[Execution]) -> list[str]:
    return [kind for kind in KINDS if any(each.seconds.get(kind) for each in ranks)]


def time_share(rank: Execution, kind: str) -> float:
    return rank.seconds.get(kind, 0.0) / (sum(rank.seconds.values()) or 1.0)


def _draw_legend(ax: Axes, ranks: Sequence[Execution]) -> None:
    """Colours above, and at the right a table of shares below the same colours."""
    from matplotlib.patches import Patch

    used = used_kinds(ranks)
    patches = [Patch(label=kind, **{"edgecolor": "none", **AREAS[kind]}) for kind in used]
    ax.legend(
        handles=patches, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(KINDS),
        frameon=False, fontsize=9.0, handlelength=1.3, columnspacing=1.3,
    )  # fmt: skip
    if len(ranks) > MOST_RANKS:
        return
    options: dict[str, Any] = {
        "textcoords": "offset points", "ha": "right", "va": "center", "size": 8.5, "color": INK,
        "annotation_clip": False,
    }  # fmt: skip
    for column, kind in enumerate(used):
        place = SHARE_WIDTH * (column + 1)
        sign = "\u25a8" if "hatch" in AREAS[kind] else "\u25a0"
        colour = AREAS[kind].get("edgecolor", AREAS[kind]["facecolor"])
        head = {**options, "size": 13.0, "color": colour}
        ax.annotate(sign, (1.0, 1.0), (place, 11.0), xycoords="axes fraction", **head)
        for line, each in enumerate(ranks):
            share, where = percent(time_share(each, kind)), ax.get_yaxis_transform()
            ax.annotate(share, (1.0, line), (place, 0.0), xycoords=where, **options)

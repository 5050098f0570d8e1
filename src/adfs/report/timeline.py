"""Timelines as pictures, and where the time went as tables: of nodes, and of ranks."""

from collections.abc import Sequence

import numpy as np

from adfs.plots.ranks import column_shares, name_of
from adfs.report.activity import Activity
from adfs.report.chart import ticks
from adfs.report.markup import Markup, join, scrolling, table, tag
from adfs.report.page import paragraph
from adfs.report.words import UNKNOWN, count, number, percent, seconds
from adfs.runtime.execution import Execution
from adfs.runtime.spans import KINDS
from adfs.schedule.timeline import KINDS as NODE_KINDS

WIDTH, LEFT, TOP, LINE, BOX = 900.0, 74.0, 6.0, 22.0, 14.0
MOST_LINES = 24  # nodes or ranks drawn
MOST_ROWS = 16  # of a table; beyond, the mean and the extremes
COLUMNS = 300  # of a rank's line
WORDS = ("computing", "communicating", "waiting")  # in the order of NODE_KINDS


def draw_nodes(activity: Activity, name: str = "") -> Markup:
    """The first events, one line a node."""
    window, end = activity.window()
    n = min(activity.n_nodes, MOST_LINES)
    boxes = [
        _box(row["start"], row["end"], int(row["node"]), end, NODE_KINDS[row["kind"]])
        for row in window[window["node"] < n]
        if row["end"] > row["start"]
    ]
    labels = [f"node {node}" for node in range(n)]
    rest = f" Nodes 0 to {n - 1} of {activity.n_nodes:,}." if n < activity.n_nodes else ""
    words = (
        f"What each node does{f' under {name}' if name else ''} at first: idealized time, in "
        f"units of one proximal step.{rest}"
    )
    return _picture(boxes, labels, end, words, dict(zip(NODE_KINDS, WORDS, strict=True)))


def node_shares(activity: Activity) -> Markup:
    """Idle shares, one row a node or the mean and the extremes."""
    shares = activity.shares
    idle = shares["idle_share"]
    rows = [
        (name, *(percent(float(part[kind])) for kind in (*NODE_KINDS, "idle_share")))
        for name, part in _lines(shares, idle, "node")
    ]
    caption = f"Where the nodes' time goes, over the first {_events(activity)}"
    note = (
        "Idle is what is neither computing nor communicating, until the last node is done. Where "
        "messages travel while a node goes on, only the time in which it could not is counted as "
        "communicating."
    )
    return join([table(caption, ("", *WORDS, "idle"), rows), tag("p", note, class_="note")])


def mean_idle(activity: Activity) -> float:
    """Idle share, mean over nodes."""
    return float(np.mean(activity.shares["idle_share"]))


def _events(activity: Activity) -> str:
    return count(activity.n_events, activity.unit)


def _lines(
    shares: np.ndarray, order: np.ndarray, word: str
) -> list[tuple[str, np.void | dict[str, float]]]:
    """Rows by name: all of them, or the mean, the least and the most by ``order``."""
    if len(shares) <= MOST_ROWS:
        return [(f"{word} {k}", row) for k, row in enumerate(shares)]
    mean = {name: float(np.mean(shares[name])) for name in shares.dtype.names or ()}
    least, most = int(np.argmin(order)), int(np.argmax(order))
    return [
        (f"mean of {len(shares):,}", mean),
        (f"least idle: {word} {least}", shares[least]),
        (f"most idle: {word} {most}", shares[most]),
    ]


def draw_ranks(ranks: Sequence[Execution]) -> Markup:
    """What ranks did when, measured; columns are split by the share of each kind."""
    shown = list(ranks[:MOST_LINES])
    end = max((span[2] for each in shown for span in each.spans), default=0.0)
    if end <= 0.0:
        return paragraph("No timeline was kept for these ranks.")
    edges = np.linspace(0.0, end, COLUMNS + 1)
    areas: list[Markup] = []
    for line, each in enumerate(shown):
        areas += _areas(line, column_shares(each.spans, edges))
    whole = max(sum(each.seconds.values()) for each in shown)
    part = f", the first {seconds(end)} of {seconds(whole)}" if end < 0.95 * whole else ""
    rest = f" Ranks 0 to {len(shown) - 1} of {len(ranks)}." if len(shown) < len(ranks) else ""
    words = f"What each rank did, measured: seconds in the loop{part}.{rest}"
    used = {kind: kind for kind in KINDS if any(each.seconds.get(kind) for each in ranks)}
    return _picture(areas, [f"rank {each.rank}" for each in shown], end, words, used)


def _areas(line: int, shares: dict[str, np.ndarray]) -> list[Markup]:
    """One shape a kind: in every column, kinds stand on top of each other."""
    step = (WIDTH - LEFT) / COLUMNS
    base = np.zeros(COLUMNS)
    found = []
    for kind in KINDS:
        if not shares[kind].any():
            continue
        top = base + shares[kind]
        bottom_y = TOP + LINE * line + (LINE + BOX) / 2 - BOX * base
        top_y = TOP + LINE * line + (LINE + BOX) / 2 - BOX * top
        parts = [
            f"M{LEFT + step * k:.1f} {bottom_y[k]:.1f}V{top_y[k]:.1f}h{step:.2f}V{bottom_y[k]:.1f}z"
            for k in np.flatnonzero(shares[kind] > 0.002)
        ]
        found.append(tag("path", d="".join(parts), class_=f"k-{kind}"))
        base = top
    return found


def rank_shares(ranks: Sequence[Execution]) -> Markup:
    """Where the ranks' time went, measured."""
    used = [kind for kind in KINDS if any(each.seconds.get(kind) for each in ranks)]
    rows = []
    for each in ranks[:MOST_LINES]:
        whole = sum(each.seconds.values())
        cells = [percent(each.seconds.get(kind, 0.0) / (whole or 1.0)) for kind in used]
        memory = f"{number(each.peak_memory / 1e6, 3)} MB" if each.peak_memory else UNKNOWN
        rows.append((name_of(each), seconds(whole), *cells, memory))
    caption = f"Where the ranks' time went, measured; {_cut(ranks)} between ranks"
    return table(caption, ("", "in the loop", *used, "most memory"), rows)


def waiting_share(ranks: Sequence[Execution]) -> float:
    """Share of the ranks' time in which they waited for each other; evaluations not counted."""
    whole = sum(sum(each.seconds.values()) - each.seconds.get("reading", 0.0) for each in ranks)
    return sum(each.seconds.get("waiting", 0.0) for each in ranks) / (whole or 1.0)


def _cut(ranks: Sequence[Execution]) -> str:
    return count(ranks[0].cut_edges, "edge")


def _box(start: float, end: float, line: int, whole: float, kind: str) -> Markup:
    scale = (WIDTH - LEFT) / whole
    return tag(
        "rect", x=LEFT + float(start) * scale, y=TOP + LINE * line + (LINE - BOX) / 2,
        width=max(0.4, float(end - start) * scale), height=BOX, class_=f"k-{kind}",
    )  # fmt: skip


def _picture(
    shapes: list[Markup], labels: list[str], end: float, words: str, kinds: dict[str, str]
) -> Markup:
    height = TOP + LINE * len(labels) + 26.0
    names = [
        tag("text", label, x=LEFT - 8.0, y=TOP + LINE * (k + 0.5), dy="0.35em", class_="left")
        for k, label in enumerate(labels)
    ]
    foot = TOP + LINE * len(labels) + 4.0
    marks = []
    for value in ticks(0.0, end):
        x = LEFT + value / end * (WIDTH - LEFT)
        marks.append(tag("line", x1=x, x2=x, y1=TOP, y2=foot, class_="grid"))
        side = "last" if x > WIDTH - 24.0 else "middle"
        marks.append(tag("text", number(value), x=min(x, WIDTH), y=foot + 14.0, class_=side))
    drawing = tag(
        "svg", tag("title", words), *marks, *names, *shapes,
        viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", class_="timeline",
    )  # fmt: skip
    box = scrolling(drawing, "Timeline")
    legend = [
        tag("li", tag("span", "", class_=f"key k-{kind}"), word) for kind, word in kinds.items()
    ]
    caption = tag("figcaption", words)
    return tag("figure", tag("ul", *legend, class_="keys"), box, caption, class_="picture wide")

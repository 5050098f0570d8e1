"""Timelines of nodes and of ranks as pictures, and tables of how their time was spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Source
from adfs.engine.execution import Execution
from adfs.schedule.clock import Clock, PairClock
from adfs.schedule.rounds import RoundClock
from adfs.schedule.timeline import COMMUNICATE, COMPUTE, INTERVAL, WAIT, idle, intervals
from adfs.schedule.timeline import KINDS as NODE_KINDS
from adfs.study.numbers import number, seconds
from adfs.study.plots.timeline_plot import column_shares, used_kinds
from adfs.study.report.convergence_chart import ticks

EVENTS = 20_000  # events of a pairwise method over which shares are taken
STEPS = 300  # rounds, or events that are computed one by one
ROWS = 60_000  # rounds times nodes
WIDTH, LEFT, BOX = 900.0, 74.0, 14.0
MOST_LINES = 24  # nodes or ranks drawn
MOST_ROWS = 16  # of a table; with more, it has the mean and the extremes
COLUMNS = 300  # of the line of a rank
NODE_WORDS = dict(zip(NODE_KINDS, ("computing", "communicating", "waiting"), strict=True))
Intervals = NDArray[np.void]


@dataclass(frozen=True)
class Activity:
    """Intervals of dtype ``INTERVAL``, sorted by event within a node.

    They belong to ``n_events`` events, of which the first ``shown`` are drawn; ``unit`` is what
    such an event is called. They are only ``expected`` where the method chose other ones on its
    way.
    """

    table: Intervals
    n_nodes: int
    n_events: int
    shown: int
    unit: str
    expected: bool = False

    @cached_property
    def shares(self) -> Intervals:
        """How each node spent its time: dtype ``IDLE``, as shares of the whole."""
        rows = idle(self.table, self.n_nodes)
        if len(self.table):
            whole = float(self.table["end"].max() - self.table["start"].min()) or 1.0
            for name in (*NODE_KINDS, "outside"):
                rows[name] /= whole
        return rows

    @property
    def mean_idle(self) -> float:
        """Idle share, mean over nodes."""
        return float(np.mean(self.shares["idle_share"]))

    def window(self) -> tuple[Intervals, float]:
        """Intervals of the time that is drawn, cut at its end, and that end.

        It ends when the median node has finished its part of the events that are drawn.
        """
        if not len(self.table):
            return self.table, 1.0
        first = self.table[self.table["event"] < self.table["event"].min() + self.shown]
        ends = np.zeros(self.n_nodes)
        np.maximum.at(ends, first["node"], first["end"])
        end = float(np.median(ends)) or float(ends.max()) or 1.0
        rows = self.table[self.table["start"] < end].copy()
        rows["end"] = np.minimum(rows["end"], end)
        return rows, end

    def picture(self, name: str = "") -> dict[str, Any]:
        window, end = self.window()
        window = window[window["end"] > window["start"]]
        n = min(self.n_nodes, MOST_LINES)
        scale, lines = (WIDTH - LEFT) / end, []
        for node in range(n):
            own, areas = window[window["node"] == node], {}
            for code in np.unique(own["kind"]):
                rows = own[own["kind"] == code]
                width = np.maximum(0.4, (rows["end"] - rows["start"]) * scale)
                areas[NODE_KINDS[code]] = _boxes(LEFT + rows["start"] * scale, width, 0.0, 1.0)
            lines.append((f"node {node}", areas))
        part = f" Nodes 0 to {n - 1} of {self.n_nodes:,}." if n < self.n_nodes else ""
        caption = (
            f"What each node does{f' under {name}' if name else ''} at first"
            f"{', as expected before the run' if self.expected else ''}: idealized time, in units "
            f"of one proximal step.{part}"
        )
        return _picture(lines, NODE_WORDS, end, caption)

    def named_shares(self) -> dict[str, Any]:
        """Shares of time, one entry per node; of many nodes the mean and the extremes."""
        shares = self.shares
        if len(shares) <= MOST_ROWS:
            return {f"node {k}": row for k, row in enumerate(shares)}
        kinds, idle_share = (*NODE_KINDS, "idle_share"), shares["idle_share"]
        least, most = np.argmin(idle_share), np.argmax(idle_share)
        return {
            f"mean of {len(shares):,}": {kind: shares[kind].mean() for kind in kinds},
            f"least idle: node {least}": shares[least],
            f"most idle: node {most}": shares[most],
        }


def activity_of(source: Source, clock: Any, parameters: Any, n_events: int) -> Activity | None:
    """The first events of a method; None where its clock cannot show them one by one.

    The clock is at its beginning, and is advanced.
    """
    if isinstance(clock, RoundClock):
        return _rounds(source, clock, n_events)
    if isinstance(clock, PairClock):
        return _pairs(source, clock, n_events) if clock.delays.law == "constant" else None
    if not isinstance(clock, Clock):
        return None
    n, p_comm = clock.n_nodes, float(np.sum(getattr(parameters, "p_edge", 0.0)))
    # Enough events for a few communications of each node, unless these are very rare.
    per_node = min(40.0, max(12.0, 4.0 / p_comm)) if p_comm > 0.0 else 12.0
    shown = min(3_000, int(per_node * n))
    events = source.draw(0, max(1, min(n_events, EVENTS), min(shown, EVENTS)))
    n_drawn = len(events.which)
    return Activity(intervals(events, clock), n, n_drawn, min(shown, n_drawn), "event")


def _rounds(source: Source, clock: RoundClock, n_events: int) -> Activity:
    """In each round all nodes compute, wait for the slowest, and communicate."""
    n_rounds = max(1, min(n_events, STEPS, max(12, ROWS // clock.n_nodes)))
    rows: list[tuple[float, ...]] = []
    for k in range(n_rounds):
        began, worked = clock.time, clock.busy
        clock.advance(source.draw(k, k + 1))
        work = clock.busy - worked
        ready = began + float(work.max())
        for node, length in enumerate(work.tolist()):
            rows += _steps(node, k, (began, began + length, ready, clock.time))
    table = np.array(rows, dtype=INTERVAL)
    return Activity(table, clock.n_nodes, n_rounds, min(n_rounds, 12), "round")


def _pairs(source: Source, clock: PairClock, n_events: int) -> Activity:
    """Both ends of an edge compute alone, then exchange."""
    n, n_edges = clock.n_nodes, len(clock.edges)
    n_drawn = max(1, min(n_events, max(STEPS, 4 * n)))
    work = clock.work * clock.delays.nominal(n_edges, n)[n_edges:]
    rows: list[tuple[float, ...]] = []
    for k in range(n_drawn):
        events = source.draw(k, k + 1)
        which = int(events.which[0])
        nodes = [which - n_edges] if which >= n_edges else clock.edges[which].tolist()
        began, waited = clock.finish.copy(), clock.waiting.copy()
        clock.advance(events)
        for node in nodes:
            done = began[node] + work[node]
            ready = done + clock.waiting[node] - waited[node]
            rows += _steps(node, k, (began[node], done, ready, clock.finish[node]))
    return Activity(np.array(rows, dtype=INTERVAL), n, n_drawn, min(n_drawn, 6 * n), "event")


def _steps(node: int, event: int, times: Sequence[float]) -> list[tuple[float, ...]]:
    """Rows for computing, waiting and communicating, those that take time."""
    steps = zip(times[:-1], times[1:], (COMPUTE, WAIT, COMMUNICATE), strict=True)
    return [(node, a, b, kind, event, -1, 0.0, 0.0) for a, b, kind in steps if b > a]


def _picture(
    lines: list[tuple[str, dict[str, str]]], kinds: Mapping[str, str], end: float, caption: str
) -> dict[str, Any]:
    """What the template ``timeline`` draws: one line per node or rank.

    ``lines`` holds a label and, per kind, an SVG path in pixels whose origin is the upper left
    corner of the line; ``kinds`` are the words of the legend; ``end`` is where the time axis ends.
    """
    marks = [(LEFT + value * ((WIDTH - LEFT) / end), number(value)) for value in ticks(end)]
    return {"lines": lines, "kinds": kinds, "ticks": marks, "caption": caption}


def _boxes(x: NDArray[Any], width: Any, base: Any, top: Any) -> str:
    """Boxes as one path; ``base`` and ``top`` are shares of the height of a line."""
    parts = np.broadcast_arrays(x, width, BOX * (1.0 - base), BOX * (1.0 - top))
    boxes = zip(*parts, strict=True)
    return "".join(f"M{a:.1f} {b:.1f}V{c:.1f}h{w:.2f}V{b:.1f}z" for a, w, b, c in boxes)


def draw_ranks(ranks: Sequence[Execution]) -> dict[str, Any] | None:
    """What each rank did, measured; None without spans.

    A column of the picture is split from bottom to top by the share of each kind in its time.
    """
    shown = ranks[:MOST_LINES]
    end = max((span[2] for each in shown for span in each.spans), default=0.0)
    if end <= 0.0:
        return None
    edges, step, lines = np.linspace(0.0, end, COLUMNS + 1), (WIDTH - LEFT) / COLUMNS, []
    for each in shown:
        base, areas = np.zeros(COLUMNS), {}
        for kind, share in column_shares(each.spans, edges).items():
            top, drawn = base + share, np.flatnonzero(share > 0.002)
            if len(drawn):
                areas[kind] = _boxes(LEFT + step * drawn, step, base[drawn], top[drawn])
            base = top
        lines.append((f"rank {each.rank}", areas))
    whole = max(sum(each.seconds.values()) for each in shown)
    part = f", the first {seconds(end)} of {seconds(whole)}" if end < 0.95 * whole else ""
    rest = f" Ranks 0 to {len(shown) - 1} of {len(ranks)}." if len(shown) < len(ranks) else ""
    caption = f"What each rank did, measured: seconds in the loop{part}.{rest}"
    return _picture(lines, {kind: kind for kind in used_kinds(ranks)}, end, caption)


def waiting_share(ranks: Sequence[Execution]) -> float:
    """Share of the ranks' time in which they waited for each other, evaluations left out."""
    whole = sum(sum(each.seconds.values()) - each.seconds.get("reading", 0.0) for each in ranks)
    return sum(each.seconds.get("waiting", 0.0) for each in ranks) / (whole or 1.0)

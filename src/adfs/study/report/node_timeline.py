"""Timelines of nodes and of ranks as pictures, and tables of how their time was spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Method, Source
from adfs.engine.execution import KINDS, Execution
from adfs.schedule.clock import Clock, PairClock
from adfs.schedule.delays import Delays
from adfs.schedule.poisson import PoissonSource
from adfs.schedule.rounds import RoundClock
from adfs.schedule.sampling_law import Drawer
from adfs.schedule.timeline import COMMUNICATE, COMPUTE, IDLE, INTERVAL, WAIT, idle, intervals
from adfs.schedule.timeline import KINDS as NODE_KINDS
from adfs.study.numbers import UNKNOWN, count, number, percent, seconds
from adfs.study.plots.rank_plot import column_shares, name_of
from adfs.study.report.convergence_chart import ticks
from adfs.study.report.render import Table

EVENTS = 20_000  # events of a pairwise method over which shares are taken
STEPS = 300  # rounds, or events that are computed one by one
ROWS = 60_000  # rounds times nodes
Intervals = NDArray[np.void]


@dataclass(frozen=True)
class Activity:
    """Intervals of dtype ``INTERVAL``, sorted by event within a node.

    They belong to ``n_events`` events, of which the first ``shown`` are drawn; ``unit`` is what
    such an event is called.
    """

    table: Intervals
    n_nodes: int
    n_events: int
    shown: int
    unit: str

    @property
    def shares(self) -> Intervals:
        """How each node spent its time: dtype ``IDLE``, as shares of the whole."""
        rows = idle(self.table, self.n_nodes)
        if not len(self.table):
            return rows
        whole = float(self.table["end"].max() - self.table["start"].min()) or 1.0
        for name in IDLE.names[:-1] if IDLE.names else ():
            rows[name] /= whole
        return rows

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


def law_activity(
    law: Any, seed: int, schedule: str, delays: Delays, kind: str, n_events: int
) -> Activity | None:
    """The first events of a pairwise method, drawn again from its parameters and its seed.

    ``law`` is a `SamplingLaw` with a method ``make_clock``.
    """
    source: Source = (
        PoissonSource(law, seed, with_samples=False)
        if schedule == "poisson"
        else Drawer(law, seed, with_samples=False)
    )
    return _activity(source, law.make_clock(delays, kind), law, n_events)


def method_activity(method: Method, n_events: int) -> Activity | None:
    """The first events of any method; None where its clock cannot show them one by one."""
    return _activity(method.source, method.clock.copy(), method.parameters, n_events)


def _activity(source: Source, clock: Any, parameters: Any, n_events: int) -> Activity | None:
    if isinstance(clock, RoundClock):
        return _rounds(source, clock, n_events)
    if isinstance(clock, PairClock):
        return _pairs(source, clock, n_events) if clock.delays.law == "constant" else None
    if isinstance(clock, Clock):
        p_comm = float(np.sum(getattr(parameters, "p_edge", 0.0)))
        return _pairwise(source, clock, n_events, p_comm)
    return None


def _pairwise(source: Source, clock: Clock, n_events: int, p_comm: float) -> Activity:
    n = clock.n_nodes
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
    n = clock.n_nodes
    n_drawn = max(1, min(n_events, max(STEPS, 4 * n)))
    work = clock.work * clock.delays.nominal(len(clock.edges), n)[len(clock.edges) :]
    rows: list[tuple[float, ...]] = []
    for k in range(n_drawn):
        events = source.draw(k, k + 1)
        which = int(events.which[0])
        own = which >= len(clock.edges)
        nodes = [which - len(clock.edges)] if own else clock.edges[which].tolist()
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


WIDTH, LEFT, BOX = 900.0, 74.0, 14.0
MOST_LINES = 24  # nodes or ranks drawn
MOST_ROWS = 16  # of a table; with more, it has the mean and the extremes
COLUMNS = 300  # of the line of a rank
NODE_WORDS = dict(zip(NODE_KINDS, ("computing", "communicating", "waiting"), strict=True))


@dataclass(frozen=True)
class TimelinePicture:
    """What the template ``timeline`` draws: one line per node or rank.

    ``lines`` holds a label and, per kind, an SVG path in pixels whose origin is the upper left
    corner of the line; ``kinds`` are the words of the legend; ``end`` is where the time axis ends.
    """

    lines: Sequence[tuple[str, Mapping[str, str]]]
    kinds: Mapping[str, str]
    end: float
    caption: str

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and text of the marks on the time axis."""
        scale = (WIDTH - LEFT) / self.end
        return [(LEFT + value * scale, number(value)) for value in ticks(self.end)]


def _boxes(x: NDArray[Any], width: NDArray[Any], base: NDArray[Any], top: NDArray[Any]) -> str:
    """Boxes as one path; ``base`` and ``top`` are shares of the height of a line."""
    parts = zip(x, width, BOX * (1.0 - base), BOX * (1.0 - top), strict=True)
    return "".join(f"M{a:.1f} {b:.1f}V{c:.1f}h{w:.2f}V{b:.1f}z" for a, w, b, c in parts)


def draw_nodes(activity: Activity, name: str = "") -> TimelinePicture:
    """The first events, one line per node."""
    window, end = activity.window()
    scale = (WIDTH - LEFT) / end
    n = min(activity.n_nodes, MOST_LINES)
    lines = []
    for node in range(n):
        areas = {}
        for code, kind in enumerate(NODE_KINDS):
            rows = window[(window["node"] == node) & (window["kind"] == code)]
            rows = rows[rows["end"] > rows["start"]]
            if len(rows):
                width = np.maximum(0.4, (rows["end"] - rows["start"]) * scale)
                full = np.ones(len(rows))
                areas[kind] = _boxes(LEFT + rows["start"] * scale, width, 0.0 * full, full)
        lines.append((f"node {node}", areas))
    part = f" Nodes 0 to {n - 1} of {activity.n_nodes:,}." if n < activity.n_nodes else ""
    caption = (
        f"What each node does{f' under {name}' if name else ''} at first: idealized time, in "
        f"units of one proximal step.{part}"
    )
    return TimelinePicture(lines, NODE_WORDS, end, caption)


def node_shares(activity: Activity) -> Table:
    """Shares of time, one row per node; of many nodes the mean and the extremes."""
    shares = activity.shares
    rows: list[tuple[str, Any]] = [(f"node {k}", row) for k, row in enumerate(shares)]
    if len(rows) > MOST_ROWS:
        mean = {name: float(np.mean(shares[name])) for name in shares.dtype.names or ()}
        least, most = np.argmin(shares["idle_share"]), np.argmax(shares["idle_share"])
        rows = [
            (f"mean of {len(shares):,}", mean),
            (f"least idle: node {least}", shares[least]),
            (f"most idle: node {most}", shares[most]),
        ]
    first = count(activity.n_events, activity.unit)
    return Table(
        f"How the nodes spend their time, over the first {first}",
        ("", *NODE_WORDS.values(), "idle"),
        [(name, *(percent(float(row[kind])) for kind in (*NODE_KINDS, "idle_share")))
         for name, row in rows],
    )  # fmt: skip


def mean_idle(activity: Activity) -> float:
    """Idle share, mean over nodes."""
    return float(np.mean(activity.shares["idle_share"]))


def draw_ranks(ranks: Sequence[Execution]) -> TimelinePicture | None:
    """What each rank did, measured; None without spans.

    A column of the picture is split from bottom to top by the share of each kind in its time.
    """
    shown = ranks[:MOST_LINES]
    end = max((span[2] for each in shown for span in each.spans), default=0.0)
    if end <= 0.0:
        return None
    edges = np.linspace(0.0, end, COLUMNS + 1)
    lines = [(f"rank {each.rank}", _areas(column_shares(each.spans, edges))) for each in shown]
    whole = max(sum(each.seconds.values()) for each in shown)
    part = f", the first {seconds(end)} of {seconds(whole)}" if end < 0.95 * whole else ""
    rest = f" Ranks 0 to {len(shown) - 1} of {len(ranks)}." if len(shown) < len(ranks) else ""
    caption = f"What each rank did, measured: seconds in the loop{part}.{rest}"
    return TimelinePicture(lines, {kind: kind for kind in _used(ranks)}, end, caption)


def _areas(shares: Mapping[str, NDArray[np.float64]]) -> dict[str, str]:
    """One path per kind; in every column, one kind begins where the last one ends."""
    step = (WIDTH - LEFT) / COLUMNS
    base = np.zeros(COLUMNS)
    found = {}
    for kind in KINDS:
        top = base + shares[kind]
        shown = np.flatnonzero(shares[kind] > 0.002)
        if len(shown):
            width = np.full(len(shown), step)
            found[kind] = _boxes(LEFT + step * shown, width, base[shown], top[shown])
        base = top
    return found


def _used(ranks: Sequence[Execution]) -> list[str]:
    """Kinds of work that at least one rank did."""
    return [kind for kind in KINDS if any(each.seconds.get(kind) for each in ranks)]


def rank_shares(ranks: Sequence[Execution]) -> Table:
    """How the ranks spent their time, measured."""
    used, rows = _used(ranks), []
    for each in ranks[:MOST_LINES]:
        whole = sum(each.seconds.values())
        cells = [percent(each.seconds.get(kind, 0.0) / (whole or 1.0)) for kind in used]
        memory = f"{number(each.peak_memory / 1e6, 3)} MB" if each.peak_memory else UNKNOWN
        rows.append((name_of(each), seconds(whole), *cells, memory))
    cut = count(ranks[0].cut_edges, "edge")
    caption = f"How the ranks spent their time, measured; {cut} between ranks"
    return Table(caption, ("", "in the loop", *used, "peak memory"), rows)


def waiting_share(ranks: Sequence[Execution]) -> float:
    """Share of the ranks' time in which they waited for each other, evaluations left out."""
    whole = sum(sum(each.seconds.values()) - each.seconds.get("reading", 0.0) for each in ranks)
    return sum(each.seconds.get("waiting", 0.0) for each in ranks) / (whole or 1.0)

"""What nodes do when in idealized time: the first events of a run, whatever its clock."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Method, Source, Timekeeper
from adfs.schedule.clock import Clock
from adfs.schedule.delays import Delays
from adfs.schedule.law import Drawer, SamplingLaw
from adfs.schedule.pairs import PairClock
from adfs.schedule.poisson import PoissonSource
from adfs.schedule.rounds import RoundClock
from adfs.schedule.timeline import COMMUNICATE, COMPUTE, IDLE, INTERVAL, WAIT, idle, intervals

EVENTS = 20_000  # pairwise events over which shares are taken
STEPS = 300  # rounds, or events that have to be taken one by one
ROWS = 60_000  # rounds times nodes
Table = NDArray[np.void]


@dataclass(frozen=True)
class Activity:
    """Intervals of dtype ``INTERVAL``, sorted by event within a node.

    ``n_events`` is how many events they are of, ``shown`` how many of these are worth drawing,
    ``unit`` what an event is called.
    """

    table: Table
    n_nodes: int
    n_events: int
    shown: int
    unit: str

    @property
    def shares(self) -> Table:
        """Where each node's time went: dtype ``IDLE``, as shares of the whole."""
        rows = idle(self.table, self.n_nodes)
        if not len(self.table):
            return rows
        whole = float(self.table["end"].max() - self.table["start"].min()) or 1.0
        for name in IDLE.names[:-1] if IDLE.names else ():
            rows[name] /= whole
        return rows

    def window(self) -> tuple[Table, float]:
        """Intervals of the first stretch of time, cut at its end, and that end.

        It is as long as the middle node takes for its part of the events worth drawing.
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


class TimedLaw(SamplingLaw, Protocol):
    """Parameters from which a schedule draws its events, and which know their clock."""

    def make_clock(self, delays: Delays, kind: str) -> Timekeeper:
        """The clock of the events."""
        ...


def of_law(
    law: TimedLaw, seed: int, schedule: str, delays: Delays, kind: str, n_events: int
) -> Activity | None:
    """The first events of a pairwise method, drawn again from its law and its seed."""
    source: Source = (
        PoissonSource(law, seed, with_samples=False)
        if schedule == "poisson"
        else Drawer(law, seed, with_samples=False)
    )
    return _of_clock(source, law.make_clock(delays, kind), law, n_events)


def of_method(method: Method, n_events: int) -> Activity | None:
    """The first events of any method; None where its clock does not tell them apart."""
    return _of_clock(method.source, method.clock.copy(), method.parameters, n_events)


def _of_clock(source: Source, clock: Any, parameters: Any, n_events: int) -> Activity | None:
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
    # So many that a node communicates a few times, unless that is very rare.
    each = min(40.0, max(12.0, 4.0 / p_comm)) if p_comm > 0.0 else 12.0
    shown = min(3_000, int(each * n))
    events = source.draw(0, max(1, min(n_events, EVENTS), min(shown, EVENTS)))
    table = intervals(events, clock)
    return Activity(table, n, len(events.which), min(shown, len(events.which)), "event")


def _rounds(source: Source, clock: RoundClock, n_events: int) -> Activity:
    """All nodes work, wait for the slowest, and talk: round after round."""
    n_rounds = max(1, min(n_events, STEPS, max(12, ROWS // clock.n_nodes)))
    rows: list[tuple[int, float, float, int, int]] = []
    for k in range(n_rounds):
        began, worked = clock.time, clock.busy
        clock.advance(source.draw(k, k + 1))
        work = clock.busy - worked
        ready, ended = began + float(work.max()), clock.time
        for node, length in enumerate(work.tolist()):
            rows += _steps(node, k, (began, began + length, ready, ended))
    return Activity(_table(rows), clock.n_nodes, n_rounds, min(n_rounds, 12), "round")


def _pairs(source: Source, clock: PairClock, n_events: int) -> Activity:
    """Both ends of an edge work alone, then exchange."""
    n = clock.n_nodes
    n_shown = max(1, min(n_events, max(STEPS, 4 * n)))
    nominal = clock.delays.nominal(len(clock.edges), n)
    work = clock.work * nominal[len(clock.edges) :]
    rows: list[tuple[int, float, float, int, int]] = []
    for k in range(n_shown):
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
    return Activity(_table(rows), n, n_shown, min(n_shown, 6 * n), "event")


def _steps(
    node: int, event: int, times: tuple[float, float, float, float]
) -> list[tuple[int, float, float, int, int]]:
    """Computing, waiting and communicating, those that take time."""
    spans = zip(times[:-1], times[1:], (COMPUTE, WAIT, COMMUNICATE), strict=True)
    return [(node, a, b, kind, event) for a, b, kind in spans if b > a]


def _table(rows: list[tuple[int, float, float, int, int]]) -> Table:
    table = np.zeros(len(rows), dtype=INTERVAL)
    for name, column in zip(
        ("node", "start", "end", "kind", "event"), zip(*rows, strict=True), strict=False
    ):
        table[name] = column
    return table

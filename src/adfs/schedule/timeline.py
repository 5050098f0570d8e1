"""What each node does when: intervals, idle time, and Chrome's trace format.

All functions take a clock in its state *before* the events and leave it untouched, so a window of
a long schedule is shown by advancing a clock to its beginning.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.kernels import clocks
from adfs.schedule.clock import Clock
from adfs.schedule.events import Events

KINDS = ("compute", "communicate", "wait")
COMPUTE, COMMUNICATE, WAIT = range(3)

Times = NDArray[np.float64]
INTERVAL = np.dtype(
    {
        "names": ["node", "start", "end", "kind", "event", "peer", "sent", "received"],
        "formats": ["i4", "f8", "f8", "u1", "i8", "i4", "f8", "f8"],
    }
)
IDLE = np.dtype([(name, np.float64) for name in (*KINDS, "outside", "idle_share")])


def intervals(events: Events, clock: Clock) -> NDArray[np.void]:
    """What each node does from when to when, sorted by node, then by event; dtype ``INTERVAL``.

    ``kind`` numbers ``KINDS``. A node *waits* at an exchange that its peer has not reached, and
    *communicates* from when both have until it leaves: one such interval per node of each exchange,
    of length zero where the message had arrived before. ``sent`` and ``received`` tell when the
    message it takes left the peer and arrived; NaN in other intervals, where ``peer`` of a local
    update is -1. The intervals of a node do not overlap.
    """
    which, duration, after = events.which, clock.durations(events), clock.copy()
    reached, left = np.zeros((2, len(which), 2))
    state = (after.finish, after.busy, after.waiting, reached, left)
    clocks.advance(which, clock.edges, duration, clock.code, *state)
    event = events.start + np.arange(len(which), dtype=np.int64)
    alone = np.full((clock.n_nodes, 2), -1, dtype=np.int32)
    alone[:, 0] = np.arange(clock.n_nodes)
    nodes = np.concatenate([clock.edges, alone])[which]
    shared, ready = nodes[:, 1] >= 0, reached.max(axis=1)

    def rows(
        mask: NDArray[np.bool_], side: int, kind: int, start: Times, end: Times
    ) -> NDArray[np.void]:
        """Intervals of the nodes in column ``side`` of the masked events."""
        table = np.empty(np.count_nonzero(mask), dtype=INTERVAL)
        table["node"], table["peer"] = nodes[mask, side], nodes[mask, 1 - side]
        table["start"], table["end"] = start[mask], end[mask]
        table["kind"], table["event"] = kind, event[mask]
        table["sent"] = table["received"] = np.nan
        return table

    parts = [rows(~shared, 0, COMPUTE, reached[:, 0], left[:, 0])]
    for side in (0, 1):
        here, there = reached[:, side], reached[:, 1 - side]
        waits = rows(shared & (here < ready), side, WAIT, here, ready)
        talks = rows(shared, side, COMMUNICATE, ready, left[:, side])
        talks["sent"] = (ready if clock.kind == "rendezvous" else there)[shared]
        talks["received"] = talks["sent"] + duration[shared]
        parts += [waits, talks]
    table = np.concatenate(parts)
    # A node waits at an exchange before it communicates: within an event, kinds go backwards.
    return table[np.lexsort((-table["kind"].astype(np.int8), table["event"], table["node"]))]


def idle(table: NDArray[np.void], n_nodes: int) -> NDArray[np.void]:
    """Where the time of each node went, one row of dtype ``IDLE`` a node.

    Time in each kind of interval; ``outside``, before its first and after its last event; and
    ``idle_share``, the share neither computing nor communicating. All between the first start
    and the last end in the table.
    """
    rows = np.zeros(n_nodes, dtype=IDLE)
    if not len(table):
        return rows
    length = table["end"] - table["start"]
    for code, name in enumerate(KINDS):
        mine = table["kind"] == code
        rows[name] = np.bincount(table["node"][mine], length[mine], n_nodes)
    makespan = table["end"].max() - table["start"].min()
    busy = rows["compute"] + rows["communicate"]
    rows["outside"] = np.maximum(makespan - busy - rows["wait"], 0.0)
    rows["idle_share"] = 1.0 - busy / makespan if makespan > 0.0 else 0.0
    return rows


def chrome_trace(table: NDArray[np.void]) -> dict[str, Any]:
    """Intervals in the Trace Event Format, for chrome://tracing or ui.perfetto.dev.

    One row per node; one unit of time (one proximal step) is shown as a microsecond. Times are
    whole nanoseconds, the viewers' own resolution, so that neighbours touch without overlapping.
    Write it with ``json.dump``.
    """
    rows: list[dict[str, Any]] = []
    for node in np.unique(table["node"]).tolist():
        about: dict[str, Any] = {"ph": "M", "pid": 0, "tid": node}
        rows.append({**about, "name": "thread_name", "args": {"name": f"node {node}"}})
        rows.append({**about, "name": "thread_sort_index", "args": {"sort_index": node}})
    start = np.rint(table["start"] * 1e3)
    length = np.rint(table["end"] * 1e3) - start
    for row, ts, dur in zip(table, start.tolist(), length.tolist(), strict=True):
        kind = KINDS[row["kind"]]
        args = {"event": int(row["event"])}
        if row["kind"] != COMPUTE:
            args["peer"] = int(row["peer"])
        about = {"name": kind, "cat": kind, "ph": "X", "pid": 0, "tid": int(row["node"])}
        rows.append({**about, "ts": ts / 1e3, "dur": dur / 1e3, "args": args})
    return {"traceEvents": rows, "displayTimeUnit": "ns"}

"""Intervals, Chrome trace and picture of a schedule."""

import json

import numpy as np
import pytest

from adfs.schedule.clock import CLOCKS, Clock
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from adfs.schedule.timeline import (
    COMMUNICATE,
    COMPUTE,
    KINDS,
    WAIT,
    chrome_trace,
    idle,
    intervals,
)

A, B, C, D = range(4)
RING = np.array([(i, (i + 1) % 6) for i in range(6)], dtype=np.int32)


def make_events(which, start=0):
    which = np.asarray(which, dtype=np.int32)
    return Events(start, which, np.zeros_like(which))


@pytest.fixture
def figure_2():
    """Events and edges of the schedule [(A,C), (B,D), (A,B), (D), (C,D)]."""
    edges = np.array([(A, C), (B, D), (A, B), (C, D)], dtype=np.int32)
    return make_events([0, 1, 2, 4 + D, 3]), edges


def random_case(kind, seed, n_events=300, law="lognormal"):
    """Events on a ring of six, and a clock before them."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 12, n_events)
    tau = rng.uniform(0.0, 5.0, 6) * (rng.random(6) < 0.8)  # some edges cost nothing
    delays = Delays(tau=tau, speed=rng.uniform(0.5, 4.0, 6), law=law, seed=seed)
    return make_events(which), Clock(RING, 6, delays, kind)


def advanced(clock, events):
    after = clock.copy()
    after.advance(events)
    return after


def told(table, node):
    """(kind, start, end, peer) of a node's intervals."""
    mine = table[table["node"] == node]
    return [(KINDS[r["kind"]], r["start"], r["end"], r["peer"]) for r in mine]


def test_figure_2_intervals_are_those_of_the_paper(figure_2):
    events, edges = figure_2
    table = intervals(events, Clock(edges, 4, Delays(tau=3.0), "rendezvous"))
    assert told(table, A) == [("communicate", 0, 3, C), ("communicate", 3, 6, B)]
    assert told(table, B) == [("communicate", 0, 3, D), ("communicate", 3, 6, A)]
    assert told(table, C) == [
        ("communicate", 0, 3, A),
        ("wait", 3, 4, D),
        ("communicate", 4, 7, D),
    ]
    assert told(table, D) == [
        ("communicate", 0, 3, B),
        ("compute", 3, 4, -1),
        ("communicate", 4, 7, C),
    ]


def test_nonblocking_messages_leave_when_their_sender_arrives(figure_2):
    events, edges = figure_2
    table = intervals(events, Clock(edges, 4, Delays(tau=3.0), "nonblocking"))
    last = table[(table["event"] == 4) & (table["kind"] == COMMUNICATE)]
    assert last["node"].tolist() == [C, D]
    assert last["sent"].tolist() == [4.0, 3.0]
    assert last["received"].tolist() == [7.0, 6.0]
    assert last["end"].tolist() == [7.0, 6.0]


@pytest.mark.parametrize("kind", CLOCKS)
@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_a_node_follow_each_other_without_gap_or_overlap(kind, seed):
    events, clock = random_case(kind, seed)
    table = intervals(events, clock)
    after = advanced(clock, events)
    for node in range(6):
        mine = table[table["node"] == node]
        assert mine["start"][0] == 0.0
        assert mine["start"][1:].tolist() == mine["end"][:-1].tolist()
        assert mine["end"][-1] == after.finish[node]


@pytest.mark.parametrize("kind", CLOCKS)
def test_intervals_add_up_to_what_the_clock_counted(kind):
    events, clock = random_case(kind, 5)
    rows = idle(intervals(events, clock), 6)
    after = advanced(clock, events)
    np.testing.assert_allclose(rows["compute"] + rows["communicate"], after.busy, rtol=1e-12)
    np.testing.assert_allclose(rows["wait"], after.waiting, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(rows["outside"], after.time - after.finish, atol=1e-10)
    np.testing.assert_allclose(rows["idle_share"], after.idle_share(), atol=1e-12)


def test_a_table_without_rows_has_no_idle_time():
    empty = intervals(make_events([]), Clock(RING, 6, Delays()))
    assert idle(empty, 6)["idle_share"].tolist() == [0.0] * 6


@pytest.mark.parametrize("kind", CLOCKS)
def test_a_window_of_a_schedule_shows_the_same_intervals(kind):
    events, clock = random_case(kind, 8)
    whole = intervals(events, clock)
    before = advanced(clock, make_events(events.which[:200]))
    window = intervals(make_events(events.which[200:], 200), before)
    assert window.tobytes() == whole[whole["event"] >= 200].tobytes()


@pytest.mark.parametrize("kind", CLOCKS)
def test_looking_leaves_the_clock_untouched(kind):
    events, clock = random_case(kind, 2)
    intervals(events, clock)
    assert clock.time == 0.0


@pytest.mark.parametrize("kind", CLOCKS)
def test_chrome_trace_is_json_whose_slices_never_overlap_within_a_node(kind):
    events, clock = random_case(kind, 4, law="exponential")
    table = intervals(events, clock)
    trace = json.loads(json.dumps(chrome_trace(table)))["traceEvents"]
    names = {row["tid"]: row["args"]["name"] for row in trace if row["name"] == "thread_name"}
    assert names == {node: f"node {node}" for node in range(6)}
    slices = [row for row in trace if row["ph"] == "X"]
    assert len(slices) == len(table)
    for node in range(6):
        # In whole nanoseconds, as viewers read them.
        mine = [(round(s["ts"] * 1e3), round(s["dur"] * 1e3)) for s in slices if s["tid"] == node]
        ends = [ts + dur for ts, dur in mine]
        assert all(dur >= 0 for _, dur in mine)
        assert all(end <= ts for end, (ts, _) in zip(ends[:-1], mine[1:], strict=True))


def test_chrome_trace_tells_event_peer_and_time_in_microseconds(figure_2):
    events, edges = figure_2
    table = intervals(events, Clock(edges, 4, Delays(tau=3.0), "rendezvous"))
    trace = chrome_trace(table)["traceEvents"]
    (wait,) = (row for row in trace if row["name"] == "wait")
    assert (wait["tid"], wait["ts"], wait["dur"]) == (C, 3.0, 1.0)
    assert wait["args"] == {"event": 4, "peer": D}
    (compute,) = (row for row in trace if row["name"] == "compute")
    assert compute["args"] == {"event": 3}


@pytest.fixture
def draw_timeline():
    """The drawing function without a screen; figures are closed afterwards."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from adfs.study.plots.timeline_plot import draw_timeline

    yield draw_timeline
    pyplot.close("all")


def boxes(ax):
    """Number of boxes by label."""
    return {c.get_label(): len(c.get_paths()) for c in ax.collections if c.get_label()[0] != "_"}


def test_figure_2_picture_has_one_box_per_interval_and_one_link_per_exchange(
    figure_2, draw_timeline
):
    events, edges = figure_2
    table = intervals(events, Clock(edges, 4, Delays(tau=3.0), "rendezvous"))
    ax = draw_timeline(table, 4)
    assert boxes(ax) == {"local update": 1, "communication": 8, "waiting": 1}
    links = [line for line in ax.lines if line.get_marker() == "o"]
    joined = sorted(tuple(int(y) for y in line.get_ydata()) for line in links)
    assert joined == [(A, B), (A, C), (B, D), (C, D)]
    assert len({line.get_xdata()[0] for line in links}) == 4  # none hides another
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0", "1", "2", "3"]
    assert {text.get_text() for text in ax.texts} == {"(0,2)", "(1,3)", "(0,1)", "(3)", "(2,3)"}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "local update",
        "communication",
        "waiting",
    ]


def test_nonblocking_picture_has_an_arrow_per_message(figure_2, draw_timeline):
    events, edges = figure_2
    table = intervals(events, Clock(edges, 4, Delays(tau=3.0), "nonblocking"))
    ax = draw_timeline(table, 4)
    arrows = [text for text in ax.texts if text.get_text() == ""]
    assert len(arrows) == 8
    assert boxes(ax) == {"local update": 1, "communication": 8, "waiting": 1}


@pytest.mark.parametrize("kind", CLOCKS)
def test_a_long_schedule_is_drawn_on_given_axes_and_saved(kind, draw_timeline, tmp_path):
    from matplotlib import pyplot

    events, clock = random_case(kind, 6, n_events=2000)
    table = intervals(events, clock)
    figure, ax = pyplot.subplots()
    assert draw_timeline(table, 6, ax=ax) is ax
    counts = [np.count_nonzero(table["kind"] == code) for code in (COMPUTE, COMMUNICATE, WAIT)]
    assert list(boxes(ax).values()) == counts
    figure.savefig(tmp_path / "timeline.png")


def test_an_empty_schedule_can_be_drawn(draw_timeline):
    ax = draw_timeline(intervals(make_events([]), Clock(RING, 6, Delays())), 6)
    assert boxes(ax) == {"local update": 0, "communication": 0, "waiting": 0}

"""Schedules: streamed, stored, saved, cut by node and timed, the same events each time."""

import io

import numpy as np
import pytest

import adfs
from adfs.errors import DataError, ParameterError
from adfs.schedule.events import Events
from adfs.schedule.schedule import BLOCK, Schedule
from oracles import clock as literal

CLOCKS = {"nonblocking": literal.nonblocking, "rendezvous": literal.rendezvous}
UNREADABLE = "is not a schedule that can be read"


@pytest.fixture(scope="module")
def parameters():
    rng = np.random.default_rng(2)
    shards = [(rng.normal(size=(m, 3)), rng.normal(size=m)) for m in (2, 5, 3, 8, 4, 1)]
    problem = adfs.Problem(shards, "squared", 1.0, adfs.Topology.grid(2, 3))
    return adfs.Parameters.choose(problem, how="exact")


def as_literal(schedule):
    """Events as the oracle wants them."""
    events, n_edges = schedule.events(), len(schedule.edges)
    return [
        ("local", int(which) - n_edges)
        if which >= n_edges
        else ("comm", *map(int, schedule.edges[which]))
        for which in events.which
    ]


def assert_same_events(left, right):
    assert left.start == right.start
    assert np.array_equal(left.which, right.which)
    assert np.array_equal(left.sample, right.sample)
    assert left.which.dtype == right.which.dtype == np.int32
    assert left.sample.dtype == right.sample.dtype == np.int32


@pytest.mark.parametrize("size", [1, 7, 1000, BLOCK])
def test_a_streamed_schedule_is_the_stored_one_bit_for_bit(parameters, size):
    n_events = 300 if size == 1 else 40_000
    schedule = Schedule.sample(parameters, n_events, seed=4)
    whole = schedule.events()
    blocks = list(schedule.blocks(size=size))
    assert [block.start for block in blocks] == list(range(0, n_events, size))
    joined = Events(
        0,
        np.concatenate([block.which for block in blocks]),
        np.concatenate([block.sample for block in blocks]),
    )
    assert_same_events(joined, whole)
    assert joined.stop == len(schedule) == n_events


def test_a_block_from_the_middle_is_that_part_of_the_whole(parameters):
    schedule = Schedule.sample(parameters, 5_000, seed=1)
    whole, middle = schedule.events(), schedule.events(1234, 2345)
    assert_same_events(middle, Events(1234, whole.which[1234:2345], whole.sample[1234:2345]))
    assert schedule.events(4_990, 6_000).stop == 5_000


def test_a_longer_schedule_of_the_same_seed_begins_like_the_shorter_one(parameters):
    short, long = (Schedule.sample(parameters, n, seed=3).events() for n in (100, 10_000))
    assert np.array_equal(short.which, long.which[:100])


def test_another_seed_gives_another_schedule(parameters):
    one, other = (Schedule.sample(parameters, 2_000, seed=seed).events() for seed in (0, 1))
    assert np.mean(one.which != other.which) > 0.3


def test_events_far_ahead_cost_no_more_memory_than_their_block(parameters):
    schedule = Schedule.sample(parameters, 10**12, seed=0)
    events = schedule.events(10**11, 10**11 + 50)
    assert (events.start, len(events.which), len(schedule)) == (10**11, 50, 10**12)


def test_a_saved_schedule_comes_back_whole(parameters, tmp_path):
    schedule = Schedule.sample(parameters, 3_000, seed=9)
    schedule.save(tmp_path / "events.npz")
    loaded = Schedule.load(tmp_path / "events.npz")
    assert_same_events(loaded.events(), schedule.events())
    assert np.array_equal(loaded.edges, schedule.edges)
    assert (loaded.n_nodes, loaded.n_events) == (schedule.n_nodes, schedule.n_events)
    for clock in CLOCKS:
        assert np.array_equal(loaded.times(2.5, clock), schedule.times(2.5, clock))
    assert [path.name for path in tmp_path.iterdir()] == ["events.npz"]


def test_a_single_node_has_a_schedule_without_edges(tmp_path):
    rng = np.random.default_rng(0)
    problem = adfs.Problem([(rng.normal(size=(5, 2)), rng.normal(size=5))], "squared")
    schedule = Schedule.sample(adfs.Parameters.choose(problem), 200)
    assert (schedule.events().which == 0).all()
    assert schedule.times(tau=7.0).tolist() == [200.0]
    schedule.save(tmp_path / "one.npz")
    assert_same_events(Schedule.load(tmp_path / "one.npz").events(), schedule.events())


def test_an_empty_schedule_is_a_schedule(parameters, tmp_path):
    schedule = Schedule.sample(parameters, 0)
    assert list(schedule.blocks()) == []
    assert schedule.times().tolist() == [0.0] * 6
    schedule.save(tmp_path / "empty.npz")
    assert len(Schedule.load(tmp_path / "empty.npz")) == 0


@pytest.mark.parametrize("tau", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("clock", CLOCKS)
def test_finish_times_are_the_oracles(parameters, clock, tau):
    schedule = Schedule.sample(parameters, 20_000, seed=8)
    expected = CLOCKS[clock](schedule.n_nodes, as_literal(schedule), tau)
    np.testing.assert_allclose(schedule.times(tau, clock), expected, rtol=1e-13)


def test_delays_by_edge_and_speeds_by_node_are_the_oracles(parameters):
    schedule = Schedule.sample(parameters, 5_000, seed=8)
    tau = np.linspace(0.5, 4.0, len(schedule.edges))
    duration = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    delays = adfs.Delays(tau=tau, speed=duration)
    edges = [tuple(map(int, edge)) for edge in schedule.edges]
    expected = literal.nonblocking(6, as_literal(schedule), tau, edges, speed=1.0 / duration)
    np.testing.assert_allclose(schedule.times(delays=delays), expected, rtol=1e-12)


def test_retiming_draws_the_same_events_and_changes_only_times(parameters):
    schedule = Schedule.sample(parameters, 4_000, seed=2)
    before = schedule.events()
    slow, fast = schedule.times(tau=50.0), schedule.times(tau=0.1)
    blocking = schedule.times(tau=50.0, clock="rendezvous")
    assert (slow > fast).all()
    assert (blocking >= slow).all()
    assert_same_events(schedule.events(), before)
    assert np.array_equal(schedule.times(tau=50.0), slow)


def test_figure_2_nodes_finish_when_the_paper_says():
    edges, D = [(0, 2), (1, 3), (0, 1), (2, 3)], 3
    schedule = Schedule.from_events(4, edges, [(2, 0), (1, 3), (0, 1), D, (2, 3)])
    assert schedule.events().which.tolist() == [0, 1, 2, 4 + D, 3]
    assert schedule.times(tau=3.0, clock="rendezvous").tolist() == [6.0, 6.0, 7.0, 7.0]


@pytest.mark.parametrize("event", [4, -1, (0, 3), "A", 1.5])
def test_an_event_that_is_neither_node_nor_edge_is_refused(event):
    with pytest.raises(ParameterError, match=r"Event 1 is .* neither a node nor an edge"):
        Schedule.from_events(4, [(0, 2), (1, 3)], [0, event])


def test_a_negative_number_of_events_is_refused(parameters):
    with pytest.raises(ParameterError, match="n_events=-1 must be >= 0"):
        Schedule.sample(parameters, -1)


def stored(path, **changes):
    """A small schedule file with some arrays replaced, or left out where None."""
    arrays = {
        "edges": np.array([[0, 1]], np.int32),
        "n_nodes": 2,
        "which": np.array([0, 1, 2], np.int32),
        "sample": np.array([-1, 0, 4], np.int32),
    } | changes
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


def test_the_small_file_of_the_next_tests_is_a_schedule(tmp_path):
    stored(tmp_path / "good.npz")
    assert Schedule.load(tmp_path / "good.npz").events().which.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"which": None},
        {"sample": None},
        {"edges": None},
        {"n_nodes": None},
        {"n_nodes": np.array([1, 2])},
        {"which": np.array([0, 1, 3], np.int32)},
        {"which": np.array([0, 1, -1], np.int32)},
        {"which": np.array([0.0, 1.0, 2.0])},
        {"which": np.array([0, 1], np.int32)},
        {"sample": np.array([-1, 0, -1], np.int32)},
        {"edges": np.array([0, 1], np.int32)},
        {"edges": np.array([[0, 2]], np.int32)},
        {"which": np.array([[0], [1], [2]], np.int32)},
        {"which": np.array([None, 1, 2], object)},
    ],
)
def test_a_foreign_archive_is_refused(tmp_path, changes):
    stored(tmp_path / "foreign.npz", **changes)
    with pytest.raises(DataError, match=UNREADABLE):
        Schedule.load(tmp_path / "foreign.npz")


def flip_a_bit(content):
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0x10
    return bytes(damaged)


def lone_array(content):
    stream = io.BytesIO()
    np.save(stream, np.arange(3))
    return stream.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[: len(content) // 2], id="truncated"),
        pytest.param(flip_a_bit, id="one bit flipped"),
        pytest.param(lone_array, id="one array"),
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: b"which sample\n0 1\n", id="text"),
        pytest.param(lambda content: bytes(range(256)) * 4, id="binary"),
    ],
)
def test_a_file_that_is_no_schedule_is_refused(parameters, tmp_path, damage):
    path = tmp_path / "events.npz"
    Schedule.sample(parameters, 2_000).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=UNREADABLE):
        Schedule.load(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "nothing.npz", tmp_path):
        with pytest.raises(DataError, match=UNREADABLE):
            Schedule.load(path)


def test_a_failed_save_leaves_the_old_file_and_no_rubbish(parameters, tmp_path, monkeypatch):
    path = tmp_path / "events.npz"
    Schedule.sample(parameters, 10).save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        Schedule.sample(parameters, 20).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_schedule_says_its_size(parameters):
    assert repr(Schedule.sample(parameters, 12)) == "Schedule(12 events, 6 nodes, 7 edges)"

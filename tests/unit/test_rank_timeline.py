"""What ranks did when: spans, the Chrome trace, the picture, and the words of the summary."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from adfs.cli import files
from adfs.cli.files import chrome_trace, picture_kind, save_ranks
from adfs.cli.train import ranks_line, ranks_record
from adfs.engine import execution as spans_module
from adfs.engine.execution import KINDS, Execution, Spans, account, gather_executions
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.network import Network
from adfs.study.plots.timeline_plot import AREAS, COLUMNS, column_shares, name_of


def random_rank(rank, n_turns, seed=0, nodes=(0, 1)):
    """Turns of scheduling and computing, with waits inside the latter; seconds add up."""
    random = np.random.default_rng([seed, rank])
    now, made = 0.0, []
    for _ in range(n_turns):
        for kind in ("scheduling", "computing"):
            end = now + random.exponential(1e-3)
            made.append((kind, now, end))
            if kind == "computing":
                a, b = np.sort(random.uniform(now, end, 2))
                made.append(("waiting", float(a), float(b)))
            now = end
    seconds = dict.fromkeys(KINDS, 0.0)
    for kind, start, end in made:
        seconds[kind] += end - start
    seconds["computing"] -= seconds["waiting"]
    return Execution(rank, list(nodes), seconds, 2, 10**8, spans=made)


class Ticker:
    """A clock that says what it is told."""

    def __init__(self, *times):
        self.times = iter(times)

    def __call__(self):
        return next(self.times)


class Alone:
    """A world of one rank, whose messages go through bytes as between ranks."""

    rank = 0

    def gather(self, item):
        from adfs.mpi.communicator import pack, unpack

        return [unpack(pack(item))]


def kept(n_spans, waits):
    """Spans of one second each, one after the other, from a clock that began at 100."""
    times = [100.0] + [100.0 + k + side for k in range(n_spans) for side in (0.0, 1.0)]
    spans = Spans(True, Ticker(*times))
    for _ in range(n_spans):
        with spans.of("computing"):
            pass
    return spans, np.array(waits, dtype=np.float64).reshape(-1, 2)


def test_spans_count_from_the_beginning_and_waits_take_their_place_among_them():
    spans, waits = kept(2, [(100.25, 100.5)])
    assert spans.relative(waits) == [
        ("computing", 0.0, 1.0), ("waiting", 0.25, 0.5), ("computing", 1.0, 2.0)
    ]  # fmt: skip


def test_waiting_in_compiled_code_is_no_computing():
    spans, waits = kept(2, [(100.25, 100.5)])
    carrier = SimpleNamespace(seconds=0.25, waits=waits)
    own = account(Network(Topology.single()), spans, carrier)
    assert own.seconds["computing"] == 1.75
    assert own.seconds["waiting"] == 0.25


def test_a_timeline_ends_where_one_of_its_parts_was_full(monkeypatch):
    monkeypatch.setattr(spans_module, "MOST_SPANS", 2)
    spans, waits = kept(3, [(100.25, 100.5)])
    assert spans.relative(waits)[-1] == ("computing", 1.0, 2.0)  # the third was not kept
    spans, waits = kept(2, [(100.25, 100.5), (100.75, 101.5)])
    assert spans.relative(waits)[-2:] == [("waiting", 0.75, 1.5), ("computing", 1.0, 1.5)]


def test_all_ranks_know_all_spans():
    own = random_rank(0, 20)
    assert gather_executions(Alone(), own) == [own]
    assert gather_executions(Alone(), Execution(0, [3], {})) == [Execution(0, [3], {})]


def test_the_trace_has_a_named_process_a_rank_and_whole_nanoseconds():
    ranks = [random_rank(0, 50), random_rank(1, 70, nodes=(2,))]
    trace = json.loads(json.dumps(chrome_trace(ranks)))["traceEvents"]
    names = {row["pid"]: row["args"]["name"] for row in trace if row["name"] == "process_name"}
    assert names == {0: "rank 0 (nodes 0, 1)", 1: "rank 1 (node 2)"}
    for each in ranks:
        mine = [row for row in trace if row["ph"] == "X" and row["pid"] == each.rank]
        assert [row["name"] for row in mine] == [span[0] for span in each.spans]
        for row, (_, start, end) in zip(mine, each.spans, strict=True):
            assert row["ts"] == pytest.approx(1e6 * start, abs=1e-3)
            assert row["dur"] == pytest.approx(1e6 * (end - start), abs=2e-3)


def test_a_wait_of_the_trace_stays_inside_its_computing():
    """Viewers nest slices of a thread only where they are nested to the nanosecond."""
    trace = chrome_trace([random_rank(0, 500, seed=1)])["traceEvents"]
    slices = [row for row in trace if row["ph"] == "X"]
    whole = [(row["name"], round(1e3 * row["ts"]), round(1e3 * row["dur"])) for row in slices]
    until, outer = 0, (0, 0)
    for name, start, length in whole:
        if name == "waiting":
            assert outer[0] <= start
            assert start + length <= outer[1]
            continue
        assert start >= until
        outer = (start, start + length)
        until = outer[1]


def test_columns_hold_the_time_of_every_kind():
    """However many spans share a column, areas are times."""
    each = random_rank(0, 3_000, seed=2)
    end = max(span[2] for span in each.spans)
    edges = np.linspace(0.0, end, 101)
    shares = column_shares(each.spans, edges)
    for kind in KINDS:
        total = float(shares[kind] @ np.diff(edges))
        assert total == pytest.approx(each.seconds[kind], rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(sum(shares.values()), 1.0, atol=1e-9)


def test_columns_agree_with_counting_fine_moments():
    each = random_rank(0, 30, seed=3)
    end = max(span[2] for span in each.spans)
    edges = np.linspace(0.0, end, 11)
    moments = (np.arange(200_000) + 0.5) * end / 200_000
    state = np.full(len(moments), -1)
    for kind, start, stop in each.spans:  # a wait comes after the computing that holds it
        state[(moments >= start) & (moments < stop)] = KINDS.index(kind)
    shares = column_shares(each.spans, edges)
    for code, kind in enumerate(KINDS):
        counted = (state == code).reshape(10, -1).mean(axis=1)
        np.testing.assert_allclose(shares[kind], counted, atol=1e-3)


@pytest.fixture
def axes():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    return Figure(figsize=(10.0, 3.0), layout="constrained").add_subplot()


def areas(ax):
    """Filled areas by label."""
    labels = [collection.get_label() for collection in ax.collections]
    return {kind: labels.count(f"_{kind}") for kind in AREAS}


def test_a_hundred_thousand_spans_are_one_area_per_rank_and_kind(axes, tmp_path):
    from adfs.study.plots.timeline_plot import draw_ranks

    ranks = [random_rank(k, 17_000, nodes=(k,)) for k in range(2)]
    assert sum(len(each.spans) for each in ranks) > 100_000
    draw_ranks(ranks, axes)
    assert areas(axes) == {
        "computing": 2, "waiting": 2, "scheduling": 2, "reading": 0, "saving": 0
    }  # fmt: skip
    vertices = max(len(c.get_paths()[0].vertices) for c in axes.collections if c.get_paths())
    assert vertices < 5 * COLUMNS
    assert [t.get_text() for t in axes.get_legend().get_texts()] == [
        "computing", "waiting", "scheduling"
    ]  # fmt: skip
    axes.figure.savefig(tmp_path / "ranks.png")


def test_beside_each_rank_stand_the_shares_of_its_time(axes):
    from adfs.study.plots.timeline_plot import draw_ranks

    one = Execution(
        0, [0], {"computing": 3.0, "waiting": 1.0}, spans=[("computing", 0.0, 4.0),
                                                          ("waiting", 1.0, 2.0)],
    )  # fmt: skip
    two = Execution(1, [1], {"computing": 0.05, "waiting": 3.95}, spans=[("computing", 0.0, 4.0)])
    draw_ranks([one, two], axes)
    words = [text.get_text() for text in axes.texts if "%" in text.get_text()]
    assert words == ["75 %", "1.2 %", "25 %", "99 %"]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "rank 0 (node 0)", "rank 1 (node 1)"
    ]  # fmt: skip


def test_a_picture_that_shows_only_the_beginning_says_so(axes):
    from adfs.study.plots.timeline_plot import draw_ranks

    long = Execution(0, [0], {"computing": 9.0, "waiting": 1.0}, spans=[("computing", 0.0, 2.5)])
    draw_ranks([long], axes)
    assert axes.get_xlabel() == "seconds in the loop, the first 2.5 of 10"


def test_ranks_without_spans_and_many_ranks_can_be_drawn(axes):
    from adfs.study.plots.timeline_plot import draw_ranks

    draw_ranks([Execution(k, [k], dict.fromkeys(KINDS, 0.0)) for k in range(100)], axes)
    assert 20 <= len(axes.get_yticklabels()) <= 40


@pytest.mark.parametrize("kind", ["json", "png", "svg", "pdf"])
def test_the_suffix_decides_what_is_written(kind, tmp_path):
    if kind != "json":
        pytest.importorskip("matplotlib")
    path = str(tmp_path / f"t.{kind}")
    assert picture_kind("--timeline", path, or_trace=True) == kind
    save_ranks([random_rank(0, 5)], path, kind)
    head = {"json": b'{"traceEvents"', "png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert (tmp_path / f"t.{kind}").read_bytes().startswith(head[kind])


def test_another_suffix_is_refused():
    with pytest.raises(ParameterError, match=re.escape(
        "--timeline t.txt must end in .json for a trace, or in .png, .pdf, .svg for a picture; "
        "rename it."
    )):  # fmt: skip
        picture_kind("--timeline", "t.txt", or_trace=True)


def test_a_trace_needs_no_matplotlib_and_a_picture_says_what_it_needs(monkeypatch):
    monkeypatch.setattr(files, "have_matplotlib", lambda: False)
    assert picture_kind("--timeline", "t.JSON", or_trace=True) == "json"
    with pytest.raises(ParameterError, match=r"--timeline t\.png: pictures need matplotlib"):
        picture_kind("--timeline", "t.png", or_trace=True)


def test_the_summary_has_a_line_for_ranks():
    ranks = [
        Execution(k, [k], {"computing": 7.0, "waiting": 2.0, "scheduling": 1.0, "saving": 0.0},
                  1, 10**8 * (k + 1)) for k in range(2)
    ]  # fmt: skip
    assert ranks_line(ranks_record(ranks)) == (
        "2, 1 edge between them, at most 200 MB each: computing 70 %, waiting 20 %, scheduling 10 %"
    )
    assert ranks_line(ranks_record(ranks[:1])).startswith("1, at most 100 MB each: computing")


def test_many_nodes_are_counted_not_listed():
    assert name_of(Execution(7, list(range(50)), {})) == "rank 7 (50 nodes)"

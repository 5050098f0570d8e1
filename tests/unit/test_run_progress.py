"""What people see while runs go on: events, shares, seconds left; on bars or in lines."""

import contextlib
import io
import math
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress as Bars

import adfs
from adfs.cli import output
from adfs.engine import loop, progress
from adfs.engine.checkpointer import Checkpoints
from adfs.engine.progress import Remaining, RunBars, RunLines, RunProgress, about, run_display
from adfs.engine.run_controller import Progress
from adfs.engine.stopping import Stopping
from support.problems import gaussian_problem


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only by hand."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 10.0)
    seconds = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    return seconds


def reading(gap):
    return SimpleNamespace(relative_gap=gap, gap_text=f"{gap:g}", suboptimality=None)


def at(iteration, seconds, gap, idealized=0.0, predicted=math.inf, **limits):
    """A look at a run with tol 1e-6; ``gap`` may be an earlier reading."""
    found = gap if isinstance(gap, SimpleNamespace) else reading(gap)
    stopping = Stopping(1e-6, **limits)
    return Progress(iteration, idealized, seconds, found, 1e-6, stopping, predicted)


def left(*looks, **limits):
    """The last estimate after looks (iteration, seconds, gap) at a run."""
    remaining = Remaining()
    for iteration, seconds, gap in looks:
        found = remaining.update(at(iteration, seconds, gap, idealized=iteration / 10, **limits))
    return found


def test_theory_predicts_until_there_is_a_slope():
    start = reading(1.0)
    assert left((0, 0.0, start)) == (0.0, math.inf, "", math.inf)
    assert left((0, 0.0, start), predicted=4_000) == (0.0, 4_000, "theory", math.inf)
    found = left((0, 0.0, start), (1_000, 2.0, start), predicted=4_000)
    assert found == (0.25, 4_000, "theory", 6.0)
    assert left((0, 0.0, 1.0), (1_000, 2.0, 1e-3), predicted=4_000)[1:3] == (2_000, "measured")
    beyond = left((0, 0.0, start), (5_000, 2.0, start), predicted=4_000)
    assert beyond.total == math.inf  # theory was wrong, so nothing is known


def test_time_left_follows_the_slope_of_the_logarithm_of_the_gap():
    assert left((0, 0.0, 1.0), (1_000, 2.0, 1e-3)) == (0.5, 2_000, "measured", 2.0)
    assert left((0, 0.0, 1.0), (1_000, 2.0, 10.0)).total == math.inf
    assert left((0, 0.0, 1.0), (1_000, 2.0, math.nan)).total == math.inf
    for gap in (1e-7, 0.0):
        assert left((0, 0.0, 1.0), (1_000, 2.0, gap)) == (1.0, 1_000, "measured", 0.0)


def test_a_look_without_an_evaluation_moves_the_share_and_the_time_left():
    last = reading(1e-3)
    found = left((0, 0.0, 1.0), (1_000, 2.0, last), (1_500, 3.0, last))
    assert found == (0.75, 2_000, "measured", 1.0)


def test_time_left_counts_the_latter_half_of_the_iterations():
    """A flat start says nothing about the rest; three decades a second, and three are left."""
    flat = left((0, 0.0, 1.0), (500, 5.0, 1.0), (1_000, 10.0, 1.0), (2_000, 11.0, 1e-3))
    assert (flat.total, flat.seconds) == pytest.approx((3_000, 1.0))
    resumed = left((10_000, 50.0, 1e-2), (11_000, 51.0, 1e-3))  # of a run that was kept at 1e-2
    assert (resumed.total, resumed.seconds) == pytest.approx((14_000, 3.0))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_iter": 1_250}, (0.8, 1_250, "max_iter", 0.5)),
        ({"max_iter": 3_000}, (0.5, 2_000, "measured", 2.0)),
        ({"time_limit": 2.5}, (0.8, 1_250, "time limit", 0.5)),
        ({"time_limit": 1.0}, (1.0, 1_000, "time limit", 0.0)),
        ({"clock_limit": 125.0}, (0.8, 1_250, "clock limit", 0.5)),
    ],
)
def test_time_left_ends_at_the_limit_that_comes_first(limits, expected):
    assert left((0, 0.0, 1.0), (1_000, 2.0, 1e-3), **limits) == pytest.approx(expected)


def test_time_left_in_words_is_rough_and_silent_where_nothing_is_known():
    assert about(0.2) == "about 0 s left"
    assert about(119.4) == "about 119 s left"
    assert about(3_000) == "about 50 min left"
    assert about(10_000) == "about 3 h left"
    assert about(np.inf) == about(np.nan) == about(-1.0) == ""


def test_lines_come_every_ten_seconds(clock):
    timer, spoken = progress.LineTimer(), []
    for second in range(101):
        clock[0] = 100.0 + second
        if timer.is_due():
            spoken.append(second)
    assert spoken == list(range(10, 101, 10))


def test_a_line_tells_events_rate_share_gap_and_time_left(clock, capsys):
    lines, start = RunLines(), reading(1.0)
    lines(at(0, 0.0, start, predicted=880_123))
    clock[0] += 11.0
    lines(at(220_000, 11.0, start, predicted=880_123))  # there was no evaluation
    clock[0] += 11.0
    lines(at(440_000, 22.0, 1e-3, predicted=880_123))
    assert capsys.readouterr() == (
        "",
        "11 s: 220,000 of 880,123 events (theory), 25 %, 0.02 M events/s, gap 1 (tol 1e-06), "
        "about 33 s left\n"
        "22 s: 440,000 of 880,000 events (measured), 50 %, 0.02 M events/s, gap 0.001 "
        "(tol 1e-06), about 22 s left\n",
    )


def test_a_line_is_silent_about_what_is_not_known(clock, capsys):
    lines = RunLines()
    lines(at(0, 0.0, 1.0))
    clock[0] += 11.0
    lines(at(1_100, 11.0, 2.0))  # the gap has grown
    assert capsys.readouterr().err == "11 s: 1,100 events, 100 events/s, gap 2 (tol 1e-06)\n"


def of_run(error, iteration=0, wall=0.0, label="adfs", seed=0):
    """A look at a run that is compared by its suboptimality."""
    found = SimpleNamespace(suboptimality=error, gap_text="unused")
    stopping = Stopping(1e-6, measure="suboptimality")
    return RunProgress(iteration, 0.0, wall, found, 1e-6, stopping, label=label, seed=seed)


def test_a_line_of_a_comparison_tells_which_run(clock, capsys):
    lines = RunLines()
    lines(of_run(1.0, seed=3))
    lines(of_run(1.0, label="dsba:theory", seed=3))
    clock[0] += 12.0
    lines(of_run(1e-2, 24_000, 12.0, "dsba:theory", 3))
    assert capsys.readouterr().err == (
        "run 2, dsba:theory, seed 3: 12 s: 24,000 of 72,000 events (measured), 33 %, 2,000 "
        "events/s, suboptimality 0.01 (tol 1e-06), about 24 s left of this run\n"
    )


def test_a_line_of_a_reproduction_tells_the_share(clock, capsys):
    lines = progress.ShareLines("theorem-2")
    lines(0.1)
    clock[0] += 15.0
    lines(0.25)
    assert capsys.readouterr().err == "theorem-2: 25 % done, about 45 s left\n"


def bars_of(n_runs):
    """Bars that are not drawn."""
    return RunBars(Bars(disable=True), n_runs)


def test_time_left_is_what_runs_took_and_what_those_in_progress_still_need(clock):
    clock[0] = 0.0
    display = bars_of(4)
    assert display.seconds_left(0.0) == math.inf
    display(of_run(1.0))
    assert display.seconds_left(1.0) == math.inf
    display(of_run(1e-3, 1_000, 10.0))
    assert display.seconds_left(10.0) == pytest.approx(10 + 3 * 20)  # half done after 10 of 20 s
    display.finish(("adfs", 0))
    assert display.seconds_left(20.0) == pytest.approx(3 * 20)
    display.finish(("adfs", 1))  # it was in the folder
    assert display.seconds_left(20.0) == pytest.approx(2 * 20)


def test_runs_beside_each_other_share_the_time_but_the_longest_has_its_own(clock):
    clock[0] = 0.0
    display = bars_of(2)
    for label, share in (("adfs", 0.9), ("msda", 0.1)):
        display(of_run(1.0, label=label))
        display(of_run(1e-6**share, 1_000, 9.0, label=label))
    assert display.seconds_left(9.0) == pytest.approx(81.0)


@contextlib.contextmanager
def drawn(n_runs, width):
    """A display, and the text that it has drawn so far."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width)
    bars = progress.live_bars()
    bars.live.console, bars.live.auto_refresh = console, False
    with bars:
        yield RunBars(bars, n_runs), lambda: (bars.refresh(), text.getvalue())[1]


def test_a_bar_fits_a_terminal_of_80_columns(clock):
    with drawn(None, 80) as (bar, shown):
        assert "setting up" in shown()
        start = reading(1.0)
        bar(at(0, 0.0, start, predicted=640_000))
        clock[0] += 17.0
        bar(at(217_600, 17.0, start, predicted=640_000))
        assert "217,600 of 640,000 events (theory), 34 %" in shown()
        assert "0.01 M events/s  gap 1 (tol 1e-06)" in shown()
        assert "about 33 s left" in shown()


def test_a_display_shows_the_runs_in_progress_with_their_error():
    with drawn(3, 120) as (display, shown):
        display(of_run(0.5, label="dsba:theory", seed=4))
        display(of_run(1.4e-3, label="dsba:theory", seed=4))
        assert "dsba:theory, seed 4" in shown()
        assert "suboptimality 0.0014" in shown()
        assert "0 of 3" in shown()
        display.finish(("dsba:theory", 4))
        assert "1 of 3" in shown()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with run_display(None) as watcher:
        assert watcher is None  # under pytest stderr is no terminal
    adfs.compare(gaussian_problem(), ["adfs:exact"], tol=1e-3)
    adfs.solve(gaussian_problem(), tol=1e-3)
    assert capsys.readouterr() == ("", "")


def test_lines_that_were_asked_for_go_to_stderr(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    adfs.solve(gaussian_problem(), tol=1e-3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "events/s" in err.splitlines()[-1]


def test_a_terminal_sees_progress_unless_it_is_not_wanted(monkeypatch):
    for wanted in (None, True, False):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        adfs.compare(gaussian_problem(), ["adfs:exact", "adfs:paper"], tol=1e-3, progress=wanted)
        assert ("2 of 2" in terminal.getvalue()) is (wanted is not False)


def test_a_notebook_has_a_bar_if_it_is_wanted(monkeypatch):
    monkeypatch.setattr(progress, "is_notebook", lambda: True)
    assert [progress.is_drawn(wanted) for wanted in (None, False, True)] == [False, False, True]


def test_a_printing_callback_writes_to_its_own_file(monkeypatch):
    out, terminal = io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", terminal)
    adfs.solve(gaussian_problem(), tol=1e-3, callback=lambda progress: print("called"))
    assert "called" in out.getvalue()
    assert "called" not in terminal.getvalue()


@pytest.mark.parametrize("label", ["[red]", "[/]", "{x}"])
def test_a_label_is_text_not_markup(monkeypatch, label):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with run_display(True, 1) as display:
        display(of_run(0.5, label=label))
    assert label in terminal.getvalue()


def test_bars_leave_the_terminal_after_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with contextlib.suppress(RuntimeError), run_display(True, 1) as display:
        display(of_run(0.5))
        raise RuntimeError
    with run_display(True, 1):  # only one display may be live at a time
        pass


def small_problem(loss="logistic"):
    return gaussian_problem(loss=loss, sigma=0.01, samples=(200, 4), condition=4)


def run_watched(monkeypatch, seconds, folder, looks, name="adfs", loss="logistic", **options):
    """A run with a clock that stands still, whose watcher looks after each 30 positions."""

    class FastHeartbeat(loop.Heartbeat):
        def next_after(self, position):
            self.interval = 30
            return super().next_after(position)

    monkeypatch.setattr(loop, "Heartbeat", FastHeartbeat)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(loop, "STALE", seconds)
    watching = contextlib.nullcontext(None if looks is None else looks.append)
    monkeypatch.setattr("adfs.solver.run_display", lambda *_, **__: watching)
    kept = Checkpoints(folder, every=100)
    result = adfs.solve(small_problem(loss), name, checkpoints=kept, **options)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return result, files


def names_and_losses():
    return [(name, "hinge" if name == "ns-adfs" else "logistic") for name in adfs.algorithms.NAMES]


@pytest.mark.parametrize(("name", "loss"), names_and_losses())
def test_a_watched_run_has_the_bits_of_one_that_is_not(monkeypatch, tmp_path, name, loss):
    """Of results, traces and checkpoints; with an evaluation for display at every look."""
    found = []
    for looks in (None, []):
        folder = tmp_path / str(looks is None)
        folder.mkdir()
        result, files = run_watched(monkeypatch, 0.0, folder, looks, name, loss, max_iter=990)
        trace = result.trace.to_dict()
        found.append((result.status, result.thetas.tobytes(), result.duality_gap, trace, files))
    assert found[0] == found[1]
    n_readings = len({id(look.reading) for look in looks})
    # The first gap is asked for at the first heartbeat and seen at the next one.
    assert n_readings >= len(trace["iteration"]) + (trace["iteration"][-1] > 60)


def test_a_watcher_sees_events_and_gaps_between_evaluations(monkeypatch, tmp_path):
    for seconds, is_new in ((math.inf, False), (0.0, True)):
        looks, folder = [], tmp_path / str(is_new)
        folder.mkdir()
        result, _ = run_watched(monkeypatch, seconds, folder, looks, tol=1e-8, max_iter=990)
        evaluated = set(result.trace["iteration"])
        between = [look for look in looks if look.iteration not in evaluated]
        assert len({look.iteration for look in between}) > 5
        readings = {id(look.reading) for look in looks}
        assert (len(readings) > len(evaluated) + 5) is is_new
        efolds = math.log(looks[0].reading.relative_gap / 1e-8)
        assert looks[0].predicted == pytest.approx(efolds / result.rho)


def test_a_resumed_run_is_shown_with_its_last_evaluation(monkeypatch, tmp_path):
    first = []
    run_watched(monkeypatch, math.inf, tmp_path, first, max_iter=990, evaluate_every=200)
    resumed = []
    monkeypatch.setattr(loop, "STALE", math.inf)
    watching = contextlib.nullcontext(resumed.append)
    monkeypatch.setattr("adfs.solver.run_display", lambda *_, **__: watching)
    again = Checkpoints(tmp_path, every=100, resume=True)
    adfs.solve(
        small_problem(), "adfs", tol=1e-7, max_iter=2_000, checkpoints=again, evaluate_every=200
    )
    known = [look for look in first if look.iteration == resumed[0].iteration]
    assert resumed[0].reading.relative_gap == known[-1].reading.relative_gap
    assert resumed[0].predicted > first[0].predicted  # the tol is smaller


def test_slow_work_is_noted_and_fast_work_is_not(monkeypatch, capsys):
    for seconds, note in ((0.0, "reading\n"), (1e6, "")):
        monkeypatch.setattr(output, "SLOW_IN_LOG", seconds)
        with output.note_if_slow("reading", True):
            for timer in [each for each in progress.threading.enumerate() if "Timer" in each.name]:
                timer.join(1.0 if seconds == 0.0 else 0.0)
        assert capsys.readouterr().err == note

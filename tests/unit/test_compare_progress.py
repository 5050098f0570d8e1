"""What people see while a comparison runs: shares, seconds left, one line a run."""

import contextlib
import io
import math
import sys
import time
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

import adfs
from adfs.engine.stopping import Stopping
from adfs.study.comparison_progress import RunProgress, RunsDisplay, runs_display, share_done
from support.problems import gaussian_problem


def at(error, iteration=0, clock=0.0, wall=0.0, label="adfs", seed=0):
    reading = SimpleNamespace(suboptimality=error)
    return RunProgress(iteration, clock, wall, reading, 1e-6, label=label, seed=seed)


@pytest.mark.parametrize(
    ("progress", "limits", "share"),
    [
        (at(1.0), {}, 0.0),
        (at(1e-3), {}, 0.5),  # half of six decades
        (at(1e-9), {}, 1.0),
        (at(0.0), {}, 1.0),
        (at(10.0), {}, 0.0),
        (at(math.nan), {}, 0.0),
        (at(1e-3, clock=75.0), {"clock_limit": 100.0}, 0.75),
        (at(1e-3, clock=25.0), {"clock_limit": 100.0}, 0.5),
        (at(1.0, wall=3.0), {"time_limit": 4.0}, 0.75),
        (at(1.0, iteration=90), {"max_iter": 100}, 0.9),
        (at(1.0, clock=300.0), {"clock_limit": 100.0}, 1.0),
    ],
)
def test_a_run_is_as_far_as_its_error_or_its_nearest_limit_says(progress, limits, share):
    assert share_done(progress, 1.0, Stopping(1e-6, **limits)) == pytest.approx(share)


def test_a_run_that_starts_below_tol_divides_by_nothing():
    assert share_done(at(1e-9), 1e-9, Stopping(1e-6)) == 0.0


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only by hand."""
    seconds = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    return seconds


def display_of(n_runs):
    """A display on bars that are not drawn."""
    return RunsDisplay(Bars(disable=True), n_runs)


def test_time_left_is_what_runs_took_and_what_those_in_progress_still_need(clock):
    display = display_of(4)
    assert display.seconds_left(0.0) == math.inf
    display.evaluated(at(1.0), Stopping(1e-6))
    assert display.seconds_left(1.0) == math.inf
    display.evaluated(at(1e-3), Stopping(1e-6))
    assert display.seconds_left(10.0) == pytest.approx(10 + 3 * 20)  # half done after 10 of 20 s
    display.finish(("adfs", 0))
    assert display.seconds_left(20.0) == pytest.approx(3 * 20)
    display.finish(("adfs", 1))  # it was in the folder
    assert display.seconds_left(20.0) == pytest.approx(2 * 20)
    clock[0] = 20.0
    display.evaluated(at(1.0, seed=2), Stopping(1e-6))
    display.evaluated(at(10**-4.5, seed=2), Stopping(1e-6))
    display.evaluated(at(10**-1.5, seed=2), Stopping(1e-6))  # rises: what was done stays done
    assert display.seconds_left(50.0) == pytest.approx(50 * (3 - 1.75) / 1.75)


def test_runs_beside_each_other_share_the_time_but_the_longest_has_its_own(clock):
    display = display_of(2)
    for label, share in (("adfs", 0.9), ("msda", 0.1)):
        display.evaluated(at(1.0, label=label), Stopping(1e-6))
        display.evaluated(at(1e-6**share, label=label), Stopping(1e-6))
    assert display.seconds_left(9.0) == pytest.approx(81.0)


def test_a_display_shows_the_runs_in_progress_with_their_error():
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120)
    columns = ("{task.description}", "{task.fields[text]}")
    with Bars(*columns, console=console, auto_refresh=False) as bars:
        display = RunsDisplay(bars, 3)
        display.evaluated(at(0.5, label="dsba:theory", seed=4), Stopping())
        display.evaluated(at(1.4e-3, label="dsba:theory", seed=4), Stopping())
        bars.refresh()
        assert "dsba:theory, seed 4" in text.getvalue()
        assert "suboptimality 1.4e-03" in text.getvalue()
        assert "0 of 3" in text.getvalue()
        display.finish(("dsba:theory", 4))
        bars.refresh()
    assert "1 of 3" in text.getvalue()
    assert bars.tasks[0].fields["ends"] < math.inf


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_drawn_where_there_is_no_terminal(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    adfs.compare(gaussian_problem(), ["adfs:exact"], tol=1e-3)
    assert pipe.getvalue() == ""


def test_a_terminal_sees_progress_unless_it_is_not_wanted(monkeypatch):
    for wanted, seen in ((None, True), (False, False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        adfs.compare(gaussian_problem(), ["adfs:exact", "adfs:paper"], tol=1e-3, progress=wanted)
        assert ("2 of 2" in terminal.getvalue()) is seen


@pytest.mark.parametrize("label", ["[red]", "[/]", "{x}"])
def test_a_label_is_text_not_markup(monkeypatch, label):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with runs_display(True, 1) as display:
        display.evaluated(at(0.5, label=label), Stopping())
    assert label in terminal.getvalue()


def test_bars_leave_the_terminal_after_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with contextlib.suppress(RuntimeError), runs_display(True, 1) as display:
        display.evaluated(at(0.5), Stopping())
        raise RuntimeError
    with runs_display(True, 1):  # only one display may be live at a time
        pass

"""What people see while a comparison runs: shares, seconds left, one line a run."""

import contextlib
import io
import math
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

import adfs
from adfs.bench.progress import Board, Forecast, RunProgress, share_done, terminal_board
from adfs.runtime.stopping import Stopping
from comparisons_for_tests import small_problem


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


def test_time_left_is_what_runs_took_and_what_those_in_progress_still_need():
    forecast = Forecast(n_runs=4, jobs=1)
    assert forecast.seconds(0.0) == math.inf
    forecast.start(("adfs", 0), 0.0)
    assert forecast.seconds(1.0) == math.inf
    forecast.update(("adfs", 0), 0.5)
    assert forecast.seconds(10.0) == pytest.approx(10 + 3 * 20)  # half done after 10 of 20 s
    forecast.finish(("adfs", 0), 20.0)
    assert forecast.seconds(20.0) == pytest.approx(3 * 20)
    forecast.finish(("adfs", 1), 20.0)  # it was in the folder
    assert forecast.seconds(20.0) == pytest.approx(2 * 20)
    forecast.start(("adfs", 2), 20.0)
    forecast.update(("adfs", 2), 0.75)
    forecast.update(("adfs", 2), 0.25)  # an error that rises does not undo what was done
    assert forecast.seconds(50.0) == pytest.approx(10 + 1 * (20 + 40) / 2)


def test_runs_beside_each_other_share_the_time_but_the_longest_has_its_own():
    forecast = Forecast(n_runs=2, jobs=2)
    forecast.start(("adfs", 0), 0.0)
    forecast.start(("msda", 0), 0.0)
    forecast.update(("adfs", 0), 0.9)
    forecast.update(("msda", 0), 0.1)
    assert forecast.seconds(9.0) == pytest.approx(81.0)


def drawn(work):
    """What a board that draws shows while ``work`` is done with it."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120)
    with Bars(
        "{task.description}", "{task.fields[text]}", console=console, auto_refresh=False
    ) as bars:
        work(Board(3, 1, bars), bars.refresh)
    return text.getvalue()


def test_a_board_shows_the_runs_in_progress_with_their_error():
    def work(board, refresh):
        board.start(("dsba:theory", 4))
        board.look(at(0.5, label="dsba:theory", seed=4), Stopping())
        board.look(at(1.4e-3, label="dsba:theory", seed=4), Stopping())
        refresh()
        board.finish(("dsba:theory", 4))
        refresh()

    text = drawn(work)
    assert "dsba:theory, seed 4" in text
    assert "suboptimality 1.4e-03" in text
    assert "0 of 3" in text
    assert "1 of 3, about 0 s left" in text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_drawn_where_there_is_no_terminal(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    adfs.compare(small_problem(), ["adfs:exact"], tol=1e-3)
    assert pipe.getvalue() == ""


def test_a_terminal_sees_progress_unless_it_is_not_wanted(monkeypatch):
    for wanted, seen in ((None, True), (False, False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        adfs.compare(small_problem(), ["adfs:exact", "adfs:paper"], tol=1e-3, progress=wanted)
        assert ("2 of 2" in terminal.getvalue()) is seen


@pytest.mark.parametrize("label", ["[red]", "[/]", "{x}"])
def test_a_label_is_text_not_markup(monkeypatch, label):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with terminal_board(True, 1, 1) as board:
        board.start((label, 0))
        board.look(at(0.5, label=label), Stopping())
    assert label in terminal.getvalue()


def test_bars_leave_the_terminal_after_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with contextlib.suppress(RuntimeError), terminal_board(True, 1, 1) as board:
        board.start(("adfs", 0))
        raise RuntimeError
    with terminal_board(True, 1, 1):  # only one display may be live at a time
        pass

"""Progress without a terminal: plain lines on stderr, now and then."""

import json
import re
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from adfs.cli import plain_progress
from adfs.engine.run_controller import Progress
from adfs.engine.stopping import Stopping
from adfs.study.comparison_progress import RunProgress


class Clock:
    """A clock that only moves when told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(plain_progress, "SECONDS_BETWEEN_LINES", 10.0)
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


@pytest.fixture
def always(monkeypatch):
    """A line at every evaluation."""
    monkeypatch.setattr(plain_progress, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(plain_progress, "SHARE_BETWEEN_LINES", 0.0)


def at(iteration, seconds, gap):
    return Progress(
        iteration, 0.0, seconds, SimpleNamespace(relative_gap=gap, gap_text=f"{gap:g}"), 1e-6
    )


def test_lines_come_after_ten_seconds_and_then_ever_more_rarely(clock):
    timer, spoken = plain_progress.LineTimer(), []
    for second in range(1001):
        clock.now = 100.0 + second
        if timer.is_due():
            spoken.append(second)
    assert spoken[:4] == [10, 20, 30, 40]
    assert all(later - earlier >= 0.1 * later for earlier, later in pairwise(spoken))
    assert len(spoken) < 40


def test_a_line_tells_gap_rate_and_time_left(clock, capsys):
    lines = plain_progress.ProgressLines(Stopping(1e-6))
    lines(at(0, 0.0, 1.0))
    clock.now += 11.0
    lines(at(220_000, 11.0, 1e-3))
    assert capsys.readouterr() == (
        "", "11 s: relative gap 0.001 after 220,000 events, 0.02 M events/s, about 11 s left\n",
    )  # fmt: skip


def test_a_line_is_silent_about_what_is_not_known(clock, capsys):
    lines = plain_progress.ProgressLines(Stopping(1e-6))
    lines(at(0, 0.0, 1.0))
    clock.now += 11.0
    lines(at(1_100, 11.0, 2.0))  # the gap has grown
    assert capsys.readouterr().err == ("11 s: relative gap 2 after 1,100 events, 100 events/s\n")


def test_a_line_of_a_comparison_tells_which_run(clock, capsys):
    lines = plain_progress.ProgressLines(Stopping(1e-6, measure="suboptimality"))

    def look(label, iteration, seconds, error):
        reading = SimpleNamespace(suboptimality=error, relative_gap=1.0)
        lines(RunProgress(iteration, 0.0, seconds, reading, 1e-6, label=label, seed=3))

    look("adfs", 0, 0.0, 1.0)
    look("dsba:theory", 0, 0.0, 1.0)
    clock.now += 12.0
    look("dsba:theory", 24_000, 12.0, 1e-2)
    assert capsys.readouterr().err == (
        "run 2, dsba:theory, seed 3: 12 s, suboptimality 0.01 after 24,000 events, 2,000 events/s, "
        "about 24 s left of this run\n"
    )


def test_a_line_of_a_reproduction_tells_the_share(clock, capsys):
    lines = plain_progress.ShareLines("theorem-2")
    lines(0.1)
    clock.now += 15.0
    lines(0.25)
    assert capsys.readouterr().err == "theorem-2: 25 % done, about 45 s left\n"


def test_train_speaks_on_stderr_only(adfs, dense, always):
    words = ("train", dense[0], "--evaluate-every", "500", "--tol", "1e-10", "--json")
    outcome = adfs(*words)
    assert json.loads(outcome.out)["status"] == "converged"
    lines = outcome.err.splitlines()
    assert len(lines) > 3
    pattern = r"\d+ s: relative gap \S+ after [\d,]+ events(, .+ events/s)?(, about \d+ s left)?"
    assert all(re.fullmatch(pattern, line) for line in lines)
    assert any("left" in line for line in lines)
    assert adfs(*words, "--quiet").err == ""


def test_compare_and_reproduce_speak_too(adfs, dense, always):
    words = ("compare", dense[0], "--algorithms", "adfs,msda", "--tol", "1e-4")
    outcome = adfs(*words)
    assert "run 1, adfs, seed 0: " in outcome.err
    assert "run 2, msda, seed 0: " in outcome.err
    assert "run " not in outcome.out
    assert adfs(*words, "--quiet").err == ""
    outcome = adfs("reproduce", "theorem-2", "--quick", "--json")
    assert "theorem-2: 100 % done, about 0 s left\n" in outcome.err
    assert json.loads(outcome.out)["status"] == "finished"

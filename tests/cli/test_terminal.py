"""Terminals, pipes, encodings and Ctrl-C: what people see in real processes."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from adfs.cli import output
from adfs.cli import output as terminals
from adfs.cli.main import Leaving
from support.limits import HANG

ADFS = [sys.executable, "-m", "adfs"]
COLOUR = re.compile(r"\033\[[0-9;]*m")
ENDLESS = ("--tol", "1e-300", "--max-iter", "100000000000")


class Stream:
    def __init__(self, is_terminal):
        self.isatty = lambda: is_terminal


@pytest.mark.parametrize(
    ("environment", "on_terminal", "in_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"NO_COLOR": "", "FORCE_COLOR": ""}, True, False),  # as if they were not set
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_who_gets_colours(monkeypatch, environment, on_terminal, in_pipe):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert terminals.has_colour(Stream(True)) is on_terminal
    assert terminals.has_colour(Stream(False)) is in_pipe


def test_a_terminal_sees_the_status_in_colour_and_a_pipe_does_not(adfs, dense, terminal):
    assert adfs("train", dense[0]).out.startswith("converged ")
    seen = terminal("train", dense[0]).end()
    assert seen.out.startswith("\033[32mconverged\033[0m ")
    assert COLOUR.sub("", seen.out).split()[:2] == ["converged", "relative"]
    assert seen.err == ""


def test_other_ends_have_another_colour_and_json_has_none(adfs, dense, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    outcome = adfs("train", dense[0], "--max-iter", "3")
    assert outcome.out.startswith("\033[33mmax_iter\033[0m ")
    assert outcome.err.startswith("\033[1;31madfs:\033[0m max_iter at relative gap")
    assert adfs("train", dense[0], "--json").out.startswith('{"status": "converged"')


@pytest.mark.parametrize(
    ("environment", "bold"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_the_headings_of_help_stand_out(terminal, environment, bold):
    assert ("\033[1moptions\033[0m:" in terminal("--help", **environment).end().out) is bold


def test_the_live_line_has_gap_rate_and_time_left_and_leaves_stdout_clean(dense, terminal):
    run = terminal("train", dense[0], *ENDLESS, stream="stderr", COLUMNS="120")
    shown = run.read(until=" left")
    run.process.send_signal(signal.SIGINT)
    outcome = run.end()
    plain = COLOUR.sub("", shown)
    assert re.search(r"gap (\d\.\de-\d+|to rounding)", plain)
    assert re.search(r"\d\.\d\d M events/s", plain)
    assert re.search(r"about \d+ (s|min|h) left", plain)
    assert outcome.code == 130
    assert outcome.out.startswith("interrupted")
    assert "\033" not in outcome.out


def test_a_dumb_terminal_sees_no_controls(dense, terminal):
    words = ("train", dense[0], "--evaluate-every", "50", "--json")
    assert "\033" not in terminal(*words, stream="stderr", TERM="dumb").end().err


@pytest.fixture
def narrow(monkeypatch):
    """Stdout as a terminal of 30 columns, in this process."""
    monkeypatch.setattr("adfs.cli.output.columns", lambda stream: 30)


def test_a_table_on_a_narrow_terminal_is_a_block_a_row(adfs, terminal):
    wide = adfs("datasets").out.splitlines()
    lines = terminal("datasets", COLUMNS="30").end().out.splitlines()
    assert max(map(len, lines)) <= 30
    assert sum(line.startswith("name ") for line in lines) == len(wide) - 1
    assert terminal("datasets", COLUMNS="300").end().out.splitlines() == wide


def test_times_on_a_narrow_terminal_are_a_block_a_node(adfs, narrow):
    assert adfs("schedule", "sample", "--nodes", "3", "--graph", "path", "--out", "s.npz").code == 0
    lines = adfs("schedule", "times", "s.npz").out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("node ")] == ["0", "1", "2"]
    assert sum(line.startswith("waiting ") for line in lines) == 3


def test_a_comparison_on_a_narrow_terminal_is_a_block_a_row(adfs, dense, narrow):
    words = ("compare", dense[0], "--algorithms", "adfs,adfs:exact", "--tol", "1e-4")
    text = adfs(*words).out
    assert text.count("\nalgorithm  ") == 2
    assert text.count("\n1e-04 ") == 2
    assert "F* = " in text


def test_facts_are_broken_between_words_on_a_narrow_terminal(monkeypatch):
    pairs = [("one", "word " * 12), ("a long name", "x")]
    monkeypatch.setattr("adfs.cli.output.columns", lambda stream: 40)
    lines = output.facts(pairs).splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[0].startswith("one          word word")
    assert lines[1].startswith("             word")
    assert lines[-1] == "a long name  x"
    monkeypatch.setattr("adfs.cli.output.columns", lambda stream: 20)
    assert output.facts([("a long name", "text " * 6)]).startswith("a long name\n  text text")
    monkeypatch.setattr("adfs.cli.output.columns", lambda stream: None)
    assert len(output.facts(pairs).splitlines()) == 2


@pytest.mark.parametrize(
    "words", ["--help", "train --help", "datasets", "completion bash", "schedule sample --json"]
)
def test_a_reader_that_has_left_is_no_failure(words):
    process = subprocess.Popen(
        [*ADFS, *words.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()  # long before anything is written
    _, err = process.communicate(timeout=HANG)
    assert (process.returncode, err) == (0, "")


def test_streams_that_are_closed_are_no_failure():
    def run(words):
        line = f"exec {sys.executable} -m adfs {words}"
        return subprocess.run(["bash", "-c", line], timeout=HANG, capture_output=True)

    closed = run("datasets >&-")
    assert (closed.returncode, closed.stderr) == (0, b"")
    refused = run("datasets --no-such-flag 2>&-")
    assert (refused.returncode, refused.stdout) == (2, b"")
    trained = run("train breast-cancer --nodes 2 --sigma 1 --json 2>&-")
    assert (trained.returncode, json.loads(trained.stdout)["status"]) == (0, "converged")


def test_an_encoding_without_a_letter_gets_an_escape(home, dense, terminal):
    (home / "é∞.txt").write_text((home / dense[0]).read_text())
    words = ("train", "é∞.txt", "--out", "é.npz")
    outcome = terminal(*words, stream="stderr", PYTHONIOENCODING="ascii:strict").end()
    assert outcome.code == 0
    assert "wrote       \\xe9.npz" in outcome.out
    assert "Traceback" not in outcome.err
    assert (home / "é.npz").is_file()


def test_the_locale_of_c_raises_nothing(home, terminal):
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
            "PYTHONIOENCODING": "ascii:strict"}  # fmt: skip
    outcome = terminal("train", "∞.txt", stream="stderr", **bare).end()
    assert outcome.code == 2
    assert ".txt must be a file or a known data set" in outcome.err
    assert outcome.err.count("\n") == 1


WAITING = {
    "train": ["slow.txt"],
    "compare": ["slow.txt"],
    "predict": ["model.npz", "slow.txt"],
    "schedule": ["sample", "slow.txt"],
}


@pytest.mark.parametrize("command", WAITING)
def test_ctrl_c_is_one_sentence_and_code_130(adfs, dense, home, command):
    assert adfs("train", dense[0], "--out", "model.npz").code == 0
    os.mkfifo(home / "slow.txt")
    process = subprocess.Popen(
        [*ADFS, command, *WAITING[command]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    writer = os.open(home / "slow.txt", os.O_WRONLY)  # returns when the command begins to read
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG)
    os.close(writer)
    assert (process.returncode, out) == (130, "")
    assert err == "adfs: stopped by SIGINT before the end.\n"


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_second_ctrl_c_leaves_at_once(adfs, dense, home, monkeypatch, command):
    def press_twice(self, progress=None):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second signal was not heard")

    monkeypatch.setattr(Leaving, "repeat", press_twice)
    outcome = adfs(command, dense[0], "--out", "result")
    assert outcome == (130, "", "adfs: stopped by SIGINT before the end.\n")
    assert not (home / "result").is_file()

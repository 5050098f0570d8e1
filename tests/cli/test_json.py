"""`--json`: every command prints exactly one object that any JSON reader takes."""

import json
import math

import numpy as np
import pytest

from adfs.cli import output
from adfs.cli.commands import ADFS
from support.commands import leaves

# A command line for every command that prints results; completion prints a script.
COMMANDS = {
    "adfs train": ["dense.txt", "--C", "1"],
    "adfs predict": ["m.npz", "dense.txt"],
    "adfs path": ["dense.txt", "--C", "0.1,1", "--cv", "2", "--tol", "1e-3"],
    "adfs plan": ["dense.txt", "--no-pilot"],
    "adfs split": ["dense.txt", "--out", "part-{node}.txt"],
    "adfs compare": ["dense.txt", "--algorithms", "adfs,msda", "--tol", "1e-4"],
    "adfs reproduce": ["theorem-2", "--quick"],
    "adfs schedule sample": ["--nodes", "4", "--events", "50"],
    "adfs schedule show": ["s.npz"],
    "adfs schedule times": ["s.npz", "--delay-law", "exponential"],
    "adfs schedule timeline": ["s.npz", "--chrome", "t.json"],
    "adfs datasets": [],
    "adfs info": [],
}


def strict(text):
    """The object on the only line; refuses NaN and Infinity, which are not JSON."""

    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    (line,) = text.splitlines()
    record = json.loads(line, parse_constant=refuse)
    assert isinstance(record, dict)
    return record


@pytest.fixture
def files(adfs, dense):
    """A model and a schedule."""
    assert adfs("train", dense[0], "--out", "m.npz", "--quiet").code == 0
    assert adfs("schedule", "sample", "--events", "80", "--out", "s.npz").code == 0


def test_every_command_has_the_flag():
    found = {name: "--json" in command.flags for name, command in leaves(ADFS)}
    assert found.pop("adfs completion") is False
    assert found == dict.fromkeys(COMMANDS, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_one_object_and_nothing_else_is_printed(adfs, files, command):
    outcome = adfs(*command.split()[1:], *COMMANDS[command], "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert strict(outcome.out)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistake_is_one_sentence_on_stderr_and_no_object(adfs, files, command):
    outcome = adfs(*command.split()[1:], *COMMANDS[command], "--json", "--no-such-flag")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("adfs: unrecognized arguments: --no-such-flag; see `" + command)


def test_numbers_that_json_lacks_are_null(capsys):
    output.emit_json({"a": math.nan, "b": [math.inf, (-math.inf, 1.5)], "c": {"d": np.nan, 2: 3}})
    assert strict(capsys.readouterr().out) == {
        "a": None, "b": [None, [None, 1.5]], "c": {"d": None, "2": 3},
    }  # fmt: skip


def test_a_run_that_diverges_is_told_without_tokens_that_json_lacks(adfs, dense, monkeypatch):
    """An objective that is infinite, as after an overflow."""
    from adfs.cli import train

    record = train.record
    monkeypatch.setattr(
        train,
        "record",
        lambda *a: {**record(*a), "objective": math.inf, "train": {"x": math.nan}},
    )
    found = strict(adfs("train", dense[0], "--json").out)
    assert found["objective"] is None
    assert found["train"] == {"x": None}


def test_predictions_are_those_of_the_text(adfs, files, dense):
    text = adfs("predict", "m.npz", dense[0])
    record = strict(adfs("predict", "m.npz", dense[0], "--json").out)
    assert [str(value) for value in record["predictions"]] == text.out.split()
    assert f"accuracy {100 * record['measure']['accuracy']:.2f} %" in text.err
    assert (record["n_samples"], record["kind"], record["out"]) == (60, "label", None)


def test_probabilities_and_a_file_of_predictions(adfs, files, dense, home):
    text = adfs("predict", "m.npz", dense[0], "--proba").out
    record = strict(adfs("predict", "m.npz", dense[0], "--proba", "--json").out)
    assert record["predictions"] == [float(line) for line in text.split()]
    assert record["kind"] == "probability"
    record = strict(adfs("predict", "m.npz", dense[0], "--out", "p.txt", "--json").out)
    assert (record["predictions"], record["out"]) == (None, "p.txt")
    assert (home / "p.txt").read_text().split() == adfs("predict", "m.npz", dense[0]).out.split()


def test_predictions_of_unknown_quality_have_no_measure(adfs, files, dense):
    np.savez("rows.npz", X=dense[1])
    assert strict(adfs("predict", "m.npz", "rows.npz", "--json").out)["measure"] is None
    np.savez("strange.npz", X=dense[1], y=np.full(60, 7.0))
    assert strict(adfs("predict", "m.npz", "strange.npz", "--json").out)["measure"] is None


def test_a_timeline_says_its_window_and_files(adfs, files, home):
    words = ("schedule", "timeline", "s.npz", "--first", "10", "--chrome", "t.json")
    record = strict(adfs(*words, "--json").out)
    assert record == {"first": 10, "last": 70, "out": None, "chrome": "t.json"}
    assert "events 10 to 69: wrote t.json" in adfs(*words).out

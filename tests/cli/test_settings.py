"""`--config` and `--save-config`: a TOML file that equals the flags."""

import json
import shlex

import numpy as np
import pytest

from adfs.cli import settings as toml
from adfs.cli.commands import parse
from adfs.model import Model
from support.commands import bits_of_model, rows_of_trace


@pytest.fixture
def settings(home):
    """Writes run.toml."""

    def write(text, name="run.toml"):
        (home / name).write_text(text)
        return name

    return write


def parsed(*words):
    """Values of arguments, without the objects that the parser adds."""
    values = vars(parse([str(word) for word in words]))
    ours = ("command", "prog", "config")
    return {name: value for name, value in values.items() if name not in ours}


def test_a_file_equals_the_flags(adfs, dense, settings):
    flags = ("--C", "2", "--intercept", "--graph", "ring", "--max-iter", "3000", "--seed", "7")
    settings('data = "dense.txt"\nC = 2\nintercept = true\ngraph = "ring"\nmax_iter = 3000\n'
             'seed = 7\nout = "file.npz"\n')  # fmt: skip
    assert adfs("train", dense[0], *flags, "--out", "flags.npz").code == 0
    assert adfs("train", "--config", "run.toml").code == 0
    assert bits_of_model("file.npz") == bits_of_model("flags.npz")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tol = 1e-3", "--tol 1e-3"),
        ("tol = 1", "--tol 1"),
        ("max-iter = 10", "--max-iter 10"),
        ("max_iter = 10", "--max-iter 10"),
        ("intercept = true", "--intercept"),
        ("intercept = false", ""),
        ('loss = "huber"', "--loss huber"),
        ('out = "a b=c.npz"', "--out 'a b=c.npz'"),
        ('class-weight = "balanced"', "--class-weight balanced"),
        ("json = true\nquiet = true", "--json --quiet"),
    ],
)
def test_a_key_is_a_flag_of_train(settings, text, words):
    by_file = parsed("train", "x", "--config", settings(text))
    by_flags = parsed("train", "x", *shlex.split(words))
    assert {**by_file, "command_line": None} == {**by_flags, "command_line": None}


def test_lists_are_written_as_lists(settings):
    path = settings('data = "x"\nalgorithms = ["adfs", "dsba:theory"]\nspeed = [1, 1, 2.5, 1]\n'
                    "tau = 3\n")  # fmt: skip
    found = parsed("compare", "--config", path)
    assert found["algorithms"] == ["adfs", "dsba:theory"]
    assert found["speed"] == [1.0, 1.0, 2.5, 1.0]
    assert found["tau"] == 3.0
    assert found["data"] == "x"


def test_what_is_typed_wins_over_the_file(settings):
    path = settings('data = "x"\ntol = 1e-3\nsigma = 2.0\nintercept = true\nquiet = true\n')
    typed = parsed("train", "y", "--tol", "1e-4", "--C", "3", "--no-intercept", "--config", path)
    assert (typed["data"], typed["tol"], typed["intercept"]) == ("y", 1e-4, False)
    assert (typed["C"], typed["sigma"]) == (3.0, None)  # C takes the place of its rival
    assert typed["quiet"]
    before = parsed("train", f"--config={path}", "--sigma", "0.5")
    assert (before["data"], before["sigma"], before["C"]) == ("x", 0.5, None)


def test_the_command_kept_with_a_model_needs_no_file(adfs, dense, settings, home):
    path = settings('data = "dense.txt"\nsigma = 0.5\nintercept = true\nout = "m.npz"\n')
    assert adfs("train", "--config", path, "--tol", "1e-4").code == 0
    first = bits_of_model("m.npz")
    (home / path).unlink()
    command = shlex.split(Model.load("m.npz").meta["command"])
    assert "--config" not in command
    assert adfs(*command[1:]).code == 0
    assert bits_of_model("m.npz") == first


FAULTS = {
    "longer": ("tolerance = 1", "is not a setting of `adfs train`; the nearest is tol."),
    "mistyped": ("max-itr = 1", "max-itr in run.toml is not a setting of `adfs train`; the"),
    "case": ("c = 1", "c in run.toml is not a setting of `adfs train`; the nearest is C."),
    "far": ("xyzzy = 1", "xyzzy in run.toml is not a setting of `adfs train`; see `adfs train --h"),
    "own": ('config = "b.toml"', "config in run.toml is not a setting of `adfs train`"),
    "text": ('tol = "tiny"', 'tol in run.toml must be a number, but is "tiny"; correct it.'),
    "number": ("loss = 3", "loss in run.toml must be a text in quotes, but is 3; correct it."),
    "choice": ('loss = "log"', "loss in run.toml must be one of logistic, squared,"),
    "whole": ("max-iter = 1.5", "max-iter in run.toml must be a whole number >= 0, but is 1.5"),
    "range": ("nodes = 0", "nodes in run.toml: 0 must be a whole number >= 1; see `adfs train"),
    "switch": ('intercept = "yes"', 'intercept in run.toml must be true or false, but is "yes"'),
    "no switch": ("tol = true", "tol in run.toml must be a number, but is true"),
    "list": ("tol = [1, 2]", "tol in run.toml must be a number, but is [1, 2]"),
    "table": ("[tol]\nx = 1", "tol in run.toml must be a number, but is a table"),
    "rivals": ("sigma = 1\nC = 1", "sigma and C in run.toml exclude each other; keep one."),
    "twice": ("max-iter = 1\nmax_iter = 2", "max_iter in run.toml is also set as max-iter"),
    "not TOML": ("tol: 1", "--config run.toml must be TOML, but: "),
    "nested": ("x = " + "[" * 50_000, "must be TOML, but: it is nested too deeply; correct"),
    "endless number": ("tol = " + "9" * 5_000, "--config run.toml must be TOML, but: "),
    "long": ("# " + "x" * 1_000_000, "must be TOML, but: it has more than 1,000,000 letters"),
    "NUL": ('out = "a\\u0000b"', "out in run.toml: 'a\\x00b' must be a path, which cannot"),
    "NUL, data": ('data = "a\\u0000b"', "must be a path, which cannot contain NUL"),
    "not text": (b"tol = '\xff'", "--config run.toml must be TOML, but: "),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_one_sentence_with_the_key_and_the_file(adfs, home, case):
    text, sentence = FAULTS[case]
    (home / "run.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    outcome = adfs("train", "x", "--config", "run.toml")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("adfs: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith(".\n")
    assert sentence in outcome.err


def test_a_list_that_is_none(adfs, settings):
    path = settings("algorithms = [1]")
    assert "must be a name or a list of names" in adfs("compare", "x", "--config", path).err
    path = settings("tau = []")
    assert "must be a number or a list of numbers" in adfs("compare", "x", "--config", path).err


def test_a_file_that_is_missing_or_not_named(adfs):
    outcome = adfs("train", "x", "--config", "no.toml")
    assert outcome == (2, "", "adfs: no.toml cannot be used: No such file or directory; check the "
                       "path.\n")  # fmt: skip
    assert "--config: expected one argument" in adfs("train", "x", "--config").err


def test_data_that_neither_names_are_missing(adfs, settings):
    outcome = adfs("train", "--config", settings("tol = 1e-3"))
    assert outcome.code == 2
    assert "the following arguments are required: DATA; see `adfs train --help`" in outcome.err


RUNS = [
    "train dense.txt --out m.npz --trace t.csv --C 0.3 --nodes 3 --graph ring --seed 4 --tol 1e-5",
    "train dense.txt --out m.npz --trace t.csv --loss hinge --intercept --class-weight balanced",
    "train dense.txt --out m.npz --trace t.csv --schedule poisson --tau 0.1 --algorithm adfs",
]


@pytest.mark.parametrize("line", RUNS)
def test_saved_settings_repeat_the_run_to_the_bit(adfs, dense, line):
    first = adfs(*line.split(), "--save-config", "saved.toml")
    assert (first.code, first.err) == (0, "settings written to saved.toml\n")
    bits, rows = bits_of_model("m.npz"), rows_of_trace("t.csv")
    Model.load("m.npz")
    assert adfs("train", "--config", "saved.toml", "--out", "again.npz", "--quiet").code == 0
    assert bits_of_model("again.npz") == bits
    assert rows_of_trace("t.csv") == rows


def test_saved_settings_hold_defaults_too_and_lists_as_lists(adfs, dense, home):
    words = ("compare", dense[0], "--algorithms", "adfs,adfs:exact", "--speed", "1,1,1,2", "--tol",
             "1e-3", "--quiet", "--save-config", "c.toml")  # fmt: skip
    assert adfs(*words) == (0, "", "")
    saved = toml.load("c.toml")
    assert saved["algorithms"] == ["adfs", "adfs:exact"]
    assert saved["speed"] == [1.0, 1.0, 1.0, 2.0]
    assert saved["graph"] == "grid"
    assert saved["quiet"] is True
    assert saved["C"] == 1.0
    assert not {"config", "save-config", "sigma", "intercept"} & set(saved)
    again = parsed("compare", "--config", "c.toml")
    first = parsed(*words)
    for name in ("command_line", "save_config"):
        first.pop(name), again.pop(name)
    assert again == first


def test_settings_of_a_run_that_was_refused_are_not_saved(adfs, dense, home):
    (home / "saved.toml").write_text("precious")
    assert adfs("train", dense[0], "--tol", "0", "--save-config", "saved.toml").code == 2
    assert (home / "saved.toml").read_text() == "precious"


def test_settings_of_a_run_that_stopped_early_are_saved(adfs, dense, home):
    words = ("train", dense[0], "--max-iter", "5", "--json", "--save-config", "saved.toml")
    outcome = adfs(*words)
    assert outcome.code == 3
    assert json.loads(outcome.out)["iterations"] == 5
    assert toml.load("saved.toml")["max-iter"] == 5


def test_settings_are_not_written_over_what_other_arguments_name(adfs, dense, home):
    content = (home / dense[0]).read_text()
    outcome = adfs("train", dense[0], "--save-config", dense[0])
    assert outcome.code == 2
    assert "--save-config dense.txt would overwrite dense.txt" in outcome.err
    assert (home / dense[0]).read_text() == content
    assert "must be in an existing folder" in adfs("train", "x", "--save-config", "no/s.toml").err


def test_settings_may_be_saved_under_any_name(adfs, dense, home):
    name = "new\nline # = [x].toml"
    assert adfs("train", dense[0], "--max-iter", "5", "--quiet", "--save-config", name).code == 3
    assert parsed("train", "--config", name)["max_iter"] == 5


def test_schedules_take_settings_too(adfs, settings):
    settings('graph = "ring"\nnodes = 5\nevents = 50\np_comm = 0.4\nout = "s.npz"\n')
    assert (
        json.loads(adfs("schedule", "sample", "--config", "run.toml", "--json").out)["n_edges"] == 5
    )
    settings('file = "s.npz"\ntau = 2\nclock = "rendezvous"\njson = true\n')
    by_file = json.loads(adfs("schedule", "times", "--config", "run.toml").out)
    by_flags = json.loads(
        adfs("schedule", "times", "s.npz", "--tau", 2, "--clock", "rendezvous", "--json").out
    )
    assert by_file == by_flags


@pytest.mark.parametrize(
    "words",
    [
        ["--quiet"],
        ["--seeds", "3"],
        ["--tol", "-0.1"],
        ["--tol", "1e-30"],
        ["--tol", "1e300"],
        ["--tol", "inf"],
        ["--out", 'quote " and \\ back'],
        ["--out", "line\nbreak\ttab"],
        ["--out", "\x7f\x01é∞"],
        ["--algorithms", "a,b"],
        ["--speed", "1,2.5"],
    ],
)
def test_values_are_read_as_they_were_written(home, words):
    first = ["compare", "x", *words]
    (home / "v.toml").write_text(toml.in_force(parse(first)))
    again = parsed("compare", "--config", "v.toml")
    assert {**again, "command_line": None} == {**parsed(*first), "command_line": None}


def test_a_number_that_is_nan_is_read_as_it_was_written(home):
    (home / "v.toml").write_text(toml.in_force(parse(["compare", "x", "--tol", "nan"])))
    assert np.isnan(parsed("compare", "--config", "v.toml")["tol"])


def test_a_mark_before_the_first_letter_is_no_fault(settings):
    assert parsed("train", "x", "--config", settings("\ufefftol = 0.5\r\nseed = 3\n"))["seed"] == 3


def test_two_files_are_refused(adfs, settings):
    run = adfs("train", "x", "--config", settings("seed = 1"), "--config", "other.toml")
    assert (run.code, run.err) == (
        2, "adfs: --config can be given once, but occurs 2 times; keep one.\n",
    )  # fmt: skip


def test_data_whose_name_begins_with_a_dash_are_saved_as_data(adfs, dense, home):
    (home / "-x.txt").write_bytes((home / dense[0]).read_bytes())
    first = adfs("train", "--C", "1", "--save-config", "s.toml", "--out", "a.npz", "--", "-x.txt")
    assert first.code == 0
    assert adfs("train", "--config", "s.toml", "--out", "b.npz").code == 0
    assert bits_of_model("a.npz") == bits_of_model("b.npz")


def test_a_name_that_no_toml_can_hold_is_refused_before_the_work(adfs, dense, home):
    name = "bad\udcff.npz"
    run = adfs("train", dense[0], "--C", "1", "--out", name, "--save-config", "s.toml")
    assert run.code == 2
    assert "--save-config s.toml must hold out, but TOML cannot hold" in run.err
    assert not (home / "s.toml").exists()
    assert not (home / name).exists()

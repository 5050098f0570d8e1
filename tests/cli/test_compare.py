"""`adfs compare`: what it prints and writes, what it refuses, and how it goes on."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from adfs.algorithms.base import REGISTRY
from adfs.cli import options
from adfs.engine import trace as traces
from adfs.study import run_folder as folders
from adfs.study.comparison import AXES
from support.comparisons import counted, idle, interrupt
from support.limits import HANG

NAMES = "adfs:exact,adfs:paper"


@pytest.fixture(autouse=True)
def quick(request, monkeypatch):
    """Pictures take longer than all else here: one test asks for them."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr(folders, "figure_images", lambda *_: {})


@pytest.fixture
def pictures():
    """Asks for real pictures."""


def refused(outcome, sentence):
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("adfs: ")
    assert outcome.err.count("\n") == 1
    assert sentence in outcome.err


def test_the_table_and_the_certificate_are_printed(adfs, dense):
    outcome = adfs("compare", dense[0], "--algorithms", NAMES)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("idealized time, in units of one proximal step")
    assert lines[1].split() == ["algorithm", "1e-02", "1e-04", "1e-06", "1e-08", "status"]
    for line, label in zip(lines[2:4], NAMES.split(","), strict=True):
        name, *times, status = line.split()
        numbers = [float(time.replace(",", "")) for time in times]
        assert (name, status) == (label, "converged")
        assert numbers == sorted(numbers)
        assert len(numbers) == 4
    assert any(line.startswith("F* = ") and "certified" in line for line in lines)


def test_json_is_one_object_that_agrees_with_the_folder(adfs, dense, home):
    outcome = adfs("compare", dense[0], "--algorithms", NAMES, "--seeds", "2", "--json",
                   "--out", "r", "--axis", "n_comm")  # fmt: skip
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.count("\n") == 1
    record = json.loads(outcome.out)
    assert (record["status"], record["axis"], record["out"]) == ("finished", "n_comm", "r")
    assert record["table"] == record["tables"]["n_comm"]
    assert [run["seed"] for run in record["runs"]] == [0, 1, 0, 1]
    assert record["config"] == json.loads((home / "r" / "config.json").read_text())
    assert record["config"]["command"].startswith("adfs compare dense.txt --algorithms")
    kept = json.loads((home / "r" / "comparison.json").read_text())
    assert {name: record[name] for name in kept} == kept
    with open("r/table.csv", newline="") as file:
        rows = {(row["axis"], row["algorithm"]): row for row in csv.DictReader(file)}
    for row in record["table"]:
        found = rows["n_comm", row["label"]]
        assert float(found["1e-06"]) == row["times"]["1e-06"]


def test_the_options_of_train_describe_the_problem_here_too(adfs, dense):
    outcome = adfs(
        "compare", dense[0], "--algorithms", "adfs:exact", "--loss", "squared", "--C", "0.5",
        "--nodes", "3", "--graph", "ring", "--tau", "2", "--clock", "rendezvous", "--intercept",
        "--tol", "1e-3", "--json",
    )  # fmt: skip
    config = json.loads(outcome.out)["config"]
    problem = config["problem"]
    assert (problem["loss"], problem["graph"], problem["n_features"]) == ("squared", "ring:3", 5)
    assert problem["sigma"] == pytest.approx(2 / 3)
    assert (config["tau"], config["clock"], config["tol"]) == (2.0, "rendezvous", 1e-3)


def test_without_a_strength_C_is_1_here_too(adfs, dense):
    words = ("--algorithms", "adfs:exact", "--nodes", "5", "--graph", "ring", "--tol", "1e-2")
    outcome = adfs("compare", dense[0], *words, "--json")
    assert json.loads(outcome.out)["config"]["problem"]["sigma"] == pytest.approx(1 / 5)


def test_not_reaching_tol_is_no_error(adfs, dense):
    outcome = adfs(
        "compare", dense[0], "--sigma", "1", "--algorithms", NAMES, "--clock-limit", "60"
    )
    assert outcome.code == 0
    assert "> 6" in outcome.out
    assert "time_limit" in outcome.out
    assert "limit of a run: idealized time 60, as given" in outcome.out


def test_accuracies_beyond_tol_are_dashes(adfs, dense):
    outcome = adfs("compare", dense[0], "--algorithms", "adfs:exact", "--tol", "1e-5")
    assert outcome.out.splitlines()[2].split()[-3:] == ["-", "-", "converged"]


def test_who_does_not_take_the_problem_is_named_below_the_table(adfs, dense, home, monkeypatch):
    for name in set(REGISTRY) - {"adfs", "newton"}:
        monkeypatch.delitem(REGISTRY, name)
    arguments = ("compare", dense[0], "--n-features", "2001", "--tol", "1e-2", "--out", "r")
    outcome = adfs(*arguments)
    assert outcome.code == 0
    *_, note, results = outcome.out.splitlines()
    assert note.startswith("newton left out: Algorithm 'newton' sums a d x d matrix and d=2001 is")
    assert results == "results: r"
    record = json.loads(adfs(*arguments, "--json").out)
    assert list(record["left_out"]) == ["newton"]
    assert note == f"newton left out: {record['left_out']['newton']}"
    kept = json.loads((home / "r" / "comparison.json").read_text())
    assert kept["left_out"] == record["left_out"]


def test_nobody_is_left_out_who_was_not_asked_or_who_takes_part(adfs, dense, monkeypatch):
    named = adfs("compare", dense[0], "--n-features", "2001", "--algorithms", "adfs:exact",
                 "--tol", "1e-2", "--json")  # fmt: skip
    assert json.loads(named.out)["left_out"] == {}
    for name in set(REGISTRY) - {"adfs", "newton"}:
        monkeypatch.delitem(REGISTRY, name)
    outcome = adfs("compare", dense[0], "--tol", "1e-2")
    assert "newton" in outcome.out
    assert "left out" not in outcome.out


def test_a_second_time_computes_nothing_and_prints_the_same(adfs, dense, monkeypatch):
    calls = counted(monkeypatch)
    arguments = ("compare", dense[0], "--algorithms", "counted,adfs:exact", "--seeds", "2",
                 "--out", "r")  # fmt: skip
    first, second = adfs(*arguments), adfs(*arguments)
    assert calls == [0, 1]
    assert second.out == first.out.replace(
        "results: r\n", "results: r, 4 of 4 runs taken from there\n"
    )


def test_pictures_are_drawn_along_the_axis(adfs, dense, home, pictures):
    outcome = adfs("compare", dense[0], "--algorithms", NAMES, "--out", "r", "--axis", "bytes")
    assert outcome.out.startswith("bytes sent, until")
    assert (home / "r" / "convergence.png").stat().st_size > 10_000
    assert (home / "r" / "convergence.pdf").stat().st_size > 5_000


def test_without_matplotlib_a_sentence_says_so(adfs, dense, home, pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = adfs("compare", dense[0], "--algorithms", "adfs:exact", "--out", "r")
    assert outcome.code == 0
    assert "no picture: pictures need matplotlib, which is not installed" in outcome.out
    assert not (home / "r" / "convergence.png").exists()


def test_quiet_prints_nothing_and_without_out_nothing_is_written(adfs, dense, home):
    before = set(home.iterdir())
    assert adfs("compare", dense[0], "--algorithms", NAMES, "--quiet") == (0, "", "")
    assert set(home.iterdir()) == before


@pytest.mark.parametrize("out", ["r", None])
def test_an_interruption_prints_what_is_finished_and_how_to_go_on(adfs, dense, monkeypatch, out):
    striking = [True]
    counted(monkeypatch)
    idle(monkeypatch, action=lambda: striking[0] and interrupt())
    arguments = ["compare", dense[0], "--algorithms", "counted,idle", "--max-iter", "20000"]
    arguments += ["--out", out] if out else []
    outcome = adfs(*arguments)
    assert outcome.code == 130
    assert outcome.err.startswith("adfs: interrupted with 1 of 2 runs finished; ")
    assert outcome.err.count("\n") == 1
    way = "they are kept in r, give the same command again" if out else "give --out DIR"
    assert way in outcome.err
    assert "counted" in outcome.out
    if out:
        striking[0] = False
        outcome = adfs(*arguments)
        assert outcome.code == 0
        assert "1 of 2 runs taken from there" in outcome.out


def test_an_interruption_in_json_is_still_one_object(adfs, dense, monkeypatch):
    idle(monkeypatch, action=interrupt)
    outcome = adfs("compare", dense[0], "--algorithms", "idle,adfs:exact", "--json", "--out", "r",
                   "--clock-limit", "1e9")  # fmt: skip
    assert outcome.code == 130
    record = json.loads(outcome.out)
    assert record["status"] == "interrupted"
    assert [run["status"] for run in record["runs"]] == ["interrupted"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_signalled_keeps_its_finished_runs(dense, home, number):
    script = (
        "import sys; from adfs.cli.main import main\n"
        "from pytest import MonkeyPatch; from support.comparisons import idle\n"
        "idle(MonkeyPatch()); sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "compare", dense[0], "--algorithms", "adfs:exact,idle",
         "--clock-limit", "1e15", "--max-iter", str(10**14), "--jobs", "2", "--out", "r"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list((home / "r" / "runs").glob("adfs_exact-seed0-*.json")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 128 + number
    assert "adfs: interrupted with 1 of 2 runs finished" in err
    assert "Traceback" not in err
    assert "adfs:exact" in out


BAD = {
    "an algorithm": (["--algorithms", "adfs,sgd"], "'sgd' is not known (nearest: dgd); choose"),
    "a rule": (["--algorithms", "adfs:magic"], "adfs:magic: --algorithms magic is not a rule"),
    "twice": (["--algorithms", "adfs,adfs"], "'adfs' is named twice"),
    "an empty name": (["--algorithms", ""], "Algorithm '' is not known"),
    "tol": (
        ["--tol", "0"],
        "--tol 0 must be a finite number > 0; it is the relative suboptimality",
    ),
    "a tol too small": (["--tol", "1e-15"], "--tol 1e-15 is too small"),
    "seeds": (["--seeds", "0"], "--seeds: 0 must be a whole number from 1"),
    "jobs": (["--jobs", "-2"], "--jobs: -2 must be a whole number >= 1"),
    "an axis": (["--axis", "time"], "--axis: invalid choice: 'time'"),
    "a clock limit": (["--clock-limit", "-1"], "--clock-limit -1 must be a finite number > 0"),
    "no folder": (["--out", ""], "'' must name a folder"),
    "a file": (["--out", "dense.txt"], "--out dense.txt would overwrite dense.txt"),
    "a loss": (["--loss", "hinge", "--algorithms", "adfs"], "needs a smooth loss"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(adfs, dense, home, case):
    arguments, sentence = BAD[case]
    before = {path: path.stat().st_mtime_ns for path in home.iterdir()}
    usual = [] if "--algorithms" in arguments else ["--algorithms", "adfs:exact"]
    refused(adfs("compare", dense[0], *usual, *arguments), sentence)
    assert {path: path.stat().st_mtime_ns for path in home.iterdir()} == before


@pytest.mark.parametrize("wrong", [["--algorithms", "adfs,sgd"], ["--out", "table"]])
def test_what_can_be_refused_is_refused_before_the_data_are_read(adfs, home, wrong):
    (home / "table").write_text("mine")
    outcome = adfs("compare", "there-is-no-such-file", *wrong)
    assert outcome.code == 2
    assert "there-is-no-such-file" not in outcome.err


def test_a_disk_that_fills_up_is_told_after_the_table(adfs, dense, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(traces, "write_whole", full)
    outcome = adfs("compare", dense[0], "--algorithms", "adfs:exact", "--out", "r")
    assert outcome.code == 1
    assert "converged" in outcome.out
    assert outcome.err.startswith("adfs: r/runs/adfs_exact-seed0-")
    assert "could not be written: No space left on device" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_folder_with_an_odd_name_is_just_a_folder(adfs, dense, home):
    for name in ("[red] $x", "a\nb", os.fsdecode(b"caf\xe9")):
        outcome = adfs("compare", dense[0], "--algorithms", "adfs:exact", "--out", name)
        assert outcome.code == 0
        assert (home / name / "comparison.json").is_file()


def test_help_has_an_example_and_says_when_wall_times_are_accurate(adfs):
    outcome = adfs("compare", "--help")
    text = " ".join(outcome.out.split())
    assert outcome.code == 0
    assert "examples: adfs compare" in text
    assert "wall times are accurate only with 1" in text
    assert tuple(AXES) == options.AXES
    assert "compare" in adfs("--help").out


def test_delays_that_are_not_constant_reach_every_method(dense, adfs):
    arguments = ["compare", dense[0], "--nodes", "4", "--algorithms", "adfs,dsba", "--json"]
    usual = json.loads(adfs(*arguments).out)
    slow = json.loads(adfs(*arguments, "--speed", "1,1,1,10", "--delay-law", "exponential").out)
    assert slow["config"]["delays"]["speed"] == [1.0, 1.0, 1.0, 10.0]
    for before, after in zip(usual["table"], slow["table"], strict=True):
        assert after["times"]["1e-02"] > 1.5 * before["times"]["1e-02"]
    wrong = adfs("compare", dense[0], "--nodes", "4", "--speed", "1,2")
    refused(wrong, "speed has 2 values for 4 nodes")

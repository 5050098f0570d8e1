"""`adfs reproduce`: words, files, refusals, interruptions; names that need no real data."""

import json
import os
import signal
import subprocess
import sys

import pytest

from adfs.study.paper import CATALOGUE, PaperResult
from adfs.study.paper.claims import Claim
from adfs.study.paper.study_context import Report
from support.limits import HANG

MINE = ("theorem-2", "scaling", "table-1")


@pytest.mark.parametrize("name", MINE)
def test_the_quick_version_says_claim_measurement_and_verdict(adfs, home, name):
    outcome = adfs("reproduce", name, "--quick", "--out", "results")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"{name}: ")
    assert f"written to results/{name}\n" in outcome.out
    verdicts = [line.split()[1] for line in outcome.out.splitlines() if line.startswith("Holds:")]
    assert len(verdicts) == outcome.out.count("The paper:") == outcome.out.count("Measured:") >= 3
    assert set(verdicts) <= {"yes", "no", "partly"}
    generated = "generated rows that look like Higgs" in " ".join(outcome.out.split())
    assert generated == (name != "theorem-2")
    folder = home / "results" / name
    record = json.loads((folder / "report.json").read_text())
    assert [claim["holds"] for claim in record["claims"]] == verdicts
    assert record["quick"]
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        assert (folder / f"{name}.{kind}").read_bytes().startswith(start)
    assert all((folder / f"{table['name']}.csv").is_file() for table in record["tables"])


@pytest.fixture
def fakes(monkeypatch):
    """Two reproductions that cost nothing; the second can be told what to do."""
    calls = []

    def make(name, action):
        def reproduce(context):
            calls.append((name, context.quick, context.jobs, context.folder))
            action(context)
            claim = Claim("it holds", "it did", "yes")
            return Report(name, "A fake", ["By hand."], [claim], [], quick=context.quick,
                          interrupted=context.interrupted)  # fmt: skip

        return reproduce

    def install(action=lambda context: None, data=""):
        functions = {"one": make("one", lambda context: None), "two": make("two", action)}
        entries = {"one": PaperResult("one", "one"), "two": PaperResult("two", "two", data)}
        monkeypatch.setattr("adfs.cli.reproduce.CATALOGUE", entries)
        monkeypatch.setattr(PaperResult, "load", lambda entry: functions[entry.module])
        return calls

    return install


def test_all_means_every_name(adfs, fakes, home):
    calls = fakes()
    outcome = adfs("reproduce", "all", "--jobs", "3")
    assert outcome.code == 0
    assert [call[:3] for call in calls] == [("one", False, 3), ("two", False, 3)]
    assert outcome.out.index("one: A fake") < outcome.out.index("two: A fake")
    assert list(home.iterdir()) == []  # no flag, no file


def test_json_is_one_object_and_quiet_is_silence(adfs, fakes):
    fakes()
    outcome = adfs("reproduce", "all", "--quick", "--json")
    record = json.loads(outcome.out)
    assert record["status"] == "finished"
    assert [report["holds"] for report in record["reports"]] == ["yes", "yes"]
    assert adfs("reproduce", "all", "--quiet") == (0, "", "")


def test_a_signal_keeps_what_is_finished(adfs, fakes, home):
    calls = fakes()
    fakes(lambda context: signal.raise_signal(signal.SIGINT))
    outcome = adfs("reproduce", "two", "--out", "r")
    assert outcome.code == 130
    assert "Interrupted: this is what was finished" in outcome.out
    assert outcome.err == "adfs: interrupted in two; what is finished is in r.\n"
    assert json.loads((home / "r/two/report.json").read_text())["interrupted"]
    fakes(lambda context: signal.raise_signal(signal.SIGTERM))
    outcome = adfs("reproduce", "all", "--json")
    assert outcome.code == 143
    assert json.loads(outcome.out)["status"] == "interrupted"
    assert "give --out DIR to keep what is finished" in outcome.err
    assert len(calls) == 3


def test_a_signal_while_a_problem_is_set_up_starts_no_run(adfs, home, monkeypatch):
    from adfs.problem.finite_sum import Problem

    optimum = Problem.optimum
    strikes = iter([signal.SIGINT])  # once: a second signal would end the process

    def solve_and_interrupt(problem):
        for number in strikes:
            signal.raise_signal(number)
        return optimum(problem)

    def no_run(*arguments):
        raise AssertionError("a run was started")

    monkeypatch.setattr(Problem, "optimum", solve_and_interrupt)
    monkeypatch.setattr("adfs.study.compare.Runs._compute", no_run)
    outcome = adfs("reproduce", "table-1", "--quick", "--out", "r")
    assert outcome.code == 130
    assert "Interrupted: this is what was finished" in outcome.out
    assert json.loads((home / "r/table-1/report.json").read_text())["interrupted"]


def test_what_can_be_refused_is_refused_before_any_work(adfs, fakes, home):
    calls = fakes(data="higgs")
    for arguments, sentence in (
        (["nothing"], "'nothing' is nothing that can be reproduced; choose all or one of one, two"),
        (["all"], "two needs the data set higgs, which is not on disk; put its file into the"),
        (["one", "--jobs", "0"], "must be a whole number >= 1"),
        (["one", "--out", "file"], "--out file must be a folder that can be made and written"),
    ):
        (home / "file").write_text("")
        outcome = adfs("reproduce", *arguments)
        assert outcome.code == 2
        assert sentence in outcome.err
        assert outcome.err.count("\n") == 1
    assert calls == []
    assert adfs("reproduce", "two", "--quick").code == 0


def test_a_report_that_cannot_be_written_is_told(adfs, fakes, monkeypatch):
    fakes()

    def fail(report, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Report, "save", fail)
    outcome = adfs("reproduce", "one", "--out", "r")
    assert outcome.code == 1
    assert "one: A fake" in outcome.out
    assert "r/one could not be written: No space left on device" in outcome.err


def test_without_matplotlib_it_says_which_extra(adfs, fakes, monkeypatch):
    fakes()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "run pip install '.[plots]'" in adfs("reproduce", "one", "--out", "r").out


def test_on_a_terminal_there_is_a_progress_line_and_a_signal_ends_the_run(home):
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "adfs", "reproduce", "theorem-2", "--out", "r"],
        stdout=subprocess.PIPE, stderr=theirs, text=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b" left" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=HANG)
    os.close(ours)
    assert process.returncode == 130
    assert "Interrupted: this is what was finished" in out
    assert json.loads((home / "r/theorem-2/report.json").read_text())["interrupted"]


def test_help_imports_no_arithmetic():
    code = (
        "import sys, adfs.cli.main as cli; cli.main(['reproduce', '--help']); "
        "print([name for name in ('numpy', 'numba', 'scipy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(f"\n  {name} " in done.stdout for name in CATALOGUE)

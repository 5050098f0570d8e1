"""Suites: fixed problems, all methods, one table per problem under both charges."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

from adfs.cli.main import main
from adfs.engine.interrupts import Interrupts
from adfs.study import suite
from adfs.study.suite import HEADERS, SUITES, SuiteProblem, run_suite

SMALL = (
    SuiteProblem("first", "breast-cancer", "grid:2x2", 5.0, how="dirichlet:0.5", rows=80),
    SuiteProblem("second", "breast-cancer", "ring:4", 5.0, m=30),
)


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setitem(SUITES, "paper", SMALL)
    monkeypatch.chdir(tmp_path)


def test_every_suite_has_problems_of_its_own():
    names = [problem.name for problems in SUITES.values() for problem in problems]
    assert len(set(names)) == len(names)
    assert all(problem.data in problem.about for problem in SMALL)


def test_a_table_marks_the_fastest_and_has_the_ratio_to_it():
    results = run_suite("paper", ["adfs", "newton", "lbfgs"], 1e-3, seeds=3, progress=False)
    assert [result.problem.name for result in results] == ["first", "second"]
    for result in results:
        rows = result.rows
        times = [row.time for row in rows]
        assert times == sorted(times)
        texts = result.texts()
        assert [line[2] for line in texts] == [
            "fastest",
            *(f"{t / times[0]:.2f}" for t in times[1:]),
        ]
        assert all(row.band[0] <= row.time <= row.band[1] for row in rows)
        (adfs_row,) = [row for row in rows if row.label == "adfs"]
        assert adfs_row.measured == pytest.approx(adfs_row.time)  # a proximal step is the unit
        (lbfgs,) = [row for row in rows if row.label == "lbfgs"]
        assert lbfgs.measured < lbfgs.time  # a gradient is cheaper than a proximal step
        passes = [row.others[2] for row in rows]
        assert all(np.isfinite(passes))


def test_methods_that_do_not_arrive_or_do_not_fit_are_told(monkeypatch):
    monkeypatch.setattr(suite, "REGISTRY", dict.fromkeys(["extra", "ns-adfs", "adfs"]))
    hard = tuple(problem._replace(sigma=0.02) for problem in SMALL)
    monkeypatch.setitem(SUITES, "paper", hard)
    results = run_suite("paper", None, 1e-6, seeds=1, progress=False)
    assert len(results) == 2
    for result in results:
        assert "ns-adfs left out: Algorithm 'ns-adfs' is for the losses hinge" in str(result)
        assert result.rows[-1].label == "extra"
        assert result.rows[-1].time is None
        assert result.texts()[-1][1].startswith("> ")
        assert result.to_markdown().count("\n|") == len(result.rows) + 2


def test_all_registered_methods_take_part_without_names(monkeypatch):
    monkeypatch.setattr(suite, "REGISTRY", dict.fromkeys(["newton", "extra", "adfs"]))
    result = run_suite("paper", None, 1e-2, seeds=1, progress=False)[0]
    assert set(result.paper.labels) == {"adfs", "extra", "newton"}
    assert result.paper.labels[0] == "adfs"  # it sets the limit of the others


def test_the_command_writes_tables_and_goes_on_where_it_was(capsys):
    words = ["compare", "--suite", "paper", "--algorithms", "adfs,newton", "--seeds", "1"]
    assert main([*words, "--tol", "1e-3", "--out", "found"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("fastest") == 4  # a header and a mark, twice
    page = Path("found/paper.md").read_text()
    assert page.count("### ") == 2
    assert all(header in page for header in HEADERS)
    assert main([*words, "--tol", "1e-3", "--out", "found", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [each["problem"]["name"] for each in record["problems"]] == ["first", "second"]
    assert Path("found/paper.md").read_text() == page  # seconds too: nothing was computed again


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--suite", "paper", "--graph", "ring"],
            "--graph is fixed by --suite paper;",
        ),
        (["data.txt", "--suite", "paper"], "DATA is fixed by --suite paper; leave it out."),
        (["--suite", "rare"], "--suite: invalid choice: 'rare'"),
        (["--suite", "paper", "--algorithms", "foo"], "Algorithm 'foo' is not known"),
        ([], "DATA is missing; name a file or a data set, or give --suite."),
    ],
)
def test_what_a_suite_fixes_is_refused(capsys, words, sentence):
    assert main(["compare", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_signal_keeps_what_is_finished():
    interrupts = Interrupts()

    def stop(result):
        interrupts.received = signal.SIGINT

    results = run_suite(
        "paper", ["adfs"], 1e-2, seeds=1, progress=False, interrupts=interrupts, after=stop
    )
    assert [result.problem.name for result in results] == ["first"]

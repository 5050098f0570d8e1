"""`adfs train --schedule auto|shared|poisson|stratified`."""

import csv
import json

import pytest

from adfs.model import Model


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_both_schedules_reach_the_tolerance_and_say_which_they_were(adfs, dense, home, loss):
    records = {}
    for schedule in ("shared", "poisson"):
        out = adfs("train", dense[0], "--loss", loss, "--schedule", schedule, "--tol", 1e-5,
                   "--json", "--out", "model.npz", "--trace", "trace.csv")  # fmt: skip
        assert out.code == 0
        record = records[schedule] = json.loads(out.out)
        assert record["status"] == "converged"
        assert record["schedule"] == schedule
        assert Model.load("model.npz").meta["schedule"] == schedule
        with open("trace.csv") as file:
            *_, last = csv.DictReader(file)
        events = record["n_prox"] + record["n_comm"] // 2
        assert int(last["iteration"]) == record["iterations"] == events
    gap = sum(record["duality_gap"] for record in records.values())
    assert abs(records["shared"]["objective"] - records["poisson"]["objective"]) <= gap
    assert records["shared"]["iterations"] != records["poisson"]["iterations"]


@pytest.mark.parametrize(
    ("flags", "schedule"), [([], "stratified"), (["--algorithm", "adfs"], "shared")]
)
def test_the_default_is_stratified_unless_a_method_is_named(adfs, dense, flags, schedule):
    usual, same = (
        json.loads(adfs("train", dense[0], "--json", *words).out)
        for words in (flags, ["--schedule", schedule])
    )
    assert usual["schedule"] == schedule
    assert usual["objective"] == same["objective"]
    assert usual["iterations"] == same["iterations"]
    assert ("no theorem covers" in usual["theorem"]) == (schedule == "stratified")


def test_the_summary_says_that_no_theorem_covers_the_draws(adfs, dense):
    assert "no theorem" in adfs("train", dense[0]).out
    assert "no theorem" not in adfs("train", dense[0], "--schedule", "shared").out


def test_an_algorithm_without_it_refuses_before_reading_any_sample(adfs):
    out = adfs("train", "there-is-no-such-file.txt", "--algorithm", "msda", "--schedule", "poisson")
    assert out.code == 2
    assert "'msda' has no schedule 'poisson'; choose schedule shared, or one of the" in out.err
    assert out.err.count("\n") == 1


def test_an_unknown_schedule_is_refused_in_one_line(adfs, dense):
    out = adfs("train", dense[0], "--schedule", "round")
    assert out.code == 2
    assert "--schedule" in out.err
    assert "shared" in out.err
    assert "poisson" in out.err
    assert out.err.count("\n") == 1

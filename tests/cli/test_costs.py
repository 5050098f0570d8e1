"""`--costs` of train, compare and plan."""

import json

import pytest

import adfs as package
from adfs.data.files import save_npz
from adfs.data.generators import higgs_like

GIVEN = package.Costs(0.25, 0.5, 0.125, 1.5, 0.75, 9.0, 30.0, 7e-8, name="measured")
SETTING = ("--nodes", "4", "--sigma", "0.5", "--tau", "0")


@pytest.fixture
def rows(home, monkeypatch):
    """Some rows, and costs that are stored as if they had been measured."""
    monkeypatch.setenv("ADFS_CACHE", str(home / "cache"))
    monkeypatch.setattr("adfs.calibration.measure", lambda: GIVEN)
    save_npz("rows.npz", *higgs_like(400, seed=0))
    return "rows.npz"


def trained(adfs, rows, *words):
    return json.loads(adfs("train", rows, *SETTING, "--algorithm", "lbfgs", "--json", *words).out)


def test_train_charges_measured_costs_and_records_them(adfs, rows):
    usual = trained(adfs, rows)
    found = trained(adfs, rows, "--costs", "measured", "--out", "model.npz")
    assert found["idealized_time"] == pytest.approx(0.25 * usual["idealized_time"])
    assert found["objective"] == usual["objective"]
    assert found["costs"] == package.Model.load("model.npz").meta["costs"] == GIVEN.to_dict()
    assert usual["costs"] == package.Costs.paper().to_dict()


def test_the_summary_says_measured(adfs, rows):
    words = ("train", rows, *SETTING, "--algorithm", "lbfgs")
    assert "measured" not in adfs(*words).out
    assert "nonblocking, measured costs)" in adfs(*words, "--costs", "measured").out


def test_a_run_is_resumed_with_its_costs_only(adfs, rows):
    words = ("--checkpoint", "saved", "--checkpoint-every", "2")
    trained(adfs, rows, *words, "--costs", "measured", "--max-iter", "4")
    outcome = adfs("train", rows, *SETTING, "--algorithm", "lbfgs", *words, "--resume")
    assert outcome.code == 2
    assert "was made with costs." in outcome.err
    again = trained(adfs, rows, *words, "--costs", "measured", "--resume")
    assert again["resumed"] == 4


def test_compare_and_plan_charge_measured_costs(adfs, rows):
    words = (rows, *SETTING, "--costs", "measured", "--json")
    found = json.loads(adfs("compare", *words, "--algorithms", "adfs,lbfgs", "--tol", "1e-4").out)
    assert found["config"]["costs"] == GIVEN.to_dict()
    plan = json.loads(adfs("plan", *words).out)
    assert plan["costs"] == GIVEN.to_dict()
    sizes = ("--rows", "10000", "--features", "20", "--kappa", "1e3", "--nodes", "4")
    usual, measured = (
        {each["algorithm"]: each["computing"] for each in plan["plans"][0]["predictions"]}
        for plan in (
            json.loads(adfs("plan", *sizes, "--costs", name, "--json").out)
            for name in ("paper", "measured")
        )
    )
    assert measured["lbfgs"] == pytest.approx(0.25 * usual["lbfgs"])
    assert measured["msda"] == pytest.approx(0.75 * usual["msda"])
    assert measured["adfs"] == usual["adfs"]


def test_another_name_is_refused(adfs, rows):
    outcome = adfs("train", rows, "--costs", "mesured")
    assert outcome.code == 2
    assert "nearest: measured" in outcome.err

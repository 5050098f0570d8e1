"""`adfs plan` and `--algorithm best`."""

import json

import pytest

from adfs.data.files import save_npz
from adfs.data.generators import higgs_like

SIZES = ("--rows", "1000000", "--features", "100", "--kappa", "1e4")


@pytest.fixture
def rows(home):
    save_npz("rows.npz", *higgs_like(400, seed=0))
    return "rows.npz"


def test_a_plan_of_data_recommends_the_first_row(adfs, rows):
    outcome = adfs("plan", rows, "--nodes", "4", "--sigma", "0.5")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    first = lines[1].split()[0]
    assert any(line.startswith(f"{first} is expected to be the fastest") for line in lines)


def test_json_has_predictions_of_every_method(adfs, rows):
    outcome = adfs("plan", rows, "--nodes", "4", "--json")
    plan = json.loads(outcome.out)
    assert plan["algorithm"] == plan["predictions"][0]["algorithm"]
    times = [each["idealized_time"] for each in plan["predictions"]]
    assert times == sorted(times)
    assert plan["critical_nodes"].keys() >= {"adfs", "lbfgs"}


def test_sizes_alone_give_one_row_per_graph_and_number_of_nodes(adfs):
    words = (*SIZES, "--nodes", "4:1024", "--graph", "grid,hypercube", "--tau", "20")
    plans = json.loads(adfs("plan", *words, "--json").out)["plans"]
    assert [each["graph"] for each in plans][:3] == ["grid:4", "grid:16", "grid:64"]
    assert len(plans) == 10
    table = adfs("plan", *words).out.splitlines()
    assert len([line for line in table if line.startswith(("grid ", "hypercube "))]) == 10


def test_a_plan_is_drawn(adfs, rows):
    pytest.importorskip("matplotlib")
    outcome = adfs("plan", rows, "--nodes", "16", "--picture", "plan.svg")
    assert outcome.code == 0
    with open("plan.svg") as file:
        assert "<svg" in file.read()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--rows", "10"], "--features is missing"),
     (["rows.npz", "--rows", "10"], "--rows is for plans without DATA"),
     ([*SIZES[:-1], "0.5"], "--kappa 0.5 must be from 1"),
     ([*SIZES, "--nodes", "few"], "--nodes few must be a whole number"),
     ([*SIZES, "--nodes", "9:4"], "--nodes 9:4 must go from few to many"),
     ([*SIZES, "--nodes", "6", "--graph", "hypercube"], "hypercube"),
     ([*SIZES, "--tau", "-1"], "tau"),
     ([*SIZES, "--tol", "0"], "--tol"),
     (["--rows", "10", "--features", "a,b", "--kappa", "2"], "--features a,b must be a whole"),
     (["rows.npz", "--nodes", "4:16"], "--nodes 4:16 must be a whole number")],
)  # fmt: skip
def test_bad_sizes_get_a_sentence(adfs, rows, words, sentence):
    outcome = adfs("plan", *words)
    assert outcome.code == 2
    assert outcome.out == ""
    assert sentence in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_best_says_which_method_and_why(adfs, rows):
    outcome = adfs("train", rows, "--algorithm", "best", "--sigma", "0.5")
    assert outcome.code == 0
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("choice")]
    record = json.loads(adfs("train", rows, "--algorithm", "best", "--sigma", "0.5", "--json").out)
    assert record["algorithm"] in line
    assert record["choice"]["tried"][0][0] == record["algorithm"]


def test_auto_says_when_another_method_is_much_faster(adfs, rows):
    command = ("train", rows, "--tol", "1e-3", "--sigma")
    assert "--algorithm best" in adfs(*command, "0.001").out
    assert "--algorithm best" not in adfs(*command, "0.001", "--algorithm", "adfs").out


@pytest.mark.parametrize("words", [("--loss", "hinge"), ("--nodes", "1")])
def test_a_plan_without_curves_has_a_table_and_a_picture(adfs, rows, words):
    outcome = adfs("plan", rows, "--nodes", "4", *words, "--picture", "plan.png")
    assert outcome.code == 0
    assert "is expected to be the fastest" in outcome.out
    assert "other " not in outcome.out


def test_without_delays_nobody_is_told_to_lower_tau(adfs, rows):
    outcome = adfs("plan", rows, "--nodes", "4", "--loss", "hinge", "--tau", "0")
    assert "smaller tau" not in outcome.out


def test_more_nodes_than_rows_are_refused(adfs):
    words = ("--rows", "3", "--features", "10", "--kappa", "50", "--nodes", "4,9")
    outcome = adfs("plan", *words)
    assert outcome.code == 2
    assert "--rows 3 must be at least --nodes 9" in outcome.err

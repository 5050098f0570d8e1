"""`adfs train` with every registered algorithm: what it prints and writes, and that it is right."""

import csv
import json

import numpy as np
import pytest
from scipy.optimize import minimize

import adfs as package
from adfs.algorithms.base import REGISTRY, MethodSetting
from adfs.errors import ParameterError
from adfs.model import Model

# Fixed for users' scripts: written out here, not read from the code.
COLUMNS = [
    "iteration", "idealized_time", "wall_time", "n_prox", "n_grad", "n_comm", "bytes", "objective",
    "suboptimality", "duality_gap", "consensus_error",
]  # fmt: skip
KEYS = {
    "status", "objective", "duality_gap", "iterations", "idealized_time", "wall_time", "n_prox",
    "n_comm", "n_nodes", "n_samples", "n_features", "seed",
}  # fmt: skip
TOL = "1e-8"


def takes_logistic(name):
    """Some algorithms exist for other losses only."""
    X, y = package.generators.two_gaussians(8, 2, seed=0)
    problem = package.Problem(package.partition(X, y, 2))
    try:
        REGISTRY[name](problem, MethodSetting())
    except ParameterError:
        return False
    return True


NAMES = [name for name in package.algorithms.NAMES if takes_logistic(name)]


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def minimum(X, y, sigma):
    """By SciPy, which knows nothing of ours."""
    value = minimize(
        lambda theta: np.logaddexp(0, -y * (X @ theta)).sum() + sigma / 2 * theta @ theta,
        np.zeros(X.shape[1]),
        method="BFGS",
        options={"gtol": 1e-6},
    )
    return value.fun


def test_the_names_of_the_contract_can_be_trained_with():
    assert set(NAMES) >= {
        "adfs", "point-saga", "msda", "ssda", "esdacd", "dsba", "katyusha", "l-katyusha",
        "newton", "lbfgs", "tron",
    }  # fmt: skip


def test_a_model_a_trace_and_one_object_come_out(adfs, dense, name):
    path, X, y = dense
    outcome = adfs("train", path, "--algorithm", name, "--tol", TOL, "--json", "--sigma", "1",
                   "--out", "m.npz", "--trace", "t.csv")  # fmt: skip
    assert (outcome.code, outcome.err) == (0, "")
    record = json.loads(outcome.out)
    assert set(record) >= KEYS
    assert (record["algorithm"], record["status"]) == (name, "converged")
    assert record["objective"] == pytest.approx(minimum(X, y, sigma=4.0), rel=1e-7)
    assert record["n_prox"] + record["n_grad"] > 0

    model = Model.load("m.npz")
    assert model.meta["parameters"] == record["parameters"]
    signs = np.where(X @ model.coef > 0, 1, -1)
    predicted = adfs("predict", "m.npz", path)
    assert predicted.code == 0
    assert [int(line) for line in predicted.out.split()] == signs.tolist()
    assert record["train"]["accuracy"] == np.mean(signs == y)

    with open("t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert int(rows[-1]["iteration"]) == record["iterations"]


def test_the_parameters_are_told_whatever_the_algorithm(adfs, dense, name):
    outcome = adfs("train", dense[0], "--algorithm", name, "--tau", "2", "--clock", "rendezvous",
                   "--tol", "1e-3", "--json")  # fmt: skip
    chosen = json.loads(outcome.out)["parameters"]
    assert set(chosen) == {"how", "rho", "p_comm", "tau", "clock", "gain", "text"}
    assert (chosen["how"], chosen["tau"], chosen["clock"]) == ("tuned", 2.0, "rendezvous")
    assert 0 < chosen["rho"] <= 1
    assert len(chosen["text"].splitlines()) > 3
    assert (chosen["p_comm"] is None) == (name != "adfs")


def test_the_summary_names_the_algorithm_and_only_the_work_it_does(adfs, dense, name):
    outcome = adfs("train", dense[0], "--algorithm", name, "--tol", "1e-3")
    assert outcome.code == 0
    assert f"{name}, tuned on grid:2x2: rho 0." in outcome.out
    assert "None" not in outcome.out
    assert "(0 " not in outcome.out
    assert "messages" in outcome.out
    assert ("times as fast as the better of paper and exact" in outcome.out) == (name == "adfs")


def test_the_rule_of_theory_is_taken_by_all_that_have_it(adfs, dense, name):
    outcome = adfs("train", dense[0], "--algorithm", name, "--parameters", "theory",
                   "--tol", "1e-3", "--json")  # fmt: skip
    if name == "adfs":
        assert outcome.code == 2
        assert "--parameters theory is not a rule; choose one of paper, balanced" in outcome.err
    else:
        assert outcome.code == 0, outcome.err
        assert json.loads(outcome.out)["parameters"]["how"] == "theory"


def test_a_warm_start_from_a_finished_model_is_certified_at_once(adfs, dense, name):
    assert adfs("train", dense[0], "--tol", "1e-10", "--out", "m.npz").code == 0
    outcome = adfs("train", dense[0], "--algorithm", name, "--warm-start", "m.npz",
                   "--tol", TOL, "--json")  # fmt: skip
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert (record["status"], record["iterations"]) == ("converged", 0)


def test_a_warm_start_is_left_for_something_better(adfs, dense, name):
    assert adfs("train", dense[0], "--max-iter", "50", "--out", "m.npz").code == 3
    outcome = adfs("train", dense[0], "--algorithm", name, "--warm-start", "m.npz",
                   "--tol", TOL, "--json")  # fmt: skip
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert record["iterations"] > 0
    assert record["relative_gap"] <= float(TOL)


def test_one_node_needs_no_network(adfs, dense, name):
    outcome = adfs("train", dense[0], "--algorithm", name, "--nodes", "1", "--sigma", "4",
                   "--tol", TOL)  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert f"{name}, tuned on single: rho " in outcome.out
    assert ", 0 messages)" in outcome.out


def test_dsba_has_the_rule_that_the_help_promises(adfs, dense):
    outcome = adfs("train", dense[0], "--algorithm", "dsba", "--parameters", "paper",
                   "--tol", "1e-3", "--json")  # fmt: skip
    assert json.loads(outcome.out)["parameters"]["how"] == "paper"
    text = " ".join(adfs("train", "--help").out.split())
    assert "for dsba also paper" in text
    assert "one of the names that `adfs info` lists" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train", "--algorithm", "digin"), "(nearest: diging); choose auto, best or one of adfs,"),
        (("compare", "--algorithms", "adfs,sagaa"), "(nearest: saga); choose from adfs,"),
        (("train", "--algorithm", "nonsense"), "--algorithm nonsense is not known; choose auto,"),
        (
            ("train", "--algorithm", "diging", "--parameters", "step=1,step=2"),
            "gives step twice; give it once.",
        ),
    ],
)
def test_a_name_or_an_option_that_is_wrong_is_a_whole_sentence(adfs, dense, words, sentence):
    outcome = adfs(words[0], dense[0], *words[1:])
    assert outcome.code == 2
    assert sentence in outcome.err
    assert " ... " not in outcome.err


def test_a_step_that_is_too_large_is_what_to_change(adfs, dense):
    words = ("--algorithm", "diging", "--parameters", "step=1e9")
    outcome = adfs("train", dense[0], "--nodes", "4", *words)
    assert outcome.code == 3
    assert "give a smaller step in --parameters" in outcome.err


@pytest.mark.parametrize(
    ("words", "has_intercept"),
    [((), False), (("--standardize",), False), (("--intercept",), True)],
)
def test_the_summary_names_the_intercept_that_is_trained(adfs, dense, words, has_intercept):
    outcome = adfs("train", dense[0], "--nodes", "4", *words)
    assert ("and an intercept" in outcome.out) == has_intercept

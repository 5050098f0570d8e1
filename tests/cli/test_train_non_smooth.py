"""`adfs train`, `compare` and `schedule` with the losses that are not smooth."""

import csv
import json

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from adfs.model import Model


def quadratic_program(X, y, sigma, loss):
    """``F*`` by SciPy, with one slack a sample: smooth, with linear constraints."""
    n_samples, n_features = X.shape
    eye = np.eye(n_samples)
    if loss == "hinge":
        rows, low = np.hstack([y[:, None] * X, eye]), np.ones(n_samples)
    else:
        rows, low = np.vstack([np.hstack([X, eye]), np.hstack([-X, eye])]), np.concatenate([y, -y])
    start = np.concatenate([np.zeros(n_features), np.maximum(1.0, np.abs(y)) + 1.0])

    def value(z):
        return sigma / 2 * z[:n_features] @ z[:n_features] + z[n_features:].sum()

    def gradient(z):
        return np.concatenate([sigma * z[:n_features], np.ones(n_samples)])

    bounds = [(None, None)] * n_features + [(0, None)] * n_samples
    constraint = LinearConstraint(rows, low, np.inf)
    options = {"ftol": 1e-12, "maxiter": 1000}
    return minimize(value, start, jac=gradient, bounds=bounds, constraints=constraint,
                    method="SLSQP", options=options).fun  # fmt: skip


@pytest.mark.parametrize("nodes", ["1", "4"])
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_training_finds_the_minimum_of_the_quadratic_program(adfs, dense, loss, nodes):
    path, X, y = dense
    outcome = adfs("train", path, "--loss", loss, "--C", "0.5", "--nodes", nodes, "--tol", "1e-8",
                   "--json", "--out", "m.npz")  # fmt: skip
    assert (outcome.code, outcome.err) == (0, "")
    record = json.loads(outcome.out)
    assert (record["status"], record["algorithm"]) == ("converged", "ns-adfs")
    assert record["relative_gap"] <= 1e-8
    assert record["objective"] == pytest.approx(quadratic_program(X, y, 2.0, loss), rel=1e-7)
    assert record["n_prox"] > 0
    assert (record["n_comm"] > 0) == (nodes == "4")
    chosen = record["parameters"]
    assert chosen["rho"] is None, "there is no linear rate to report"
    assert (0.0 < chosen["p_comm"] < 0.5) if nodes == "4" else chosen["p_comm"] == 0.0
    assert Model.load("m.npz").meta["loss"] == loss


def test_people_read_no_rate_that_nobody_proved(adfs, dense):
    outcome = adfs("train", dense[0], "--loss", "hinge", "--tol", "1e-4")
    assert outcome.code == 0
    assert "ns-adfs, tuned on grid:2x2: p_comm 0." in outcome.out
    assert "rho" not in outcome.out


def test_the_papers_parameters_get_there_too(adfs, dense):
    outcome = adfs("train", dense[0], "--loss", "hinge", "--parameters", "paper",
                   "--algorithm", "ns-adfs", "--tol", "1e-6", "--json")  # fmt: skip
    assert outcome.code == 0
    assert json.loads(outcome.out)["parameters"]["how"] == "paper"


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_an_algorithm_for_smooth_losses_is_refused_with_the_choices(adfs, dense, loss):
    outcome = adfs("train", dense[0], "--loss", loss, "--algorithm", "adfs")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"adfs: Algorithm 'adfs' needs a smooth loss and '{loss}' is not; choose algorithm "
        "ns-adfs, or one of the losses logistic, squared, squared_hinge, smoothed_hinge, huber.\n"
    )


def test_a_rule_of_another_algorithm_is_refused_with_the_choices(adfs, dense):
    outcome = adfs("train", dense[0], "--loss", "hinge", "--parameters", "projector")
    assert outcome.code == 2
    assert (
        "--parameters projector is not a rule of 'ns-adfs'; choose one of paper, tuned."
        in outcome.err
    )


def test_a_tolerance_that_no_double_can_certify_ends(adfs, dense):
    outcome = adfs("train", dense[0], "--loss", "hinge", "--tol", "1e-300", "--max-iter", "20000",
                   "--json")  # fmt: skip
    assert outcome.code == 3
    assert json.loads(outcome.out)["status"] == "max_iter"


def first_objective(path):
    with path.open(newline="") as file:
        return float(next(csv.DictReader(file))["objective"])


def test_a_warm_start_begins_nearer_the_optimum(adfs, dense, home):
    # It need not be faster: duals of samples on the hinge's kink are not known from a model.
    train = ("train", dense[0], "--loss", "hinge", "--tol", "1e-6", "--sigma", "1", "--json")
    cold = adfs(*train, "--out", "m.npz", "--trace", "cold.csv")
    warm = adfs(*train, "--warm-start", "m.npz", "--trace", "warm.csv")
    assert (cold.code, warm.code) == (0, 0)
    optimum = json.loads(cold.out)["objective"]
    far, near = (first_objective(home / name) - optimum for name in ("cold.csv", "warm.csv"))
    assert near < 0.5 * far


def test_a_schedule_can_be_drawn_for_them(adfs, dense):
    outcome = adfs("schedule", "sample", dense[0], "--loss", "hinge", "--events", "500")
    assert outcome.code == 0
    assert "500" in outcome.out


def test_compare_runs_what_takes_the_loss_and_says_what_does_not(adfs, dense):
    outcome = adfs("compare", dense[0], "--loss", "hinge", "--tol", "1e-4", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert "ns-adfs" in json.dumps(record)
    assert "needs a smooth loss" in json.dumps(record)

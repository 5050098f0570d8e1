"""`adfs train`: what it finds, prints and writes."""

import csv
import json

import numpy as np
import pytest
from scipy.optimize import minimize

from adfs.data.files import save_npz
from adfs.engine.trace import COLUMNS
from adfs.model import Model

KEYS = {
    "status", "objective", "duality_gap", "iterations", "idealized_time", "wall_time", "n_prox",
    "n_comm", "n_nodes", "n_samples", "n_features", "seed",
}  # fmt: skip


def logistic_optimum(X, y, strength, weights=None):
    """Minimiser of the sum by SciPy, which knows nothing of ours."""
    X = X.toarray() if hasattr(X, "toarray") else X
    sign = np.where(y == y.max(), 1.0, -1.0)
    weights = np.ones(len(y)) if weights is None else weights

    def value(theta):
        margin = sign * (X @ theta)
        slope = -weights * sign / (1 + np.exp(margin))
        total = weights @ np.logaddexp(0, -margin) + strength / 2 * theta @ theta
        return total, X.T @ slope + strength * theta

    found = minimize(value, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.x, found.fun


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def train(adfs, *arguments, tol="1e-12"):
    outcome = adfs("train", *arguments, "--tol", tol, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_training_finds_the_minimum_that_scipy_finds(adfs, dense):
    name, X, y = dense
    record = train(adfs, name, "--sigma", "0.25", "--out", "m.npz")
    theta, objective = logistic_optimum(X, y, strength=1.0)
    assert record["objective"] == pytest.approx(objective, rel=1e-10)
    np.testing.assert_allclose(Model.load("m.npz").coef, theta, atol=1e-5)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_intercept_is_a_regularised_column_of_ones(adfs, kind, request):
    name, X, y = request.getfixturevalue(kind)
    record = train(adfs, name, "--C", "2", "--intercept", "--out", "m.npz")
    X = X.toarray() if hasattr(X, "toarray") else X
    theta, objective = logistic_optimum(np.column_stack([X, np.ones(len(y))]), y, strength=0.5)
    model = Model.load("m.npz")
    assert record["objective"] == pytest.approx(objective, rel=1e-10)
    assert record["n_features"] == model.n_features == X.shape[1]
    np.testing.assert_allclose(model.coef, theta, atol=1e-5)
    np.testing.assert_allclose(model.decision(X), X @ theta[:-1] + theta[-1], atol=1e-4)


def test_balanced_classes_weigh_the_same_whatever_their_size(adfs, dense):
    name, X, y = dense
    record = train(adfs, name, "--C", "1", "--class-weight", "balanced")
    counts = {label: np.count_nonzero(y == label) for label in (-1.0, 1.0)}
    weights = np.array([len(y) / (2 * counts[label]) for label in y])
    assert record["objective"] == pytest.approx(logistic_optimum(X, y, 1.0, weights)[1], rel=1e-10)


def test_balanced_counts_go_over_all_shards_not_one(adfs, dense, home):
    name, _, _ = dense
    whole = train(adfs, name, "--class-weight", "balanced", "--nodes", "3")
    lines = (home / name).read_text().splitlines(keepends=True)
    lines.sort()  # shards of one class each, but for the middle one
    for node in range(3):
        (home / f"p{node}.txt").write_text("".join(lines[20 * node : 20 * node + 20]))
    parts = train(adfs, "p{node}.txt", "--class-weight", "balanced", "--n-features", "4")
    assert parts["n_nodes"] == 3
    assert parts["objective"] == pytest.approx(whole["objective"], rel=1e-10)


@pytest.mark.parametrize("nodes", [1, 4, 6])
def test_C_is_the_inverse_of_all_nodes_sigma_together(adfs, dense, nodes):
    name, _, _ = dense
    by_c = train(adfs, name, "--C", "0.5", "--nodes", nodes)
    by_sigma = train(adfs, name, "--sigma", repr(2 / nodes), "--nodes", nodes)
    assert by_c["objective"] == pytest.approx(by_sigma["objective"], rel=1e-10)
    assert by_c["C"] == pytest.approx(0.5)
    assert by_c["graph"] == {1: "single", 4: "grid:2x2", 6: "grid:2x3"}[nodes]


def test_the_model_does_not_depend_on_the_number_of_nodes(adfs, dense):
    name, X, y = dense
    _, objective = logistic_optimum(X, y, strength=1.0)
    for nodes in (1, 4, 6):
        record = train(adfs, name, "--nodes", nodes)
        assert record["objective"] == pytest.approx(objective, rel=1e-9)
        assert (record["C"], record["sigma"]) == (pytest.approx(1.0), pytest.approx(1 / nodes))
    assert "sigma 0.25 per node (C = 1)" in adfs("train", name).out


def test_json_is_one_object_with_the_promised_keys(adfs, dense):
    outcome = adfs("train", dense[0], "--json")
    assert outcome.out.count("\n") == 1
    record = json.loads(outcome.out)
    assert set(record) >= KEYS
    assert (record["n_nodes"], record["n_samples"], record["n_features"]) == (4, 60, 4)
    assert record["status"] == "converged"
    assert record["duality_gap"] <= 1e-6 * max(1.0, record["objective"])
    assert outcome.err == ""


def test_the_same_seed_gives_the_same_bits_and_another_does_not(adfs, dense):
    for name, seed in (("a.npz", 5), ("b.npz", 5), ("c.npz", 6)):
        train(adfs, dense[0], "--seed", seed, "--out", name, tol="1e-6")
    a, b, c = (Model.load(name) for name in ("a.npz", "b.npz", "c.npz"))
    assert a.coef.tobytes() == b.coef.tobytes()
    assert a.thetas.tobytes() == b.thetas.tobytes()
    assert a.coef.tobytes() != c.coef.tobytes()


def test_the_summary_says_what_a_person_wants_to_know(adfs, dense):
    outcome = adfs("train", dense[0], "--test", dense[0], "--out", "m.npz", "--trace", "t.csv")
    for word in ("converged", "relative gap", "objective", "accuracy", "test", "idealized",
                 "set-up", "times as fast as the better of paper", "m.npz, t.csv"):  # fmt: skip
        assert word in outcome.out


def test_quiet_prints_nothing(adfs, dense):
    assert adfs("train", dense[0], "--quiet") == (0, "", "")


def test_the_trace_has_its_columns_and_ends_where_the_run_did(adfs, dense):
    record = train(adfs, dense[0], "--trace", "t.csv")
    rows = rows_of("t.csv")
    assert tuple(rows[0]) == COLUMNS
    assert int(rows[-1]["iteration"]) == record["iterations"]
    assert float(rows[-1]["duality_gap"]) == record["duality_gap"]


def test_evaluations_come_as_often_as_asked(adfs, dense):
    limits = ("--max-iter", "2200", "--tol", "1e-30")
    assert adfs("train", dense[0], "--trace", "t.csv", "--evaluate-every", "500", *limits).code == 3
    assert [int(row["iteration"]) for row in rows_of("t.csv")] == [0, 500, 1000, 1500, 2000, 2200]


def test_the_test_file_is_judged_by_the_model(adfs, dense, home):
    name, X, y = dense
    save_npz("test.npz", X[::2], y[::2])
    record = train(adfs, name, "--test", "test.npz", "--out", "m.npz")
    right = np.sign(X[::2] @ Model.load("m.npz").coef) == y[::2]
    assert record["test"]["accuracy"] == pytest.approx(right.mean())


@pytest.mark.parametrize(
    ("loss", "error"), [("squared", "mean_squared_error"), ("huber", "mean_absolute_error")]
)
def test_a_regression_reports_the_error_of_its_loss(adfs, dense, loss, error):
    name, X, y = dense
    record = train(adfs, name, "--loss", loss, "--out", "m.npz")
    residual = X @ Model.load("m.npz").coef - y
    power = 2 if loss == "squared" else 1
    assert record["train"][error] == pytest.approx(np.mean(abs(residual) ** power))


def test_a_warm_start_begins_near_the_model_and_ends_at_the_same_minimum(adfs, dense):
    cold = train(adfs, dense[0], "--out", "m.npz", "--trace", "cold.csv", "--intercept")
    warm = train(adfs, dense[0], "--warm-start", "m.npz", "--trace", "warm.csv", "--intercept")
    first = {name: float(rows_of(name)[0]["duality_gap"]) for name in ("cold.csv", "warm.csv")}
    assert first["warm.csv"] < 1e-6 * first["cold.csv"]
    assert warm["objective"] == pytest.approx(cold["objective"], rel=1e-11)


def test_a_warm_start_may_know_fewer_features_and_no_intercept(adfs, dense):
    name, X, y = dense
    save_npz("narrow.npz", X[:, :2], y)
    train(adfs, "narrow.npz", "--out", "narrow-model.npz")
    cold = train(adfs, name, "--intercept")
    warm = train(adfs, name, "--intercept", "--warm-start", "narrow-model.npz")
    assert warm["objective"] == pytest.approx(cold["objective"], rel=1e-11)


def test_draw_gives_each_node_m_rows(adfs, dense):
    record = train(adfs, dense[0], "--partition", "draw", "--m", "25", "--nodes", "3")
    assert record["n_samples"] == 75


@pytest.mark.parametrize("how", ["even", "contiguous", "sorted"])
def test_how_samples_lie_does_not_change_the_minimum(adfs, sparse, how):
    reference = train(adfs, sparse[0], "--nodes", "1", "--sigma", "1")
    record = train(adfs, sparse[0], "--partition", how, "--graph", "ring")
    assert record["objective"] == pytest.approx(reference["objective"], rel=1e-10)
    assert record["graph"] == "ring:4"


def test_without_flags_no_file_is_written(adfs, dense, home):
    before = sorted(home.iterdir())
    train(adfs, dense[0])
    assert sorted(home.iterdir()) == before


def test_a_run_that_stops_early_exits_3_and_still_writes(adfs, dense):
    outcome = adfs("train", dense[0], "--max-iter", "10", "--out", "m.npz", "--trace", "t.csv")
    assert outcome.code == 3
    assert outcome.err.count("\n") == 1
    assert "max_iter" in outcome.err
    assert "give a larger --max-iter" in outcome.err
    assert Model.load("m.npz").meta["status"] == "max_iter"
    assert [row["iteration"] for row in rows_of("t.csv")] == ["0", "10"]


def test_a_time_limit_stops_with_code_3(adfs, dense):
    outcome = adfs(
        "train", dense[0], "--tol", "1e-300", "--max-iter", 10**12, "--time-limit", "0.05"
    )
    assert outcome.code == 3
    assert "time_limit" in outcome.err


def test_a_model_that_cannot_be_written_leaves_the_old_one_and_exits_1(
    adfs, dense, home, monkeypatch
):
    (home / "m.npz").write_bytes(b"precious")

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    outcome = adfs("train", dense[0], "--out", "m.npz", "--json")
    assert outcome.code == 1
    assert outcome.err == (
        "adfs: m.npz could not be written: No space left on device; what was there before is "
        "intact.\n"
    )
    assert json.loads(outcome.out)["status"] == "converged"
    assert (home / "m.npz").read_bytes() == b"precious"
    assert sorted(path.name for path in home.iterdir()) == ["dense.txt", "m.npz"]


def test_an_output_that_is_a_link_is_written_where_it_points(adfs, dense, home):
    (home / "models").mkdir()
    (home / "m.npz").symlink_to(home / "models" / "real.npz")
    train(adfs, dense[0], "--out", "m.npz")
    assert (home / "m.npz").is_symlink()
    assert Model.load("models/real.npz").n_features == 4


def test_the_command_is_kept_in_the_model(adfs, dense):
    train(adfs, dense[0], "--out", "m.npz")
    assert (
        Model.load("m.npz").meta["command"] == "adfs train dense.txt --out m.npz --tol 1e-12 --json"
    )

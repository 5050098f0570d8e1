"""`adfs predict`: what goes to stdout, to stderr and to a file."""

import numpy as np
import pytest

from adfs.data.files import save_npz
from adfs.model import Model


@pytest.fixture
def model(adfs, dense):
    assert adfs("train", dense[0], "--out", "m.npz", "--tol", "1e-9").code == 0
    return Model.load("m.npz")


def test_stdout_holds_one_label_a_line_and_stderr_the_accuracy(adfs, dense, model):
    name, X, y = dense
    outcome = adfs("predict", "m.npz", name)
    labels = np.where(X @ model.coef > 0, 1, -1)
    assert outcome.code == 0
    assert outcome.out == "".join(f"{label}\n" for label in labels)
    assert outcome.err.startswith(f"accuracy {100 * np.mean(labels == y):.2f} %, AUC ")
    assert outcome.err.endswith(" on 60 samples\n")


def test_with_out_the_file_holds_the_labels_and_stdout_the_accuracy(adfs, dense, model, home):
    piped = adfs("predict", "m.npz", dense[0])
    outcome = adfs("predict", "m.npz", dense[0], "--out", "p.txt")
    assert (home / "p.txt").read_text() == piped.out
    assert outcome == (0, piped.err, "")


def test_proba_is_the_probability_of_the_larger_label(adfs, dense, model):
    name, X, _ = dense
    outcome = adfs("predict", "m.npz", name, "--proba")
    printed = np.array(outcome.out.split(), dtype=float)
    np.testing.assert_allclose(printed, 1 / (1 + np.exp(-X @ model.coef)), rtol=1e-12)


def test_proba_of_another_loss_is_refused(adfs, dense):
    adfs("train", dense[0], "--loss", "squared_hinge", "--out", "h.npz")
    outcome = adfs("predict", "h.npz", dense[0], "--proba")
    assert outcome.code == 2
    assert "Probabilities need the loss 'logistic'" in outcome.err


@pytest.mark.parametrize(("low", "high"), [(0, 1), (3, 7), (-1, 1), (0.5, 2.25)])
def test_labels_come_back_as_the_data_had_them(adfs, dense, model, low, high):
    name, X, y = dense
    signs = adfs("predict", "m.npz", name)
    save_npz("d.npz", X, np.where(y > 0, high, low))
    adfs("train", "d.npz", "--out", "d-model.npz", "--tol", "1e-9")
    outcome = adfs("predict", "d-model.npz", "d.npz")
    named = {"-1": str(low), "1": str(high)}
    assert outcome.out.split() == [named[sign] for sign in signs.out.split()]
    assert outcome.err == signs.err


def test_a_regression_prints_values_and_its_error(adfs, dense):
    name, X, y = dense
    adfs("train", name, "--loss", "squared", "--out", "r.npz", "--intercept")
    outcome = adfs("predict", "r.npz", name)
    values = np.array(outcome.out.split(), dtype=float)
    np.testing.assert_array_equal(values, Model.load("r.npz").predict(X))
    assert f"RMSE {np.sqrt(np.mean((values - y) ** 2)):.6g}" in outcome.err


def test_rows_without_labels_are_predicted_without_a_word(adfs, dense, model):
    np.savez("rows.npz", X=dense[1])
    outcome = adfs("predict", "m.npz", "rows.npz")
    assert outcome.out.count("\n") == 60
    assert outcome.err == ""


def test_labels_the_model_does_not_know_are_not_judged(adfs, dense, model, home):
    lines = (home / dense[0]).read_text().splitlines()
    (home / "blank.txt").write_text("".join("0 " + line.split(" ", 1)[1] + "\n" for line in lines))
    outcome = adfs("predict", "m.npz", "blank.txt")
    assert outcome.code == 0
    assert outcome.err == "no accuracy: none of the labels is one of the model's (-1, 1)\n"


def test_data_with_fewer_columns_is_padded_and_with_more_refused(adfs, home, model):
    (home / "narrow.txt").write_text("1 1:2 2:-1\n")
    (home / "wide.txt").write_text("1 1:2 5:1\n")
    outcome = adfs("predict", "m.npz", "narrow.txt", "--proba")
    score = 2 * model.coef[0] - model.coef[1]
    assert float(outcome.out) == pytest.approx(1 / (1 + np.exp(-score)))
    outcome = adfs("predict", "m.npz", "wide.txt")
    assert outcome.code == 2
    assert "the model was trained on 4 features" in outcome.err


def test_one_file_a_node_is_predicted_in_node_order(adfs, dense, model, home):
    lines = (home / dense[0]).read_text().splitlines(keepends=True)
    (home / "p0.txt").write_text("".join(lines[:10]))
    (home / "p1.txt").write_text("".join(lines[10:]))
    assert adfs("predict", "m.npz", "p{node}.txt") == adfs("predict", "m.npz", dense[0])


def test_predictions_never_overwrite_the_model_or_the_data(adfs, dense, model):
    for name in ("m.npz", dense[0]):
        outcome = adfs("predict", "m.npz", dense[0], "--out", name)
        assert outcome.code == 2
        assert "would overwrite" in outcome.err
    Model.load("m.npz")

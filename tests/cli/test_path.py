"""`adfs path`: a table over C, the best C by cross-validation, its files, and what is refused."""

import csv
import dataclasses
import json
import re

import numpy as np
import pytest

import adfs as package
from adfs import solver

# To tune parameters takes longer than the small runs.
SHORT = ("--C", "0.01:10:4", "--tol", "1e-4", "--parameters", "paper")


def refused(outcome, sentence):
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert sentence in outcome.err


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_marks_the_best_C_and_out_is_its_model(adfs, dense):
    done = adfs("path", dense[0], *SHORT, "--cv", "3", "--intercept", "--out", "m.npz",
                "--table", "t.csv")  # fmt: skip
    assert (done.code, done.err) == (0, "")
    header, *lines = done.out.split("\n\n")[0].splitlines()
    assert header.split()[:3] == ["C", "log-loss", "accuracy"]
    (best,) = [line.split()[0] for line in lines if line.endswith("best")]
    rows = rows_of("t.csv")
    assert [float(row["C"]) for row in rows] == [0.01, 0.1, 1.0, 10.0]
    means = [float(row["cv_log_loss"]) for row in rows]
    assert float(best) == float(rows[np.argmin(means)]["C"])
    assert [row["best"] for row in rows].count("True") == 1
    model = package.Model.load("m.npz")
    assert model.meta["sigma"] == pytest.approx(1.0 / (4 * float(best)))
    assert adfs("predict", "m.npz", dense[0], "--out", "labels.txt").code == 0


def test_the_last_model_is_that_of_train(adfs, dense):
    assert adfs("path", dense[0], "--C", "1", "--intercept", "--out", "p.npz").code == 0
    assert adfs("train", dense[0], "--C", "1", "--intercept", "--out", "t.npz").code == 0
    path, train = (package.Model.load(name) for name in ("p.npz", "t.npz"))
    assert path.coef.tobytes() == train.coef.tobytes()


def test_json_has_all_of_it(adfs, dense):
    done = adfs("path", dense[0], *SHORT, "--cv", "3", "--json")
    found = json.loads(done.out)
    assert (found["status"], found["cv"], found["measure"]) == ("converged", 3, "log_loss")
    assert found["best_C"] in [point["C"] for point in found["points"]]
    for point in found["points"]:
        scores = point["folds"]["accuracy"]
        assert len(scores["values"]) == 3
        assert scores["mean"] == pytest.approx(np.mean(scores["values"]))
        assert point["train"]["accuracy"] > 0.5


@pytest.mark.parametrize("loss", ["hinge", "huber"])
def test_losses_without_probabilities_have_their_own_measure(adfs, dense, loss):
    done = adfs("path", dense[0], *SHORT, "--cv", "2", "--loss", loss, "--json")
    measure = {"hinge": "accuracy", "huber": "root_mean_squared_error"}[loss]
    assert (done.code, json.loads(done.out)["measure"]) == (0, measure)


def test_several_classes_are_trained_against_the_rest(adfs, home):
    generator = np.random.default_rng(0)
    y = np.repeat(["ant", "bee", "cow"], 30)
    X = generator.normal(size=(90, 2)) + 3.0 * np.eye(3, 2)[np.repeat(range(3), 30)]
    lines = [f"{a},{b},{label}" for (a, b), label in zip(X, y, strict=True)]
    (home / "x.csv").write_text("\n".join(["a,b,kind", *lines]))
    done = adfs("path", "x.csv", "--target", "kind", *SHORT, "--cv", "3", "--standardize",
                "--intercept", "--class-weight=balanced", "--out", "m.npz", "--json")  # fmt: skip
    assert done.code == 0
    found, model = json.loads(done.out), package.Model.load("m.npz")
    assert model.coef.shape == (3, 3)
    assert max(point["folds"]["accuracy"]["mean"] for point in found["points"]) > 0.8


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_picture_is_written(adfs, dense, home, kind):
    assert adfs("path", dense[0], *SHORT, "--cv", "2", "--picture", f"p.{kind}").code == 0
    assert (home / f"p.{kind}").stat().st_size > 1000


def test_a_run_that_stops_early_is_exit_code_3(adfs, dense):
    done = adfs("path", dense[0], "--C", "1e-6,100", "--max-iter", "60", "--tol", "1e-9")
    assert done.code == 3
    assert "max_iter before --tol 1e-09 at C = " in done.err
    assert "--max-iter" in done.err
    assert done.err.count("\n") == 1


def test_an_interrupted_path_shows_what_there_is(adfs, dense, home, monkeypatch):
    run, calls = solver.run, []

    def interrupted(*arguments):
        calls.append(arguments)
        result = run(*arguments)
        stop = {"status": "interrupted", "signal": 2}
        return dataclasses.replace(result, **stop) if len(calls) == 6 else result

    monkeypatch.setattr("adfs.regularization.run", interrupted)
    done = adfs("path", dense[0], *SHORT, "--cv", "2", "--out", "m.npz", "--table", "t.csv")
    assert (done.code, len(calls), done.err.count("\n")) == (130, 6, 1)
    assert len(rows_of("t.csv")) == 4
    assert "best" not in done.out
    assert not (home / "m.npz").exists()


def test_progress_names_C_and_fold(adfs, dense, monkeypatch):
    monkeypatch.setattr("adfs.engine.progress.SECONDS_BETWEEN_LINES", 0.0)
    done = adfs("path", dense[0], *SHORT, "--cv", "2")
    assert re.search(r"run \d+, C=0.1, seed 0: ", done.err)
    assert re.search(r"run \d+, C=10, fold 2 of 2, seed 0: ", done.err)
    assert adfs("path", dense[0], *SHORT, "--cv", "2", "--quiet") == (0, "", "")


def test_a_settings_file_has_the_grid_as_text_or_list(adfs, dense, home):
    for text in ('"0.01:1:3"', "[0.01, 0.1, 1]"):
        (home / "run.toml").write_text(f'data = "dense.txt"\nC = {text}\ntol = 1e-3\n')
        done = adfs("path", "--config", "run.toml", "--save-config", "again.toml", "--json")
        assert [point["C"] for point in json.loads(done.out)["points"]] == [0.01, 0.1, 1.0]
        again = adfs("path", "--config", "again.toml", "--no-json")
        assert again.code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--C", "1:2"], "must be values such as"),
     (["--C", "0:1:3"], "must be LOW:HIGH:COUNT with 0 < LOW < HIGH"),
     (["--C", "2:1:3"], "must be LOW:HIGH:COUNT with 0 < LOW < HIGH"),
     (["--C", "1:2:1"], "COUNT from 2 to"),
     (["--C", "1:2:9999999999"], "COUNT from 2 to"),
     (["--C", "1:inf:3"], "must be LOW:HIGH:COUNT"),
     (["--C", "1,-1"], "must be a finite number > 0"),
     (["--C", "nan"], "must be a finite number > 0"),
     (["--C", "1e-200,1"], "--C 1e-200 must be a finite number > 0"),
     (["--C", "1,1e300"], "--C 1e+300 must be a finite number > 0"),
     (["--cv", "1"], "--cv 1 must be a whole number >= 2"),
     (["--cv", "1000"], "leave a fold without rows; lower it"),
     (["--sigma", "1"], "unrecognized arguments: --sigma"),
     (["--picture", "p.gif"], "--picture p.gif must end in .png"),
     (["--out", "dense.txt"], "would overwrite dense.txt"),
     (["--tol", "0"], "tol"),
     (["--algorithm", "newton", "--schedule", "poisson"], "no schedule 'poisson'")],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_exit_code_2(adfs, dense, words, sentence):
    refused(adfs("path", dense[0], *words), sentence)

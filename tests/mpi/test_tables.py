"""Tables on ranks: the bits of one process, and one sentence where a line is wrong."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from adfs.cli.main import main
from adfs.model import Model

OPTIONS = ("--target", "level", "--standardize", "--intercept", "--nodes", "5", "--quiet")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The same people as CSV and as Parquet; three levels, each trained against the rest."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    people = {
        "age": random.normal(40, 12, 200),
        "city": random.choice(["Oslo", "Rome", "Paris"], 200),
        "level": random.choice(["low", "mid", "top"], 200),
    }
    pyarrow.csv.write_csv(pa.table(people), "people.csv")
    pq.write_table(pa.table(people), "people.parquet", row_group_size=30)
    return tmp_path


@pytest.mark.parametrize(
    ("n", "suffix", "algorithm"), [(2, "csv", "adfs"), (3, "parquet", "newton")]
)
def test_ranks_have_the_models_of_one_process(n, suffix, algorithm, mpiexec, capsys):
    arguments = ["train", f"people.{suffix}", *OPTIONS, "--algorithm", algorithm]
    assert main([*arguments, "--out", "one.npz"]) == 0
    done = mpiexec.run(n, "-m", "adfs", *arguments, "--out", "ranks.npz", "--engine", "mpi")
    assert done.returncode == 0, done.stderr
    one, ranks = Model.load("one.npz"), Model.load("ranks.npz")
    assert one.coef.shape == (3, 5)
    assert one.thetas.tobytes() == ranks.thetas.tobytes()
    assert {**one.meta, "command": ""} == {**ranks.meta, "command": ""}


def test_ranks_on_the_files_of_split_have_the_model_of_the_whole(mpiexec, capsys):
    assert main(["split", "people.csv", "--nodes", "5", "--out", "shard-{node}.parquet"]) == 0
    assert main(["train", "people.csv", *OPTIONS, "--out", "one.npz"]) == 0
    arguments = ["train", "shard-{node}.parquet", *OPTIONS, "--out", "ranks.npz"]
    done = mpiexec.run(2, "-m", "adfs", *arguments, "--engine", "mpi")
    assert done.returncode == 0, done.stderr
    assert Model.load("one.npz").thetas.tobytes() == Model.load("ranks.npz").thetas.tobytes()


@pytest.mark.soak  # tests/unit/test_tables.py has it on ranks that are threads
def test_a_wrong_line_ends_the_job_with_one_sentence(home, mpiexec):
    with (home / "people.csv").open("a") as file:
        file.write("young,Oslo,low\n")
    done = mpiexec.run(2, "-m", "adfs", "train", "people.csv", *OPTIONS, "--engine", "mpi")
    assert done.returncode == 2
    assert done.stderr.count("people.csv, line 202, column 'age'") == 1


def test_ten_digits_on_ranks_are_those_of_scikit_learn(mpiexec):
    X, y = load_digits(return_X_y=True)
    X = X[:600] / 16.0
    np.savez("digits.npz", X=X, y=y[:600])
    arguments = ("digits.npz", "--tol", "1e-17", "--algorithm", "newton", "--out", "ten.npz")
    done = mpiexec.run(2, "-m", "adfs", "train", *arguments, "--engine", "mpi")
    assert done.returncode == 0, done.stderr
    model = Model.load("ten.npz")
    exact = LogisticRegression(fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    theirs = OneVsRestClassifier(exact).fit(X, y[:600])
    coef = np.vstack([each.coef_ for each in theirs.estimators_])
    np.testing.assert_allclose(model.coef, coef, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-6)

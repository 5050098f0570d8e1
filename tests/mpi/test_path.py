"""`adfs path --engine mpi` writes and prints what the local engine does; and what is refused."""

import json

import numpy as np
import pytest

from adfs.data.generators import two_gaussians
from support.commands import bits_of_model, differing, here, rows_of_trace
from support.thread_commands import on_thread_ranks

PATH = ("-m", "adfs", "path")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A folder with a table of three classes, and a file of two."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    kinds = np.repeat(np.arange(3), 20)
    X = generator.normal(size=(60, 2)) + 2.0 * np.eye(3, 2)[kinds]
    lines = [
        f"{a!r},{b!r},{kind}"
        for (a, b), kind in zip(X.tolist(), np.array(["x", "y", "z"])[kinds], strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,kind", *lines]))
    X, y = two_gaussians(90, 5, seed=3)
    np.savez("dense.npz", X=X, y=y)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [["t.csv", "--target", "kind", "--standardize", "--intercept", "--partition", "contiguous"],
     pytest.param(["dense.npz", "--loss", "hinge", "--nodes", "5", "--seed", "3"],
                  marks=pytest.mark.soak)],
)  # fmt: skip
def test_ranks_write_and_print_what_the_local_engine_does(mpiexec, arguments):
    words = [*arguments, "--C", "0.1,1", "--cv", "3", "--tol", "1e-3", "--parameters", "paper"]
    words += ["--json", "--table"]
    local = here("path", *words, "c.csv", "--out", "local.npz")
    assert (local.code, local.err) == (0, "")
    kept = rows_of_trace("c.csv")
    run = mpiexec.run(2, *PATH, *words, "c.csv", "--engine", "mpi", "--out", "mpi.npz")
    assert (run.returncode, run.stderr) == (0, "")
    assert differing(run.stdout, local.out) == {}
    assert rows_of_trace("c.csv") == kept
    assert bits_of_model("mpi.npz") == bits_of_model("local.npz")
    assert json.loads(run.stdout)["best_C"] in (0.1, 1.0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--cv", "1"], "--cv 1 must be a whole number >= 2"),
     (["--cv", "91"], "leave a fold without rows"),
     (["--C", "1e-200"], "must be a finite number > 0")],
)  # fmt: skip
def test_what_is_refused_is_one_sentence_of_all_ranks(words, sentence):
    outcome = on_thread_ranks(2, "path", "dense.npz", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err

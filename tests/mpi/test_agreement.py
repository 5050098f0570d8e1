"""Ranks that were started differently are refused with one message, before they begin."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from adfs.data.generators import two_gaussians

TRAIN = ("-m", "adfs", "train", "--engine", "mpi", "--tol", "1e-2")
SOAK = pytest.mark.soak
SCRIPT = Path(__file__).with_name("agreement_script.py")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A folder with two copies of a file, and two files of that size with other content."""
    monkeypatch.chdir(tmp_path)
    X, y = two_gaussians(60, 4, seed=0)
    for name in ("samples.npz", "copy.npz"):
        np.savez(name, X=X, y=y)
    X[30, 2] += 1.0
    np.savez("other.npz", X=X, y=y)
    rows = [f"{k % 2} 1:{k:06d} 2:1.000\n" for k in range(20_000)]
    Path("long.txt").write_text("".join(rows))
    rows[9_000] = rows[9_000].replace("2:1", "2:3")
    Path("long-other.txt").write_text("".join(rows))
    return tmp_path


def refused(run, *words):
    """The run has ended with exit code 2 and one line, in which all the words are."""
    assert run.returncode == 2, run.stderr
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    for word in words:
        assert word in line, line


def test_an_option_that_differs_is_refused_and_nothing_is_written(hydra, home):
    # Other options, and the rest of the wordings: tests/unit/test_agreement.py.
    plain = [*TRAIN, "samples.npz"]
    before = set(home.iterdir())
    run = hydra.run_each(plain, [*plain, "--out", "model.npz"])
    refused(run, "--out is not given on rank 0 and given on rank 1", "the same")
    assert set(home.iterdir()) == before


def test_files_may_have_other_paths_on_other_ranks(mpiexec):
    ranks = [
        [*TRAIN, "--json", data, "--out", out]
        for data, out in (("samples.npz", "model.npz"), ("copy.npz", "other-model.npz"))
    ]
    run = mpiexec.run_each(*ranks)
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout)["status"] == "converged"
    assert Path("model.npz").exists()
    assert not Path("other-model.npz").exists()


# On ranks that are threads: tests/unit/test_local_data_faults.py.
@pytest.mark.parametrize(
    "names",
    [("long.txt", "long-other.txt"), pytest.param(("samples.npz", "other.npz"), marks=SOAK)],
)
def test_other_content_of_the_same_size_is_refused(hydra, names):
    sizes = {Path(name).stat().st_size for name in names}
    assert len(sizes) == 1
    run = hydra.run_each(*([*TRAIN, name] for name in names))
    refused(run, f"{Path(names[0]).suffix} must be the same file", "rank 0", "rank 1")


@SOAK  # on threads: tests/unit/test_agreement.py
def test_a_file_and_a_pattern_are_not_the_same_data(hydra):
    ranks = [[*TRAIN, "samples.npz"], [*TRAIN, "part-{node}.npz"]]
    refused(hydra.run_each(*ranks), "DATA is a file on rank 0", "{node} on rank 1")


def patched(folder, text):
    """What sets up a rank whose Python runs ``text`` when it starts."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text)
    known = os.environ.get("PYTHONPATH")
    return f"PYTHONPATH={os.pathsep.join([str(folder), *([known] if known else [])])}"


def test_a_rank_with_another_version_is_refused(hydra, home):
    other = patched(home / "patch", "import mpi4py\nmpi4py.__version__ = '0.0.1'\n")
    run = hydra.run_each(
        [*TRAIN, "samples.npz"], [other, *TRAIN, "samples.npz"]
    )  # fmt: skip
    refused(run, "mpi4py is", "on rank 0 and 0.0.1 on rank 1", "install the same")


OTHER_ROUNDING = "import adfs.agreement\nadfs.agreement.rounding = lambda: 'other'\n"


@SOAK  # on threads: tests/unit/test_agreement.py
def test_a_rank_that_rounds_otherwise_is_refused(hydra, home):
    other = patched(home / "patch", OTHER_ROUNDING)
    plain = [*TRAIN, "samples.npz"]
    run = hydra.run_each(plain, [other, *plain], plain, [other, *plain])
    refused(run, "ranks 1, 3 differ from rank 0", "one type of CPU")


@pytest.fixture(scope="module")
def in_python(mpiexec, tmp_path_factory):
    """What both ranks of a program met in each case, rank 0 first."""
    path = tmp_path_factory.mktemp("ranks") / "found.json"
    run = mpiexec.run(2, SCRIPT, path)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    return json.loads(path.read_text())


CALLS = {
    "seed": "seed is 0 on rank 0 and 1 on rank 1",
    "tol": "tol is 0.01 on rank 0 and 0.1 on rank 1",
    "bad_tol": "tol=-1 must be a finite number > 0",
    "checkpoints": "checkpoints is None on rank 0 and given on rank 1",
    "warm_start": "warm_start is None on rank 0 and an array of shape (4,)",
    "delays": "delays.law is constant on rank 0 and pareto on rank 1",
    "sigma": "sigma is 1 on rank 0 and 2 on rank 1",
    "loss": "loss is logistic on rank 0 and squared on rank 1",
    "topology": "topology is ring:4",
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_differ_raise_one_error_on_all_ranks(in_python, name):
    assert len(in_python[name]) == 2
    for kind, text in in_python[name]:
        assert kind == "ParameterError"
        assert CALLS[name] in text


def test_after_a_refusal_ranks_can_go_on(in_python):
    assert in_python["the_same"] == [["fine", "converged"]] * 2

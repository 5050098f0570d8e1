"""`adfs compare --engine mpi`: seconds of each algorithm on ranks, and what is refused."""

import json

import numpy as np
import pytest

import adfs
from adfs.data.generators import two_gaussians
from support.commands import Outcome
from support.thread_commands import on_thread_ranks

COMPARE = ("-m", "adfs", "compare", "dense.npz", "--engine", "mpi", "--sigma", "0.5")
NAMES = "adfs,newton,lbfgs,dsba"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = two_gaussians(80, 4, seed=3)
    np.savez("dense.npz", X=X, y=y)


def test_json_has_the_runs_of_one_process_and_seconds(mpiexec):
    run = mpiexec.run(
        2, *COMPARE, "--algorithms", NAMES, "--tol", "1e-5", "--json", "--quiet"
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.count("\n") == 1
    record = json.loads(run.stdout)
    assert (record["status"], record["engine"], record["n_ranks"]) == ("finished", "mpi", 2)
    assert (record["n_nodes"], record["n_samples"], record["n_features"]) == (4, 80, 4)
    assert record["left_out"] == {}
    problem = adfs.Problem.from_files("dense.npz", sigma=0.5)
    for name, found in zip(NAMES.split(","), record["runs"], strict=True):
        local = adfs.solve(problem, name, tol=1e-5)
        assert (found["label"], found["status"]) == (name, "converged")
        for field in ("iterations", "idealized_time", "objective", "duality_gap", "relative_gap"):
            assert found[field] == getattr(local, field), (name, field)
        for field in ("n_prox", "n_grad", "n_comm", "bytes"):
            assert found[field] == local.trace.last()[field]
        assert found["wall_time"] > 0
        assert found["setup_time"] > 0
    seconds = {each["label"]: each["wall_time"] for each in record["runs"]}
    assert record["fastest"] == min(seconds, key=seconds.get)


def test_without_names_all_that_run_on_ranks_take_part(mpiexec):
    run = mpiexec.run(2, *COMPARE, "--tol", "1e-1", "--max-iter", "5")
    assert run.returncode == 0
    title, header, *lines = run.stdout.splitlines()
    assert title == "seconds on 2 ranks, until the relative duality gap is 0.1"
    assert header.split()[:2] == ["algorithm", "seconds"]
    words = [line.split()[0] for line in lines]
    rows, notes = words[: words.index("ns-adfs")], words[words.index("ns-adfs") :]
    assert rows == [
        "adfs", "dsba", "esdacd", "katyusha", "l-katyusha", "lbfgs", "msda", "newton", "ssda",
        "tron",
    ]  # fmt: skip
    assert notes == ["ns-adfs", "point-saga"]
    assert sum(line.endswith(", fastest") for line in lines) == 1


REFUSED = {
    "one machine": (["--algorithms", "adfs,point-saga"], "'point-saga' is for one machine"),
    "folder": (["--out", "results"], "--out results is for comparisons in one process"),
    "seeds": (["--seeds", "3"], "--seeds 3 is for comparisons in one process"),
    "chance": (["--delay-law", "exponential"], "--delay-law exponential is for --engine local"),
    "tol": (["--tol", "0"], "relative duality gap"),
    "delays": (["--tau", "1,2"], "2"),
}


def require_refused(run, sentence, folder):
    """One line with the sentence, and no new file."""
    assert (run.code, run.out) == (2, "")
    (line,) = run.err.splitlines()
    assert line.startswith("adfs: ")
    assert sentence in line
    assert [path.name for path in folder.iterdir()] == ["dense.npz"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_on_ranks_is_one_line_and_exit_code_two(home, tmp_path, name):
    arguments, sentence = REFUSED[name]
    run = on_thread_ranks(2, "compare", "dense.npz", "--sigma", "0.5", *arguments)
    require_refused(run, sentence, tmp_path)


def test_processes_end_with_that_line_too(mpiexec, home, tmp_path):
    arguments, sentence = REFUSED["one machine"]
    run = mpiexec.run(2, *COMPARE, *arguments)
    require_refused(Outcome(run.returncode, run.stdout, run.stderr), sentence, tmp_path)


def test_several_processes_without_the_engine_are_refused(mpiexec):
    run = mpiexec.run(2, "-m", "adfs", "compare", "dense.npz")
    assert (run.returncode, run.stdout) == (2, "")
    assert "add --engine mpi, or start one" in run.stderr

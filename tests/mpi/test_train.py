"""`adfs train --engine mpi` writes and prints what the local engine does; and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from adfs.data.generators import sparse_text, two_gaussians
from support.commands import bits_of_model, differing, here, rows_of_trace
from support.limits import HANG
from support.selection import soak_except
from support.thread_commands import on_thread_ranks

TRAIN = ("-m", "adfs", "train")


def write(path, X, y):
    """A LIBSVM file, whose columns are counted from 1."""
    dump_svmlight_file(X, y, path, zero_based=False)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A folder with dense and sparse files, whole and in parts of unequal length."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ADFS_DATA", raising=False)
    X, y = two_gaussians(90, 5, seed=3)
    y[:12] = 1.0
    write("dense.txt", X + 0.5, y)
    np.savez("dense.npz", X=X, y=y)
    for node, part in enumerate(np.split(np.arange(90), [10, 40, 75])):
        write(f"part-{node}.txt", X[part], y[part])
    X, y = sparse_text(120, 40, words_per_row=6, seed=1)
    write("sparse.txt", X, y)
    return tmp_path


# Each launch costs seconds, so that one tries several options which have nothing to do with each
# other.
SAME = {
    "even": (2, ["dense.txt", "--intercept", "--class-weight", "balanced", "--test", "dense.npz"]),
    "contiguous": (3, ["sparse.txt", "--partition", "contiguous", "--sigma", "0.1", "--nodes", "8",
                       "--graph", "random_regular:k=3", "--mapping", "graph", "--seed", "1"]),
    "pattern": (2, ["part-{node}.txt", "--graph", "ring", "--tau", "1", "--C", "2",
                    "--warm-start", "start.npz"]),
    "npz": (2, ["dense.npz", "--clock", "rendezvous", "--parameters", "exact", "--nodes", "5",
                "--partition", "sorted", "--graph", "star"]),
    "poisson": (2, ["dense.txt", "--schedule", "poisson", "--nodes", "6", "--partition", "draw",
                    "--m", "20", "--seed", "4"]),
    "hinge": (2, ["dense.txt", "--loss", "hinge", "--tol", "1e-3", "--schedule", "poisson",
                  "--nodes", "6", "--partition", "draw", "--m", "20", "--seed", "4",
                  "--warm-start", "start.npz"]),
    "squared": (2, ["sparse.txt", "--loss", "squared", "--evaluate-every", "300",
                    "--n-features", "50", "--intercept"]),
}  # fmt: skip


@pytest.mark.parametrize("name", soak_except(("even", "contiguous", "pattern", "hinge"), SAME))
def test_ranks_write_and_print_what_the_local_engine_does(mpiexec, name):
    size, arguments = SAME[name]
    if "--warm-start" in arguments:
        assert here("train", "dense.txt", "--tol", "1e-2", "--out", "start.npz").code == 0
    local = here("train", *arguments, "--json", "--out", "local.npz", "--trace", "local.csv")
    run = mpiexec.run(
        size, *TRAIN, *arguments, "--engine", "mpi", "--json", "--out", "mpi.npz",
        "--trace", "mpi.csv",
    )  # fmt: skip
    assert (local.code, local.err) == (0, "")
    assert (run.returncode, run.stderr) == (0, "")
    assert differing(run.stdout, local.out) == {}
    assert bits_of_model("mpi.npz") == bits_of_model("local.npz")
    assert rows_of_trace("mpi.csv") == rows_of_trace("local.csv")
    ranks = json.loads(run.stdout)["ranks"]
    assert [each["rank"] for each in ranks] == list(range(size))
    nodes = sorted(node for each in ranks for node in each["nodes"])
    assert nodes == list(range(json.loads(run.stdout)["n_nodes"]))


def test_only_one_rank_prints_a_summary(mpiexec):
    run = mpiexec.run(2, *TRAIN, "dense.txt", "--engine", "mpi")
    assert (run.returncode, run.stderr) == (0, "")
    words = [line.split()[0] for line in run.stdout.splitlines()]
    assert words.count("converged") == words.count("objective") == words.count("iterations") == 1


def test_one_process_without_mpiexec_is_one_rank(mpiexec):
    alone = subprocess.run(
        [sys.executable, *TRAIN, "dense.txt", "--json", "--engine", "mpi"],
        capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert (alone.returncode, alone.stderr) == (0, "")
    assert differing(alone.stdout, here("train", "dense.txt", "--json").out) == {}


def test_a_run_that_stops_early_says_so_once_and_is_kept(mpiexec):
    arguments = ("dense.txt", "--max-iter", "100", "--quiet")
    local = here("train", *arguments, "--out", "local.npz")
    run = mpiexec.run(
        2, *TRAIN, *arguments, "--engine", "mpi", "--out", "mpi.npz"
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (local.code, local.out, local.err)
    assert run.returncode == 3
    assert bits_of_model("mpi.npz") == bits_of_model("local.npz")


REFUSED = {
    "faulty shard": (["part-{node}.txt"], "part-3.txt, line 16: a value must be a finite number"),
    "unknown algorithm": (["dense.txt", "--algorithm", "sgd"], "--algorithm sgd is not known"),
    "other algorithm": (
        ["dense.txt", "--algorithm", "point-saga"],
        "Algorithm 'point-saga' is for one machine, without a network, and there are 2 ranks",
    ),
    "too many ranks": (
        ["dense.txt", "--nodes", "1"], "every rank needs a node; start at most 1 ranks, or raise",
    ),
    "resume": (
        ["dense.txt", "--resume"], "--resume needs the folder of the checkpoints; add --checkpoint",
    ),
    "usage": (["dense.txt", "--mapping", "random"], "invalid choice: 'random'"),
    "one class": (["one.txt"], "two"),
    "model": (["dense.txt", "--warm-start", "dense.npz"], "dense.npz is not a model"),
}  # fmt: skip


@pytest.fixture
def require_refused(home):
    """Makes a run with bad input: one line, exit code 2, and nothing is written."""
    with (home / "part-3.txt").open("a") as file:
        file.write("1 2:nothing\n")
    lines = (home / "dense.txt").read_text().splitlines(keepends=True)
    (home / "one.txt").write_text("".join(line for line in lines if line.startswith("1")))
    before = sorted(home.iterdir())

    def require(name, train):
        arguments, sentence = REFUSED[name]
        code, out, err = train(*arguments, "--out", "m.npz")
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        assert line.startswith("adfs: ")
        assert sentence in line
        assert sorted(home.iterdir()) == before

    return require


@pytest.mark.parametrize(
    "name", sorted(REFUSED.keys() - {"usage"})
)  # that is refused before ranks start
def test_bad_input_is_one_line_and_exit_code_two_and_nothing_is_written(require_refused, name):
    require_refused(name, lambda *words: on_thread_ranks(2, "train", *words))


@pytest.mark.parametrize("name", ["faulty shard", "usage"])
def test_processes_end_with_that_line_too(mpiexec, require_refused, name):
    def train(*words):
        run = mpiexec.run(2, *TRAIN, *words, "--engine", "mpi")
        return run.returncode, run.stdout, run.stderr

    require_refused(name, train)


def test_a_timeline_of_ranks_needs_ranks():
    refused = here("train", "dense.txt", "--timeline", "t.json")
    assert (refused.code, refused.out) == (2, "")
    assert "--timeline shows what ranks did, so it needs --engine mpi" in refused.err


def test_a_long_run_is_announced_by_one_rank_with_a_column_that_all_sum(mpiexec):
    X, y = two_gaussians(90, 5, seed=3)
    X[:, 3] = 1e7 + np.arange(90)
    write("raw.txt", X, y)
    arguments = ("raw.txt", "--time-limit", "0.01")
    local = here("train", *arguments)
    run = mpiexec.run(2, *TRAIN, *arguments, "--engine", "mpi")
    assert run.returncode == local.code == 3
    (line,) = (each for each in run.stderr.splitlines() if "Theory promises" in each)
    assert line in local.err.splitlines()
    assert "column 4 is" in line


STRUCK = """
import os, signal, sys, time

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy" and "ADFS_SUPERVISED" in os.environ:
            sys.meta_path.remove(self)
            os.kill(os.getppid(), signal.SIGTERM)
            time.sleep(30)

sys.meta_path.insert(0, Strike())
"""


def test_ranks_that_are_stopped_while_they_import_say_one_line(mpiexec, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(STRUCK)
    run = mpiexec.run(2, *TRAIN, "dense.txt", "--engine", "mpi", PYTHONPATH=str(tmp_path))
    assert (run.returncode, run.stdout) == (143, "")
    assert run.stderr == "adfs: stopped by SIGTERM before the end.\n"


def test_an_output_over_an_input_ends_the_job_before_it_starts(mpiexec):
    before = Path("dense.txt").read_bytes()
    Path("run.toml").write_text("seed = 1\n")
    for words in (["--out", "dense.txt"], ["--config", "run.toml", "--trace", "run.toml"]):
        run = mpiexec.run(2, *TRAIN, "dense.txt", "--engine", "mpi", *words)
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
        assert f"{words[-2]} {words[-1]} would overwrite {words[-1]}" in run.stderr
    assert Path("dense.txt").read_bytes() == before

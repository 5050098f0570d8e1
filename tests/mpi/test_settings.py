"""`--config` and `--save-config` under mpiexec: one file, one sentence, the same bits."""

import sys

import pytest

from adfs.data.generators import two_gaussians
from adfs.data.npz import save_npz
from support.commands import bits_of_model, here

TRAIN = ("-m", "adfs", "train", "--config", "run.toml")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Where commands run: samples and settings."""
    monkeypatch.chdir(tmp_path)
    save_npz("data.npz", *two_gaussians(60, 4, seed=3))
    (tmp_path / "run.toml").write_text('data = "data.npz"\nengine = "mpi"\nnodes = 4\nC = 2.0\n')
    return tmp_path


def test_ranks_take_settings_from_a_file_and_save_them_once(mpiexec):
    run = mpiexec.run(2, *TRAIN, "--out", "mpi.npz", "--save-config", "saved.toml")
    assert (run.returncode, run.stderr) == (0, "settings written to saved.toml\n")
    words = ("--engine", "local", "--out", "local.npz", "--quiet")
    assert here("train", "--config", "saved.toml", *words) == (0, "", "")
    assert bits_of_model("local.npz") == bits_of_model("mpi.npz")


def test_a_fault_of_the_file_is_told_by_one_rank(mpiexec, home):
    (home / "run.toml").write_text('data = "data.npz"\ntool = 1\n')
    run = mpiexec.run(2, *TRAIN)
    assert (run.returncode, run.stdout) == (2, "")
    assert (
        run.stderr
        == "adfs: tool in run.toml is not a setting of `adfs train`; the nearest is tol.\n"
    )


def test_a_place_where_settings_cannot_be_saved_ends_the_job_before_it_starts(mpiexec, home):
    run = mpiexec.run(2, *TRAIN, "--out", "m.npz", "--save-config", "no/s.toml")
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert "--save-config no/s.toml must be in an existing folder" in run.stderr
    assert not (home / "m.npz").exists()


def test_a_file_that_one_host_lacks_ends_the_job_with_a_sentence(hydra, home):
    (home / "elsewhere").mkdir()
    lacking = (":", "-wdir", home / "elsewhere", "-n", "1", sys.executable, *TRAIN)
    for rest in (lacking, (*lacking[:-3], "train", "--nodse", "4")):
        run = hydra.run(1, *TRAIN, *rest)
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
        assert run.stderr.startswith(("adfs: run.toml cannot be used: No such file", "adfs: unrec"))


def test_processes_that_would_each_do_the_whole_work_are_refused_by_one_sentence(hydra):
    run = hydra.run(2, "-m", "adfs", "train", "data.npz", "--C", "1")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "adfs: 2 processes were started, each of which would do the whole work; add --engine mpi, "
        "or start one.\n"
    )

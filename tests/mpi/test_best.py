"""`--algorithm best` under mpiexec: the same choice, model and record as in one process."""

import json

import adfs
from adfs.data.generators import two_gaussians
from adfs.data.npz import save_npz
from support.commands import bits_of_model, here

WORDS = ("train", "data.npz", "--algorithm", "best", "--nodes", "4", "--sigma", "0.1", "--json")


def test_ranks_choose_and_train_as_one_process(mpiexec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_npz("data.npz", *two_gaussians(400, 5, seed=3))
    run = mpiexec.run(2, "-m", "adfs", *WORDS, "--engine", "mpi", "--out", "mpi.npz")
    alone = here(*WORDS, "--out", "local.npz")
    assert (run.returncode, alone.code) == (0, 0)
    ranks, local = json.loads(run.stdout), json.loads(alone.out)
    for key in ("algorithm", "choice", "idealized_time", "objective", "duality_gap"):
        assert ranks[key] == local[key]
    assert bits_of_model("mpi.npz") == bits_of_model("local.npz")


def test_every_prediction_on_ranks_is_that_of_one_process(mpiexec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_npz("data.npz", *two_gaussians(400, 5, seed=3))
    run = mpiexec.run(2, "-c", PLAN)
    assert run.returncode == 0, run.stderr
    alone = adfs.plan(adfs.Problem.from_files("data.npz", sigma=0.1, n_nodes=4)).to_dict()
    assert {each["algorithm"] for each in alone["predictions"]} >= {"adfs", "katyusha", "newton"}
    assert [json.loads(line) for line in run.stdout.splitlines()] == [json.loads(json.dumps(alone))]


def test_a_plan_on_ranks_has_seconds_of_steps_taken_there(mpiexec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_npz("data.npz", *two_gaussians(400, 5, seed=3))
    words = ("plan", "data.npz", "--sigma", "0.1", "--no-pilot", "--json")
    run = mpiexec.run(2, "-m", "adfs", *words, "--engine", "mpi", "--time-steps")
    assert run.returncode == 0, run.stderr
    ranks, local = json.loads(run.stdout), json.loads(here(*words).out)
    assert all(each["seconds"] > 0.0 for each in ranks["predictions"])
    assert ranks["recommendation"] == local["recommendation"]


def test_a_plan_without_rows_is_refused_on_ranks(mpiexec):
    sizes = ("--rows", "1000", "--features", "3", "--kappa", "10")
    run = mpiexec.run(2, "-m", "adfs", "plan", *sizes, "--engine", "mpi")
    assert run.returncode == 2
    assert run.stderr.count("--engine mpi") == 1


PLAN = """
import adfs, json
problem = adfs.Problem.from_files("data.npz", sigma=0.1, n_nodes=4, engine="mpi")
plans = problem.network.gather(adfs.plan(problem).to_dict())
assert all(plan == plans[0] for plan in plans), plans
if problem.network.rank == 0:
    print(json.dumps(plans[0]))
"""

"""Ranks meet, or are told why they do not, and tell each other values to the bit."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

GATHER = """
    import json
    told = world.gather({
        "plain": [rank, "\\u00fc", float("-inf"), np.int64(7), None],
        "bits": np.nextafter(np.full((rank, 2), 0.1), 1.0),
        "deep": [0, {"small": np.full(3, rank, np.float32)}, np.arange(rank)],
    })
    vectors = world.gather(np.linspace(0.0, 1.0, 3 * rank))
    words = world.gather((rank, "x"))
    kept = {"plain": json.dumps([[t["plain"] for t in told], words])}
    for r, t in enumerate(told):
        kept[f"bits{r}"], kept[f"vector{r}"] = t["bits"], vectors[r]
        kept[f"small{r}"], kept[f"deep{r}"] = t["deep"][1]["small"], t["deep"][2]
    np.savez(f"{sys.argv[1]}/{rank}.npz", **kept)
"""


@pytest.mark.parametrize("size", [1, 2, 3])
def test_what_is_gathered_is_what_each_rank_gave_to_the_bit(mpiexec, script, tmp_path, size):
    run = mpiexec.run(size, script(GATHER), tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    for rank in range(size):
        with np.load(tmp_path / f"{rank}.npz") as heard:
            plain = [[r, "ü", -np.inf, 7, None] for r in range(size)]
            words = [[r, "x"] for r in range(size)]
            assert json.loads(str(heard["plain"])) == [plain, words]
            for r in range(size):
                same(heard[f"bits{r}"], np.nextafter(np.full((r, 2), 0.1), 1.0))
                same(heard[f"small{r}"], np.full(3, r, np.float32))
                same(heard[f"deep{r}"], np.arange(r))
                same(heard[f"vector{r}"], np.linspace(0.0, 1.0, 3 * r))


def same(heard, given):
    assert (heard.dtype, heard.shape) == (given.dtype, given.shape)
    assert heard.tobytes() == given.tobytes()


def test_while_a_rank_waits_signals_are_heard(mpiexec, script):
    body = """
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(time.monotonic()))
    if rank == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
    else:
        time.sleep(0.6)
    world.gather(rank)
    if rank == 0:
        print(len(seen), seen[0] < time.monotonic() - 0.1)
    """
    run = mpiexec.run(2, script(body))
    assert (run.stdout, run.stderr) == ("1 True\n", "")


def test_a_rank_does_not_wait_longer_than_its_limit(mpiexec, script):
    body = """
    world.timeout = 1.0
    if rank == 1:
        time.sleep(60)
    world.gather(rank)
    """
    run = mpiexec.run(2, script(body))
    assert run.returncode != 0
    assert "rank 0" in run.stderr
    assert "has waited 1 s for the other ranks; one of them hangs" in run.stderr


OPEN = "from adfs.mpi.communicator import Communicator; Communicator.open()"


def refusal(code, **environment):
    """Last line on stderr of a Python that runs the code."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment
    )
    assert run.returncode != 0
    return run.stderr.splitlines()[-1]


@pytest.mark.parametrize("variable", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_the_mpiexec_of_another_mpi_is_refused(mpiexec, variable):
    said = refusal(OPEN, **{variable: "3"})
    assert ": mpiexec belongs to another MPI than mpi4py's library, " in said
    if variable.startswith("OMPI") and mpiexec.hydra:  # MPICH does not start under Open MPI
        assert "ParameterError: Open MPI started this rank" in said
    else:
        assert "ParameterError: The launcher started 3 ranks but this one finds 1" in said


def test_a_library_that_cannot_be_loaded_is_named(mpiexec):
    line = refusal(OPEN, MPI4PY_LIBMPI="/nowhere/libmpi.so")
    assert "ParameterError: mpi4py cannot load an MPI library (" in line
    assert "/nowhere/libmpi.so" in line
    assert "pip install '.[mpi]' in the folder of adfs's source" in line


def test_without_mpi4py_the_way_out_is_to_install_it():
    line = refusal("import sys; sys.modules['mpi4py'] = None; " + OPEN)
    assert (
        "ParameterError: MPI needs the package mpi4py, which is not installed; pip install" in line
    )

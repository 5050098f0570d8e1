"""Hosts that share no memory: network namespaces on this machine, TCP between them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adfs.data.generators import two_gaussians
from support.limits import HANG

# What one host shows is in test_failure.py and test_train.py; these show it again over TCP.
pytestmark = pytest.mark.soak
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "mpi_namespaces.py"


@pytest.fixture(scope="module")
def hosts(mpiexec):
    """Two hosts, or a skip that says why there are none."""
    spec = importlib.util.spec_from_file_location("mpi_namespaces", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    reason = module.allowed()
    if reason:
        pytest.skip(f"needs network namespaces: {reason}")
    with module.Hosts(2) as two:
        yield two


def run(hosts, *arguments):
    return hosts.run(
        2, sys.executable, *arguments, capture_output=True, text=True, timeout=HANG
    )  # fmt: skip


def test_values_are_gathered_over_tcp(hosts, script, tmp_path):
    n = 100_000
    body = f"""
    import platform
    told = world.gather([platform.node(), np.full({n}, 0.1 + rank)])
    if rank == 0:
        print([name for name, _ in told], [set(values.tolist()) for _, values in told])
    """
    before = hosts.traffic()
    outcome = run(hosts, script(body))
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout == "['host-1', 'host-2'] [{0.1}, {1.1}]\n"
    for old, new in zip(before, hosts.traffic(), strict=True):
        assert new["received"] - old["received"] > 8 * n  # nothing went through shared memory


@pytest.mark.parametrize(
    ("victim", "what"),
    [
        ("getpid", "was killed by SIGKILL"),
        ("getppid", "stopped: its supervisor (the process that mpiexec started) has ended"),
    ],
)
def test_a_process_killed_on_one_host_ends_the_job_on_both(hosts, script, victim, what):
    body = f"""
    if rank == 1:
        os.kill(os.{victim}(), signal.SIGKILL)
    while True:
        world.gather(rank)
    """
    outcome = run(hosts, script(body))
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == (
        f"adfs: rank 1 (nodes 2-3) {what}, and rank 0 (node 0) waits for it: the job ends; "
        "continue with --resume.\n"
    )


def test_training_on_two_hosts_gives_the_bits_of_one_process(hosts, tmp_path):
    X, y = two_gaussians(200, 7, seed=3)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    train = ("-m", "adfs", "train", tmp_path / "data.npz", "--nodes", 4, "--tol", "1e-5", "--quiet")
    before = hosts.traffic()
    outcome = run(hosts, *train, "--engine", "mpi", "--out", tmp_path / "mpi.npz")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert hosts.traffic()[0]["sent"] > before[0]["sent"] + 8 * 7
    local = run_here(*train, "--out", tmp_path / "local.npz")
    assert (local.returncode, local.stderr) == (0, "")
    with np.load(tmp_path / "mpi.npz") as there, np.load(tmp_path / "local.npz") as here:
        for name in ("coef", "thetas"):
            assert there[name].tobytes() == here[name].tobytes()


def run_here(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=HANG
    )

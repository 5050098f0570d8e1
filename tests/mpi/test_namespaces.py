"""Hosts that share no memory: network namespaces on this machine, TCP between them."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adfs.cli.main import main
from adfs.data.generators import two_gaussians
from support.commands import bits_of_model
from support.limits import HANG
from support.pages import DOCS, blocks

# What one host shows is in test_failure.py and test_train.py; these show it again over TCP.
pytestmark = pytest.mark.soak
PAGE = DOCS / "how-to" / "several-hosts.md"
# What a page's mpiexec takes for ssh: host2 is a namespace, whose folder data is its own.
SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=${1#host}; shift
exec ip netns exec PREFIX-$host unshare --uts --mount sh -c \
    "hostname host-$host; mount --bind FOLDER/disk-$host FOLDER/data; $*"
"""
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


def run_page(hosts, folder):
    """The block of the page that needs two hosts, on these; commands that prepared it have run."""
    (block,) = [block for block in blocks(PAGE) if "hosts.txt" in block.text]
    ssh = folder / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH.replace("PREFIX", hosts.prefix).replace("FOLDER", str(folder)))
    ssh.chmod(0o755)
    path = f"{ssh.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["ip", "netns", "exec", f"{hosts.prefix}-254", "bash", "-e", "-c", block.text],
        cwd=folder, capture_output=True, text=True, timeout=HANG,
        env=os.environ | hosts.tcp_only | {"PATH": path, "HYDRA_IFACE": "switch"},
    )  # fmt: skip


@pytest.fixture
def disks(tmp_path, monkeypatch, capsys):
    """The files of two nodes on each host, not in the order of the hosts."""
    monkeypatch.chdir(tmp_path)
    for name in ("data", "disk-1", "disk-2"):
        (tmp_path / name).mkdir()
    assert main(["split", "breast-cancer", "--nodes", "4", "--out", "{node}.svm"]) == 0
    for node in range(4):
        Path(f"{node}.svm").rename(f"disk-{2 - node % 2}/shard-{node}.svm")
    return tmp_path


def test_a_host_needs_only_the_files_of_its_nodes(hosts, disks):
    before = hosts.traffic()
    outcome = run_page(hosts, disks)
    assert outcome.returncode == 0, outcome.stderr
    assert hosts.traffic()[0]["sent"] > before[0]["sent"] + 8 * 30
    assert main(["train", "breast-cancer", "--nodes", "4", "--quiet", "--out", "one.npz"]) == 0
    assert bits_of_model("model.npz") == bits_of_model("one.npz")


def test_a_firewall_between_hosts_ends_the_job_with_the_address(hosts, disks):
    with hosts.isolated():
        outcome = run_page(hosts, disks)
    assert outcome.returncode == 1
    assert "dest_addr=10.77.0." in outcome.stdout  # where UCX writes
    assert "adfs: rank" in outcome.stderr
    assert not Path("model.npz").exists()


def test_ranks_listen_on_the_ports_of_their_range(hosts, script, monkeypatch):
    monkeypatch.setenv("UCX_TCP_PORT_RANGE", "20100-20199")
    monkeypatch.setenv("MPIEXEC_PORT_RANGE", "20000:20099")
    body = """
    with open("/proc/self/net/tcp") as file:
        sockets = [line.split() for line in list(file)[1:]]
    port = lambda address: int(address.split(":")[1], 16)
    open_ports = [port(own) for _, own, _, state, *_ in sockets if state == "0A"]
    servers = [port(to) for _, _, to, state, *_ in sockets if (state, to[:2]) == ("01", "FE")]
    told = world.gather([min(open_ports), max(open_ports), *servers])
    if rank == 0:
        print(told)
    """
    outcome = run(hosts, script(body))
    assert outcome.returncode == 0, outcome.stderr
    for low, high, server in json.loads(outcome.stdout):
        assert 20100 <= low <= high <= 20199
        assert 20000 <= server <= 20099

"""Real ranks: small scripts under this Python's mpiexec, or a skip that says why."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crashes_for_tests import Runs, write_samples

RANK_SCRIPT = """\
import os, signal, sys, time
from adfs.launch.supervisor import Supervisor, is_supervised
if not is_supervised():
    sys.exit(Supervisor([sys.executable, *sys.argv]).run())
import numpy as np
from adfs.launch.watch import Watch
from adfs.launch.world import World
from adfs.errors import DataError
with Watch() as watch, World.open(watch) as world:
    rank, size = world.rank, world.size
    watch.tell(nodes=[2 * rank, 2 * rank + 1], timeout=1.0, resumable=True,
               peers={r: [2 * r] for r in range(size) if abs(r - rank) == 1})
    world.gather("all are here")
BODY
"""


WRITE_PIDS = """
    with open(f"{sys.argv[1]}/{rank}.new", "w") as file:
        file.write(f"{os.getpid()} {os.getppid()}")
    os.rename(f"{sys.argv[1]}/{rank}.new", f"{sys.argv[1]}/{rank}.pids")
"""


def find_mpiexec():
    """Path of an mpiexec, or the reason why there is none to be used."""
    if importlib.util.find_spec("mpi4py") is None:
        return None, "mpi4py is not installed: pip install 'adfs[mpi]'"
    beside = Path(sys.executable).with_name("mpiexec")
    path = str(beside) if beside.exists() else shutil.which("mpiexec")
    return path, None if path else "no mpiexec beside this Python or on PATH"


class Mpiexec:
    """Starts jobs; Open MPI's needs to be told what others allow anyway."""

    def __init__(self, path):
        self.path = path
        about = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        self.hydra = "HYDRA" in about
        open_mpi = "Open MPI" in about or "PRRTE" in about
        self.flags = ["--allow-run-as-root", "--oversubscribe"] if open_mpi else []

    def command(self, n, *arguments):
        """The whole command line for ``n`` ranks of this Python."""
        return [self.path, *self.flags, "-n", str(n), sys.executable, *map(str, arguments)]

    def run(self, n, *arguments, timeout=60, **environment):
        """Run it to its end; ``returncode``, ``stdout``, ``stderr``."""
        return subprocess.run(
            self.command(n, *arguments), capture_output=True, text=True, timeout=timeout,
            env=os.environ | environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self, n, path, folder):
        """Start ranks that do `WRITE_PIDS`; the process, and the numbers of all it has started."""
        process = subprocess.Popen(
            self.command(n, path, folder),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until = time.monotonic() + 30
        while len(files := list(Path(folder).glob("*.pids"))) < n:
            assert time.monotonic() < until, "the ranks did not start"
            time.sleep(0.05)
        return process, [int(word) for file in files for word in file.read_text().split()]


@pytest.fixture(scope="session")
def mpiexec():
    """What starts ranks here."""
    path, reason = find_mpiexec()
    if path is None:
        pytest.skip(f"needs MPI: {reason}")
    return Mpiexec(path)


@pytest.fixture
def hydra(mpiexec):
    """The same, where it is MPICH's, whose exit codes are those of its ranks."""
    if not mpiexec.hydra:
        pytest.skip("exit codes and silence are promised for MPICH's mpiexec; this is another")
    return mpiexec


@pytest.fixture
def script(tmp_path):
    """A file with a rank that meets the others, then does what it is told."""

    def write(body):
        path = tmp_path / "rank.py"
        path.write_text(RANK_SCRIPT.replace("BODY", body.replace("WRITE_PIDS", WRITE_PIDS)))
        return path

    return write


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the samples of runs that are killed."""
    folder = tmp_path_factory.mktemp("crashes")
    write_samples(folder / "samples.npz")
    return folder


@pytest.fixture
def runs(mpiexec, home, tmp_path):
    """A training of a loss and a schedule, kept in a new folder."""
    made = []

    def make(loss, schedule):
        made.append(Runs(mpiexec.command, home, tmp_path, loss, schedule))
        return made[-1]

    yield make
    for run in made:
        run.close()

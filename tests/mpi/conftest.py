"""Real ranks: small scripts under this Python's mpiexec, or a skip that says why."""

import pytest

from support.crashes import Runs, write_samples, write_wide

RANK_SCRIPT = """\
import os, signal, sys, time
from adfs.mpi.supervisor import Supervisor, is_supervised
if not is_supervised():
    sys.exit(Supervisor([sys.executable, *sys.argv]).run())
import numpy as np
from adfs.mpi.supervisor import SupervisorLink
from adfs.mpi.communicator import Communicator
from adfs.errors import DataError
with SupervisorLink() as link, Communicator.open(link) as world:
    rank, size = world.rank, world.size
    link.report(nodes=[2 * rank, 2 * rank + 1], timeout=1.0, resumable=True,
               peers={r: [2 * r] for r in range(size) if abs(r - rank) == 1})
    world.gather("all are here")
BODY
"""


WRITE_PIDS = """
    with open(f"{sys.argv[1]}/{rank}.new", "w") as file:
        file.write(f"{os.getpid()} {os.getppid()}")
    os.rename(f"{sys.argv[1]}/{rank}.new", f"{sys.argv[1]}/{rank}.pids")
"""


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
    write_wide(folder / "wide.npz")
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

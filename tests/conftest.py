"""Shared by all tests: the lanes, signals, real data, and what starts ranks.

Every test is in one or more of these lanes (`make quick`, `make test`, `make soak`):

- ``quick``: contracts, units, theorems on the first graph of each test that has edges; no
  processes, browser or documentation.
- everything but ``soak``: what a plain ``pytest`` runs.
- ``soak``: more of the same, such as the rest of a product of parameters or many kills. Each soak
  test is redundant with one outside that lane.
"""

import os
import signal
from pathlib import Path

import pytest

from support.mpiexec import require_mpiexec

# Before NumPy is imported, here and in all processes that tests start: on a busy machine, threads
# of BLAS that wait for each other take most of the time.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
HERE = Path(__file__).parent
QUICK = ("contracts", "theorems", "unit")
NOT_QUICK = ("slow", "soak", "realdata")


def pytest_configure(config):
    # Tests that compare stderr, also of other processes, must not depend on what is compiled.
    os.environ["ADFS_COMPILE_NOTICE"] = "0"
    # Jobs in the background, and those of nohup, start with these signals ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of the quick lane, before ``-m`` selects."""
    graphs = {}
    for item in items:
        if graph_of(item) not in (None, "single"):
            graphs.setdefault((item.path, item.originalname), graph_of(item))
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder not in QUICK or any(map(item.get_closest_marker, NOT_QUICK)):
            continue
        first = graphs.get((item.path, item.originalname), graph_of(item))
        if folder != "theorems" or graph_of(item) == first:
            item.add_marker("quick")


def graph_of(item):
    """The text of a test's graph; None if it has none."""
    return item.callspec.params.get("graph") if hasattr(item, "callspec") else None


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data, or a skip with the reason."""
    folder = os.environ.get("ADFS_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set ADFS_DATA to the folder that holds them")
    return Path(folder)


@pytest.fixture(scope="session")
def mpiexec():
    """What starts ranks here, or a skip with the reason."""
    return require_mpiexec()

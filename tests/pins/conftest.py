"""Real ranks for the pins, as in ``tests/mpi``."""

import pytest

from mpiexec_for_tests import require_mpiexec


@pytest.fixture(scope="session")
def mpiexec():
    """What starts ranks here."""
    return require_mpiexec()

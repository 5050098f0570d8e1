"""Shared by all tests: stale compiled kernels are cleared, real data are found or skipped."""

import os
from pathlib import Path

import pytest

KERNELS = Path(__file__).parent.parent / "src" / "adfs" / "kernels"


def pytest_configure(config):
    """Drop compiled kernels older than any kernel source: Numba does not see changed callees."""
    # Tests that look at stderr, also of other processes, must not depend on what is compiled.
    os.environ["ADFS_COMPILE_NOTICE"] = "0"
    if hasattr(config, "workerinput"):
        return
    compiled = list((KERNELS / "__pycache__").glob("*.nb?"))
    newest = max(source.stat().st_mtime for source in KERNELS.glob("*.py"))
    if any(file.stat().st_mtime < newest for file in compiled):
        for file in compiled:
            file.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data, or a skip with the reason."""
    folder = os.environ.get("ADFS_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set ADFS_DATA to the folder that holds them")
    return Path(folder)

"""What a number means nothing without: commit, versions, processor."""

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def provenance():
    """Of this process, as a dict for JSON."""
    packages = ("adfs", "numba", "numpy", "scipy", "scikit-learn", "cyanure", "snapml",
                "mpi4py", "mpich", "dask-ml", "distributed")  # fmt: skip
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False,
        cwd=Path(__file__).parent,
    ).stdout.strip()  # fmt: skip
    return {
        "commit": commit, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(), "machine": platform.processor() or platform.machine(),
        "cpu": _cpu(), "cores": os.cpu_count(), "load": os.getloadavg()[0], "seed": 0,
        "versions": found,
    }  # fmt: skip


def _cpu():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return None

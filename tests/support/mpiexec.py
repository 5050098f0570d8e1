"""This Python's mpiexec, for tests that start real ranks."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.limits import HANG


def find_mpiexec():
    """Path of an mpiexec, or the reason why there is none to be used."""
    if importlib.util.find_spec("mpi4py") is None:
        return None, "mpi4py is not installed: pip install '.[mpi]'"
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

    def run(self, n, *arguments, timeout=HANG, **environment):
        """Run it to its end; ``returncode``, ``stdout``, ``stderr``."""
        return subprocess.run(
            self.command(n, *arguments), capture_output=True, text=True, timeout=timeout,
            env=os.environ | environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def run_each(self, *ranks, timeout=HANG):
        """Run one rank for each list of arguments, before which there may be ``NAME=value``."""
        command = [self.path, *self.flags]
        for number, arguments in enumerate(ranks):
            words = [str(word) for word in arguments]
            n_set = next((k for k, word in enumerate(words) if "=" not in word), len(words))
            start = ["env", *words[:n_set]] if n_set else []
            command += [":"] * (number > 0)
            command += ["-n", "1", *start, sys.executable, *words[n_set:]]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )

    def start(self, n, path, folder):
        """Start ranks that do `WRITE_PIDS`; the process, and the numbers of all it has started."""
        process = subprocess.Popen(
            self.command(n, path, folder),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until = time.monotonic() + HANG
        while len(files := list(Path(folder).glob("*.pids"))) < n:
            assert time.monotonic() < until, "the ranks did not start"
            time.sleep(0.05)
        return process, [int(word) for file in files for word in file.read_text().split()]


def require_mpiexec():
    """What starts ranks here, or a skip that says why there is nothing to start them."""
    path, reason = find_mpiexec()
    if path is None:
        pytest.skip(f"needs MPI: {reason}")
    return Mpiexec(path)

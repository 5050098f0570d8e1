"""Runs commands in this process, in a folder of their own."""

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from adfs.cli.main import main
from adfs.data.generators import sparse_text, two_gaussians
from support.cli import write_libsvm
from support.limits import HANG


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADFS_CACHE", str(tmp_path / "cache"))
    for name in ("ADFS_DATA", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    # On a slow machine a run may take long enough for a line about its progress.
    monkeypatch.setattr("adfs.engine.progress.SECONDS_BETWEEN_LINES", 1e9)
    return tmp_path


@pytest.fixture
def adfs(capsys):
    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


class Terminal:
    """A process one of whose streams is a terminal, which is read as a person would."""

    def __init__(self, *arguments, stream="stdout", **environment):
        self._ours, theirs = os.openpty()
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: theirs}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "adfs", *map(str, arguments)],
            env={**os.environ, **environment}, stdin=subprocess.DEVNULL, text=True, **streams,
        )  # fmt: skip
        os.close(theirs)

    def read(self, until=None):
        """What it shows up to a text, or to the end."""
        shown = b""
        while until is None or until.encode() not in shown:
            try:
                piece = os.read(self._ours, 4096)
            except OSError:  # the other end has closed
                piece = b""
            if not piece:
                assert until is None, f"{until!r} was never shown, only {shown!r}"
                break
            shown += piece
        return shown.decode().replace("\r\n", "\n")

    def end(self):
        """Code, stdout and stderr, the stream of the terminal as far as it was not read."""
        rest = self.read()
        out, err = self.process.communicate(timeout=HANG)
        os.close(self._ours)
        return Outcome(self.process.returncode, *(rest if text is None else text
                                                  for text in (out, err)))  # fmt: skip


@pytest.fixture
def terminal():
    """Starts a `Terminal`; a test that fails leaves no process behind."""
    started = []

    def start(*arguments, **options):
        started.append(Terminal(*arguments, **options))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


@pytest.fixture
def dense(home):
    """A dense LIBSVM file: 60 samples, 4 features, one of its labels rare, not centred."""
    X, y = two_gaussians(60, 4, seed=3)
    y[:8] = 1.0
    write_libsvm(home / "dense.txt", X + 0.5, y)
    return "dense.txt", X + 0.5, y


@pytest.fixture
def sparse(home):
    """A sparse one: 80 documents over 50 words."""
    X, y = sparse_text(80, 50, words_per_row=6, seed=1)
    write_libsvm(home / "sparse.txt", X, y)
    return "sparse.txt", X, y

"""Runs a case in a forked child: limits on memory and time, its own folder, what it left there.

Linux only, as it reads the size of a process from /proc.
"""

import faulthandler
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import traceback
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fuzz import calls

MEMORY = 1 << 30  # bytes beyond what the parent has
PROCESSOR_SECONDS = 20
WALL_SECONDS = 120
LARGEST_FILE = 1 << 28
BYSTANDER = "bystander.txt"
UNCAUGHT = 70  # the exit code of a child that ends in a traceback


@dataclass(frozen=True)
class Outcome:
    """``before`` and ``after`` are the files in the folder and above it, with their bytes."""

    code: int
    signal: int
    out: str
    err: str
    before: dict
    after: dict


@contextmanager
def folder_for_cases():
    """A folder in which cases run, removed at the end."""
    folder = tempfile.mkdtemp(prefix="adfs-fuzz-")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(case, folder):
    """The outcome of a case; ``folder`` is emptied first."""
    root, cache = Path(folder) / "root", Path(folder) / "cache"
    shutil.rmtree(root, ignore_errors=True)
    here = root / "here"
    here.mkdir(parents=True)
    (root / BYSTANDER).write_text("not yours\n")
    (here / BYSTANDER).write_text("not yours\n")
    case.write_files(here)
    before = _content(root)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status = _fork(case, here, cache, out, err)
        texts = [_text(stream) for stream in (out, err)]
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1
    return Outcome(code, killed, *texts, before, _content(root))


def _content(root):
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def _text(stream):
    stream.seek(0)
    return stream.read(1 << 20).decode("utf-8", "replace")


def _fork(case, here, cache, out, err):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, where threads exist
        child = os.fork()
    if child == 0:
        _be_child(case, here, cache, out, err)
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that it may have left behind
    return status


def _be_child(case, here, cache, out, err):
    code = UNCAUGHT
    try:
        _confine(here, cache, out, err)
        code = _body(case)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _confine(here, cache, out, err):
    faulthandler.disable()  # pytest has it on
    os.setsid()
    os.chdir(here)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdout, sys.stderr = (os.fdopen(k, "w", errors="backslashreplace") for k in (1, 2))
    os.environ.update(HOME=str(here), ADFS_CACHE=str(cache), MPLCONFIGDIR=str(cache))
    os.environ.update(ADFS_COMPILE_NOTICE="0", COLUMNS="80")
    for name in ("ADFS_DATA", "FORCE_COLOR", "PYTHONWARNINGS"):
        os.environ.pop(name, None)
    warnings.resetwarnings()
    warnings.simplefilter("default", RuntimeWarning)
    socket.socket.connect = _no_network
    _limit()


def _no_network(self, address):
    raise OSError(101, "Network is unreachable")


def _limit():
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    limits = {"AS": size + MEMORY, "CPU": PROCESSOR_SECONDS, "FSIZE": LARGEST_FILE, "CORE": 0}
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        resource.setrlimit(number, (most, resource.getrlimit(number)[1]))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WALL_SECONDS)


def _body(case):
    if case.call:
        return calls.run(case.call)
    if case.process:
        _become(case)
    from adfs.cli.main import main

    return main(case.arguments)


def _become(case):
    """Be a process that was started with these arguments, its streams as the case says."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        place = case.process.get(name, "file")
        if place == "closed":
            os.close(number)
        elif place != "file":
            os.dup2(os.open(place, os.O_WRONLY), number)
    os.execv(sys.executable, [sys.executable, "-m", "adfs", *case.arguments])

"""Real processes: exit codes, signals, pipes, and how fast help is."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest

from adfs.model import Model
from support.limits import HANG

ADFS = [sys.executable, "-m", "adfs"]
ENDLESS = ["--tol", "1e-300", "--max-iter", "100000000000"]


def spawn(*arguments, **keywords):
    return subprocess.Popen(
        [*ADFS, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords,
    )  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_that_keeps_its_model_and_trace(dense, home, terminal, number, code):
    files = ("--out", "m.npz", "--trace", "t.csv")
    run = terminal("train", dense[0], *ENDLESS, *files, stream="stderr", NO_COLOR="1")
    run.read(until="events/s")  # the progress line of the loop
    run.process.send_signal(number)
    outcome = run.end()
    assert outcome.code == code
    assert outcome.out.startswith("interrupted")
    assert "adfs: interrupted at relative gap" in outcome.err
    assert Model.load("m.npz").meta["status"] == "interrupted"
    with open("t.csv", newline="") as file:
        assert int(list(csv.DictReader(file))[-1]["iteration"]) > 0


def wait_for_reader(fifo):
    """Open a named pipe to write, once a process reads it."""
    until = time.monotonic() + HANG
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert time.monotonic() < until, "nobody reads it"
            time.sleep(0.02)


def stopped_by(process, number):
    """What a process writes to stderr after a signal.

    Python looks for signals between two instructions. One that comes after that look and before a
    read that waits is seen with the next signal only.
    """
    until = time.monotonic() + HANG
    while True:
        process.send_signal(number)
        try:
            return process.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            assert time.monotonic() < until, "signals do not end it"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_there_is_a_model_leaves_nothing_and_one_line(home, number, code):
    os.mkfifo(home / "slow.txt")
    process = spawn("train", "slow.txt", "--out", "m.npz")
    writer = wait_for_reader("slow.txt")  # it waits for a line that never comes
    err = stopped_by(process, number)
    os.close(writer)
    assert process.returncode == code
    lines = ["reading slow.txt", f"adfs: stopped by {number.name} before the end."]
    assert err.splitlines() in (lines, lines[1:])  # a slow machine is not there yet
    assert [path.name for path in home.iterdir()] == ["slow.txt"]


STRUCK = """
import signal, sys, time

class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            try:
                signal.raise_signal({number})
                time.sleep(10)
            except BaseException:
                {then}

sys.meta_path.insert(0, Strike())
from adfs.cli.main import main
sys.exit(main(["train", "dense.txt"]))
"""


@pytest.mark.parametrize(
    ("module", "then"),
    [("argparse", "raise"), ("numpy", "raise"), ("numpy", "raise ImportError('failed') from None")],
    ids=["of the commands", "of arithmetic", "in words of its own"],
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_during_an_import_is_one_line(dense, module, then, number, code):
    script = STRUCK.format(module=module, number=int(number), then=then)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    sentence = f"adfs: stopped by {number.name} before the end.\n"
    assert (done.returncode, done.stdout, done.stderr) == (code, "", sentence)


def test_exit_codes_of_a_process(dense):
    for arguments, code in (
        (["--version"], 0),
        (["train", dense[0], "--quiet"], 0),
        (["train", dense[0], "--tol", "0"], 2),
        (["train", dense[0], "--max-iter", "1"], 3),
    ):
        process = spawn(*arguments)
        _, err = process.communicate(timeout=HANG)
        assert process.returncode == code
        assert "Traceback" not in err


def test_a_reader_that_leaves_early_is_no_failure(adfs, dense, home):
    (home / "long.txt").write_text((home / dense[0]).read_text() * 2000)
    assert adfs("train", dense[0], "--out", "m.npz").code == 0
    process = spawn("predict", "m.npz", "long.txt")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=HANG) == 0
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_line_and_code_1(dense):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [*ADFS, "train", dense[0]], stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANG
        )
    assert process.returncode == 1
    assert process.stderr == "adfs: stdout cannot be written: No space left on device.\n"


def test_help_imports_no_arithmetic():
    code = (
        "import sys, adfs.cli.main as cli; cli.main(['train', '--help']); "
        "print([name for name in ('numpy', 'numba', 'scipy', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG
    )
    assert done.stdout.splitlines()[-1] == "[]"

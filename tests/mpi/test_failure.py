"""A job of which one rank fails ends as a whole, soon, with one sentence and an exit code."""

import os
import signal
import time
from pathlib import Path

import pytest

from support.limits import HANG
from support.selection import soak_except

LOST = (
    "adfs: rank 1 (nodes 2-3) {}, and rank 0 (node 0), rank 2 (node 4) wait for it: the job ends; "
    "continue with --resume."
)
FOREVER = """
    while True:
        world.gather(rank)
"""


@pytest.mark.parametrize(
    ("deed", "what"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "was stopped (SIGSTOP) for more than 1 s"),
        (
            "os.kill(os.getppid(), signal.SIGKILL)",
            "stopped: its supervisor (the process that mpiexec started) has ended",
        ),
        ("os._exit(5)", "ended with exit code 5 before its work was done"),
    ],
)
def test_a_lost_rank_ends_the_job_with_one_sentence(mpiexec, script, deed, what):
    begin = time.monotonic()
    run = mpiexec.run(3, script(f"    if rank == 1: {deed}" + FOREVER))
    assert time.monotonic() - begin < 15
    said = [line for line in run.stderr.splitlines() if line.startswith("adfs: ")]
    assert said == [LOST.format(what)]
    assert run.returncode > 0
    if mpiexec.hydra:  # Open MPI has words of its own
        assert (run.returncode, run.stdout, run.stderr) == (1, "", said[0] + "\n")


def test_bad_data_on_one_rank_ends_the_job_with_its_sentence_and_exit_code_two(hydra, script):
    run = hydra.run(2, script("    if rank == 1: raise DataError('row 7 is no row.')" + FOREVER))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "adfs: rank 1 (nodes 2-3): row 7 is no row.\n"


def test_a_rank_that_is_interrupted_alone_takes_the_others_along(hydra, script):
    stop = "from adfs.cli.main import Interrupted; raise Interrupted(15)"
    run = hydra.run(2, script(f"    if rank == 1:\n        {stop}" + FOREVER))
    said = "adfs: stopped by SIGTERM before the end.\n"
    assert (run.returncode, run.stdout, run.stderr) == (143, "", said)


def test_an_error_that_nobody_foresaw_is_shown_with_its_rank(hydra, script):
    run = hydra.run(3, script("    if rank == 1: {}['missing']" + FOREVER))
    assert (run.returncode, run.stdout) == (1, "")
    assert "KeyError: 'missing'" in run.stderr
    last = LOST.format("failed with an unexpected KeyError (a bug; traceback above)")
    assert run.stderr.splitlines()[-1] == last


def test_an_error_on_which_all_ranks_agreed_is_said_once_and_ends_them_all(hydra, script):
    body = """
    from adfs.errors import is_printed_elsewhere
    from adfs.agreement import agree

    def complain(kind, error, trace):  # as the command line does
        if not is_printed_elsewhere(error):
            os.write(2, f"adfs: {error}\\n".encode())

    sys.excepthook = complain
    agree(world, DataError("row 7 is no row.") if rank == 1 else None)
    """
    run = hydra.run(3, script(body))
    assert (run.returncode > 0, run.stdout) == (True, "")
    assert run.stderr.startswith("adfs: ")
    assert run.stderr.endswith("row 7 is no row.\n")
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize("code", soak_except((3,), (3, 130, 143)))
def test_an_exit_code_of_all_ranks_is_that_of_the_job_and_stdout_stays_clean(hydra, script, code):
    after = f"    if rank == 0: print('result', flush=True)\nsys.exit({code})"
    run = hydra.run(2, script(after))
    assert (run.returncode, run.stdout, run.stderr) == (code, "result\n", "")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_to_mpiexec_reaches_each_rank_once_and_leaves_time_to_save(
    hydra, script, tmp_path, name, code
):
    body = f"""
    seen = []
    signal.signal(signal.{name}, lambda *_: seen.append(1))
WRITE_PIDS
    while not seen:
        time.sleep(0.01)
    time.sleep(1.5)
    open(f"{{sys.argv[1]}}/{{rank}}.saved", "w").write(str(len(seen)))
sys.exit({code})
"""
    process, _ = hydra.start(2, script(body), tmp_path)
    process.send_signal(getattr(signal, name))
    _, error = process.communicate(timeout=HANG)
    assert (process.returncode, error) == (code, "")
    assert [(tmp_path / f"{rank}.saved").read_text() for rank in range(2)] == ["1", "1"]


def test_no_process_is_left_when_mpiexec_is_killed(mpiexec, script, tmp_path):
    process, pids = mpiexec.start(2, script("WRITE_PIDS" + FOREVER), tmp_path)
    process.kill()
    process.communicate(timeout=HANG)
    until = time.monotonic() + 10
    while any(is_running(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert len(pids) == 4
    assert not any(is_running(pid) for pid in pids)


def is_running(pid):
    """Whether the process exists and is not just waiting to be buried."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return Path("/proc/self").exists() is False

"""A rank that dies, hangs or is left alone is told of in one sentence, and nothing survives it."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from adfs.mpi.launcher import PAUSE
from adfs.mpi.supervisor import RankFacts, failure_message

pytestmark = pytest.mark.slow  # starts processes
SUPERVISOR = """
import sys
from adfs.mpi.supervisor import Supervisor
sys.exit(Supervisor([sys.executable, "-c", sys.argv[1]]).run())
"""
CHILD = """
import os, signal, sys, time
from adfs.mpi.supervisor import SupervisorLink
with SupervisorLink() as link:
    link.report(rank=1, nodes=[2, 3], peers={0: [0, 1], 2: [5]}, timeout=TIMEOUT,
               resumable=True)
    print("ready", os.getpid(), os.getppid(), flush=True)
    BODY
"""
SLEEP = "time.sleep(30)"
LOST = (
    "adfs: rank 1 (nodes 2-3) {}, and rank 0 (nodes 0-1), rank 2 (node 5) wait for it: the job "
    "ends; continue with --resume.\n"
)
LAUNCHERS = ("PMI", "OMPI", "SLURM")


class Job:
    """A supervisor with a small child in place of a rank."""

    def __init__(self, body, timeout=60, whole=None, **environment):
        script = whole or CHILD.replace("TIMEOUT", str(timeout)).replace("BODY", body)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
        keywords = {"pass_fds": environment.pop("pass_fds", ())}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, script],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=clean | {k: str(v) for k, v in environment.items()}, **keywords,
        )  # fmt: skip
        self.supervisor, self.child, self.over = self.process.pid, None, False

    def ready(self):
        """Wait until the child has told who it is."""
        self.child = int(self.process.stdout.readline().split()[1])
        return self

    def end(self, within=20):
        """Exit code, rest of stdout, stderr; one that hangs is killed, and the test fails."""
        rang = threading.Event()
        alarm = threading.Timer(within, lambda: (rang.set(), self.kill()))
        alarm.start()
        out, err = self.process.stdout.read(), self.process.stderr.read()
        code = self.process.wait()
        alarm.cancel()
        self.over = True
        assert not rang.is_set(), f"a process was still there after {within} s"
        return code, out, err

    def kill(self):
        """Child and supervisor, unless they have ended: their numbers may be others' by now."""
        for pid in () if self.over else (self.child, self.supervisor):
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def job():
    """Start jobs; whatever a failing test leaves behind is killed."""
    jobs = []

    def start(*arguments, **keywords):
        jobs.append(Job(*arguments, **keywords))
        return jobs[-1]

    yield start
    for started in jobs:
        started.kill()
        started.process.wait()
        started.process.stdout.close()
        started.process.stderr.close()


def is_gone(pid, within=5.0):
    """Whether a process that is not ours ends in time."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True  # dead; whoever inherited it has not looked yet
        except ProcessLookupError:
            return True
        except FileNotFoundError:
            pass  # no /proc here, or gone just now
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130, 143])
def test_the_exit_code_of_a_rank_that_said_goodbye_is_passed_on_in_silence(job, code):
    assert job(f"sys.exit({code})").ready().end() == (code, "", "")


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT"])
def test_a_killed_rank_is_named_with_its_nodes_and_the_peers_that_wait(job, name):
    started = job(SLEEP).ready()
    os.kill(started.child, getattr(signal, name))
    assert started.end() == (1, "", LOST.format(f"was killed by {name}"))


def test_a_rank_that_ends_without_goodbye_is_told_of(job):
    code, _, error = job("os._exit(7)").end()
    assert code == 1
    assert error == LOST.format("ended with exit code 7 before its work was done")


def test_an_error_that_nobody_foresaw_shows_its_traceback_and_then_the_rank(job):
    code, _, error = job("raise KeyError('surprise')").end()
    assert code == 1
    assert "KeyError: 'surprise'" in error
    assert error.endswith(LOST.format("ended with exit code 1 before its work was done"))


@pytest.mark.parametrize(
    "error", ["DataError('bad row')", "FileNotFoundError('x')", "Interrupted(15)"]
)
def test_an_error_that_the_command_line_explains_is_a_normal_end(job, error):
    imports = "from adfs.errors import DataError; from adfs.cli.main import Interrupted"
    body = f"{imports}; raise {error}"
    assert "wait for it" not in job(body).end()[2]


def test_a_rank_that_dies_before_it_could_tell_anything_has_the_launchers_number(job):
    early = "import os; os.kill(os.getpid(), 9)"
    code, _, error = job("", whole=early, PMI_RANK=4).end()
    assert code == 1
    assert error == (
        "adfs: rank 4 was killed by SIGKILL: the job ends; run it again, with --checkpoint DIR to "
        "be able to continue.\n"
    )


def test_a_signal_is_forwarded_once_of_a_kind(job):
    body = """
    seen = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: seen.append(signal.Signals(number).name))
    print("listening", flush=True)
    while "SIGUSR1" not in seen:
        time.sleep(0.01)
    print(*seen, flush=True)
    sys.exit(143)
    """
    started = job(body).ready()
    assert started.process.stdout.readline() == "listening\n"
    for name in ("SIGTERM", "SIGTERM", "SIGINT", "SIGTERM", "SIGINT", "SIGUSR1"):
        os.kill(started.supervisor, getattr(signal, name))
        time.sleep(0.1)
    assert started.end() == (143, "SIGTERM SIGINT SIGUSR1\n", "")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_rank_that_does_not_listen_is_ended_by_a_forwarded_signal(job, name, code):
    started = job(SLEEP).ready()
    os.kill(started.supervisor, getattr(signal, name))
    assert started.end() == (code, "", "")


def test_a_rank_that_is_stopped_for_too_long_is_killed(job):
    started = job(SLEEP, timeout=0.6).ready()
    begin = time.monotonic()
    os.kill(started.child, signal.SIGSTOP)
    outcome = started.end()
    assert 0.6 < time.monotonic() - begin < 3
    assert outcome == (1, "", LOST.format("was stopped (SIGSTOP) for more than 0.6 s"))
    assert is_gone(started.child)


def test_a_rank_that_is_stopped_for_less_goes_on(job):
    started = job("time.sleep(3)", timeout=1.0).ready()
    for _ in range(2):  # a stop that ends is forgotten: it then runs for longer than the timeout
        os.kill(started.child, signal.SIGSTOP)
        time.sleep(0.4)
        os.kill(started.child, signal.SIGCONT)
        time.sleep(0.2)
    assert started.end() == (0, "", "")


def test_a_job_that_is_suspended_as_a_whole_goes_on(job):
    started = job("time.sleep(0.5)", timeout=1.2).ready()
    both = (started.supervisor, started.child)
    for pid in reversed(both):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2)
    for pid in both:  # the supervisor first: it sees the rank stopped, and for how long
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
    assert started.end() == (0, "", "")


def test_a_rank_whose_supervisor_is_killed_says_so_and_leaves(job):
    started = job(SLEEP).ready()
    os.kill(started.supervisor, signal.SIGKILL)
    code, _, error = started.end()
    assert code == -signal.SIGKILL
    assert error == LOST.format(
        "stopped: its supervisor (the process that mpiexec started) has ended"
    )
    assert is_gone(started.child)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's prctl")
def test_a_stopped_rank_does_not_outlive_its_supervisor(job):
    started = job(SLEEP).ready()
    os.kill(started.child, signal.SIGSTOP)
    os.kill(started.supervisor, signal.SIGKILL)
    assert "its supervisor (the process that mpiexec started) has ended" in started.end()[2]
    assert is_gone(started.child)


def test_a_rank_that_has_finished_still_reports_the_end_of_its_supervisor(job):
    started = job(f"link.report(finished=True); print('bye', flush=True); {SLEEP}").ready()
    assert started.process.stdout.readline() == "bye\n"
    os.kill(started.supervisor, signal.SIGKILL)
    assert "its supervisor (the process that mpiexec started) has ended" in started.end()[2]
    assert is_gone(started.child)


def test_nothing_is_left_when_mpiexec_is_killed():
    launcher = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[2]])"
    )
    script = CHILD.replace("TIMEOUT", "60").replace("BODY", SLEEP)
    with subprocess.Popen(
        [sys.executable, "-c", launcher, SUPERVISOR, script],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PMI_RANK": "1"},
    ) as mpiexec:  # fmt: skip
        child, supervisor = map(int, mpiexec.stdout.readline().split()[1:])
        mpiexec.kill()
        assert mpiexec.communicate(timeout=10)[1] == LOST.format("stopped: mpiexec has ended")
        assert is_gone(child)
        assert is_gone(supervisor)


def test_the_rank_inherits_file_descriptors_and_has_a_session_of_its_own(job):
    read, write = os.pipe()
    body = f"os.write({write}, b'PMI'); print(os.getsid(0) == os.getpid(), flush=True)"
    try:
        assert job(body, pass_fds=(write,)).ready().end()[1] == "True\n"
        assert os.read(read, 3) == b"PMI"
    finally:
        os.close(read)
        os.close(write)


def test_what_a_rank_starts_is_not_supervised(job):
    body = """
    import subprocess
    code = "from adfs.mpi.supervisor import is_supervised; print(is_supervised())"
    subprocess.run([sys.executable, "-c", code])
    """
    assert job(body).ready().end() == (0, "False\n", "")


@pytest.mark.parametrize(("body", "words"), [("os._exit(9)", b"cmd=abort exitcode=1\n"), ("", b"")])
def test_the_launcher_is_asked_to_end_the_job_only_when_the_rank_failed(job, body, words):
    read, write = os.pipe()
    try:
        started = job(body or "pass", pass_fds=(write,), PMI_FD=write)
        os.close(write)
        assert started.end()[0] == (1 if body else 0)
        assert os.read(read, 100) == words
    finally:
        os.close(read)


SPEAKER = """
import sys, time
from adfs.mpi.launcher import print_failure
started = time.monotonic()
print_failure("it was me.", int(sys.argv[1]))
print(time.monotonic() - started, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's abstract sockets")
def test_of_the_processes_of_one_job_only_the_first_speaks_and_the_others_let_it_finish():
    def speaker(job):
        return subprocess.Popen(
            [sys.executable, "-c", SPEAKER, str(job)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    mine, other = os.getpid(), 10**9
    with speaker(mine) as first:
        spoken = float(first.stdout.readline())
        with speaker(mine) as second, speaker(other) as third:
            waited, words = second.communicate("")
            assert words == ""
            assert float(waited) > spoken >= PAUSE  # who comes back ends the job
            assert third.communicate("")[1] == "adfs: it was me.\n"
        assert first.communicate("")[1] == "adfs: it was me.\n"


def test_the_command_line_and_the_supervisor_load_no_arithmetic_and_no_mpi():
    code = (
        "import sys, adfs.cli.commands, adfs.mpi.supervisor;"
        "print(sorted({'numpy', 'numba', 'scipy', 'mpi4py'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_many_nodes_and_peers_are_cut_short():
    peers = {rank: [3 * rank] for rank in range(12)}
    text = failure_message(RankFacts(rank=12, nodes=(7, 5, 6, 9), peers=peers), "was lost")
    assert text.startswith("rank 12 (nodes 5-7, 9) was lost, and rank 0 (node 0), rank 1 (node 3),")
    assert "rank 7 (node 21), 4 more ranks wait for it: the job ends" in text
    scattered = failure_message(RankFacts(rank=0, nodes=tuple(range(0, 40, 2))), "was lost")
    assert scattered.startswith("rank 0 (nodes 0, 2, 4, 6, 8, 10, 12, 14, ...) was lost: the job")

"""Jobs that are killed at a random moment, and what is left of them.

Used by ``tests/mpi/test_crashes.py`` and by ``benchmarks/mpi_crashes.py``.
"""

import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adfs.data.generators import two_gaussians
from support.commands import bits_of_model, here, numbers_of, rows_of_trace

N_EVENTS = {
    "logistic": 3_000_000, "hinge": 8_000_000, "dsba": 16_000, "newton": 20, "lbfgs": 400
}  # fmt: skip
WIDE = ("newton", "lbfgs")  # methods that would be done with the samples of the others in no time
N_KEPT = 50  # times that a whole run is kept
NODES = 6
CHECKPOINT = re.compile(r"checkpoint-(\d+)-\d+-of-\d+\.adfs")
LINUX = Path("/proc/self/environ").exists()


def write_samples(path):
    """Rows so badly conditioned that a run is far from its end, where wrong bits would heal."""
    X, y = two_gaussians(4_000, 8, seed=3, condition=10)
    np.savez(path, X=X, y=y)


def write_wide(path):
    """Rows that a plane separates: with little regularisation Newton's method takes 20 steps."""
    X, y = two_gaussians(3_000, 500, seed=4, separation=8.0, condition=100)
    np.savez(path, X=X, y=y)


def samples_of(home, loss):
    """The file of a run's samples."""
    return home / ("wide.npz" if loss in WIDE else "samples.npz")


def training(loss, schedule, data="samples.npz", nodes=NODES):
    """Arguments of a run of about a second, whoever executes it.

    A run of ADFS or NS-ADFS goes by the name of its loss, a run of another method by the method's.
    """
    method = [] if loss in ("logistic", "hinge") else ["--algorithm", loss]
    return [
        "train", data, "--nodes", str(nodes), "--loss", "logistic" if method else loss, *method,
        "--schedule", schedule,
        "--sigma", "1e-4", "--tol", "1e-300", "--max-iter", str(N_EVENTS[loss]), "--json",
        "--quiet",
    ]  # fmt: skip


def kept_in(folder, loss):
    """Arguments that keep it."""
    return [
        "--checkpoint",
        str(folder),
        "--checkpoint-every",
        str(max(1, N_EVENTS[loss] // N_KEPT)),
    ]


def written_as(name):
    """Arguments that write what it found."""
    return ["--out", f"{name}.npz", "--trace", f"{name}.csv"]


def found_in(name, text):
    """What a run wrote and printed, as far as it does not depend on the machine."""
    return bits_of_model(f"{name}.npz"), rows_of_trace(f"{name}.csv"), numbers_of(text)


def positions(folder):
    """Positions of which there is a checkpoint of any rank."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted({int(match[1]) for match in map(CHECKPOINT.fullmatch, names) if match})


@cache
def undisturbed(home, loss, schedule):
    """What a run finds that nobody disturbs."""
    name = home / f"{loss}-{schedule}"
    done = here(*training(loss, schedule, samples_of(home, loss)), *written_as(name))
    assert done.code == 3
    return found_in(name, done.out)


class Process(NamedTuple):
    """A process of a job; ``rank`` is what its launcher told it, ``role`` what it is."""

    pid: int
    rank: int | None
    role: str


class Job:
    """Ranks under mpiexec, of which one can be killed."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.started = time.monotonic()
        self.seen = set()

    def wait_for(self, condition, seconds=120.0):
        """Poll until it holds, or the job has ended; whether it holds."""
        until = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                return bool(condition())
            assert time.monotonic() < until, "waited in vain"
            time.sleep(0.002)
        return True

    def find(self, rank, role):
        """Number of the process of a rank: its supervisor, or the rank itself; None if gone."""
        every = processes(self.process.pid)
        self.seen |= {each.pid for each in every}
        return next((p.pid for p in every if (p.rank, p.role) == (rank, role)), None)

    def strike(self, rank, role="rank", number=signal.SIGKILL):
        """Send a signal to one process of the job; False if it is not there."""
        pid = self.find(rank, role)
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def end(self, seconds=120.0):
        """Wait for its end: exit code, stdout, stderr, and the seconds that it took."""
        begin = time.monotonic()
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err, time.monotonic() - begin

    def abandon(self):
        """End it whatever it does: a test has failed."""
        self.process.kill()
        self.process.communicate()

    def leftovers(self, seconds=10.0):
        """Processes of the job that still run some time after its end."""
        until = time.monotonic() + seconds
        while (left := [pid for pid in self.seen if is_running(pid)]) and time.monotonic() < until:
            time.sleep(0.02)
        return left


def processes(root):
    """All ranks and supervisors below a process."""
    parents, found = {}, []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (stat := state_of(folder)):
            parents[int(folder.name)] = int(stat[1])
    for pid in parents:
        ancestor = pid
        while ancestor in parents and ancestor != root:
            ancestor = parents[ancestor]
        if ancestor == root and pid != root:
            found.append(described(pid))
    return [each for each in found if each.rank is not None]


def state_of(folder):
    """State and parent of a process, among others."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def described(pid):
    """What a process is, by the environment that it was started with."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        words = []
    given = dict(word.split(b"=", 1) for word in words if b"=" in word)
    rank = given.get(b"PMI_RANK", b"")
    role = "rank" if b"ADFS_SUPERVISED" in given else "supervisor"
    return Process(pid, int(rank) if rank.isdigit() else None, role)


def is_running(pid):
    """Whether a process exists and is not just waiting to be buried."""
    stat = state_of(Path(f"/proc/{pid}"))
    return stat is not None and stat[0] != "Z"


class Plan(NamedTuple):
    """Which run is killed where and when, from a seed."""

    loss: str
    schedule: str
    size: int
    victim: int
    role: str
    position: int | None  # killed once there is a checkpoint beyond it; None: while it sets up
    delay: float
    resumed_by: int  # as many ranks; 0 is the local engine

    @classmethod
    def of(cls, seed):
        """Losses, schedules and sizes take turns, the rest is left to chance."""
        random = np.random.default_rng([seed, 42])
        size = 3 if seed % 5 == 3 else 2
        early = seed % 8 == 5
        role = "supervisor" if not early and random.random() < 0.25 else "rank"
        loss = ("logistic", "hinge")[seed // 2 % 2]
        position = None if early else int(random.uniform(0.0, 0.7) * N_EVENTS[loss])
        delay = random.uniform(0.0, 1.0) if early else random.uniform(0.0, 0.02)
        return cls(
            loss, ("auto", "poisson")[seed % 2], size, int(random.integers(size)), role, position,
            float(delay), (size, 0, 0, 5 - size)[random.integers(4)],
        )  # fmt: skip


def crash(plan, job, folder):
    """Kill one process of a running job at the planned moment; whether it was there to be killed.

    A rank that is to die early is killed some time after it was started, whatever it does then.
    """
    if plan.position is None:
        job.wait_for(lambda: job.find(plan.victim, "rank"))
    else:
        job.wait_for(lambda: any(at > plan.position for at in positions(folder)))
    time.sleep(plan.delay)
    return job.strike(plan.victim, plan.role)


class Runs:
    """Starts one training, on ranks or here, and compares what it finds.

    ``command`` makes the command line for so many ranks of a Python with some arguments; ``home``
    has the samples, ``folder`` gets what is kept and written.
    """

    def __init__(self, command, home, folder, loss, schedule):
        self.command, self.folder, self.loss = command, folder, loss
        self.expected = undisturbed(home, loss, schedule)
        self.kept = folder / "kept"
        self.jobs = []
        self.arguments = [
            *training(loss, schedule, samples_of(home, loss)), *kept_in(self.kept, loss)
        ]  # fmt: skip

    def start(self, size, *more):
        """As ranks; 0 of them is the local engine, in a process of its own."""
        given = [*self.arguments, *written_as(self.folder / "killed"), *more]
        if size == 0:
            return self.adopt([sys.executable, "-m", "adfs", *given])
        return self.adopt(self.command(size, "-m", "adfs", *given, "--engine", "mpi"))

    def resume(self, size, *more):
        """Go on to the end; exit code, what it said on stderr, and whether the bits are right."""
        given = [*self.arguments, "--resume", *written_as(self.folder / "resumed"), *more]
        if size == 0:
            done = here(*given)
            code, out, err = done.code, done.out, done.err
        else:
            job = self.adopt(self.command(size, "-m", "adfs", *given, "--engine", "mpi"))
            code, out, err, _ = job.end(300)
        return code, err, out and found_in(self.folder / "resumed", out) == self.expected

    def adopt(self, command):
        """Start a job that is ended with this."""
        self.jobs.append(Job(list(map(str, command))))
        return self.jobs[-1]

    def close(self):
        """Leave no process behind."""
        for job in self.jobs:
            if job.process.returncode is None:
                job.abandon()

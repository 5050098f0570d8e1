"""Kill a random rank at a random moment, resume, compare bits: over and over.

    python benchmarks/mpi_crashes.py [--kills 200] [--seed 0]

The loop of ``tests/mpi/test_crashes.py``, with more methods and moments. A kill is of a rank or of
the process that supervises it, with two or three ranks. Methods (ADFS with both schedules, NS-ADFS,
DSBA, Newton, L-BFGS) and phases take turns:

- set-up: some time after the rank was started, whatever it does then;
- loop: once it has saved a random position;
- saving: while the rank writes a checkpoint;
- end: after the last checkpoint, when results are gathered and written.

The run is taken up by as many ranks, by another number of them, or by one process, and must write
the model, trace and numbers of a run that nobody disturbed. Then: a disk that is full (a small
tmpfs, where one can be mounted), and a second job on the folder of a first one, which must be
refused with exit code 2 and harm nobody. Exit code 1 if anything went wrong.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np

from adfs.storage import temporary_of
from support.crashes import (
    CHECKPOINT,
    N_EVENTS,
    Plan,
    Runs,
    crash,
    found_in,
    positions,
    write_samples,
    write_wide,
    written_as,
)

WORKLOADS = {"logistic": "adfs", "dsba": "dsba", "newton": "newton", "lbfgs": "lbfgs",
             "hinge": "ns-adfs"}  # fmt: skip
PHASES = ("loop", "saving", "set-up", "end")
HEAD = (
    f"{'seed':>5} {'ranks':>5} {'killed':<12} {'method':<8} {'schedule':<8} {'phase':<7} {'at':>5} "
)
HEAD += f"{'exit':>4} {'ended in':>9} {'left':>4} {'resumed by':<10} {'from':>5}  bits"


class Kill(NamedTuple):
    """What is killed, and in which phase."""

    plan: Plan
    phase: str

    @classmethod
    def of(cls, seed):
        """Methods and phases take turns, the rest is left to chance."""
        random = np.random.default_rng([seed, 43])
        workload = list(WORKLOADS)[seed % len(WORKLOADS)]
        phase = PHASES[seed % len(PHASES)]
        n_events, size = N_EVENTS[workload], int(random.choice([2, 2, 3]))
        position = {"set-up": None, "end": int(0.97 * n_events)}.get(
            phase, int(random.uniform(0.0, 0.7) * n_events)
        )
        longest = {"set-up": 1.0, "end": 0.1}.get(phase, 0.02)
        role = "supervisor" if phase in ("loop", "end") and random.random() < 0.25 else "rank"
        poisson = workload in ("logistic", "hinge") and random.random() < 0.5
        plan = Plan(
            workload, "poisson" if poisson else "shared", size, int(random.integers(size)), role,
            position, float(random.uniform(0.0, longest)),
            (size, 0, 0, 5 - size)[random.integers(4)],
        )  # fmt: skip
        return cls(plan, phase)


def command(size, *arguments):
    """The command line for so many ranks of this Python."""
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        sys.exit("needs mpiexec: pip install '.[mpi]'")
    return [launcher, "-n", str(size), sys.executable, *map(str, arguments)]


def half_written(folder, rank=None):
    """Whether there is a checkpoint that some rank, or this one, has begun to write."""
    for text in os.listdir(folder) if folder.exists() else ():
        match = CHECKPOINT.fullmatch(temporary_of(text) or "")
        if match and (rank is None or f"-{rank}-of-" in text):
            return True
    return False


def crash_while_saving(plan, job, folder):
    """Kill a rank when the file that it writes is seen; whether it was there to be killed."""
    job.wait_for(lambda: any(at > plan.position for at in positions(folder)))
    pid = job.find(plan.victim, plan.role)  # to search for it takes longer than to write a file
    while pid is None or not half_written(folder, plan.victim):
        if pid is None or job.process.poll() is not None:
            return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def kill_and_resume(seed, home):
    """One kill; a row of what happened, None where the run ended before it could be killed."""
    plan, phase = kill = Kill.of(seed)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        run = Runs(command, home, Path(folder), plan.loss, plan.schedule)
        job = run.start(plan.size)
        hit = (crash_while_saving if phase == "saving" else crash)(plan, job, run.kept)
        code, out, err, seconds = job.end()
        if code == 3 and (not hit or phase == "end"):  # the end of its budget: killed too late
            return None
        if not hit:
            sys.exit(f"seed {seed}: the run failed before it was killed:\n{err}")
        over = was_over(run, out)
        left, at, torn = len(job.leftovers()), positions(run.kept), half_written(run.kept)
        resumed, told, same = run.resume(plan.resumed_by)
    share = 1.0 / N_EVENTS[plan.loss]
    row = {
        "kill": kill, "exit": code, "seconds": seconds, "left": left, "torn": torn,
        "at": None if plan.position is None else plan.position * share,
        "from": at[-1] * share if at and "continued from" in told else 0.0,
        "named": names_once(err, plan.victim) or over, "same": bool(same) and resumed == 3,
    }  # fmt: skip
    if not is_good(row):
        print(f"seed {seed}, exit code {code}:\n{err}\nresumed with {resumed}:\n{told}")
    return row


def names_once(err, rank):
    """Whether one message, and no other, says which rank was lost."""
    ours = [line for line in err.splitlines() if line.startswith("adfs: rank ")]
    return len(ours) == 1 and ours[0].startswith(f"adfs: rank {rank} ")


def was_over(run, out):
    """Whether everything had been written and printed when the process was killed."""
    printed = [line for line in out.splitlines() if line.startswith("{")]  # mpiexec adds a banner
    return bool(printed) and found_in(run.folder / "killed", printed[0]) == run.expected


def shown(seed, row):
    """A row as a line of the table."""
    plan, phase = row["kill"]
    at = "" if row["at"] is None else f"{row['at']:.0%}"
    by = f"{plan.resumed_by} ranks" if plan.resumed_by else "one process"
    verdict = ("same" if row["same"] else "DIFFERENT") + ("" if row["named"] else ", NOT NAMED")
    return (
        f"{seed:>5} {plan.size:>5} {plan.role + f' {plan.victim}':<12} {WORKLOADS[plan.loss]:<8} "
        f"{plan.schedule:<8} {phase:<7} {at:>5} {row['exit']:>4} {row['seconds']:>7.2f} s "
        f"{row['left']:>4} {by:<11} {row['from']:>5.0%}  {verdict}"
    )


def is_good(row):
    """Whether a kill cost nothing: named, ended soon, nobody left behind, the same bits."""
    return row["same"] and row["named"] and row["exit"] not in (0, 2, 3) and not row["left"]


def full_disk(home, workload):
    """What goes wrong on a disk that fills up: a list of faults; None where none can be mounted.

    The disk has room for one position and a half. The run has to go on and end with the right
    bits; one that is killed there is resumed from what was saved before, once there is more room.
    """
    with tempfile.TemporaryDirectory(dir=home) as name:
        run = Runs(command, home, Path(name), workload, "shared")
        run.kept.mkdir()
        probe = run.start(2)
        probe.wait_for(lambda: positions(run.kept))
        probe.process.terminate()
        probe.end()
        last = positions(run.kept)[-1]
        size = sum(file.stat().st_size for file in run.kept.glob(f"checkpoint-{last:012}-*"))
        shutil.rmtree(run.kept)
        run.kept.mkdir()
        mounted = mount(run.kept, f"size={3 * size // 2 // 4096 * 4096 + 4096}")
        if not mounted:
            return None
        try:
            return _on_full_disk(run)
        finally:
            subprocess.run(["umount", "-l", str(run.kept)], check=True)


def mount(folder, options):
    """A disk in memory; whether we may."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], capture_output=True,
        check=False,
    )  # fmt: skip
    return done.returncode == 0


def _on_full_disk(run):
    faults = []
    job = run.start(2)
    code, out, err, _ = job.end()
    if code != 3 or found_in(run.folder / "killed", out) != run.expected:
        faults.append(f"the run did not end with the right bits (exit {code}): {err}")
    if "could not be written: No space left on device" not in err or "-of-2.adfs" not in err:
        faults.append(f"no message says which rank could not save: {err}")
    for file in run.kept.iterdir():
        file.unlink()
    job = run.start(2)
    job.wait_for(lambda: positions(run.kept))
    time.sleep(0.02)
    hit = job.strike(1)
    code, _, err, _ = job.end()
    if not hit:
        faults.append("the run ended before it was killed: not tested")
    elif not names_once(err, 1):
        faults.append(f"killed on a full disk, rank 1 is not named: {err}")
    subprocess.run(["mount", "-o", "remount,size=256m", str(run.kept)], check=True)
    code, err, same = run.resume(2)
    if code != 3 or not same:
        faults.append(f"resumed to other bits (exit {code}): {err}")
    return faults


def two_jobs(home, workload):
    """What goes wrong with a second job on the folder of a first one: a list of faults."""
    faults = []
    with tempfile.TemporaryDirectory(dir=home) as name:
        run = Runs(command, home, Path(name), workload, "shared")
        first = run.start(2)
        first.wait_for(lambda: positions(run.kept))
        first.strike(0, number=signal.SIGSTOP)  # so that it is there as long as the second is
        second = run.adopt(
            command(2, "-m", "adfs", *run.arguments, "--resume",
                    *written_as(run.folder / "second"), "--engine", "mpi")
        )  # fmt: skip
        code, _, err, _ = second.end()
        ours = [line for line in err.splitlines() if line.startswith("adfs: ")]
        if not first.strike(0, number=signal.SIGCONT):
            faults.append("the first job ended before the second was there: not tested")
        elif code != 2 or len(ours) != 1 or "is in use by another run" not in ours[0]:
            faults.append(f"the second job was not refused (exit {code}): {err}")
        code, out, err, _ = first.end()
        if code != 3 or found_in(run.folder / "killed", out) != run.expected:
            faults.append(f"the first job was harmed (exit {code}): {err}")
    return faults


def kills(n_kills, seed, home):
    """So many kills, as rows."""
    rows, tried, begin = [], 0, time.monotonic()
    print(HEAD)
    while len(rows) < n_kills:
        row = kill_and_resume(seed + tried, home)
        late = f"{seed + tried:>5} ended before it was killed"
        print(late if row is None else shown(seed + tried, row), flush=True)
        rows += [] if row is None else [row]
        tried += 1
    good = sum(map(is_good, rows))
    spread = Counter((WORKLOADS[row["kill"].plan.loss], row["kill"].phase) for row in rows)
    print(
        f"{good} of {len(rows)} kills cost nothing ({tried - len(rows)} runs ended before; "
        f"{sum(row['torn'] for row in rows)} left a half-written checkpoint); slowest end "
        f"{max(row['seconds'] for row in rows):.2f} s; {time.monotonic() - begin:.0f} s in all"
    )
    print(", ".join(f"{method} {phase} {n}" for (method, phase), n in sorted(spread.items())))
    return good == len(rows)


def main():
    """Kill as often as asked, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_samples(home / "samples.npz")
        write_wide(home / "wide.npz")
        good = kills(args.kills, args.seed, home) if args.kills else True
        for workload, method in WORKLOADS.items():
            for what, test in (("a full disk", full_disk), ("two jobs on a folder", two_jobs)):
                faults = test(home, workload)
                told = "cannot mount a small disk here" if faults is None else "; ".join(faults)
                print(f"{what}, {method}: {told or 'as it should be'}", flush=True)
                good = good and not faults
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

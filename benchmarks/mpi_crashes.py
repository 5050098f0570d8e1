"""Kill a random rank at a random moment, resume, compare bits: over and over.

    python benchmarks/mpi_crashes.py [--times 200] [--seed 0]

The loop of ``tests/mpi/test_crashes.py``, which goes through it 25 times. A kill is of a rank or of
the process that supervises it, while two or three ranks set up or anywhere in the run; both
schedules, a smooth loss and one that is not. The run is taken up by as many ranks, by another
number of them, or by the local engine, and must write the model, trace and numbers of a run that
nobody disturbed. Exit code 1 if one did not.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from crashes_for_tests import N_EVENTS, Plan, Runs, crash, positions, write_samples

HEAD = f"{'seed':>5} {'ranks':>5} {'killed':<12} {'loss':<9} {'schedule':<8} {'at':>5} {'exit':>4} "
HEAD += f"{'ended in':>9} {'left':>4} {'resumed by':<10} {'from':>5}  bits"


def command(size, *arguments):
    """The command line for so many ranks of this Python."""
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        sys.exit("needs mpiexec: pip install 'adfs[mpi]'")
    return [launcher, "-n", str(size), sys.executable, *map(str, arguments)]


def kill_and_resume(seed, home):
    """One kill; a row of what happened, None where the run ended before it could be killed."""
    plan = Plan.of(seed)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        run = Runs(command, home, Path(folder), plan.loss, plan.schedule)
        job = run.start(plan.size)
        hit = crash(plan, job, run.kept)
        code, _, err, seconds = job.end()
        if not hit and code == 3:  # the end of its budget: killed too late
            return None
        if not hit:
            sys.exit(f"seed {seed}: the run failed before it was killed:\n{err}")
        left, at = len(job.leftovers()), positions(run.kept)
        resumed, told, same = run.resume(plan.resumed_by)
    share = 1.0 / N_EVENTS[plan.loss]
    spoken = [line for line in err.splitlines() if line.startswith(f"adfs: rank {plan.victim} ")]
    return {
        "plan": plan, "exit": code, "seconds": seconds, "left": left,
        "at": None if plan.position is None else plan.position * share,
        "from": at[-1] * share if at and "went on from" in told else 0.0,
        "named": len(spoken) == 1, "same": bool(same) and resumed == 3,
    }  # fmt: skip


def shown(seed, row):
    """A row as a line of the table."""
    plan = row["plan"]
    at = "setup" if row["at"] is None else f"{row['at']:.0%}"
    by = f"{plan.resumed_by} ranks" if plan.resumed_by else "local"
    verdict = ("same" if row["same"] else "DIFFERENT") + ("" if row["named"] else ", NOT NAMED")
    return (
        f"{seed:>5} {plan.size:>5} {plan.role + f' {plan.victim}':<12} {plan.loss:<9} "
        f"{plan.schedule:<8} {at:>5} {row['exit']:>4} {row['seconds']:>7.2f} s {row['left']:>4} "
        f"{by:<10} {row['from']:>5.0%}  {verdict}"
    )


def is_good(row):
    """Whether a kill cost nothing: named, ended soon, nobody left behind, the same bits."""
    return row["same"] and row["named"] and row["exit"] not in (0, 2, 3) and not row["left"]


def main():
    """Kill as often as asked, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    args = parser.parse_args()
    rows, tried, begin = [], 0, time.monotonic()
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder) / "samples.npz")
        while len(rows) < args.times:
            seed, tried = args.seed + tried, tried + 1
            row = kill_and_resume(seed, Path(folder))
            print(f"{seed:>5} ended before it was killed" if row is None else shown(seed, row),
                  flush=True)  # fmt: skip
            rows += [] if row is None else [row]
    good = sum(map(is_good, rows))
    print(
        f"{good} of {len(rows)} kills cost nothing ({tried - len(rows)} runs ended before); "
        f"slowest end {max(row['seconds'] for row in rows):.2f} s; "
        f"{time.monotonic() - begin:.0f} s in all"
    )
    return int(good < len(rows))


if __name__ == "__main__":
    sys.exit(main())

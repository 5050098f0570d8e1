"""The speed of this working tree beside that of another commit, as ratios within one run.

    python benchmarks/before_after.py --old /path/to/old/.venv/bin/python

Three processes take part: one of the old code, one of the new, and a second one of the old code as
the control. In each turn all of them time the same call, in an order that changes from turn to
turn, and what counts is the median over turns of new/old. old/old of the control says what this
machine can resolve: where its quartiles leave the limit, there is no verdict. All processes are
replaced after some turns, because the same code can be 7 % slower for the whole life of a process,
depending on which pages of memory it was given. Then trainings on one and on two ranks take turns
in the same way. Exit code 1 where something became slower.

``PYTHONPATH`` is passed on to the new interpreter only, so that one virtual environment can serve
both: the old code is what is installed there, the new what the path names.
"""

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import (
    ONE_THREAD,
    busy_cores,
    machine,
    print_head,
    print_row,
    rank_command,
    wait_until_quiet,
    write_record,
)

WORKER = Path(__file__).with_name("before_after_worker.py")
SIDES = ("old", "new", "control")
ORDERS = list(itertools.permutations(SIDES))
EVENT_LIMIT, ROUND_LIMIT = 1.03, 1.10  # of new/old
SECONDS = 0.08  # a timed call, about
TURNS_OF_A_LIFE = 3  # after which all processes are replaced
CALLS = 3  # timed calls of a turn, of which the least counts: disturbances only ever add
RANK_SAMPLES, RANK_EVENTS, RANK_NODES = 200_000, 4_000_000, 4
LONGEST_WAIT = 10.0  # seconds to wait for other work on this machine, before ranks start
STOPPED = 3  # exit code of a training that ends at --max-iter


def environment_of(side):
    """One thread for BLAS; ``PYTHONPATH`` is only for the new code."""
    environment = os.environ | ONE_THREAD
    if side != "new":
        environment.pop("PYTHONPATH", None)
    return environment


class Side:
    """A worker process of one interpreter, and the trainings that interpreter starts."""

    def __init__(self, name, python):
        self.name, self.python = name, python
        self.process = subprocess.Popen(
            [python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment_of(name),
        )  # fmt: skip

    def ask(self, do, **words):
        """What the worker answers."""
        self.process.stdin.write(json.dumps({"do": do, **words}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the worker of {self.python} has ended; see above")
        return json.loads(answer)

    def close(self):
        """End the worker."""
        self.process.stdin.close()
        self.process.wait()

    @property
    def mpiexec(self):
        """The launcher beside this interpreter."""
        return Path(self.python).with_name("mpiexec")

    def train(self, n_ranks, path):
        """Seconds in the loop of a training, each rank bound to a core of its own."""
        words = [
            self.python, "-m", "adfs", "train", path, "--json", "--engine", "mpi", "--quiet",
            "--algorithm", "adfs", "--parameters", "paper", "--nodes", str(RANK_NODES), "--tol",
            "1e-300", "--max-iter", str(RANK_EVENTS), "--evaluate-every", str(10 * RANK_EVENTS),
            "--sigma", "1",
        ]  # fmt: skip
        command = rank_command(self.mpiexec, n_ranks, *words)
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment_of(self.name),
            cwd=Path(path).parent, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if done.returncode != STOPPED:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        return json.loads(done.stdout)["wall_time"]


def calibrated(side, task, seconds):
    """Iterations that take about ``seconds`` there."""
    iterations = 1
    while (took := side.ask("solve", task=task, iterations=iterations)["seconds"]) < seconds / 8:
        iterations *= 4
    return max(1, round(iterations * seconds / took))


def measure(sides, task, iterations, turns):
    """Times of a task, after a first turn that is not kept."""

    def time_of(name):
        return sides[name].ask("solve", task=task, iterations=iterations)["each"]

    take_turns(time_of, range(1))
    return take_turns(time_of, turns, CALLS)


def take_turns(time_of, turns, calls=1):
    """Times of all sides, one entry per turn: the least of some calls."""
    times = {name: [] for name in SIDES}
    for turn in turns:
        order = ORDERS[turn % len(ORDERS)]
        seen = [[time_of(name) for name in order] for _ in range(calls)]
        for name, each in zip(order, zip(*seen, strict=True), strict=True):
            times[name].append(min(each))
    return times


def measure_all(pythons, tasks, n_turns, seconds):
    """A row for each task; the processes live for `TURNS_OF_A_LIFE` turns."""
    times = {task: {name: [] for name in SIDES} for task in tasks}
    iterations = {}
    for first in range(0, n_turns, TURNS_OF_A_LIFE):
        turns = range(first, min(n_turns, first + TURNS_OF_A_LIFE))
        with living(pythons) as sides:
            for task in tasks:
                if task not in iterations:
                    iterations[task] = calibrated(sides["old"], task, seconds)
                for name, more in measure(sides, task, iterations[task], turns).items():
                    times[task][name] += more
        print(f"{turns.stop} of {n_turns} turns", file=sys.stderr, flush=True)
    return [
        compared(task, times[task], EVENT_LIMIT if "event" in task else ROUND_LIMIT)
        | {"iterations": iterations[task]}
        for task in tasks
    ]


@contextlib.contextmanager
def living(pythons):
    """A process of each side, until the context is left."""
    sides = {name: Side(name, python) for name, python in pythons.items()}
    try:
        yield sides
    finally:
        for side in sides.values():
            side.close()


def compared(name, times, limit):
    """Medians, ratios within turns with their quartiles, and the verdict."""
    old, new, control = (np.array(times[side]) for side in SIDES)
    ratio = np.quantile(new / old, [0.5, 0.25, 0.75]).tolist()
    noise = np.quantile(control / old, [0.5, 0.25, 0.75]).tolist()
    return {
        "name": name, "old": float(np.median(old)), "new": float(np.median(new)), "ratio": ratio,
        "control": noise, "limit": limit, "verdict": verdict(ratio, noise, limit), "times": times,
    }  # fmt: skip


def verdict(ratio, noise, limit):
    """``ok`` or ``slower``, or that the control is too noisy to tell."""
    if noise[1] < 1 / limit or noise[2] > limit:
        return "not measurable"
    return "ok" if ratio[0] <= limit else "slower"


def measure_ranks(sides, turns):
    """Rows for one rank, two ranks and their quotient; none where mpiexec is missing."""
    missing = [side.python for side in sides.values() if not side.mpiexec.exists()]
    if missing:
        print(f"ranks: not measured, no mpiexec beside {missing[0]}")
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npz")
        sides["old"].ask("save", path=path, n_samples=RANK_SAMPLES)

        def train(name):
            wait_until_quiet(LONGEST_WAIT)
            return [sides[name].train(n_ranks, path) for n_ranks in (1, 2)]

        pairs = take_turns(train, range(turns))
    parts = {
        "training on 1 rank": lambda one, two: one,
        "training on 2 ranks": lambda one, two: two,
        "2 ranks / 1 rank": lambda one, two: two / one,
    }
    return [
        compared(name, {side: [part(*pair) for pair in pairs[side]] for side in SIDES}, EVENT_LIMIT)
        for name, part in parts.items()
    ]


def show(row):
    """Print a line of the table."""

    def quartiles(values):
        return f"{values[0]:.3f} ({values[1]:.3f} to {values[2]:.3f})"

    cells = [row["name"], *(amount(row, side) for side in ("old", "new")), quartiles(row["ratio"]),
             quartiles(row["control"]), f"{row['limit']:.2f}", row["verdict"]]  # fmt: skip
    print_row(*cells)


def amount(row, side):
    """A time in its unit, or a quotient of times."""
    value = row[side]
    if "/" in row["name"]:
        return f"{value:.3f}"
    unit, factor = next((u, f) for u, f in (("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
                        if value * f >= 1 or u == "ns")  # fmt: skip
    return f"{value * factor:.3g} {unit}"


def provenance(sides):
    """The machine and both versions of the code, as a dict for JSON."""
    abouts = {name: side.ask("about") for name, side in sides.items()}  # waits until all are there
    return {**machine(), "busy_cores": busy_cores(), **abouts}


def run(pythons, options):
    """Print the table; returns provenance and rows."""
    with living(pythons) as sides:
        record = {"provenance": provenance(sides), "rows": []}
    for name in ("old", "new"):
        about = record["provenance"][name]
        print(f"{name}: {about['commit']}, {about['source']}, {about['versions']}")
    print(f"{record['provenance']['cpu']}, {record['provenance']['busy_cores']:.2f} cores in use")
    print_head("what", "old", "new", "new/old (quartiles)", "old/old (quartiles)", "limit",
               "verdict")  # fmt: skip
    tasks = [task for task in record["provenance"]["old"]["tasks"] if options.only in task]
    rows = measure_all(pythons, tasks, options.turns, options.seconds) if tasks else []
    for row in rows:
        show(row)
    if options.only in "ranks":
        with living(pythons) as sides:
            for row in measure_ranks(sides, options.rank_turns):
                rows.append(row)
                show(row)
    return record | {"rows": rows}


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", required=True, help="Python that has the other commit installed")
    parser.add_argument("--new", default=sys.executable, help="Python of this tree (default: this)")
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--rank-turns", type=int, default=7, help="turns of trainings on ranks")
    parser.add_argument("--quick", action="store_true", help="few short turns, to try it out")
    parser.add_argument("--only", default="", help="part of a row's name, or ranks")
    parser.add_argument("--json", metavar="FILE", help="write everything here as well")
    options = parser.parse_args()
    options.seconds = SECONDS
    if options.quick:
        options.turns, options.rank_turns, options.seconds = 6, 2, 0.05
    return options


def main():
    """Measure, print, write; returns the exit code."""
    options = read_options()
    pythons = {"old": options.old, "new": options.new, "control": options.old}
    record = run(pythons, options)
    if options.json:
        write_record(options.json, record)
    return int(any(row["verdict"] == "slower" for row in record["rows"]))


if __name__ == "__main__":
    sys.exit(main())

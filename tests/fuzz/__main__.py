"""``python -m fuzz --seconds 60 --seed 1``: new cases; ``python -m fuzz FILE ...``: those again."""

import argparse
import gc
import itertools
import json
import multiprocessing
import os
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # before NumPy is loaded: threads do not survive a fork

from fuzz import sandbox, shrinking, targets, warmth  # noqa: E402
from fuzz.case import Case  # noqa: E402

ENDS = {0: "done", 1: "memory", 2: "refused", 3: "stopped"}
WORKERS = 2


class Failure(NamedTuple):
    """A case that broke the contract: its number, its cause, and the words for it."""

    target: str
    number: int
    cause: str
    detail: str


def main():
    args = _arguments()
    if args.files:
        return _run_files(args.files)
    started = time.monotonic()
    warmth.warm_up()
    gc.freeze()
    seconds = time.monotonic() - started
    print(f"fuzz: seed {args.seed}, everything loaded in {seconds:.1f} s", flush=True)
    names = args.target or list(targets.TARGETS)
    plan = [(names, args.seed, worker, args.seconds) for worker in range(WORKERS)]
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        parts = pool.starmap(_work, plan)
    counts, failures = Counter(), []
    for counted, failed in parts:
        counts.update(counted)
        failures.extend(failed)
    print(_table(counts))
    _report(failures, args)
    return 1 if failures else 0


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="cases to run again")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds to make failures small")
    parser.add_argument("--target", action="append", choices=list(targets.TARGETS))
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"), help="folder for failures")
    return parser.parse_args()


def _run_files(paths):
    """One JSON object: the faults of each file."""
    warmth.warm_up(("dense",))
    gc.freeze()
    found = {}
    with sandbox.folder_for_cases() as folder:
        for path in paths:
            case = Case.load(path)
            outcome = sandbox.run(case, folder)
            found[path] = [fault.detail for fault in targets.faults(case, outcome)]
    print(json.dumps(found, indent=1))
    return 1 if any(found.values()) else 0


def _work(names, seed, worker, seconds):
    """Every second case of all targets in turn, until the time is up."""
    counts, failures = Counter(), []
    end = time.monotonic() + seconds
    with sandbox.folder_for_cases() as folder:
        for number in itertools.count(worker, WORKERS):
            for target in names:
                if time.monotonic() > end:
                    return counts, failures
                if number // WORKERS % getattr(targets.TARGETS[target], "EVERY", 1):
                    continue
                case = targets.draw(target, seed, number)
                outcome = sandbox.run(case, folder)
                faults = targets.faults(case, outcome)
                counts[target, "failed" if faults else ENDS[outcome.code]] += 1
                failures += [Failure(target, number, *fault) for fault in faults]


def _table(counts):
    heads = ("cases", *ENDS.values(), "failed")
    rows = [("target", *heads)]
    for target in dict.fromkeys(name for name, _ in counts):
        each = [counts[target, end] for end in heads[1:]]
        rows.append((target, sum(each), *each))
    rows.append(("all", *(sum(row[k] for row in rows[1:]) for k in range(1, len(heads) + 1))))
    return "\n".join(f"{row[0]:12}" + "".join(f"{cell:>9}" for cell in row[1:]) for row in rows)


def _report(failures, args):
    """One failure per cause, shrunk and written to a file."""
    by_cause = defaultdict(list)
    for failure in sorted(failures, key=lambda each: each.number):
        by_cause[failure.target, failure.cause].append(failure)
    for (target, cause), found in by_cause.items():
        path = args.out / f"{target}-{args.seed}-{found[0].number}.json"
        _shrunk(found[0], args.seed, args.shrink / len(by_cause)).save(path)
        print(f"\n{target}: {cause} ({len(found)} cases, such as number {found[0].number})")
        print(f"  {found[0].detail.strip()[-600:]}\n  python -m fuzz {path}", flush=True)


def _shrunk(failure, seed, seconds):
    with sandbox.folder_for_cases() as folder:

        def fails(case):
            try:
                found = targets.faults(case, sandbox.run(case, folder))
            except Exception:  # less than a case: nothing that a target would make
                return False
            return failure.cause in (fault.cause for fault in found)

        return shrinking.shrunk(targets.draw(failure.target, seed, failure.number), fails, seconds)


if __name__ == "__main__":
    sys.exit(main())

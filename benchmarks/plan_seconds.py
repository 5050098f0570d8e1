"""Plans beside runs on two ranks, in seconds: predictions, and the regret of `algorithm="best"`.

Four nodes on two ranks, each on a core of its own, to a relative gap of 1e-6. Seconds are predicted
on the two ranks, from a few steps of every method (``time_steps``). ``seconds`` of a run are
those from rows in memory to the certified model, plan and pilots of `best` included; predictions
are compared with those of the loop. The shortest of ``TURNS`` runs counts, and what takes more than
four times as long as `best` is cut.
"""

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np
import on_ranks
from common import print_head, print_row, provenance, write_record

import adfs
from adfs.data.npz import save_npz

# Data set, rows at most, regularisation in total.
SETTINGS = (
    ("higgs", None, 4.0),
    ("covtype", None, 4.0),
    ("a9a", None, 1.0),
    ("reuters-money-fx", None, 1.0),
    ("mushrooms", None, 1.0),
    ("breast-cancer", None, 1.0),
    ("higgs", None, 0.04),
    ("covtype", 50_000, 0.04),
    ("a9a", None, 0.1),
    ("reuters-money-fx", None, 0.1),
)
JUDGED = ("adfs", "newton", "lbfgs", "katyusha", "msda")  # of which seconds are predicted
PLANNED = 4  # the first so many settings
TOL, N_NODES, N_RANKS = 1e-6, 4, 2
TURNS, CUT, SHORTEST = 3, 4.0, 0.5
LONGEST = 60.0  # a run for the sake of its prediction


def told(name, limit, **others):
    """Arguments of one run."""
    schedule = "stratified" if name == "adfs" else "auto"
    limits = {"time_limit": limit, "max_iter": 1 << 60}
    return {"algorithm": name, "tol": TOL, "schedule": schedule, **limits, **others}


def run(name, limit, sigma, is_judged):
    """One row: predicted and measured seconds of every method, and those of `best`."""
    X, y = adfs.datasets.load(name)
    X, y = X[:limit], np.where(y[:limit] == np.max(y), 1.0, -1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npz")
        save_npz(path, X, y)
        plan = on_ranks.plan(N_RANKS, path, N_NODES, sigma, tol=TOL, time_steps=True)
        predicted = {each["algorithm"]: each["seconds"] for each in plan["predictions"]}
        ideal = {each["algorithm"]: each["idealized_time"] for each in plan["predictions"]}
        best = on_ranks.solve(N_RANKS, path, N_NODES, sigma, [told("best", LONGEST)] * TURNS)
        most = max(SHORTEST, CUT * shortest(best, "seconds"))
        runs = []
        for other in predicted:
            judged = is_judged and other in JUDGED
            turns = 1 if other == "msda" else TURNS  # it takes long
            runs += [told(other, max(most, LONGEST if judged else 0.0))] * turns
        found = on_ranks.solve(N_RANKS, path, N_NODES, sigma, runs)
    measured = {}
    for each, result in zip(runs, found, strict=True):
        measured.setdefault(each["algorithm"], []).append(result)
    return {
        "data": name, "rows": len(y), "sigma": sigma, "predicted": predicted, "ideal": ideal,
        "loop": {each: shortest(results, "wall_time") for each, results in measured.items()},
        "idealized": {each: shortest(results, "idealized") for each, results in measured.items()},
        "seconds": {each: shortest(results, "seconds") for each, results in measured.items()},
        "best": shortest(best, "seconds"), "took": best[0]["algorithm"], "judged": is_judged,
        "others": max(each["others"] for each in best + found),
    }  # fmt: skip


def shortest(results, what):
    """Least seconds of the runs that converged; inf if none did."""
    return min((each[what] for each in results if each["status"] == "converged"), default=math.inf)


def show(row):
    fastest = min(row["seconds"], key=row["seconds"].get)
    cells = []
    for name in JUDGED:
        measured, predicted = row["loop"].get(name, math.inf), row["predicted"].get(name)
        if predicted is None or not math.isfinite(measured):
            cells.append("-")
            continue
        ideal = row["ideal"][name] / row["idealized"][name]
        cells.append(f"{predicted / measured:.2f} ({measured:.3f} s, idealized {ideal:.2f})")
    print_row(
        row["data"], f"{row['sigma']:g}", fastest,
        f"{row['seconds'][fastest]:.3f}", row["took"], f"{row['best']:.3f}",
        f"{row['best'] / min(row['best'], row['seconds'][fastest]):.2f}", *cells,
        f"{row['others']:.2f}",
    )  # fmt: skip


def main(path=None, only=None):
    """Print a row per setting and the summary; returns the rows."""
    rows = []
    heads = [f"{name}: predicted / loop" for name in JUDGED]
    print_head("data", "sigma", "fastest", "s", "best took", "s", "regret", *heads, "others")
    for number, setting in enumerate(SETTINGS):
        if only in (None, setting[0]):
            rows.append(run(*setting, number < PLANNED))
            show(rows[-1])
            if path is not None:
                write_record(path, {"provenance": provenance(), "rows": rows})
    regrets = [row["best"] / min(row["best"], *row["seconds"].values()) for row in rows]
    print(f"regret: median {np.median(regrets):.2f}, most {max(regrets):.2f}")
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", help="write all rows to this JSON file")
    parser.add_argument("--data", help="only this data set")
    options = parser.parse_args()
    main(options.keep, options.data)

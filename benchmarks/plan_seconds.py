"""Plans beside runs on two ranks, in seconds: predictions, and the regret of `algorithm="best"`.

Four nodes on two ranks, each on a core of its own, to a relative gap of 1e-6. Seconds are predicted
with measured costs and with the time of an exchange between the two ranks. ``seconds`` of a run are
those from rows in memory to the certified model, plan and pilots of `best` included; predictions
are compared with those of the loop. The shortest of ``TURNS`` runs counts, and what takes more than
four times as long as `best` is cut.
"""

import argparse
import json
import math
import tempfile
from pathlib import Path

import numpy as np
from common import print_head, print_row, provenance, write_record
from on_ranks import launch, solve

import adfs
from adfs.algorithms.base import ONE_MACHINE
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


def exchange_times():
    """Seconds of an exchange: latency, and seconds per byte."""
    program = "from adfs.cli.main import main; main()"
    found = json.loads(launch(N_RANKS, "-c", program, "info", "--mpi", "--json"))["mpi"]
    bandwidth = found["bandwidth_gb_s"]
    return 1e-6 * found["latency_us"], 0.0 if bandwidth is None else 1e-9 / bandwidth


def measured_plan(problem, exchange):
    """The plan with measured costs, and ``tau`` from the time of an exchange of d + 1 numbers."""
    costs = adfs.Costs.measured()
    prox = float(costs.of(problem).seconds.max())
    latency, per_byte = exchange
    tau = (latency + 8.0 * (problem.n_features + 1) * per_byte) / prox
    names = sorted(set(adfs.algorithms()) - set(ONE_MACHINE) - {"ns-adfs"})
    return adfs.plan(problem, tau, TOL, costs=costs, ranks=N_RANKS, algorithms=names), tau


def told(name, limit, **others):
    """Arguments of one run."""
    schedule = "stratified" if name == "adfs" else "auto"
    limits = {"time_limit": limit, "max_iter": 1 << 60}
    return {"algorithm": name, "tol": TOL, "schedule": schedule, **limits, **others}


def run(name, limit, sigma, exchange, is_judged):
    """One row: predicted and measured seconds of every method, and those of `best`."""
    X, y = adfs.datasets.load(name)
    X, y = X[:limit], np.where(y[:limit] == np.max(y), 1.0, -1.0)
    shards = adfs.partition(X, y, N_NODES)
    problem = adfs.Problem(shards, sigma=sigma / N_NODES, topology=adfs.Topology.grid(2, 2))
    plan, tau = measured_plan(problem, exchange)
    predicted = {each.algorithm: each.seconds for each in plan.predictions}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npz")
        save_npz(path, X, y)
        best = solve(N_RANKS, path, N_NODES, sigma, [told("best", LONGEST)] * TURNS)
        most = max(SHORTEST, CUT * shortest(best, "seconds"))
        runs = []
        for other in predicted:
            judged = is_judged and other in JUDGED
            cut = max(most, min(LONGEST, 3.0 * (predicted[other] or 0.0))) if judged else most
            if predicted[other] < 8.0 * cut:
                runs += [told(other, cut)] * TURNS
        found = solve(N_RANKS, path, N_NODES, sigma, runs)
    measured = {}
    for each, result in zip(runs, found, strict=True):
        measured.setdefault(each["algorithm"], []).append(result)
    return {
        "data": name, "rows": len(y), "sigma": sigma, "tau": tau, "predicted": predicted,
        "loop": {each: shortest(results, "wall_time") for each, results in measured.items()},
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
        is_known = predicted is not None and math.isfinite(measured)
        cells.append(f"{predicted / measured:.2f} ({measured:.3f} s)" if is_known else "-")
    print_row(
        row["data"], f"{row['sigma']:g}", f"{row['tau']:.1f}", fastest,
        f"{row['seconds'][fastest]:.3f}", row["took"], f"{row['best']:.3f}",
        f"{row['best'] / min(row['best'], row['seconds'][fastest]):.2f}", *cells,
        f"{row['others']:.2f}",
    )  # fmt: skip


def main(path=None, only=None):
    """Print a row per setting and the summary; returns the rows."""
    exchange, rows = exchange_times(), []
    print(f"an exchange: {1e6 * exchange[0]:.2f} us + {1e9 * exchange[1]:.3f} ns per byte")
    heads = [f"{name}: predicted / loop" for name in JUDGED]
    print_head("data", "sigma", "tau", "fastest", "s", "best took", "s", "regret", *heads, "others")
    for number, setting in enumerate(SETTINGS):
        if only in (None, setting[0]):
            rows.append(run(*setting, exchange, number < PLANNED))
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

"""Newton on growing samples (rule `tuned`) against plain Newton (rule `theory`): idealized times.

Ratios of the times until the certified relative gap is 1e-6 and 1e-10, above 1 where growing
samples are faster. Rows of 5 data sets, 4 to 100 nodes in a square grid with 100 to 10^4 rows each,
drawn for each node or sorted by label; sigma per node; three orders of the rows, one order of a
million rows. Where the rule chooses no samples both are the same run. `--out FILE` keeps every
ratio as a line of JSON.
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
from common import print_head, print_row
from plan_settings import load

import adfs

DATA = ("a9a", "mushrooms", "higgs", "covtype", "covtype+100")
NODES = {4: "grid:2x2", 16: "grid:4x4", 100: "grid:10x10"}
ROWS = (100, 1_000, 10_000)
SIGMAS = (1.0, 0.01)
HOW = ("draw", "sorted")
TAUS = (5.0, 50.0)
TOLS = (1e-6, 1e-10)
SEEDS = (0, 1, 2)
MANY = 1_000_000  # rows
MOST_NUMBERS = 60_000_000  # features of all rows, in a problem


def make_problem(data, n, m, sigma, how):
    """Rows drawn for each node, or as many rows sorted by label; None if that is too many."""
    X, y = load(data)
    if m > len(y) or n * m * X.shape[1] > MOST_NUMBERS:
        return None
    if how == "sorted":
        chosen = np.random.default_rng(0).integers(0, len(y), n * m)
        shards = adfs.partition(X[chosen], y[chosen], n, how="sorted")
    else:
        shards = adfs.partition(X, y, n, how="draw", m=m, seed=0)
    return adfs.Problem(shards, sigma=sigma, topology=adfs.Topology.parse(NODES[n]))


def times(problem, rule, tau, seed=0):
    """Idealized times to the tolerances, and evaluations."""
    result = adfs.solve(
        problem, "newton", tol=min(TOLS), tau=tau, parameters=rule, seed=seed, evaluate_every=1,
        progress=False,
    )  # fmt: skip
    if result.status != "converged":
        raise SystemExit(f"{rule} ended {result.status} at {result.relative_gap:.2g}")
    trace = result.trace
    gaps = np.array(trace["duality_gap"]) / np.abs(np.array(trace["objective"]))
    first = [int(np.argmax(gaps <= tol)) for tol in TOLS]
    return [trace["idealized_time"][k] for k in first], [trace["iteration"][k] for k in first]


def samples(problem, tau):
    """Shares of the rows that the rule chooses."""
    return adfs.prepare(problem, "newton", delays=adfs.Delays(tau=tau)).parameters.shares


def measure(problem):
    """One record per tau, order and tolerance."""
    plain = None
    for tau in TAUS:
        shares = samples(problem, tau)
        if len(shares) == 1:
            yield from ({"tau": tau, "levels": 0, "tol": tol, "ratio": 1.0} for tol in TOLS)
            continue
        plain = plain or times(problem, "theory", tau)[1]
        one = float(
            adfs.prepare(
                problem, "newton", rule="theory", delays=adfs.Delays(tau=tau)
            ).clock.lengths[0]
        )
        for seed in SEEDS[: 1 if problem.n_samples >= MANY else None]:
            found = times(problem, "tuned", tau, seed)[0]
            for tol, count, time in zip(TOLS, plain, found, strict=True):
                record = {"tau": tau, "levels": len(shares) - 1, "tol": tol, "seed": seed}
                yield record | {"plain": count * one, "growing": time, "ratio": count * one / time}


def summary(records, **where):
    chosen = [each for each in records if all(each[key] == where[key] for key in where)]
    used = [each["ratio"] for each in chosen if each["levels"]]
    line = [f"{len(used)} of {len(chosen)}"]
    return line + ([f"{f(used):.2f}" for f in (min, np.median, max)] if used else ["-"] * 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--data", nargs="*", default=DATA)
    arguments = parser.parse_args()
    records = []
    for setting in itertools.product(arguments.data, NODES, ROWS, SIGMAS, HOW):
        problem = make_problem(*setting)
        if problem is None:
            continue
        names = dict(zip(("data", "n", "m", "sigma", "how"), setting, strict=True))
        for record in measure(problem):
            records.append(names | record)
            if arguments.out:
                with arguments.out.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    print_head("", "", "with samples", "worst", "median", "best")
    for key in ("data", "n", "m", "sigma", "how", "tau", "tol"):
        for value in dict.fromkeys(each[key] for each in records):
            print_row(key, str(value), *summary(records, **{key: value}))
    print_row("all", "", *summary(records))


if __name__ == "__main__":
    main()

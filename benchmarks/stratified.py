"""Idealized time and seconds to a relative gap: stratified against independent draws.

Every setting (data, loss, sigma, graph, tol) is run with several seeds under both schedules in
turn, with the same parameters. A ratio above 1 is time that stratified draws save. Seconds are
of CPU and in the loop, without set-up and evaluations.
"""

import argparse
import itertools
import math
import time

import numpy as np
from common import print_head, print_row, provenance, write_record

import adfs

DATA = ("a9a", "covtype", "reuters-money-fx", "higgs")
LOSSES = ("logistic", "squared", "squared_hinge", "smoothed_hinge", "huber")
SIGMAS = (1.0, 0.01)
NODES = {1: 2_000, 4: 500, 16: 200, 64: 100, 100: 70}  # and the samples of each
FAMILIES = ("grid", "ring", "star", "complete", "hypercube")
FEW = ("alone:1", "grid:4x4", "star:16", "complete:64", "grid:10x10")
DEEP = ("alone:1", "grid:4x4", "complete:16", "grid:10x10")
SCHEDULES = ("shared", "stratified")


def graph_names():
    """One node alone, and every family of graphs in every size that it has."""
    yield "alone:1"
    for family, n in itertools.product(FAMILIES, list(NODES)[1:]):
        if family == "hypercube" and n.bit_count() > 1:
            continue
        side, power = math.isqrt(n), n.bit_length() - 1
        size = {"grid": f"{side}x{side}", "hypercube": str(power)}.get(family, str(n))
        yield f"{family}:{size}"


def settings(quick):
    """Tuples (data, loss, sigma, graph, tol)."""
    if quick:
        yield from itertools.product(DATA[:2], ["logistic"], SIGMAS, DEEP[:2], [1e-6])
        return
    yield from itertools.product(DATA, ["logistic"], SIGMAS, DEEP, [1e-12])
    yield from itertools.product(DATA, ["logistic"], SIGMAS, graph_names(), [1e-6])
    yield from itertools.product(DATA, LOSSES[1:], SIGMAS, FEW, [1e-6])


def nodes_of(graph):
    return 1 if graph == "alone:1" else adfs.Topology.parse(graph).n_nodes


def make_problem(loaded, loss, sigma, graph):
    """Rows drawn without repetition, as many per node as `NODES` says."""
    X, y = loaded
    topology, n = None if graph == "alone:1" else adfs.Topology.parse(graph), nodes_of(graph)
    rows = np.random.default_rng(5).permutation(X.shape[0])[: n * NODES[n]]
    return adfs.Problem(adfs.partition(X[rows], y[rows], n), loss, sigma, topology=topology)


def time_to(result, tol, clock):
    """The ``clock`` when the relative gap passed ``tol``, interpolated in the gap's logarithm."""
    if result.status != "converged":
        return math.inf
    gap, times = errors(result), np.array(result.trace[clock])
    if len(gap) < 2:
        return float(times[-1])
    before, after = np.log(gap[-2:])
    share = (np.log(tol) - before) / (after - before)
    return float(times[-2] + share * (times[-1] - times[-2]))


def errors(result):
    trace = result.trace
    return np.array(trace["duality_gap"]) / np.abs(trace["objective"])


def measure(problem, parameters, tol, seeds):
    """The runs of all seeds by schedule: the times of each, its status and its curve."""
    runs = {name: [] for name in SCHEDULES}
    for seed in range(seeds):
        for name in SCHEDULES if seed % 2 else SCHEDULES[::-1]:
            runs[name].append(run_of(problem, parameters, name, tol, seed))
    return runs


def run_of(problem, parameters, schedule, tol, seed):
    """One run; ``main`` lets the clock of its trace count seconds of CPU."""
    result = adfs.solve(
        problem, "adfs", tol, parameters=parameters, seed=seed, schedule=schedule,
        progress=False, evaluate_every=problem.n_samples,
    )  # fmt: skip
    return {
        "time": time_to(result, tol, "idealized_time"), "status": result.status,
        "seconds": time_to(result, tol, "wall_time"), "rho": result.rho,
        "positions": list(result.trace["iteration"]), "errors": errors(result).tolist(),
        "independent_from": result.independent_from,
    }  # fmt: skip


def main(quick=False, seeds=3, path=None, n_nodes=None):
    """Print a row per setting, or those with ``n_nodes``, and the summary; returns the rows."""
    time.perf_counter = time.process_time  # others may use the machine
    print_head("data", "loss", "sigma", "graph", "tol", *SCHEDULES, "ratios", "seconds", "notes")
    loaded, rows, started = {}, [], time.process_time()
    for data, loss, sigma, graph, tol in settings(quick):
        if n_nodes not in (None, nodes_of(graph)):
            continue
        loaded.setdefault(data, adfs.datasets.load(data))
        problem = make_problem(loaded[data], loss, sigma, graph)
        chosen = adfs.Parameters.choose(problem)
        runs = measure(problem, chosen, tol, seeds)
        rows.append(row_of((data, loss, sigma, graph, tol), runs))
    print_summary(rows)
    print(f"\n{time.process_time() - started:.0f} s of CPU")
    if path is not None:
        write_record(path, {"provenance": provenance(), "rows": rows})
    return rows


def row_of(setting, runs):
    """One setting's ratios, one per seed, and what did not converge or went on independently."""
    times, seconds = (
        {name: np.array([run[what] for run in runs[name]]) for name in SCHEDULES}
        for what in ("time", "seconds")
    )
    ratios = np.sort(times["shared"] / times["stratified"])
    in_seconds = float(np.median(seconds["shared"] / seconds["stratified"]))
    back = sum(run["independent_from"] is not None for run in runs["stratified"])
    failed = [f"{name}: {run['status']}" for name in SCHEDULES for run in runs[name]
              if run["status"] != "converged"]  # fmt: skip
    notes = ", ".join(failed + ([f"{back} fell back"] if back else []))
    data, loss, sigma, graph, tol = setting
    medians = {name: float(np.median(times[name])) for name in SCHEDULES}
    print_row(data, loss, f"{sigma:g}", graph, f"{tol:g}", *(f"{x:.0f}" for x in medians.values()),
              " ".join(f"{ratio:.2f}" for ratio in ratios), f"{in_seconds:.2f}", notes)  # fmt: skip
    return {"setting": setting, "ratios": ratios.tolist(), "notes": notes, "runs": runs,
            "median": medians["shared"] / medians["stratified"], "seconds": in_seconds}  # fmt: skip


def print_summary(rows):
    """Worst, median and best ratio of medians over seeds, by what the settings have in common."""
    print()
    print_head(
        "settings", "how many", "worst run", "worst", "median", "best", "below 1",
        "seconds: worst", "median", "best",
    )  # fmt: skip
    for label, chosen in groups(rows):
        medians = np.array([row["median"] for row in chosen])
        seconds = np.array([row["seconds"] for row in chosen])
        numbers = [min(row["ratios"][0] for row in chosen), *spread(medians)]
        print_row(label, str(len(chosen)), *(f"{x:.2f}" for x in numbers),
                  str(int(np.sum(medians < 1.0))),
                  *(f"{x:.2f}" for x in spread(seconds)))  # fmt: skip
    worst = sorted(rows, key=lambda row: row["median"])[:5]
    print("\nworst:", "; ".join(f"{row['setting']} {row['median']:.3f}" for row in worst))
    print("notes:", "; ".join(f"{row['setting']} {row['notes']}" for row in rows if row["notes"]))


def spread(ratios):
    return ratios.min(), np.median(ratios), ratios.max()


def groups(rows):
    yield "all", rows
    for place, values in (
        (0, DATA), (1, LOSSES), (2, SIGMAS), (4, (1e-12,)), (3, ("alone", *FAMILIES)),
    ):  # fmt: skip
        for value in values:
            found = [row for row in rows if row["setting"][place] == value
                     or str(row["setting"][place]).split(":")[0] == value]  # fmt: skip
            if found:
                yield str(value), found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", help="write all runs to this JSON file")
    parser.add_argument("--nodes", type=int, help="only networks of so many nodes")
    options = parser.parse_args()
    main(options.quick, options.seeds, options.out, options.nodes)

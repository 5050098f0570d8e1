"""Simulated runs on 10^4, 10^5 and 10^6 nodes with 10 samples of 10 features each.

Prints for each size the seconds of set-up, nanoseconds per event, peak memory, and the measured
rate over Theorem 1's ``rho``. Seconds are those of one core (``time.process_time``), so that other
work on the machine adds little. Each size has a process of its own. ``--graph hypercube`` or
``torus`` instead of a random regular graph of degree 8; ``--schedule poisson``; ``--seconds`` ends
a run early.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np
from common import print_head, print_row, provenance

import adfs

SIZES = (10_000, 100_000, 1_000_000)
SAMPLES = FEATURES = 10
EVENTS_PER_NODE = 20  # between evaluations
HEAD = ("nodes", "graph", "gamma", "graph s", "set-up s", "ns per event", "GB", "events per node",
        "relative gap", "rho n", "rate / rho")  # fmt: skip


def graph_name(family, n):
    """The graph of a family with about ``n`` nodes."""
    if family == "hypercube":
        return f"hypercube:{round(math.log2(n))}"
    return f"random_regular:{n},k=8" if family == "random_regular" else f"{family}:{n}"


def make_data(n_nodes):
    """Normal features; labels by a random model and noise of its size."""
    random = np.random.default_rng(0)
    X = random.standard_normal((SAMPLES * n_nodes, FEATURES))
    y = X @ random.standard_normal(FEATURES)
    y += np.linalg.norm(y) / math.sqrt(len(y)) * random.standard_normal(len(y))
    return X, np.sign(y)


def measured_rate(trace):
    """Per event, from the first evaluation below 1e-2 of the start's gap to the last one."""
    found = trace.to_dict()
    t, gap = (np.array(found[name], dtype=float) for name in ("iteration", "duality_gap"))
    first = int(np.argmax(gap < 1e-2 * gap[0]))
    if len(t) - first < 2:
        return math.nan
    return math.log(gap[first] / gap[-1]) / (t[-1] - t[first])


def one(args):
    """One size; a dict for JSON."""
    X, y = make_data(64)  # compiles the kernels
    warm = adfs.Problem(adfs.partition(X, y, 64))
    adfs.solve(warm, tol=1e-2, schedule=args.schedule, progress=False)
    clock = time.process_time
    started = clock()
    topology = adfs.Topology.parse(graph_name(args.graph, args.one))
    spectrum = topology.spectrum
    graph = clock() - started
    X, y = make_data(topology.n_nodes)
    started = clock()
    shards = adfs.partition(X, y, topology.n_nodes)
    del X, y
    problem = adfs.Problem(shards, sigma=1.0, topology=topology)
    parameters = adfs.Parameters.choose(problem, args.parameters, tau=5.0)
    chosen = clock() - started
    started, starts = clock(), []
    result = adfs.solve(
        problem, "adfs", tol=args.tol, parameters=parameters, time_limit=args.seconds,
        schedule=args.schedule, evaluate_every=EVENTS_PER_NODE * topology.n_nodes, progress=False,
        callback=lambda progress: starts.append(clock()),
    )  # fmt: skip
    running = clock() - starts[0]  # from the first evaluation on
    setup = chosen + starts[0] - started
    return {
        "nodes": topology.n_nodes, "edges": topology.n_edges, "graph": topology.name,
        "lambda_min": spectrum.lambda_min, "gamma": spectrum.gamma, "exact": spectrum.exact,
        "sum_R_over_trees": float(spectrum.resistances.sum()) / (topology.n_nodes - 1),
        "graph_seconds": graph, "setup_seconds": setup,
        "run_seconds": running, "wall_time": result.wall_time,
        "ns_per_event": 1e9 * running / max(1, result.iterations),
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "status": result.status, "events": result.iterations, "relative_gap": result.relative_gap,
        "idealized_time": result.idealized_time, "rho": parameters.rho,
        "p_comm": parameters.p_comm, "rate_over_rho": measured_rate(result.trace) / parameters.rho,
        "trace": result.trace.to_dict(),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="random_regular")
    parser.add_argument("--schedule", default="shared")
    parser.add_argument("--parameters", default="tuned")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--out")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args)))
        return
    print_head(*HEAD)
    found = []
    for size in args.sizes.split(","):
        command = [sys.executable, __file__, *sys.argv[1:], "--one", size]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        found.append(row)
        if args.out:
            with open(args.out, "w") as file:
                json.dump({**provenance(), "rows": found}, file, indent=1)
        n = row["nodes"]
        print_row(
            f"{n:,}", row["graph"].split(":")[0], f"{row['gamma']:.3g}",
            f"{row['graph_seconds']:.1f}", f"{row['setup_seconds']:.1f}",
            f"{row['ns_per_event']:.0f}", f"{row['gigabytes']:.2f}", f"{row['events'] / n:.0f}",
            f"{row['relative_gap']:.1e}", f"{row['rho'] * n:.4f}", f"{row['rate_over_rho']:.2f}",
        )  # fmt: skip


if __name__ == "__main__":
    main()

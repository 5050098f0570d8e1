"""The critical size of a network: predicted by `adfs.plan` beside a measured scaling curve.

All rows of Higgs and a regularisation that is the same in total, on ever more nodes. ADFS runs to a
relative gap of 1e-6 on each network; the plan is made once, on 16 nodes. At the critical size the
network takes as long as computing: for a run that is where the busiest node computes half of the
time, interpolated between the sizes.
"""

import argparse
import math

import numpy as np
from common import print_head, print_row, provenance, write_record

import adfs
from adfs.algorithms.base import MethodSetting
from adfs.plan.prediction import predict

NODES = (4, 16, 64, 256, 1024)
PLANNED_ON = 16
TOL, TAU, TOTAL_SIGMA = 1e-6, 5.0, 16.0


def make_problem(family, n):
    X, y = adfs.datasets.load("higgs")
    topology = adfs.Topology.parse(family, n_nodes=n)
    return adfs.Problem(adfs.partition(X, y, n), sigma=TOTAL_SIGMA / n, topology=topology)


def measure(family, tau):
    """Time, and the busiest node's share of it, on each number of nodes."""
    setting = MethodSetting(tau=tau, delays=adfs.Delays(tau=tau), schedule="stratified")
    for n in NODES:
        problem = make_problem(family, n)
        run = adfs.solve(problem, "adfs", TOL, tau=tau, schedule="stratified", progress=False)
        clock = predict(problem, "adfs", setting, TOL)  # the busy share is that of its clock
        yield n, run.idealized_time, clock.computing / clock.idealized_time


def crossing(nodes, shares):
    """Where the share falls below one half, interpolated; None if it does not."""
    ratios = [math.log((1.0 - share) / share) for share in shares]  # network over computing
    for k in range(1, len(nodes)):
        if ratios[k - 1] < 0.0 <= ratios[k]:
            part = -ratios[k - 1] / (ratios[k] - ratios[k - 1])
            return float(np.exp(np.interp(part, [0.0, 1.0], np.log(nodes[k - 1 : k + 1]))))
    return None


def main(path=None):
    """Print a table per graph and tau, and the two critical sizes."""
    found = []
    for family in ("grid", "hypercube"):
        for tau in (TAU, 10.0 * TAU):
            plan = adfs.plan(make_problem(family, PLANNED_ON), tau, TOL, algorithms=["adfs"])
            predicted = {point.n: point.times["adfs"] for point in plan.over_nodes}
            rows = list(measure(family, tau))
            print(f"\n{family}, tau = {tau:g}")
            print_head("n", "measured", "predicted on 16 nodes", "busiest node computes")
            for n, time, share in rows:
                known = f"{predicted[n]:,.0f}" if n in predicted else "-"
                print_row(f"{n:,}", f"{time:,.0f}", known, f"{100 * share:.0f} %")
            nodes, _, shares = zip(*rows, strict=True)
            sizes = plan.critical["adfs"], crossing(nodes, shares)
            told = ["none" if size is None else f"{size:.0f}" for size in sizes]
            print(f"critical size: plan {told[0]}, measured {told[1]}", flush=True)
            found.append({"graph": family, "tau": tau, "rows": rows, "critical": sizes})
    if path is not None:
        write_record(path, {"provenance": provenance(), "curves": found})
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="write all numbers to this JSON file")
    main(parser.parse_args().out)

"""Measured rate of ADFS beside rho and beside the rate of visits, over scales c and p_comm."""

import argparse

import numpy as np
from common import print_head, print_row
from tuned import PROBLEMS

import adfs

SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)


def slope(problem, parameters, schedule="shared", n_seeds=3):
    """Slope of the logarithm of the gap against iterations, once the start is forgotten."""
    slopes = []
    for seed in range(n_seeds):
        result = adfs.solve(
            problem, tol=1e-11, parameters=parameters, seed=seed, progress=False,
            evaluate_every=problem.n_samples, schedule=schedule,
        )  # fmt: skip
        t = np.array(result.trace["iteration"], dtype=float)
        logs = np.log(np.array(result.trace["duality_gap"], dtype=float))
        late = logs < logs[0] - np.log(1e3)
        slopes.append(-np.polyfit(t[late], logs[late], 1)[0])
    return float(np.mean(slopes))


def main(graph="grid:3x3", m=100, name="gaussians", schedule="shared"):
    """Print the table in Markdown; returns the rows."""
    problem = PROBLEMS[name](graph, m)
    print_head("c", "p_comm", "rho / v", "rate / rho", "rate / v")
    rows = []
    for scale in SCALES:
        parameters = adfs.Parameters.choose(problem, "projector", mu_scale=scale)
        visits = float(np.min(parameters.p_node / parameters.importance_sums))
        rate = slope(problem, parameters, schedule)
        row = (scale, parameters.p_comm, parameters.rho / visits, rate / parameters.rho,
               rate / visits)  # fmt: skip
        rows.append(row)
        print_row(*(f"{value:.3g}" for value in row))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="grid:3x3")
    parser.add_argument("--m", type=int, default=100)
    parser.add_argument("--problem", choices=list(PROBLEMS), default="gaussians")
    parser.add_argument("--schedule", choices=("shared", "stratified"), default="shared")
    options = parser.parse_args()
    main(options.graph, options.m, options.problem, options.schedule)

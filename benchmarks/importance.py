"""Rounds of DSBA and Point-SAGA with draws by importance, beside uniform draws.

``python benchmarks/importance.py``: rounds to a suboptimality of 1e-6. Uniform DSBA has the step
2 / (L + 4 m lam) with the largest L, for which the same theorem holds; Point-SAGA its published
one. Data sets that are not on disk are generated (`adfs reproduce` does the same).
"""

import argparse
import json
import math

import numpy as np
import scipy.sparse as sp

from adfs.algorithms.dsba import Dsba, DsbaParameters
from adfs.algorithms.point_saga import PointSaga, PointSagaParameters, all_smoothness
from adfs.data.partition import partition
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.study.paper import TEXT
from adfs.study.paper.study_context import Pool

TOL = 1e-6
MOST_PASSES = 1_000
# Data set, nodes, rows per node, sigma, and whether rows are multiplied by exp of a normal number;
# DSBA is left out there: uniform draws would take hours.
CASES = [
    ("higgs", "grid:4x4", 1000, 1.0, False),
    ("higgs", "grid:4x4", 1000, 0.05, False),
    ("covtype", "grid:4x4", 500, 0.05, False),
    (TEXT, "grid:4x4", 400, 0.1, False),
    (TEXT, "grid:4x4", 400, 0.1, True),
]


class UniformDraws(DsbaParameters):
    """The step of ``tuned`` with the largest smoothness, for uniform draws."""

    @property
    def by_importance(self):
        return False

    @property
    def alpha(self):
        return 2.0 / (self.largest + 4.0 * self.n_samples * self.ridge)


def problem_of(data, graph, m, sigma, scaled):
    pool, topology = Pool.load(data), Topology.parse(graph)
    shards = partition(pool.X, pool.y, topology.n_nodes, how="draw", m=m, seed=0)
    if scaled:
        generator, even = np.random.default_rng(5), shards
        shards = []
        for rows, labels, _ in even:
            factors = sp.diags(np.exp(generator.standard_normal(len(labels))))
            shards.append((sp.csr_matrix(factors @ rows), labels))
    return Problem(shards, "logistic", sigma, topology)


def rounds_to(problem, algorithm, every):
    """Rounds until the mean over nodes of F is within TOL of the optimum."""
    best, state = problem.optimum().objective, algorithm.init()
    for start in range(0, MOST_PASSES * every, every):
        which = np.zeros(every, np.int32)
        state = algorithm.step(state, Events(start, which, which))
        different = np.unique(algorithm.output(state), axis=0)  # one row, for Point-SAGA
        mean = np.mean([problem.objective(theta) for theta in different])
        if mean - best <= TOL * abs(best):
            return start + every
    return math.inf


def measure(case, seed):
    problem = problem_of(*case)
    fields = DsbaParameters.of(problem, "tuned")
    smoothness, ridge = all_smoothness(problem), problem.total_sigma / problem.n_samples
    dsba = [UniformDraws(**vars(fields)), fields]
    saga = [PointSagaParameters.of(rule, smoothness, ridge) for rule in ("theory", "tuned")]
    every = max(50, problem.n_samples // problem.n_nodes // 4)
    return {
        "case": list(case), "spread": fields.largest / fields.mean,
        "dsba": [
            rounds_to(problem, Dsba(problem, each, seed), every) for each in dsba if not case[-1]
        ],
        "dsba_rho": [each.rho for each in dsba],
        "point-saga": [
            rounds_to(problem, PointSaga(problem, each, seed), problem.n_samples // 8)
            for each in saga
        ],
        "point-saga_rho": [each.rho for each in saga],
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="JSON file")
    arguments = parser.parse_args()
    rows = []
    for case in CASES:
        rows.append(measure(case, arguments.seed))
        print(json.dumps(rows[-1]), flush=True)
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

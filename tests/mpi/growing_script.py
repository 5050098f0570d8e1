"""What the ranks do for ``test_growing_ranks.py``: Newton on growing samples; rank 0 prints it.

mpiexec -n R python growing_script.py FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1]))

import adfs

N_NODES = 6


def shards(layout):
    """Rows of unequal weight, sorted by label."""
    X, y = adfs.generators.two_gaussians(6_000, 4, seed=1, condition=10.0)
    X, y = layout(X[np.argsort(y, kind="stable")]), np.sort(y)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    return adfs.partition(X, y, N_NODES, how="contiguous", weights=weights)


def found(make, folder):
    """Runs with dense and sparse rows: whole, and stopped after each of the first evaluations."""
    numbers = []
    for name, layout in (("dense", np.asarray), ("csr", sp.csr_matrix)):
        problem = make(layout)
        options = {"tol": 1e-11, "tau": 1.0, "evaluate_every": 1, "progress": False}
        options["costs"] = adfs.Costs(hessian=10.0)  # so all kinds of evaluations occur
        whole = adfs.solve(problem, "newton", **options)
        numbers.append([*bits(whole), len(whole.parameters.shares)])
        for stop in range(1, 5):
            kept = folder / f"{name}-{stop}"
            adfs.solve(
                problem, "newton", max_iter=stop, checkpoints=adfs.Checkpoints(kept), **options
            )
            again = adfs.Checkpoints(kept, resume=True)
            numbers.append(bits(adfs.solve(problem, "newton", checkpoints=again, **options)))
    return numbers


def bits(result):
    last = result.trace.last()
    return [result.theta.tobytes().hex(), last["idealized_time"], last["n_grad"], last["bytes"]]


if __name__ == "__main__":
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    mine = np.array_split(np.arange(N_NODES), world.size)[world.rank]

    def make(layout):
        own = [shards(layout)[node] for node in mine.tolist()]
        return adfs.Problem(own, sigma=1.0, engine="mpi")

    numbers = found(make, Path(sys.argv[1]))
    if world.rank == 0:
        print(json.dumps(numbers))

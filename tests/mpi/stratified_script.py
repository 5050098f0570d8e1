"""What the ranks do for ``test_stratified_ranks.py``: a run that falls back; rank 0 prints it.

mpiexec -n R python stratified_script.py
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import adfs
from adfs.engine import run_controller


def shards():
    """Eight nodes."""
    X, y = adfs.generators.two_gaussians(800, 6, seed=1, condition=10.0)
    return adfs.partition(X, y, 8)


def found(problem):
    """A run in which no gain is enough for stratified draws, with a slow node."""
    run_controller.PATIENCE = 1e-3
    delays = adfs.Delays(tau=5.0, speed=(1, 1, 1, 1, 1, 1, 1, 4))
    result = adfs.solve(problem, tol=1e-11, delays=delays, progress=False)
    numbers = [result.iterations, result.independent_from, result.idealized_time]
    return [result.theta.tobytes().hex(), *numbers]


if __name__ == "__main__":
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    mine = np.array_split(np.arange(8), world.size)[world.rank]
    own = [shards()[node] for node in mine.tolist()]
    numbers = found(adfs.Problem(own, sigma=0.1, engine="mpi"))
    if world.rank == 0:
        print(json.dumps(numbers))

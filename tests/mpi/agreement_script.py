"""Run by mpiexec: calls that differ between ranks; rank 0 writes what every rank has met."""

import json
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import adfs
from adfs.engine.checkpointer import Checkpoints

COMM = MPI.COMM_WORLD
RANK = COMM.rank
X, Y = adfs.generators.two_gaussians(40, 4, seed=RANK)


def on_rank_1(special, usual):
    """Something else on one rank."""
    return special if RANK == 1 else usual


def problem(**options):
    return adfs.Problem([(X[:20], Y[:20]), (X[20:], Y[20:])], engine="mpi", **options)


def solve(**options):
    return adfs.solve(problem(), **{"tol": 1e-2} | options).status


CASES = {
    "seed": lambda: solve(seed=RANK),
    "tol": lambda: solve(tol=on_rank_1(0.1, 0.01)),
    "bad_tol": lambda: solve(tol=on_rank_1(-1.0, 0.01)),
    "checkpoints": lambda: solve(checkpoints=on_rank_1(Checkpoints("run"), None)),
    "warm_start": lambda: solve(warm_start=on_rank_1(np.ones(4), None)),
    "delays": lambda: solve(delays=on_rank_1(adfs.Delays(tau=5.0, law="pareto"), None)),
    "sigma": lambda: problem(sigma=on_rank_1(2.0, 1.0)),
    "loss": lambda: problem(loss=on_rank_1("squared", "logistic")),
    "topology": lambda: problem(
        topology=on_rank_1(adfs.Topology.star(4), adfs.Topology.ring(4))
    ),
    "the_same": lambda: solve(),
}  # fmt: skip


def met(work):
    """What comes of it on this rank."""
    try:
        return ["fine", work()]
    except Exception as error:
        return [type(error).__name__, str(error)]


def main(path):
    """All cases, one after another: a refusal leaves the ranks able to go on."""
    found = {name: COMM.gather(met(work)) for name, work in CASES.items()}
    if RANK == 0:
        Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

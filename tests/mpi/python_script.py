"""Run by mpiexec: problems and solves of `test_python.py`, one after another in one launch.

Rank 0 writes, for each case, what every rank has found: the bits of a run, or a sentence.
"""

import contextlib
import dataclasses
import io
import json
import sys
from pathlib import Path

import numpy as np

import adfs
import adfs.errors
from adfs.engine import loop, progress
from adfs.mpi.communicator import open_world

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.python_runs import (
    KINKS,
    METHODS,
    N_NODES,
    bits_of,
    files_of,
    path_bits,
    shards,
    solve,
    start_again,
    topology,
)

WORLD = open_world()
RANK, SIZE = WORLD.rank, WORLD.size
OWN = np.array_split(np.arange(N_NODES), SIZE)[RANK].tolist()
CASES = {}


def case(work):
    """Note a function under its name."""
    CASES[work.__name__] = work
    return work


def problem_of(parts, nodes=OWN, **options):
    defaults = {"sigma": 0.1, "topology": topology(), "nodes": nodes, "engine": "mpi"}
    return adfs.Problem(parts, **defaults | options)


def own_shards(nodes=OWN):
    every = shards()
    return [every[node] for node in nodes]


def on(rank, special, usual):
    """Something else on one rank."""
    return special if rank == RANK else usual


def scattered():
    """Nodes dealt in turn instead of in pieces."""
    nodes = list(range(RANK, N_NODES, SIZE))
    return problem_of(own_shards(nodes), nodes)


def solved(problem):
    """One method after another on one problem; each rank's bits."""
    return {name: bits_of(solve(problem, name), RANK) for name in METHODS}


@case
def from_shards():
    return solved(problem_of(own_shards()))


@case
def nodes_dealt_in_turn():
    return solved(scattered())


@case
def nodes_by_default():
    return solved(problem_of(own_shards(), None))


@case
def from_one_file_per_node():
    problem = adfs.Problem.from_files(
        files_of(FOLDER)["pattern"], sigma=0.1, topology=topology(), engine="mpi"
    )
    assert problem.n_rows == sum(len(y) for _, y in own_shards())
    return solved(problem)


@case
def from_one_file():
    problem = adfs.Problem.from_files(
        files_of(FOLDER)["whole"], sigma=0.1, topology=topology(), engine="mpi", seed=3
    )
    return solved(problem)


@case
def watched():
    """A line at every look, and a new gap at every heartbeat; only rank 0 has a watcher."""
    progress.SECONDS_BETWEEN_LINES = loop.SECONDS_BETWEEN_LOOKS = loop.STALE = loop.RARELY = 0.0
    loop.NUMBERS_PER_BEAT = 1 << 12
    with contextlib.redirect_stderr(io.StringIO()) as shown:
        problem = problem_of(own_shards())
        found = {name: bits_of(solve(problem, name, progress=True), RANK) for name in METHODS}
    return found | {"lines": shown.getvalue().splitlines()}


@case
def stopped_early_and_again():
    """No message of a run that stopped early may reach the next one."""
    first, second = problem_of(own_shards()), scattered()
    found = {}
    for k, problem in enumerate((first, second, first)):
        result = adfs.solve(problem, "adfs", tol=1e-300, max_iter=517 + 100 * k)
        assert result.status == "max_iter"
        found[f"adfs {k}"] = bits_of(result, RANK)
    return found


@case
def started_from_results():
    """Results of another sigma: every rank has the duals of its own rows."""
    return {loss: bits_of(start_again(problem_of(own_shards(), loss=loss)), RANK) for loss in KINKS}


@case
def paths():
    return {loss: path_bits(problem_of(own_shards(), loss=loss)) for loss in KINKS}


@case
def duals_on_rank_0_only():
    problem = problem_of(own_shards())
    first = solve(problem, "adfs")
    solve(problem, "adfs", warm_start=on(1, dataclasses.replace(first, duals=None), first))


def spoilt(change):
    """A shard of rank 1 with a change."""
    parts = own_shards()
    if RANK == 1:
        X, y = parts[0]
        parts[0] = change(X.copy(), y)
    return parts


def with_nan(X, y):
    X[1, 2] = np.nan
    return X, y


@case
def nan_on_rank_1():
    problem_of(spoilt(with_nan))


@case
def other_width_on_rank_1():
    problem_of([(X[:, :3], y) if RANK == 1 else (X, y) for X, y in own_shards()])


@case
def a_node_twice():
    problem_of(own_shards(), on(1, [0, *OWN[1:]], OWN))


@case
def a_node_on_no_rank():
    problem_of(on(1, own_shards()[1:], own_shards()), on(1, OWN[1:], OWN))


@case
def fewer_shards_than_nodes_on_rank_1():
    problem_of(on(1, own_shards()[1:], own_shards()))


@case
def another_graph_on_rank_1():
    problem_of(own_shards(), topology=on(1, adfs.Topology.ring(N_NODES), topology()))


@case
def another_sigma_on_rank_1():
    problem_of(own_shards(), sigma=on(1, 0.2, 0.1))


@case
def another_seed_on_rank_1():
    solve(problem_of(own_shards()), "adfs", seed=on(1, 7, 0))


@case
def another_algorithm_on_rank_1():
    solve(problem_of(own_shards()), on(1, "newton", "adfs"))


@case
def a_method_for_one_machine():
    solve(problem_of(own_shards()), "point-saga")


@case
def delays_by_chance():
    solve(problem_of(own_shards()), "adfs", delays=adfs.Delays(tau=5.0, law="exponential"))


@case
def a_comparison():
    adfs.compare(problem_of(own_shards()), ["adfs", "newton"])


@case
def a_faulty_file():
    adfs.Problem.from_files(files_of(FOLDER)["faulty"], topology=topology(), engine="mpi")


@case
def another_seed_of_the_deal_on_rank_1():
    adfs.Problem.from_files(files_of(FOLDER)["whole"], engine="mpi", seed=on(1, 7, 0))


@case
def more_ranks_than_nodes():
    adfs.Problem.from_files(files_of(FOLDER)["whole"], engine="mpi", n_nodes=1)


def met(work):
    """What comes of it on this rank."""
    try:
        return ["fine", work()]
    except adfs.errors.AdfsError as error:
        # The rank that met it may raise a kind of DataError that notes the line.
        public = next(kind for kind in type(error).__mro__ if kind.__module__ == "adfs.errors")
        return [public.__name__, str(error)]


def main(path):
    """All cases, one after another: a refusal leaves the ranks able to go on."""
    found = {name: WORLD.gather(met(work)) for name, work in CASES.items()}
    if RANK == 0:
        Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    FOLDER = Path(sys.argv[2])
    main(sys.argv[1])

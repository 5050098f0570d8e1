"""Runs on ranks for benchmarks: started by `launch`, one process per core, BLAS on one thread.

As a script it is one rank. It reads rows from an .npz file, runs a small problem to load what is
compiled, then the runs it is given; rank 0 prints one JSON list.
"""

import json
import os
import subprocess
import sys
import time

import numpy as np
from common import ONE_THREAD, TRIES, find_mpiexec, rank_command, undisturbed


def launch(n_ranks, *arguments, timeout=None):
    """Standard output of ``n_ranks`` processes of this Python, each bound to a core of its own."""
    command = rank_command(find_mpiexec(), n_ranks, sys.executable, *arguments)
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | ONE_THREAD, check=False,
        timeout=timeout,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def solve(n_ranks, path, n_nodes, sigma, runs, tries=TRIES, timeout=None):
    """Results of ``runs`` on so many ranks; see `run_all`.

    A run is a dict of ``algorithm``, ``tol`` and other arguments of `adfs.solve`; ``sigma`` is that
    of all nodes together. ``others`` of a result is how many cores were in use by others meanwhile;
    a job that was disturbed is tried again, ``tries`` times in all. With one try it starts at once,
    without waiting for a quiet machine.
    """
    told = json.dumps({"n_nodes": n_nodes, "sigma": sigma, "runs": runs})
    results, others = undisturbed(
        lambda: json.loads(launch(n_ranks, __file__, path, told, timeout=timeout)), tries
    )
    return [each | {"others": others} for each in results]


def plan(n_ranks, path, n_nodes, sigma, **arguments):
    """The plan that so many ranks make, as a dict; ``arguments`` are those of `adfs.plan`."""
    told = json.dumps({"n_nodes": n_nodes, "sigma": sigma, "runs": [], "plan": arguments})
    return json.loads(launch(n_ranks, __file__, path, told))[0]


def run_all(path, told):
    """What a rank does: every run in turn, on rows that are in memory; or a plan."""
    import adfs
    from adfs.data.files import load_data
    from adfs.mpi.communicator import open_world
    from adfs.mpi.problem_loading import map_nodes

    world, n = open_world(), told["n_nodes"]
    topology = adfs.Topology.parse("grid", n_nodes=n)
    rank_of = map_nodes(topology, world.size)
    nodes = np.flatnonzero(rank_of == world.rank).tolist()
    shards = adfs.partition(*load_data(path), n)
    own = [(shards[node].X, shards[node].y) for node in nodes]
    few = [(X[:200], y[:200]) for X, y in own]
    del shards
    kinds = {(each["algorithm"], each.get("schedule")): each for each in told["runs"]}
    for each in kinds.values():  # untimed: loads what is compiled
        run(world, few, nodes, topology, 1.0, each | {"tol": 1e-3, "time_limit": 5.0})
    sigma = told["sigma"] / n
    if "plan" in told:
        problem = adfs.Problem(own, sigma=sigma, topology=topology, nodes=nodes, engine="mpi")
        return [adfs.plan(problem, **told["plan"]).to_dict()], world.rank
    return [run(world, own, nodes, topology, sigma, each) for each in told["runs"]], world.rank


def run(world, shards, nodes, topology, sigma, told):
    """One run; everything from rows in memory to the certified model is in ``seconds``."""
    import adfs
    from adfs.engine.execution import gather_executions

    world.gather(None)  # all begin together
    started = time.perf_counter()
    problem = adfs.Problem(shards, sigma=sigma, topology=topology, nodes=nodes, engine="mpi")
    result = adfs.solve(problem, progress=False, **told)
    seconds = time.perf_counter() - started
    last = result.trace.last()
    return {
        "algorithm": result.algorithm, "status": result.status, "iterations": result.iterations,
        "wall_time": result.wall_time, "seconds": seconds, "setup_time": result.setup_time,
        "idealized": result.idealized_time,
        "n_prox": last["n_prox"], "n_comm": last["n_comm"],
        "p_comm": getattr(result.parameters, "p_comm", None),
        "objective": result.objective, "relative_gap": result.relative_gap,
        "theta": result.theta.tolist(),
        "ranks": [each.seconds for each in gather_executions(problem.network, result.execution)],
    }  # fmt: skip


if __name__ == "__main__":
    results, rank = run_all(sys.argv[1], json.loads(sys.argv[2]))
    if rank == 0:
        print(json.dumps(results))

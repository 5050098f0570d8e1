"""Runs on ranks for benchmarks: started by `launch`, one process a core, BLAS on one thread.

As a script it is one rank. It reads rows from an .npz file, runs a small problem to load what is
compiled, then what it is told; rank 0 prints one JSON list.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
TRIES = 3
QUIET = 0.2  # cores in use by others, above which numbers are not to be trusted
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def mpiexec():
    """The launcher beside this Python, or one on PATH; None without."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def launch(n_ranks, *arguments):
    """Standard output of ``n_ranks`` processes of this Python, each bound to a core of its own."""
    cores = sorted(os.sched_getaffinity(0))
    command = [mpiexec()]
    for rank in range(n_ranks):
        bound = ["taskset", "-c", str(cores[rank % len(cores)])]
        command += [":"] * (rank > 0) + ["-n", "1", *bound, sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | ONE_THREAD, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def solve(n_ranks, path, n_nodes, sigma, runs):
    """Results of ``runs`` (dicts of tau, schedule, tol) on so many ranks; see `run_all`.

    ``n_ranks=0`` stands for `adfs.solve` in one process. ``others`` of a result is how many cores
    were in use by others meanwhile; a job that was disturbed is tried again.
    """
    told = json.dumps({"local": n_ranks == 0, "n_nodes": n_nodes, "sigma": sigma, "runs": runs})
    best = None
    for _ in range(TRIES):
        wait_until_quiet()
        started, used, own = time.perf_counter(), _used(), _own()
        results = json.loads(launch(max(1, n_ranks), __file__, path, told))
        seconds = time.perf_counter() - started
        others = max(0.0, ((_used() - used) / TICK - (_own() - own)) / seconds)
        if best is None or others < best[0]:
            best = others, [each | {"others": others} for each in results]
        if others < QUIET:
            break
    return best[1]


def wait_until_quiet(seconds=60.0):
    """Wait for other work to end, at most so long."""
    until = time.monotonic() + seconds
    while busy_cores() > QUIET and time.monotonic() < until:
        pass


def busy_cores(seconds=0.5):
    """Cores in use while this process sleeps; the load average remembers too much of before."""
    before = _used()
    time.sleep(seconds)
    return (_used() - before) / TICK / seconds


def _used():
    """Ticks that all cores have worked so far."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return sum(numbers) - numbers[3] - numbers[4]  # idle, and waiting for disks


def _own():
    """Seconds that this process and those it has started have worked so far."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


def run_all(path, told):
    """What a rank does: every run in turn, on rows that are in memory."""
    import adfs
    from adfs.distributed.mapping import map_nodes
    from adfs.launch.world import World
    from adfs.problems.files import load_data

    X, y = load_data(path)
    n = told["n_nodes"]
    topology = adfs.Topology.parse("grid", n_nodes=n)
    with World.open() as world:
        shards = adfs.partition(X, y, n)
        mine = map_nodes(topology, world.size).nodes(world.rank)
        run = _locally if told["local"] else _on_ranks
        few = [(shard.X[:200], shard.y[:200]) for shard in shards]
        for schedule in ("shared", "poisson"):  # untimed: loads what is compiled
            run(world, few, mine, topology, 1.0, {"tau": 5.0, "schedule": schedule, "tol": 1e-3})
        shards = [(shard.X, shard.y) for shard in shards]
        return [
            run(world, shards, mine, topology, told["sigma"] / n, each) for each in told["runs"]
        ], world.rank


def _on_ranks(world, shards, mine, topology, sigma, told):
    """One run; everything from rows in memory to the model is in ``seconds``."""
    import numpy as np

    from adfs.algorithms.base import Setting
    from adfs.runtime.execution import gather_executions
    from adfs.distributed.mapping import map_nodes
    from adfs.distributed.share import Share
    from adfs.distributed.solve import solve_on_ranks
    from adfs.runtime.stopping import Stopping
    from adfs.schedule.delays import Delays

    world.gather(None)  # all begin together
    started = time.perf_counter()
    n, tau = topology.n_nodes, told["tau"]
    share = Share(
        world, [shards[node] for node in mine], "logistic", np.full(n, sigma), topology,
        map_nodes(topology, world.size), np.array([-1.0, 1.0]),
    )  # fmt: skip
    setting = Setting("tuned", tau, delays=Delays(tau=tau), schedule=told["schedule"])
    result, own = solve_on_ranks(world, share, "adfs", Stopping(told["tol"]), setting)
    seconds = time.perf_counter() - started
    every = gather_executions(world, own)
    return _told(result, seconds) | {
        "ranks": [each.seconds for each in every], "cut_edges": own.cut_edges
    }  # fmt: skip


def _locally(world, shards, mine, topology, sigma, told):
    import adfs

    started = time.perf_counter()
    problem = adfs.Problem(shards, sigma=sigma, topology=topology)
    result = adfs.solve(
        problem, "adfs", told["tol"], tau=told["tau"], schedule=told["schedule"], progress=False
    )
    return _told(result, time.perf_counter() - started)


def _told(result, seconds):
    last = result.trace.last()
    return {
        "status": result.status, "wall_time": result.wall_time, "seconds": seconds,
        "setup_time": result.setup_time, "iterations": result.iterations,
        "n_prox": last["n_prox"], "n_comm": last["n_comm"], "p_comm": result.parameters.p_comm,
        "objective": result.objective, "theta": result.theta.tolist(),
    }  # fmt: skip


if __name__ == "__main__":
    results, rank = run_all(sys.argv[1], json.loads(sys.argv[2]))
    if rank == 0:
        print(json.dumps(results))

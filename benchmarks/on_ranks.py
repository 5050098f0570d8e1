"""Runs on ranks for benchmarks: started by `launch`, one process per core, BLAS on one thread.

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


def launch(n_ranks, *arguments, timeout=None):
    """Standard output of ``n_ranks`` processes of this Python, each bound to a core of its own."""
    cores = sorted(os.sched_getaffinity(0))
    command = [mpiexec()]
    for rank in range(n_ranks):
        bound = ["taskset", "-c", str(cores[rank % len(cores)])]
        command += [":"] * (rank > 0) + ["-n", "1", *bound, sys.executable, *map(str, arguments)]
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
    a job that was disturbed is tried again, ``tries`` times in all. With one try nobody waits for
    the machine to be quiet.
    """
    told = json.dumps({"n_nodes": n_nodes, "sigma": sigma, "runs": runs})
    results, others = undisturbed(
        lambda: json.loads(launch(n_ranks, __file__, path, told, timeout=timeout)), tries
    )
    return [each | {"others": others} for each in results]


def undisturbed(work, tries=TRIES):
    """What ``work()`` returned when others used least of the machine, and how many cores."""
    best = None
    for _ in range(tries):
        if tries > 1:
            wait_until_quiet()
        started, used, own = time.perf_counter(), _used(), _own()
        result = work()
        seconds = time.perf_counter() - started
        others = max(0.0, ((_used() - used) / TICK - (_own() - own)) / seconds)
        if best is None or others < best[1]:
            best = result, others
        if others < QUIET:
            break
    return best


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
    from adfs.distributed.session import open_world
    from adfs.problems.files import load_data

    world, n = open_world(), told["n_nodes"]
    topology = adfs.Topology.parse("grid", n_nodes=n)
    nodes = map_nodes(topology, world.size).nodes(world.rank).tolist()
    shards = adfs.partition(*load_data(path), n)
    own = [(shards[node].X, shards[node].y) for node in nodes]
    few = [(X[:200], y[:200]) for X, y in own]
    del shards
    kinds = {(each["algorithm"], each.get("schedule")): each for each in told["runs"]}
    for each in kinds.values():  # untimed: loads what is compiled
        run(world, few, nodes, topology, 1.0, each | {"tol": 1e-3, "time_limit": 5.0})
    return [
        run(world, own, nodes, topology, told["sigma"] / n, each) for each in told["runs"]
    ], world.rank


def run(world, shards, nodes, topology, sigma, told):
    """One run; everything from rows in memory to the certified model is in ``seconds``."""
    import adfs
    from adfs.runtime.execution import gather_executions

    world.gather(None)  # all begin together
    started = time.perf_counter()
    problem = adfs.Problem(shards, sigma=sigma, topology=topology, nodes=nodes, engine="mpi")
    result = adfs.solve(problem, progress=False, **told)
    seconds = time.perf_counter() - started
    last = result.trace.last()
    return {
        "status": result.status, "wall_time": result.wall_time, "seconds": seconds,
        "setup_time": result.setup_time, "iterations": result.iterations,
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

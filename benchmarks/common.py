"""Shared by benchmarks: provenance, tables, records, ranks bound to cores, a quiet machine."""

import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("adfs", "numba", "numpy", "scipy", "scikit-learn", "cyanure", "snapml", "mpi4py",
            "mpich", "dask-ml", "distributed", "pyarrow", "pandas", "polars")  # fmt: skip
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
TICK = os.sysconf("SC_CLK_TCK")
TRIES = 3
QUIET = 0.2  # cores in use by others, above which numbers are not to be trusted


def provenance():
    """Commit, versions and processor of this process, as a dict for JSON."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False,
        cwd=Path(__file__).parent,
    ).stdout.strip()  # fmt: skip
    return {
        "commit": commit, **machine(), "python": platform.python_version(),
        "machine": platform.processor() or platform.machine(), "load": os.getloadavg()[0],
        "versions": {name: version_of(name) for name in PACKAGES},
    }  # fmt: skip


def machine():
    """Time, processor and number of cores; all benchmarks have seed 0."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), None
    )
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"time": now, "cpu": cpu, "cores": os.cpu_count(), "seed": 0}


def version_of(package):
    """Its version; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def print_head(*names):
    """Print the head of a Markdown table."""
    print_row(*names)
    print("|" + "---|" * len(names), flush=True)


def print_row(*cells):
    """Print a row of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def write_record(path, record):
    """Write a JSON file, and the folder it is in."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(record, indent=1))


def find_mpiexec(python=sys.executable):
    """The launcher beside a Python, or one on PATH; None without."""
    beside = Path(python).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def has_mpi():
    """Whether there is a launcher; prints what is missing if not."""
    if find_mpiexec() is None:
        print("needs MPI: pip install '.[mpi]'")
    return find_mpiexec() is not None


def rank_command(mpiexec, n_ranks, *arguments):
    """Command line of ``n_ranks`` equal processes, each bound to a core of its own."""
    cores = sorted(os.sched_getaffinity(0))
    command = [str(mpiexec)]
    for rank in range(n_ranks):
        bound = ["taskset", "-c", str(cores[rank % len(cores)])]
        command += [":"] * (rank > 0) + ["-n", "1", *bound, *map(str, arguments)]
    return command


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

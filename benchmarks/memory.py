"""Peak memory at n=100, m=10^4, d=28, and with a schedule of 10^8 events; fresh processes."""

import subprocess
import sys

BASE = "import numpy as np, adfs\n"
LOAD = """
from adfs.data.partition import partition
from adfs.problem.finite_sum import Problem
from adfs.solver import solve
from adfs.theory.parameters import Parameters
from adfs.schedule.schedule import Schedule
from adfs.graphs.topology import Topology
warm = Problem(partition(np.random.default_rng(0).random((400, 28)), np.arange(400) % 2, 4))
solve(warm, max_iter=4000)
"""
DATA = """
random = np.random.default_rng(0)
X = random.random((1_000_000, 28)); y = np.arange(1_000_000) % 2
"""
RUN = """
problem = Problem(partition(X, y, 100), topology=Topology.grid(10, 10))
solve(problem, max_iter=3_000_000)
"""
LONG = """
schedule = Schedule.sample(Parameters.choose(problem, "exact"), 100_000_000)
schedule.times(tau=5.0)
"""
# VmHWM, not ru_maxrss: a child inherits the latter from the process that started it.
REPORT = """
lines = open("/proc/self/status").read().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


def peak(code):
    """Peak resident MiB of a fresh interpreter that runs ``code``."""
    run = [sys.executable, "-c", BASE + code + REPORT]
    return int(subprocess.run(run, capture_output=True, text=True, check=True).stdout) / 1024


def main():
    """Print the peaks and the ratios; returns the row."""
    base, whole, longer = peak(LOAD), peak(LOAD + DATA + RUN), peak(LOAD + DATA + RUN + LONG)
    features = 1_000_000 * 28 * 8 / 2**20
    data = features + 1_000_000 * 8 / 2**20  # with the labels, the user's array of 64-bit numbers
    row = {
        "interpreter_mib": base,
        "peak_mib": whole,
        "data_mib": data,
        "ratio": (whole - base) / data,
        "ratio_to_features_alone": (whole - base) / features,
        "schedule_1e8_adds_mib": longer - whole,
    }
    print(
        f"n=100 m=10^4 d=28: peak {whole:.0f} MiB, interpreter {base:.0f}, data {data:.0f}: "
        f"{row['ratio']:.2f} times the data (goal < 2.5), {row['ratio_to_features_alone']:.2f} "
        f"times the features alone; 10^8 events add {longer - whole:.0f} MiB"
    )
    return row


if __name__ == "__main__":
    main()

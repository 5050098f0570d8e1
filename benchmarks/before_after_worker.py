"""One interpreter's side of `before_after.py`: builds a problem, then times calls on request.

Uses only public names of `adfs`, so that it runs against any commit. Requests come as one JSON
object per line on standard input, answers go the same way to standard output.
"""

import json
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import adfs

PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "mpi4py", "mpich")
TOL = 1e-300  # never reached
SPARSE = (2_000, 2_000)  # rows, columns: in cache, where neighbours on the machine disturb least


def higgs(n_nodes, m, graph, loss="logistic"):
    """Rows with 28 features."""
    X, y = adfs.generators.higgs_like(n_nodes * m, seed=0)
    return make_problem(X, y, n_nodes, graph, loss)


def text(n_nodes, graph):
    """Sparse rows with some 25 words each."""
    X, y = adfs.generators.sparse_text(*SPARSE, words_per_row=30, seed=0)
    return make_problem(X, y, n_nodes, graph)


def gaussians(m, d):
    """Two clouds on a 3x3 grid."""
    X, y = adfs.generators.two_gaussians(9 * m, d, seed=0, condition=10.0)
    return make_problem(X, y, 9, "grid:3x3")


def make_problem(X, y, n_nodes, graph, loss="logistic"):
    """The problem on so many nodes; sigma is 1 at each."""
    topology = adfs.Topology.parse(graph)
    return adfs.Problem(adfs.partition(X, y, n_nodes), loss, 1.0, topology)


TASKS = {  # name: the problem, and how it is solved
    "adfs event, in cache": (lambda: higgs(4, 300, "grid:2x2"), {"algorithm": "adfs"}),
    "adfs event, out of cache": (lambda: higgs(100, 5_000, "grid:10x10"), {"algorithm": "adfs"}),
    "adfs event, sparse": (lambda: text(9, "grid:3x3"), {"algorithm": "adfs"}),
    "adfs event, poisson": (
        lambda: higgs(4, 300, "grid:2x2"), {"algorithm": "adfs", "schedule": "poisson"},
    ),
    "ns-adfs event": (lambda: higgs(4, 300, "grid:2x2", "hinge"), {"algorithm": "ns-adfs"}),
    **{
        f"{name} round": (lambda: gaussians(200, 30), {"algorithm": name})
        for name in ("msda", "ssda", "esdacd", "dsba", "katyusha", "l-katyusha", "point-saga")
    },
    **{  # larger, since few rounds reach the optimum
        f"{name} round": (lambda: gaussians(2_000, 120), {"algorithm": name})
        for name in ("newton", "lbfgs")
    },
}  # fmt: skip


class Worker:
    """Answers requests; keeps one problem at a time."""

    def __init__(self):
        self.task = self.problem = None

    def about(self):
        """Which code this is."""
        versions = {}
        for name in PACKAGES:
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                versions[name] = None
        home = Path(adfs.__file__).parent
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True, text=True, cwd=home, check=False,
        ).stdout.strip()  # fmt: skip
        return {
            "adfs": adfs.__version__, "source": str(home), "commit": commit or None,
            "python": platform.python_version(), "executable": sys.executable,
            "versions": versions, "tasks": list(TASKS),
        }  # fmt: skip

    def solve(self, task, iterations):
        """Seconds of one event or round, and of the whole call's loop."""
        make, how = TASKS[task]
        if self.task != task:
            self.task, self.problem = task, make()
        result = adfs.solve(
            self.problem, tol=TOL, max_iter=iterations, evaluate_every=10 * iterations,
            progress=False, seed=0, **how,
        )  # fmt: skip
        each = result.wall_time / max(1, result.iterations)  # a short time may hold no event
        return {"each": each, "seconds": result.wall_time}

    def save(self, path, n_samples):
        """Rows for trainings from the command line."""
        X, y = adfs.generators.higgs_like(n_samples, seed=0)
        np.savez(path, X=X, y=y)
        return {}


def main():
    """Answer until standard input ends; whatever else is printed goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(worker, request.pop("do"))(**request)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()

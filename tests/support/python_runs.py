"""Problems and runs of a Python program, the same in one process and under mpiexec."""

import hashlib
import json

import numpy as np
from sklearn.datasets import dump_svmlight_file

import adfs

N_NODES = 6
METHODS = ("adfs", "newton", "lbfgs", "dsba")
KINKS = ("hinge", "logistic")  # a loss with a kink, and one without


def topology():
    return adfs.Topology.grid(2, 3)


def shards():
    """One per node, of unequal length, with the five digits of a text file."""
    X, y = adfs.generators.two_gaussians(120, 5, seed=2)
    X = np.round(X, 5)
    return [(X[part], y[part]) for part in np.split(np.arange(120), [10, 35, 50, 80, 100])]


def write_files(folder):
    """The shards as one file per node, all rows in one file, and files of which one is faulty."""
    parts = shards()
    for node, (X, y) in enumerate(parts):
        for name in ("part", "faulty"):
            dump_svmlight_file(X, y, f"{folder}/{name}-{node}.svm", zero_based=False)
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    dump_svmlight_file(X, y, f"{folder}/whole.svm", zero_based=False)
    with (folder / f"faulty-{N_NODES - 1}.svm").open("a") as file:
        file.write("1 2:nothing\n")


def files_of(folder):
    return {
        "pattern": f"{folder}/part-{{node}}.svm", "faulty": f"{folder}/faulty-{{node}}.svm",
        "whole": f"{folder}/whole.svm",
    }  # fmt: skip


def solve(problem, name, **options):
    return adfs.solve(problem, name, **{"tol": 1e-7, "max_iter": 40_000} | options)


def start_again(problem):
    """A run at another sigma that starts from the result of a first one."""
    first = adfs.solve(problem, tol=1e-3)
    return adfs.solve(problem.with_sigma(0.08), tol=1e-4, warm_start=first)


def path_bits(problem):
    """What a path with folds finds."""
    path = adfs.regularization_path(problem, [0.1, 1.0, 10.0], tol=1e-4, cv=3)
    numbers = [path.coef, path.scores(), path.mean("accuracy")]
    return [repr(path), json.dumps(path.table()), *map(digest, numbers)]


def bits_of(result, rank=0):
    """What must be the same, but for seconds; models of all nodes are on rank 0."""
    columns = result.trace.to_dict()
    del columns["wall_time"]
    numbers = [result.objective.hex(), result.duality_gap.hex()]
    thetas = [digest(result.thetas)] if rank == 0 else []
    return [result.status, numbers, digest(result.theta), thetas, json.dumps(columns)]


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()

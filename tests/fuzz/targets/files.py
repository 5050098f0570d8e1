"""Good files for commands to read, made once; what is wrong with them comes later."""

import functools

import numpy as np

from fuzz.archives import archive, npy
from fuzz.case import of_bytes

TEXT = "1 1:1 2:2\n-1 1:2 2:1\n1 1:3.5 2:4\n-1 1:4 2:-3\n1 2:1\n-1 1:0.25\n"
META = (
    '{"format": 1, "adfs": "0.1.0", "loss": "logistic", "classes": [-1, 1], "intercept": false, '
    '"n_features": 2, "n_samples": 6, "n_nodes": 2, "graph": "grid:1x2", "sigma": 0.5, "seed": 0, '
    '"algorithm": "adfs", "schedule": "shared", "parameters": {"how": "tuned", "rho": 0.1}, '
    '"status": "converged", "objective": 2.5, "duality_gap": 1e-09, "iterations": 100, '
    '"command": "adfs train data.txt"}'
)
SETTINGS = '# adfs train\nloss = "logistic"\nsigma = 0.5\nnodes = 2\ntol = 1e-3\nquiet = true\n'


def dense():
    """Arrays of a .npz file of samples."""
    return {"X": np.array([[1.0, 2.0], [2.0, 1.0], [3.5, 4.0], [4.0, -3.0]]),
            "y": np.array([1.0, -1.0, 1.0, -1.0])}  # fmt: skip


def sparse():
    """The same as parts of a CSR matrix."""
    return {
        "X_data": np.array([1.0, 2.0, 2.0, 3.5, 4.0]),
        "X_indices": np.array([0, 1, 0, 1, 0], np.int32),
        "X_indptr": np.array([0, 2, 3, 4, 5], np.int32),
        "X_shape": np.array([4, 2]),
        "y": np.array([1.0, -1.0, 1.0, -1.0]),
    }


def model():
    """Arrays of a model file."""
    return {"coef": np.array([0.5, -0.25]), "thetas": np.array([[0.5, -0.25], [0.5, -0.25]]),
            "meta": np.array(META)}  # fmt: skip


def schedule():
    """Arrays of a schedule on a path of three nodes."""
    return {
        "edges": np.array([[0, 1], [1, 2]], np.int32),
        "n_nodes": np.array(3),
        "which": np.array([0, 2, 1, 3, 4, 0], np.int32),
        "sample": np.array([-1, 0, -1, 0, 0, -1], np.int32),
    }


def npz(arrays):
    """Content of a .npz file."""
    return of_bytes(archive({f"{name}.npy": npy(array) for name, array in arrays.items()}))


@functools.cache
def good():
    """One good file of every kind."""
    return {
        "data.txt": TEXT,
        "data.npz": npz(dense()),
        "model.npz": npz(model()),
        "s.npz": npz(schedule()),
        "run.toml": SETTINGS,
        "part-0.txt": "1 1:1\n-1 2:1\n",
        "part-1.txt": "-1 1:2\n1 2:1\n",
    }

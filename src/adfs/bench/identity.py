"""What a run is made of: the same identity gives the same bits, so it need not run again."""

import hashlib
import json
import os
import platform
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import adfs
from adfs.bench.contenders import Contender
from adfs.problems.finite_sum import Problem
from adfs.runtime.stopping import Stopping
from adfs.schedule.delays import Delays

FORMAT = "adfs comparison 1"
PACKAGES = ("numpy", "scipy", "numba")
DIGITS = 16  # of a digest in a file's name: 64 bits


def fingerprint(problem: Problem) -> str:
    """Digest of everything that the problem's solution and the algorithms' steps depend on."""
    found = hashlib.sha256(f"{problem.loss.name} {problem.n_features}".encode())
    parts = (*problem.rows, problem.labels, problem.weights, problem.offsets, problem.sigma,
             problem.topology.edges)  # fmt: skip
    for part in parts:
        array = np.ascontiguousarray(part)
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(array.reshape(-1).view(np.uint8).data)  # the array's memory, not copied
    return found.hexdigest()


def describe_problem(problem: Problem) -> dict[str, Any]:
    """The problem in plain values."""
    sigma = np.unique(problem.sigma)
    return {
        "loss": problem.loss.name,
        "n_samples": problem.n_samples,
        "n_features": problem.n_features,
        "n_nodes": problem.n_nodes,
        "storage": "dense" if len(problem.rows) == 1 else "sparse",
        "graph": problem.topology.name,
        "n_edges": problem.topology.n_edges,
        "sigma": float(sigma[0]) if len(sigma) == 1 else problem.sigma.tolist(),
        "fingerprint": fingerprint(problem),
    }


def describe_machine() -> dict[str, Any]:
    """Versions and the machine: without them wall times mean nothing."""
    versions = {"python": platform.python_version(), "adfs": adfs.__version__}
    versions.update({name: metadata.version(name) for name in PACKAGES})
    return {"versions": versions, "cpu": _cpu(), "cores": os.cpu_count() or 1,
            "platform": platform.platform()}  # fmt: skip


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def describe_delays(delays: Delays) -> dict[str, Any]:
    """The time model's law in plain values."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(delays).items()}


def run_identity(
    config: dict[str, Any], contender: Contender, seed: int, stopping: Stopping
) -> dict[str, Any]:
    """Everything that a run depends on; limits as they were in force."""
    return {
        "problem": config["problem"]["fingerprint"],
        "algorithm": contender.algorithm,
        "rule": contender.rule,
        "seed": seed,
        **{name: config[name] for name in ("tau", "clock", "delays")},
        "tol": stopping.tol,
        "clock_limit": stopping.clock_limit,
        "time_limit": stopping.time_limit,
        "max_iter": stopping.max_iter,
        "adfs": config["versions"]["adfs"],
    }


def digest(identity: dict[str, Any]) -> str:
    """A short name for an identity."""
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]

"""What is fuzzed: one module per target, with ``draw(generator)`` that makes a case.

A target may have ``faults(case, outcome)``: what to hold against an outcome besides the contract.
"""

import zlib

import numpy as np

from fuzz import contract
from fuzz.targets import (
    arrays,
    checkpoints,
    commands,
    libsvm,
    models,
    npz,
    processes,
    schedules,
    settings,
    tables,
    training,
)

TARGETS = {
    "libsvm": libsvm,
    "npz": npz,
    "tables": tables,
    "models": models,
    "schedules": schedules,
    "checkpoints": checkpoints,
    "settings": settings,
    "commands": commands,
    "arrays": arrays,
    "training": training,
    "processes": processes,
}


def draw(target, seed, number):
    """Case ``number`` of a target: the same for the same seed, whatever else was drawn."""
    generator = np.random.default_rng([seed, zlib.crc32(target.encode()), number])
    with np.errstate(all="ignore"):
        return TARGETS[target].draw(generator)


def faults(case, outcome):
    """In what a case breaks the contract, or that of its target."""
    found = contract.faults(case, outcome)
    if found or not hasattr(TARGETS[case.target], "faults"):
        return found
    return TARGETS[case.target].faults(case, outcome)

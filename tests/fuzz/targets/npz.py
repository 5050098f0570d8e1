"""Samples in .npz files: bytes, structure of the archive, arrays, parts of a CSR matrix."""

import numpy as np

from fuzz.archives import mutated_archive
from fuzz.case import Case, of_bytes
from fuzz.mutations import hostile_number, pick
from fuzz.targets import files
from fuzz.targets.libsvm import COMMANDS


def draw(generator):
    """An archive of samples with something wrong."""
    if generator.random() < 0.3:
        content = files.npz(_wrong_csr(generator))
    else:
        arrays = files.dense() if generator.random() < 0.5 else files.sparse()
        content = of_bytes(mutated_archive(generator, arrays))
    name = pick(generator, ("in.npz", "in.npz", "in.txt"))
    arguments = [name if word == "DATA" else word for word in pick(generator, COMMANDS)]
    given = {"data.txt": files.TEXT, "model.npz": files.good()["model.npz"]}
    return Case("npz", arguments, {**given, name: content})


def _wrong_csr(generator):
    """Parts of a CSR matrix, a few numbers of which are changed."""
    arrays = files.sparse()
    for _ in range(int(generator.integers(1, 4))):
        name = pick(generator, list(arrays))
        array = arrays[name].copy()
        place = int(generator.integers(max(1, len(array))))
        if not len(array):
            continue
        if array.dtype.kind == "f":
            array[place] = hostile_number(generator)
        else:
            largest = np.iinfo(array.dtype).max
            array[place] = pick(generator, (-1, 0, 1, 2, 5, 100, 10**6, largest, -largest))
        arrays[name] = array if generator.random() < 0.8 else array[:-1]
    return arrays

"""Schedule files, read by `adfs schedule show`, `times` and `timeline`."""

import numpy as np

from fuzz.archives import mutated_archive
from fuzz.case import Case, of_bytes
from fuzz.mutations import NUMBERS, pick
from fuzz.targets import files

COMMANDS = (
    ["show", "in.npz"],
    ["show", "in.npz", "--json", "--first", "3"],
    ["times", "in.npz"],
    ["times", "in.npz", "--json", "--clock", "rendezvous", "--tau", "NUMBER"],
    ["times", "in.npz", "--delay-law", "pareto", "--speed", "NUMBER,1,2"],
    ["timeline", "in.npz", "--chrome", "trace.json"],
    ["timeline", "in.npz", "--chrome", "trace.json", "--last", "NUMBER", "--json"],
)
WHOLE = (-1, 0, 1, 2, 3, 4, 5, 100, 2**31 - 1, -(2**31))


def draw(generator):
    """A schedule with something wrong."""
    if generator.random() < 0.5:
        content = files.npz(_wrong_schedule(generator))
    else:
        content = of_bytes(mutated_archive(generator, files.schedule()))
    words = pick(generator, COMMANDS)
    arguments = [word.replace("NUMBER", pick(generator, NUMBERS)) for word in words]
    return Case("schedules", ["schedule", *arguments], {"in.npz": content})


def _wrong_schedule(generator):
    arrays = files.schedule()
    for _ in range(int(generator.integers(1, 4))):
        name = pick(generator, list(arrays))
        array = np.atleast_1d(arrays[name]).copy()
        if array.size:
            array.reshape(-1)[int(generator.integers(array.size))] = pick(generator, WHOLE)
        if array.size and generator.random() < 0.15:
            array = array[: int(generator.integers(len(array)))]
        arrays[name] = array.reshape(()) if array.size == 1 and name == "n_nodes" else array
    return arrays

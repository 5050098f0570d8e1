"""Model files: their arrays, and the JSON that says what they mean."""

import json

import numpy as np

from fuzz.archives import mutated_archive
from fuzz.case import Case, of_bytes
from fuzz.mutations import hostile_number, mutated_text, pick, some
from fuzz.targets import files

COMMANDS = (
    ["predict", "in.npz", "data.txt"],
    ["predict", "in.npz", "data.txt", "--json"],
    ["predict", "in.npz", "data.txt", "--proba"],
    ["predict", "in.npz", "data.npz", "--out", "labels.txt"],
    ["train", "data.txt", "--warm-start", "in.npz", "--max-iter", "20", "--quiet"],
    ["train", "data.txt", "--warm-start", "in.npz", "--max-iter", "20", "--intercept", "--json"],
)
VALUES = (None, True, False, 0, 1, -1, 2, 3, 10**30, 1.5, 1e308, float("nan"), float("inf"), "",
          "hinge", "squared", "é", "\ud800", [], [1], [0, 1], [1, 1], ["a", "b"],
          [None, True], [[1], [2]], [1, "a"], [float("nan"), 1], [10**400, 1], {}, {"a": 1},
          "x" * 5000)  # fmt: skip


def draw(generator):
    """A model with something wrong."""
    arrays = files.model()
    if generator.random() < 0.6:
        arrays["meta"] = np.array(_wrong_meta(generator))
        if generator.random() < 0.2:
            arrays["coef"] = np.array([hostile_number(generator) for _ in arrays["coef"]])
        content = files.npz(arrays)
    else:
        content = of_bytes(mutated_archive(generator, arrays))
    given = {name: files.good()[name] for name in ("data.txt", "data.npz")}
    return Case("models", list(pick(generator, COMMANDS)), {**given, "in.npz": content})


def _wrong_meta(generator):
    how = generator.random()
    if how < 0.2:
        return some(generator, mutated_text, files.META)
    if how < 0.3:
        return pick(generator, ("[" * 100_000, '{"a":' * 10_000, "", "null", "1" * 5000, "{}", "[]",
                                '{"format": ' + "1" * 5000 + "}"))  # fmt: skip
    meta = json.loads(files.META)
    for _ in range(int(generator.integers(1, 4))):
        name = pick(generator, list(meta))
        if generator.random() < 0.2:
            del meta[name]
        else:
            meta[name] = pick(generator, VALUES)
    return json.dumps(meta)

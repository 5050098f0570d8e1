"""Folders of checkpoints that were damaged, and runs that go on from them."""

import contextlib
import functools
import io
import os
import tempfile
from pathlib import Path

import numpy as np

from fuzz.case import Case, of_bytes
from fuzz.mutations import hostile_number, mutated_bytes, pick, some
from fuzz.targets import files, training

TRAIN = ["train", "data.txt", "--nodes=2", "--loss=logistic", "--sigma=0.5", "--tol=1e-9",
         "--checkpoint=ck", "--json", "--out=model.npz"]  # fmt: skip
VALUES = (None, True, -1, 0, 1, 10**6, 10**30, 1.5, float("nan"), "", "x", [], [0], {}, {"a": 1})


@functools.cache
def good():
    """The files of a run that was stopped at its 60th event."""
    from adfs.cli.main import main

    with tempfile.TemporaryDirectory() as folder:
        here = os.getcwd()
        try:
            os.chdir(folder)
            Path("data.txt").write_text(files.TEXT)
            words = io.StringIO()
            with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
                main([*TRAIN, "--max-iter=60", "--checkpoint-every=20"])
            return {path.name: path.read_bytes() for path in sorted(Path("ck").iterdir())}
        finally:
            os.chdir(here)


def draw(generator):
    """The folder with one of its files changed, removed, renamed or made anew."""
    found = dict(good())
    name = pick(generator, list(found))
    how = generator.random()
    if how < 0.3:
        found[name] = some(generator, mutated_bytes, found[name])
    elif how < 0.8:
        found[name] = _with_other_content(generator, found[name])
    elif how < 0.9:
        found[_other_name(generator, name)] = found.pop(name)
    else:
        found[_other_name(generator, name)] = generator.bytes(int(generator.integers(200)))
    given = {f"ck/{each}": of_bytes(raw) for each, raw in found.items()}
    arguments = [*TRAIN, "--resume", "--max-iter=2000"]
    return Case("checkpoints", arguments, {"data.txt": files.TEXT, **given})


def _other_name(generator, name):
    return pick(generator, (name.replace("0-of-1", "1-of-2"), name + ".tmp", "." + name,
                            name.replace("0000", "9999"), name.upper(), "notes.txt",
                            "checkpoint-.adfs", f"checkpoint-{10**30}-0-of-1.adfs"))  # fmt: skip


def _with_other_content(generator, raw):
    """The file with other values in its header or arrays, and checksums that are right."""
    from adfs.engine import checkpoint_file

    with tempfile.NamedTemporaryFile() as file:
        file.write(raw)
        file.flush()
        header, arrays = checkpoint_file.unpack(Path(file.name))
    if generator.random() < 0.5:
        _change_values(generator, header)
    else:
        _change_arrays(generator, arrays)
    return b"".join(bytes(part) for part in checkpoint_file.pack(header, arrays))


def _change_values(generator, values):
    """Change one value, somewhere in nested mappings."""
    name = pick(generator, list(values))
    if isinstance(values[name], dict) and values[name] and generator.random() < 0.8:
        _change_values(generator, values[name])
    elif generator.random() < 0.2:
        del values[name]
    else:
        values[name] = pick(generator, VALUES)


def _change_arrays(generator, arrays):
    name = pick(generator, list(arrays))
    array = arrays[name].copy()
    how = generator.integers(5)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[name] = array.astype(pick(generator, ("f4", "i8", "b1", "f8")))
    elif how == 2:
        arrays[name] = array.reshape(-1)[: int(generator.integers(array.size + 1))]
    elif how == 3:
        arrays[f"{name}x"] = array
    elif array.size:
        place = int(generator.integers(array.size))
        with np.errstate(invalid="ignore"):
            array.reshape(-1)[place] = np.array(hostile_number(generator)).astype(array.dtype)
        arrays[name] = array


faults = training.faults

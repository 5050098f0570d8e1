"""Commands in this process and under mpiexec, and what their two results must have in common."""

import contextlib
import csv
import io
import json
from typing import NamedTuple

import numpy as np

from adfs.cli.main import main

SECONDS = {"wall_time", "setup_time"}
OWN = SECONDS | {"ranks", "out", "trace", "resumed"}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def leaves(command, prog="adfs"):
    """All commands without verbs, by their full names."""
    if not command.verbs:
        yield prog, command
    for verb in command.verbs:
        yield from leaves(verb, f"{prog} {verb.name}")


def here(*arguments):
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Outcome(code, out.getvalue(), err.getvalue())


def bits_of_model(path):
    """Arrays of a model file, and what it says of itself but for the command that made it."""
    with np.load(path) as file:
        arrays = {name: (file[name].shape, file[name].tobytes()) for name in ("coef", "thetas")}
        meta = json.loads(str(file["meta"]))
    return arrays, {name: value for name, value in meta.items() if name != "command"}


def rows_of_trace(path):
    """All columns but the seconds, as text: every digit counts."""
    with open(path, newline="") as file:
        return [
            {name: value for name, value in row.items() if name not in SECONDS}
            for row in csv.DictReader(file)
        ]


def numbers_of(text):
    """The one JSON object that a command printed, without what may differ between engines."""
    (line,) = text.splitlines()
    return {name: value for name, value in json.loads(line).items() if name not in OWN}


def differing(found, expected):
    """Where two commands printed different numbers, but for seconds and what only ranks have."""
    found, expected = numbers_of(found), numbers_of(expected)
    return {name: (found.get(name), expected.get(name)) for name in found.keys() | expected.keys()
            if found.get(name) != expected.get(name)}  # fmt: skip

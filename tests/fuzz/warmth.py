"""Loads what children would otherwise import, load or compile themselves, each of them again."""

import contextlib
import importlib
import io
import itertools
import pkgutil
import tempfile

import numpy as np

from fuzz.calls import LAYOUTS
from fuzz.case import Case
from fuzz.samples import columns_of
from fuzz.targets import files, libsvm, tables

SHARDS = (
    [[1.0, 1.0, 1.0, 2.0], [-1.0, 2.0, 0.5, 1.0]],
    [[-1.0, 1.0, 2.0, 0.0], [1.0, 1.0, 1.0, 1.0]],
)


def warm_up(layouts=tuple(LAYOUTS), losses=("logistic", "squared", "hinge")):
    """Import all modules, run every algorithm and some commands on tiny problems.

    Kernels know losses by numbers, so a few losses will do.
    """
    _import_all()
    _run_commands()
    for layout, loss in itertools.product(layouts, losses):
        _run_algorithms(layout, loss)


def _import_all():
    import adfs

    for module in pkgutil.walk_packages(adfs.__path__, "adfs."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _run_commands():
    from adfs.cli.main import main

    words = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(words):
        Case("commands", files=files.good()).write_files(folder)
        places = {name: f"{folder}/{name}" for name in (*files.good(), "new.npz", "labels.txt")}
        places["DATA"] = places["data.txt"]
        with contextlib.redirect_stderr(words):
            for command in libsvm.COMMANDS:
                main([places.get(word, word) for word in command])
            table = {"DATA": f"{folder}/in.csv", "data.csv": f"{folder}/in.csv"}
            Case("tables", files={"in.csv": tables.TEXT}).write_files(folder)
            for command in tables.COMMANDS[:2]:
                main([table.get(word, word) for word in command])


def _run_algorithms(layout, loss):
    import adfs
    from adfs.errors import AdfsError

    parts = [columns_of(shard) for shard in SHARDS]
    problem = adfs.Problem([(LAYOUTS[layout](X), y, w) for X, y, w in parts], loss)
    problem.objective(np.ones(2))
    problem.optimum()
    for name, schedule in itertools.product(adfs.algorithms.NAMES, ("shared", "poisson")):
        with contextlib.suppress(AdfsError):
            adfs.solve(problem, name, max_iter=20, schedule=schedule, progress=False)

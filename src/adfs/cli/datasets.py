"""`adfs datasets`: the data sets known by name, and where they are."""

import argparse
from typing import Any

from adfs.cli import layout, options, output
from adfs.cli.parser import add_command

EXAMPLE = """\
examples:
  adfs datasets
  ADFS_DATA=~/libsvm adfs datasets
  adfs datasets --json

A name is looked for in the folder ADFS_DATA, then in the cache (ADFS_CACHE, else ~/.cache/adfs),
else downloaded when it is first used."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = add_command(
        commands, "datasets", run, help="list the data sets known by name",
        description="List the data sets whose names can stand for DATA: their size, their task, "
        "and the file in which they were found, if they are on disk.",
        epilog=EXAMPLE,
    )  # fmt: skip
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the registry."""
    from adfs.problems.datasets import available

    found = available()
    if args.json:
        output.emit_json({"datasets": [_record(dataset, path) for dataset, path in found]})
        return 0
    rows = [
        (set_.name, f"{set_.n_samples:,}", f"{set_.n_features:,}", set_.task, _where(set_, path),
         set_.description)
        for set_, path in found
    ]  # fmt: skip
    headers = ("name", "rows", "features", "task", "where", "what")
    output.emit(layout.table(headers, rows, right=(1, 2)))
    return 0


def _where(dataset: Any, path: Any) -> str:
    if path is not None:
        return str(path)
    if dataset.bundled:
        return "made when used"
    return "downloaded when used" if dataset.url else "not found; put it into ADFS_DATA"


def _record(dataset: Any, path: Any) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "n_samples": dataset.n_samples,
        "n_features": dataset.n_features,
        "task": dataset.task,
        "path": None if path is None else str(path),
        "url": dataset.url,
        "description": dataset.description,
    }

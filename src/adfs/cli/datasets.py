"""`adfs datasets`: the data sets known by name, and where they are."""

import argparse
from typing import Any

from adfs.cli import options, output
from adfs.cli.arguments import Command

EXAMPLES = """\
examples:
  adfs datasets
  ADFS_DATA=~/libsvm adfs datasets
  adfs datasets --json

A name is searched in the folder ADFS_DATA, then in the cache (ADFS_CACHE, else ~/.cache/adfs), and
downloaded when it is first used, and again after --forget NAME. The numbers of rows are the
published ones: a file on disk may have others."""


def run(args: argparse.Namespace) -> int:
    """Print the registry, or remove a set from the cache."""
    from adfs.data.datasets import available

    if args.forget is not None:
        return _forget(args)
    found = available()
    if args.json:
        output.emit_json({"datasets": [_record(dataset, path) for dataset, path in found]})
        return 0
    rows = [
        (
            known.name,
            f"{known.n_samples:,}" + (" published" if path is not None else ""),
            f"{known.n_features:,}",
            known.task,
            _where(known, path),
            known.description,
        )
        for known, path in found
    ]
    headers = ("name", "rows", "features", "task", "where", "what")
    output.emit(output.table(headers, rows, right=(1, 2)))
    return 0


def _forget(args: argparse.Namespace) -> int:
    from adfs.data.datasets import forget

    removed = [str(path) for path in forget(args.forget)]
    if args.json:
        output.emit_json({"forgot": args.forget, "removed": removed})
    else:
        output.emit(f"forgot {args.forget}: removed {', '.join([*removed, 'its checksum'])}\n")
    return 0


def _where(dataset: Any, path: Any) -> str:
    if path is not None:
        return str(path)
    if dataset.bundled:
        return "made when used"
    return "downloaded when used" if dataset.url else "not found; put it into ADFS_DATA"


def _record(dataset: Any, path: Any) -> dict[str, Any]:
    names = ("name", "n_samples", "n_features", "task", "url", "description")
    values = {name: getattr(dataset, name) for name in names}
    return {**values, "sizes": "published", "path": None if path is None else str(path)}


COMMAND = Command(
    "datasets",
    "list the data sets known by name",
    "List the data sets whose names can be given as DATA: their size, their task, and the file in "
    "which they were found, if they are on disk.",
    EXAMPLES,
    run,
    groups=options.DATA_SETS,
)

"""`adfs datasets`: the data sets known by name, and where they are."""

import argparse
from pathlib import Path

from adfs.cli import output
from adfs.data.datasets import Dataset, available, forget

HEADERS = ("name", "rows", "features", "task", "where", "what")
FACTS = ("name", "n_samples", "n_features", "task", "url", "description")


def run(args: argparse.Namespace) -> int:
    """Print the registry, or remove a set from the cache."""
    if args.forget is not None:
        removed = [str(path) for path in forget(args.forget)]
        text = f"forgot {args.forget}: removed {', '.join([*removed, 'its checksum'])}\n"
        return output.show(args, {"forgot": args.forget, "removed": removed}, text)
    records, rows = [], []
    for known, path in available():
        place = None if path is None else str(path)
        records.append({**output.values(known, *FACTS), "sizes": "published", "path": place})
        sizes = (f"{known.n_samples:,}{' published' if path else ''}", f"{known.n_features:,}")
        rows.append((known.name, *sizes, known.task, _where(known, path), known.description))
    return output.show(args, {"datasets": records}, output.table(HEADERS, rows, right=(1, 2)))


def _where(dataset: Dataset, path: Path | None) -> str:
    if path is not None:
        return str(path)
    if dataset.bundled:
        return "made when used"
    return "downloaded when used" if dataset.url else "not found; put it into ADFS_DATA"

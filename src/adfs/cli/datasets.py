"""`adfs datasets`: the data sets known by name, and where they are."""

import argparse

from adfs.cli import output
from adfs.data.datasets import available, forget

HEADERS = ("name", "rows", "features", "task", "where", "what")
DOWNLOADED, NOWHERE = "downloaded when used", "not found; put it into ADFS_DATA"
FACTS = ("name", "n_samples", "n_features", "task", "url", "description")


def run(args: argparse.Namespace) -> int:
    if args.forget is not None:
        removed = [str(path) for path in forget(args.forget)]
        text = f"forgot {args.forget}: removed {', '.join([*removed, 'its checksum'])}\n"
        return output.show(args, {"forgot": args.forget, "removed": removed}, text)
    records, rows = [], []
    for known, path in available():
        place = None if path is None else str(path)
        otherwise = "made when used" if known.bundled else DOWNLOADED if known.url else NOWHERE
        records.append({**output.values(known, *FACTS), "sizes": "published", "path": place})
        sizes = (f"{known.n_samples:,}{' published' if path else ''}", f"{known.n_features:,}")
        rows.append((known.name, *sizes, known.task, place or otherwise, known.description))
    return output.show(args, {"datasets": records}, output.table(HEADERS, rows, right=(1, 2)))

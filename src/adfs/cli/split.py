"""`adfs split`: one file per node, with the rows that a training would give the node."""

import argparse
import os

from adfs.cli import files, output
from adfs.cli.problem_arguments import as_list, fetch
from adfs.data.files import NODE, shard_path
from adfs.data.shard_files import split_file
from adfs.errors import DataError, ParameterError

HEADERS = ("node", "rows", "file")


def run(args: argparse.Namespace) -> int:
    """Read the file, then write those of the nodes one after the other."""
    if args.out is None:
        raise ParameterError(
            "--out must name the files, one per node; write for example --out 'shard-{node}.svm'."
        )
    if NODE in args.data:
        raise DataError(
            f"DATA must be one file, but {args.data} has one file per node already; name one."
        )
    fetch(args.data)
    categorical = as_list(args.categorical) or []
    with output.note_if_slow(f"reading {args.data}", True):
        shards = split_file(
            args.data, args.out, args.nodes, args.partition, args.seed, args.by, categorical
        )
    paths = [str(shard_path(args.out, node)) for node in range(args.nodes)]
    for path in {os.path.dirname(path): path for path in paths}.values():
        files.check_writable("--out", path)
    rows = []
    for path, (n_rows, content) in zip(paths, shards, strict=True):
        files.write(path, content)
        rows.append(n_rows)
    record = {
        **output.values(args, "data", "by"), "n_nodes": len(rows), "n_samples": sum(rows),
        "partition": args.partition if args.by is None else None, "seed": args.seed,
        "files": [{"rows": n, "path": path} for n, path in zip(rows, paths, strict=True)],
    }  # fmt: skip
    lines = [(str(node), f"{n:,}", paths[node]) for node, n in enumerate(rows)]
    return output.show(args, record, output.table(HEADERS, lines, right=(0, 1)))

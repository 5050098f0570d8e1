"""Reading a large table on two ranks, beside pandas and polars reading the same file.

A gigabyte of CSV and one of Parquet: 20 columns of numbers, one of words, a word to predict. Ours
is the whole command, `adfs train` with one iteration on two ranks: it starts Python, finds the
kinds and categories of all columns, reads the rows of its nodes, encodes words and makes the
problem. The others only read the file into a data frame, in one process that may use both cores.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import find_mpiexec, has_mpi, print_head, print_row, undisturbed

N_NUMBERS, ROWS_AT_ONCE = 20, 250_000
BYTES = 1_000_000_000
READERS = {
    "pandas, C parser": "import pandas; pandas.read_csv(path)",
    "pandas, pyarrow": "import pandas; pandas.read_{kind}(path, engine='pyarrow')",
    "polars": "import polars; polars.read_{kind}(path)",
}
WORKER = (
    "import resource, sys; path = sys.argv[1]; exec(sys.argv[2]); "
    "print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
)


def blocks():
    """Blocks of rows as pyarrow tables, without end."""
    import pyarrow as pa

    random = np.random.default_rng(0)
    while True:
        X = np.round(random.normal(size=(ROWS_AT_ONCE, N_NUMBERS)), 6)
        city = random.choice(["Oslo", "Paris", "Rome"], ROWS_AT_ONCE)
        buys = np.where(X[:, 0] + (city == "Rome") + random.normal(size=len(X)) > 0, "yes", "no")
        yield pa.table({f"x{j}": X[:, j] for j in range(N_NUMBERS)} | {"city": city, "buys": buys})


def write(path, n_bytes):
    """A table of about so many bytes; the number of its rows."""
    import pyarrow.csv
    import pyarrow.parquet

    first, n_rows = next(blocks()), 0
    kind = pyarrow.csv.CSVWriter if path.suffix == ".csv" else pyarrow.parquet.ParquetWriter
    with open(path, "wb") as file, kind(file, first.schema) as writer:
        for block in blocks():
            writer.write_table(block)
            n_rows += len(block)
            if file.tell() > n_bytes:
                return n_rows


def ours(path):
    """Seconds of the whole command, and the sum of the peaks of both ranks."""
    command = [find_mpiexec(), "-n", "2", sys.executable, "-m", "adfs", "train", path, "--target",
               "buys", "--engine", "mpi", "--nodes", "2", "--max-iter", "1", "--json",
               "--quiet"]  # fmt: skip
    seconds, run = timed([*map(str, command)])
    if run.returncode not in (0, 3):
        raise RuntimeError(run.stderr)
    return seconds, sum(rank["peak_memory"] for rank in json.loads(run.stdout)["ranks"])


def theirs(path, code):
    """The same of another reader, or None if it is not installed."""
    code = code.format(kind=path.suffix[1:])
    seconds, run = timed([sys.executable, "-c", WORKER, str(path), code])
    return (seconds, int(run.stdout)) if run.returncode == 0 else None


def timed(command):
    started = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return time.perf_counter() - started, run


def main(n_bytes=BYTES):
    """A table of seconds and memory; all rows as a list of dicts."""
    if not has_mpi():
        return None
    rows = []
    print_head("file", "reader", "seconds", "memory", "memory over the numbers")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            path = Path(folder) / f"people.{kind}"
            n_rows = write(path, n_bytes)
            values = 8 * n_rows * (N_NUMBERS + 4)  # three cities and the label
            readers = {"adfs train, two ranks": ours} | {
                name: lambda path, code=code: theirs(path, code)
                for name, code in READERS.items()
                if kind == "csv" or name != "pandas, C parser"
            }
            for name, read in readers.items():
                read(path)  # compiles, and fills the file cache
                found, _ = undisturbed(lambda read=read, path=path: read(path))
                if found is None:
                    continue
                seconds, memory = found
                rows.append({"file": kind, "reader": name, "seconds": seconds, "memory": memory})
                print_row(f"{kind}, {path.stat().st_size / 1e9:.2f} GB, {n_rows:,} rows", name,
                          f"{seconds:.1f}", f"{memory / 1e9:.2f} GB",
                          f"{memory / values:.2f}")  # fmt: skip
            path.unlink()
    return rows


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else BYTES)

"""Memory of a rank: its shard plus O(d) a node, whatever the other ranks hold.

How much a rank's peak grows with the data, for 1, 2 and 4 ranks: differences of two runs, so that
the interpreter, the compiler and buffers of a fixed size do not count. First more rows with few
features, as a multiple of how much the rank's shard grows (features and labels as 64-bit numbers);
then a few rows with more features, as numbers for each feature.
"""

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import find_mpiexec, has_mpi

from adfs.data.generators import higgs_like, sparse_text
from adfs.data.npz import save_npz

N_NODES = 4
RANKS = (1, 2, 4)
ROWS = {"npz": (100_000, 1_100_000), "txt": (100_000, 300_000)}  # text is slow to read
FEATURES = (1_000, 1_000_000)


def peaks(n_ranks, data, *options):
    """Most memory of each rank's process, in bytes, of a short run."""
    command = [find_mpiexec(), "-n", str(n_ranks), sys.executable, "-m", "adfs", "train", data,
               "--engine", "mpi", "--nodes", str(N_NODES), "--max-iter", "100000", "--json",
               "--quiet", *options]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode not in (0, 3):
        raise RuntimeError(run.stderr)
    return [rank["peak_memory"] for rank in json.loads(run.stdout)["ranks"]]


def growth(n_ranks, small, large, *options):
    """How much more memory the largest rank needs for the large file."""
    return max(peaks(n_ranks, large, *options)) - max(peaks(n_ranks, small, *options))


def many_rows(folder):
    """Rows of the first table: the shard is what counts."""
    X, y = higgs_like(max(rows[1] for rows in ROWS.values()), seed=0)
    width = 8 * (X.shape[1] + 1)
    for kind, save in (("npz", save_npz), ("txt", write_libsvm)):
        for n_rows in ROWS[kind]:
            save(folder / f"{n_rows}.{kind}", X[:n_rows], y[:n_rows])
    del X, y
    table = []
    peaks(2, str(folder / f"{ROWS['npz'][0]}.npz"))  # compiles, if nothing has before
    for kind, how in itertools.product(ROWS, ("contiguous", "even")):
        small, large = ROWS[kind]
        files = [str(folder / f"{n_rows}.{kind}") for n_rows in (small, large)]
        for n_ranks in RANKS:
            shard = width * (large - small) // n_ranks
            grown = growth(n_ranks, *files, "--partition", how)
            row = {"file": kind, "partition": how, "ranks": n_ranks, "shard": shard,
                   "peak": grown, "ratio": grown / shard}  # fmt: skip
            table.append(row)
            print(f"| {kind} | {how} | {n_ranks} | {shard / 2**20:.0f} MiB | "
                  f"{grown / 2**20:.0f} MiB | {row['ratio']:.2f} |", flush=True)  # fmt: skip
    return table


def many_features(folder):
    """Rows of the second table: vectors of length d are what counts."""
    files = []
    for d in FEATURES:
        X, y = sparse_text(400, d, words_per_row=20, seed=0)
        files.append(str(folder / f"wide-{d}.npz"))
        save_npz(files[-1], X, y)
    table = []
    peaks(2, files[0])  # the same for sparse rows
    for n_ranks in RANKS:
        grown = growth(n_ranks, *files)
        nodes, numbers = N_NODES // n_ranks, grown / (8 * (FEATURES[1] - FEATURES[0]))
        table.append({"ranks": n_ranks, "nodes": nodes, "peak": grown, "numbers": numbers})
        print(f"| {n_ranks} | {nodes} | {grown / 2**20:.0f} MiB | {numbers:.0f} |", flush=True)
    slope, offset = np.polyfit([row["nodes"] for row in table],
                               [row["numbers"] for row in table], 1)  # fmt: skip
    print(f"about {slope:.0f} numbers per feature for each node, and {offset:.0f} for each rank")
    return {"rows": table, "a_node": slope, "a_rank": offset}


def write_libsvm(path, X, y):
    """Rows as text, a block at a time."""
    form = " ".join(f"{k + 1}:%.6g" for k in range(X.shape[1]))
    with open(path, "w") as file:
        for start in range(0, len(y), 10_000):
            block = np.column_stack([y[start : start + 10_000], X[start : start + 10_000]])
            np.savetxt(file, block, fmt="%g " + form)


def main():
    """Print both tables; returns their rows."""
    if not has_mpi():
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| file | partition | ranks | a rank's shard grows by | its peak by | ratio |\n"
              "|---|---|---|---|---|---|")  # fmt: skip
        rows = many_rows(folder)
        print(f"\n| ranks | nodes of a rank | from d = {FEATURES[0]:,} to {FEATURES[1]:,} its peak "
              "grows by | numbers per feature |\n|---|---|---|---|")  # fmt: skip
        return {"rows": rows, "features": many_features(folder)}


if __name__ == "__main__":
    main()

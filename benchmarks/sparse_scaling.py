"""CSR: what a local event costs when d grows tenfold at equal non-zeros a row."""

import itertools

import numpy as np
import scipy.sparse as sp
from event_cost import Events

import adfs

NNZ = 40
BANDS = 8  # non-zeros come from the same few thousand columns whatever d is


def problem_with(n_features, n_samples=20_000, seed=0):
    """Rows with ``NNZ`` non-zeros each; word frequencies fall off in the same way for every d."""
    random = np.random.default_rng(seed)
    ranks = np.sort(random.zipf(1.3, size=(n_samples, NNZ * BANDS)) % n_features, axis=1)
    rows = [np.unique(row)[:NNZ] for row in ranks]
    rows = [np.union1d(row, random.integers(0, n_features, NNZ))[:NNZ] for row in rows]
    indices = np.concatenate(rows).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    values = random.standard_normal(len(indices))
    X = sp.csr_matrix((values, indices, indptr), shape=(n_samples, n_features))
    y = np.where(random.random(n_samples) < 0.5, 1.0, -1.0)
    return adfs.Problem([(X, y)], sigma=1.0)


def main(sizes=(5_000, 50_000, 500_000)):
    """Nanoseconds a local event for each d, interleaved, and the ratios; returns the rows."""
    runners = {d: Events(problem_with(d)) for d in sizes}
    for runner in runners.values():
        runner.run(1 << 17)
    costs = {d: [] for d in sizes}
    for _ in range(7):
        for d, runner in runners.items():
            runner.parts[:] = 0.0
            runner.run(1 << 17)
            costs[d].append(runner.parts[1] / (1 << 17) * 1e9)
    medians = {d: float(np.median(costs[d])) for d in sizes}
    rows = []
    for small, large in itertools.pairwise(sizes):
        ratio = medians[large] / medians[small]
        rows.append({"d": [small, large], "ns": [medians[small], medians[large]], "ratio": ratio})
        print(f"d={small} -> {large}: {medians[small]:.0f} -> {medians[large]:.0f} ns, "
              f"ratio {ratio:.2f} (goal < 1.3)")  # fmt: skip
    return rows


if __name__ == "__main__":
    main()

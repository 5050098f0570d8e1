"""Run by mpiexec: the fits of `support.fits` on ranks; rank 0 writes what all have found."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from adfs.mpi.launcher import rank_by_environment, size_by_environment
from support.fits import N_NODES, bits_of, fits

RANK, SIZE = rank_by_environment(), size_by_environment()


def main(path, *names):
    """Each rank writes its own file: the ranks meet in `fit` alone."""
    found = {}
    nodes = np.array_split(np.arange(N_NODES), SIZE)[RANK]
    for name in names:
        case = fits()[name]
        found[name] = bits_of(case.fit(np.isin(case.groups, nodes), engine="mpi"))
    Path(f"{path}.{RANK}").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Calls of the package in Python, from plain values; ends and exit codes as those of a command."""

import json
import sys
import warnings

import numpy as np
import scipy.sparse as sp

from fuzz.samples import columns_of

LAYOUTS = {
    "dense": np.asarray,
    "csr": sp.csr_matrix,
    "float32": np.float32,
    "csr32": lambda X: sp.csr_matrix(np.float32(X)),
}


def run(call):
    """Make the call; 0 after one JSON object on stdout, 2 or 1 after one sentence on stderr."""
    from adfs.errors import AdfsError

    keywords = dict(call)
    warnings.simplefilter("ignore", UserWarning)  # adfs's own, meant for callers
    try:
        found = CALLS[keywords.pop("function")](**keywords)
    except AdfsError as error:
        return _complain(" ".join(str(error).split()), 2)
    except MemoryError:
        return _complain("this needs more memory than there is.", 1)
    print(json.dumps(found))
    return 0


def _complain(sentence, code):
    print(f"adfs: {sentence}", file=sys.stderr)
    return code


def solve(shards, layout, loss, sigma, graph, **options):
    """`adfs.solve`, on shards of samples ``[label, weight, features...]``."""
    import adfs

    parts = [columns_of(shard) for shard in shards]
    with np.errstate(over="ignore"):
        given = [(LAYOUTS[layout](X), y, weights) for X, y, weights in parts]
    topology = adfs.Topology.parse(graph, n_nodes=len(shards))
    problem = adfs.Problem(given, loss, sigma[: len(shards)], topology)
    result = adfs.solve(problem, progress=False, **options)
    return {
        "status": result.status,
        "objective": result.objective,
        "duality_gap": result.duality_gap,
        "theta": result.theta.tolist(),
    }


def arrays(shards, **keywords):
    """`adfs.Problem` on arrays as they are described, then everything that reads its rows."""
    import adfs

    given = [tuple(map(described, shard)) for shard in shards]
    if "sigma" in keywords:
        keywords["sigma"] = described(keywords["sigma"])
    problem = adfs.Problem(given, **keywords)
    theta = np.ones(problem.n_features)
    found = problem.objective(theta), problem.gradient(theta).tolist()
    result = adfs.solve(problem, max_iter=20, progress=False)
    return {"found": found, "status": result.status}


def described(value):
    """An array from its description; what is not described is itself."""
    if not isinstance(value, dict):
        return value
    if "zeros" in value:
        return np.zeros(value["zeros"], value.get("dtype", "float64"))
    if "csr" in value:
        return _csr(value)
    array = np.array(value["array"])
    with np.errstate(all="ignore"):
        return array.astype(value["dtype"]) if "dtype" in value else array


def _csr(value):
    """A CSR matrix of these parts, which SciPy is not asked to check."""
    matrix = sp.csr_matrix(tuple(value["shape"]))
    data, indices, indptr = (described(part) for part in value["csr"])
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


CALLS = {"solve": solve, "arrays": arrays}

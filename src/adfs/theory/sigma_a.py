"""``sigma_A``, the strong convexity of the dual problem, from n x n algebra.

The m virtual nodes of node ``i`` act as one of mass ``S_i = sum_j L_ij``, because
``mu_ij^2 / L_ij = alpha_i`` for all of them. An eigenvalue ``lambda < min alpha`` of the augmented
Laplacian then belongs to

    Lap a = lambda D(lambda) a,    D_i(lambda) = sigma_i + S_i alpha_i / (alpha_i - lambda),

and ``sigma_A`` is the smallest positive such eigenvalue, or the least ``alpha_i`` of a node with
two samples or more (their difference is an eigenvector).

Projector form: a dual variable of sample ``j`` lives in ``span(x_ij)``, so ``S_i`` becomes the
matrix ``B_i = sum_j L_ij P_ij`` and ``D_i`` a block. Since ``B_i <= lambda_max(B_i) I``, the scalar
equation with mass ``lambda_max(B_i)`` has the smaller root: a lower bound, valid for every d at the
price of the n x n problem.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adfs.graphs.topology import Topology
from adfs.kernels import root_bound as kernel

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

EDGE_MU2 = 0.5  # mu_kl^2 on communication edges; the algorithm is invariant to it
DENSE_LIMIT = 150  # nodes: beyond, sparse graphs take less time by Lanczos
BOUND_LIMIT = 3000  # beyond, for graphs too dense to factorise, the closed bound serves
FACTOR_LIMIT = 30_000  # beyond, factors take longer than all the rest of the set-up
SAFETY = 1.0 - 1e-9  # sigma_A may be too small, never too large
ROUNDING = 10.0 * np.finfo(np.float64).eps  # an eigenvalue's error, relative to the matrix's norm


def sigma_a(
    topology: Topology, sigma: Vector, masses: Vector, alpha: Vector, counts: NDArray[np.int64]
) -> float:
    """``sigma_A`` of the augmented graph with the given masses (see the module's text)."""
    if topology.n_nodes == 1:
        return float(alpha[0])
    limit = float(np.min(alpha[counts >= 2], initial=np.inf))
    n, sparse = topology.n_nodes, topology.n_edges <= 4 * topology.n_nodes
    exact = topology.spectrum.exact  # else factors fill up, too
    if DENSE_LIMIT < n <= FACTOR_LIMIT and sparse and exact:
        return min(limit, _sparse_root(topology, sigma, masses, alpha))
    if n > BOUND_LIMIT:
        return min(limit, root_bound(topology, sigma, masses, alpha))
    return min(limit, _dense_root(topology, sigma, masses, alpha))


def root_bound(topology: Topology, sigma: Vector, masses: Vector, alpha: Vector) -> float:
    """Lower bound, exact if all nodes are alike: ``lambda max_i D_i = lambda_min(Lap)``."""
    target = EDGE_MU2 * topology.spectrum.lambda_min
    heaviest_centre = float(np.max(sigma))
    high = min(float(np.min(alpha[masses > 0.0])), target / heaviest_centre)
    found = kernel.root_bound(target, high, heaviest_centre, sigma, masses, alpha)
    return float(found) * SAFETY


def _quotient(topology: Topology, sigma: Vector, masses: Vector, alpha: Vector) -> "sp.coo_matrix":
    """The scaled Laplacian of centres and merged virtual nodes; none for a node of mass 0."""
    n, inverse, laplacian = topology.n_nodes, 1.0 / np.sqrt(sigma), topology.laplacian().tocoo()
    centre, loaded = np.arange(n), np.flatnonzero(masses > 0.0)
    virtual = n + np.arange(len(loaded))
    links = -alpha[loaded] * np.sqrt(masses[loaded] / sigma[loaded])
    mixing = inverse[laplacian.row] * (EDGE_MU2 * laplacian.data) * inverse[laplacian.col]
    rows = np.concatenate([laplacian.row, centre, loaded, virtual, virtual])
    columns = np.concatenate([laplacian.col, centre, virtual, loaded, virtual])
    values = np.concatenate([mixing, alpha * masses / sigma, links, links, alpha[loaded]])
    return sp.coo_matrix((values, (rows, columns)), shape=(n + len(loaded), n + len(loaded)))


def _dense_quotient(topology: Topology, sigma: Vector, masses: Vector, alpha: Vector) -> Matrix:
    """The same as an array; quicker to make for few nodes, and made many times."""
    n, inverse = topology.n_nodes, 1.0 / np.sqrt(sigma)
    loaded = np.flatnonzero(masses > 0.0)
    virtual = n + np.arange(len(loaded))
    matrix = np.zeros((n + len(loaded), n + len(loaded)))
    matrix[:n, :n] = inverse[:, None] * (EDGE_MU2 * topology.dense_laplacian) * inverse
    matrix[np.arange(n), np.arange(n)] += alpha * masses / sigma
    matrix[loaded, virtual] = -alpha[loaded] * np.sqrt(masses[loaded] / sigma[loaded])
    matrix[virtual, loaded] = matrix[loaded, virtual]
    matrix[virtual, virtual] = alpha[loaded]
    return matrix


def _dense_root(topology: Topology, sigma: Vector, masses: Vector, alpha: Vector) -> float:
    from scipy.linalg import eigh

    matrix = _dense_quotient(topology, sigma, masses, alpha)
    values = eigh(matrix, eigvals_only=True, subset_by_index=[1, 1])
    safe = float(values[0]) * SAFETY - ROUNDING * float(np.max(abs(matrix).sum(axis=0)))
    return max(safe, root_bound(topology, sigma, masses, alpha))


def _sparse_root(topology: Topology, sigma: Vector, masses: Vector, alpha: Vector) -> float:
    """Second smallest eigenvalue by Lanczos with shift and invert just below zero."""
    from scipy.sparse.linalg import eigsh

    bound = root_bound(topology, sigma, masses, alpha)
    matrix = _quotient(topology, sigma, masses, alpha).tocsc()
    start = np.linspace(1.0, 2.0, matrix.shape[0])
    values = eigsh(
        matrix, k=2, sigma=-0.5 * bound, which="LM", v0=start, return_eigenvectors=False, tol=1e-11
    )
    safe = float(np.max(values)) * SAFETY - ROUNDING * float(np.max(abs(matrix).sum(axis=0)))
    return max(safe, bound)

"""Laplacian eigenvalues and effective resistances, in n x n algebra only."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.graphs.distances import Levels, find_levels, resistances
from adfs.graphs.edges import Edges, Sparse, degrees, laplacian
from adfs.randomness import generator
from adfs.threads import one_blas_thread

Vector = NDArray[np.float64]
SMALL = 512  # nodes up to which all eigenvectors cost less than a factorisation's set-up
NARROW = 16  # a graph is narrow when its levels hold at most 1 node in NARROW
LANCZOS_SIZE = 64
LANCZOS_TOL = 1e-11


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """What the theory reads off a graph; every edge has weight 1.

    Attributes
    ----------
    lambda_min, lambda_max : float
        Smallest positive and largest eigenvalue of the Laplacian. Both are 0 for a single node.
    resistances : (E,) float
        ``R_kl = (e_k - e_l)^T Lap^+ (e_k - e_l)``. They sum to ``n_nodes - 1`` and, times the
        weight, do not change when all weights are multiplied by one number.

    Examples
    --------
    >>> spectrum = compute_spectrum(3, np.array([[0, 1], [0, 2], [1, 2]], dtype=np.int32))
    >>> spectrum
    Spectrum(lambda_min=3, lambda_max=3, gamma=1)
    >>> spectrum.resistances.round(4).tolist()
    [0.6667, 0.6667, 0.6667]
    """

    lambda_min: float
    lambda_max: float
    resistances: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.resistances.setflags(write=False)

    @property
    def gamma(self) -> float:
        """``lambda_min / lambda_max``, in (0, 1]; 1 for a single node, which always agrees."""
        return self.lambda_min / self.lambda_max if self.lambda_max > 0 else 1.0

    def __repr__(self) -> str:
        return (
            f"Spectrum(lambda_min={self.lambda_min:.6g}, lambda_max={self.lambda_max:.6g}, "
            f"gamma={self.gamma:.6g})"
        )


def compute_spectrum(n_nodes: int, edges: Edges) -> Spectrum:
    """Spectrum of a connected graph, by the method its size and shape ask for.

    Complete graphs are known; small graphs take all eigenvectors; narrow graphs (trees, rings,
    grids, anything long) sparse factors; the others, where factors would fill up, one dense
    inverse of ``8 n^2`` bytes (0.8 GB at n = 10,000). The bits do not depend on the number of
    threads.
    """
    if n_nodes == 1:
        return Spectrum(0.0, 0.0, np.empty(0))
    if len(edges) == n_nodes * (n_nodes - 1) // 2:
        return Spectrum(float(n_nodes), float(n_nodes), np.full(len(edges), 2.0 / n_nodes))
    with one_blas_thread():
        if n_nodes <= SMALL:
            return small_spectrum(n_nodes, edges)
        levels = find_levels(n_nodes, edges)
        if levels.width * NARROW <= n_nodes:
            return narrow_spectrum(n_nodes, edges, levels)
        return wide_spectrum(n_nodes, edges)


def small_spectrum(n_nodes: int, edges: Edges) -> Spectrum:
    """All eigenvectors, and the dense inverse."""
    _, vectors = np.linalg.eigh(_dense_laplacian(n_nodes, edges))
    low, high = (_rayleigh(edges, vectors[:, column]) for column in (1, -1))
    return Spectrum(low, high, _inverse_resistances(edges, _shifted_inverse(n_nodes, edges)))


def wide_spectrum(n_nodes: int, edges: Edges) -> Spectrum:
    """Dense inverse, iterated for ``lambda_min``; Laplacian, iterated for ``lambda_max``."""
    from scipy.linalg.blas import dsymv

    lap = laplacian(n_nodes, edges)
    high = _rayleigh(edges, _dominant(lambda x: np.asarray(lap @ x), n_nodes))
    inverse = _shifted_inverse(n_nodes, edges)

    def pseudo_inverse(x: Vector) -> Vector:
        return _centred(dsymv(1.0, inverse, _centred(x), lower=1))

    low = _rayleigh(edges, _dominant(pseudo_inverse, n_nodes))
    return Spectrum(low, high, _inverse_resistances(edges, inverse))


def narrow_spectrum(n_nodes: int, edges: Edges, levels: Levels) -> Spectrum:
    """Sparse factors at both ends of the spectrum; resistances level by level."""
    low = _rayleigh(edges, _dominant(_pseudo_inverse(n_nodes, edges), n_nodes))
    high = _rayleigh(edges, _dominant(_inverse_from_above(n_nodes, edges), n_nodes))
    return Spectrum(low, high, resistances(n_nodes, edges, levels))


def _rayleigh(edges: Edges, vector: Vector) -> float:
    """Rayleigh quotient summed over edges.

    Differences along edges keep all digits of a small eigenvalue, which ``x @ (lap @ x)`` would
    lose; the error is the square of the vector's.
    """
    centred = _centred(vector)
    difference = centred[edges[:, 0]] - centred[edges[:, 1]]
    return float(difference @ difference / (centred @ centred))


def _centred(x: Vector) -> Vector:
    return np.asarray(x - x.mean())


def _dominant(apply: Callable[[Vector], Vector], n_nodes: int) -> Vector:
    """Eigenvector of the largest eigenvalue, by Lanczos from a fixed start."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    start = _centred(generator(0, "graph/spectrum").standard_normal(n_nodes))
    operator = LinearOperator((n_nodes, n_nodes), matvec=apply, dtype=np.float64)
    size = min(n_nodes, LANCZOS_SIZE)
    _, vectors = eigsh(operator, k=1, which="LA", v0=start, ncv=size, tol=LANCZOS_TOL)
    return np.asarray(vectors[:, 0])


def _factor(matrix: Sparse) -> Callable[[Vector], Vector]:
    """Solver of a sparse symmetric positive definite system."""
    from scipy.sparse.linalg import splu

    factor = splu(
        matrix.tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return lambda x: factor.solve(x)


def _pseudo_inverse(n_nodes: int, edges: Edges) -> Callable[[Vector], Vector]:
    """Product with ``Lap^+``: ground the busiest node, solve, centre."""
    kept = np.delete(np.arange(n_nodes), degrees(n_nodes, edges).argmax())
    solve = _factor(laplacian(n_nodes, edges)[kept][:, kept])

    def apply(x: Vector) -> Vector:
        solution = np.zeros(n_nodes)
        solution[kept] = solve(_centred(x)[kept])
        return _centred(solution)

    return apply


def _inverse_from_above(n_nodes: int, edges: Edges) -> Callable[[Vector], Vector]:
    """Product with ``(s I - Lap)^{-1}``, ``s`` just above ``max_kl (d_k + d_l) >= lambda_max``.

    In long graphs the largest eigenvalues crowd just under that bound (Anderson and Morley),
    where the inverse separates them.
    """
    degree = degrees(n_nodes, edges)
    bound = degree[edges].sum(axis=1).max() * (1.0 + 1e-8)
    shifted = -laplacian(n_nodes, edges)
    shifted.setdiag(bound - degree)
    return _factor(shifted)


def _dense_laplacian(n_nodes: int, edges: Edges) -> NDArray[np.float64]:
    matrix = np.zeros((n_nodes, n_nodes), order="F")
    k, l = edges.T
    matrix[k, l] = matrix[l, k] = -1.0
    np.fill_diagonal(matrix, degrees(n_nodes, edges))
    return matrix


def _shifted_inverse(n_nodes: int, edges: Edges) -> NDArray[np.float64]:
    """Lower triangle of ``(Lap + 11^T / n)^{-1} = Lap^+ + 11^T / n``, in place of the matrix."""
    from scipy.linalg.lapack import dpotrf, dpotri

    matrix = _dense_laplacian(n_nodes, edges)
    matrix += 1.0 / n_nodes
    factor, _ = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    return np.asarray(inverse)


def _inverse_resistances(edges: Edges, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
    k, l = edges.T
    diagonal = inverse.diagonal()
    return np.asarray(diagonal[k] + diagonal[l] - 2.0 * inverse[l, k])

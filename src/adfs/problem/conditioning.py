"""Smoothness of samples and nodes, condition numbers, and bounds on duals: what rates depend on.

Numbers per node are known of all nodes, numbers per sample of the nodes in this process.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adfs.agreement import attempt
from adfs.data.matrices import Vector
from adfs.data.shards import slice_rows
from adfs.errors import DataError
from adfs.kernels import certificate, gram
from adfs.kernels.rows import CsrRows, DenseRows
from adfs.randomness import generator
from adfs.threads import one_blas_thread

if TYPE_CHECKING:
    from adfs.problem.finite_sum import Problem

LARGEST_KAPPA = 1e30  # beyond, the rounding of a gradient costs more than the gap that is sought
GRAM_LIMIT = 500
GRAM_BLOCK = 4096
MANY = 20_000  # nodes, beyond which small matrices have bounds on their eigenvalues
SMALL_GRAM = 32  # features up to which the matrices of many nodes are made at once
ROWS_AT_ONCE = 1 << 20


class _NodeSamples:
    """The samples of a problem; without the problem itself, which holds these numbers."""

    def __init__(self, problem: "Problem") -> None:
        self.squared_norms, self.weights = problem.squared_norms, problem.weights
        self.offsets, self.rows, self.sigma = problem.offsets, problem.rows, problem.sigma
        self.n_features, self.network = problem.n_features, problem.network

    def _rows_of(self, node: int) -> slice:
        own = self.network.here[node]
        return slice(int(self.offsets[own]), int(self.offsets[own + 1]))


class Conditioning(_NodeSamples):
    """Smoothness and condition numbers of the paper's introduction.

    Numbers per sample are made node by node, when asked for, to save memory.

    Attributes
    ----------
    sigma : array of shape (n_nodes,)
    total_smoothness : array of shape (n_nodes,)
        ``sum_j L_ij``.
    importance_sums : array of shape (n_nodes,)
        ``S_i = sum_j sqrt(1 + L_ij / sigma_i)``.
    live_counts : array of shape (n_nodes,)
        Number of samples inside the augmented graph.
    """

    def __init__(self, problem: "Problem") -> None:
        super().__init__(problem)
        self.max_curvature = problem.loss.max_curvature
        self._batch_smoothness: Vector | None = None
        self._whole_smoothness: float | None = None
        totals, counts = np.empty(len(self.offsets) - 1), np.empty(len(self.offsets) - 1, np.int64)
        sums = np.empty_like(totals)
        with np.errstate(over="ignore"):
            for own, rows in _alike(self.offsets):
                smoothness = self._smoothness(rows)
                totals[own], counts[own] = smoothness.sum(axis=1), np.sum(smoothness != 0.0, axis=1)
                sigma = self.sigma[self.network.nodes[own]]
                sums[own] = _importance(smoothness, sigma[:, None]).sum(axis=1)
        self.total_smoothness: Vector = self.network.facts(totals)
        self.importance_sums: Vector = self.network.facts(sums)
        self.live_counts: NDArray[np.int64] = self.network.facts(counts)

    def smoothness(self, node: int) -> Vector:
        """``L_ij = w l''max |x|^2`` of a node here; 0 outside the augmented graph."""
        return self._smoothness(self._rows_of(node))

    def _smoothness(self, rows: Any) -> Vector:
        with np.errstate(over="ignore"):  # refused by `require_scaled`
            weights = self.max_curvature * self.weights[rows]
            return np.asarray(weights * self.squared_norms[rows])

    def importance(self, node: int) -> Vector:
        """``sqrt(1 + L_ij / sigma_i)`` of the same samples, 0 outside the augmented graph."""
        return _importance(self.smoothness(node), self.sigma[node])

    def importances(self) -> Vector:
        """The same for all samples of the nodes in this process."""
        sigma = np.repeat(self.sigma[self.network.nodes], np.diff(self.offsets))
        return _importance(self._smoothness(slice(None)), sigma)

    @property
    def kappa(self) -> Vector:
        """``kappa_i = 1 + sum_j L_ij / sigma_i``."""
        with np.errstate(over="ignore"):  # refused by `require_scaled`
            return np.asarray(1.0 + self.total_smoothness / self.sigma)

    @property
    def kappa_s(self) -> float:
        """Stochastic condition number ``max_i kappa_i``."""
        return float(np.max(self.kappa))

    def batch_smoothness(self) -> Vector:
        """``lambda_max(B_i)`` for each node, ``B_i = l''max sum_j w_ij x_ij x_ij^T``.

        An eigenvalue per node, or an upper bound, computed once; with ranks, all have to call it
        the first time.
        """
        if self._batch_smoothness is None:
            own = attempt(self.network.peers, self._top_eigenvalues)
            self._batch_smoothness = self.network.facts(own)
        return self._batch_smoothness

    def _top_eigenvalues(self) -> Vector:
        with one_blas_thread():
            if isinstance(self.rows, DenseRows) and self.n_features <= SMALL_GRAM:
                return self._small_eigenvalues(self.rows.values)
            return np.array([self._top_eigenvalue(int(node)) for node in self.network.nodes])

    def _small_eigenvalues(self, samples: NDArray[Any]) -> Vector:
        """Those of small matrices, many nodes of one size at a time; bounds for very many nodes."""
        found = np.empty(len(self.offsets) - 1)
        if len(self.sigma) > MANY:
            factors = self.max_curvature * self.weights
            gram.top_bounds(samples, factors, self.offsets, found)
            return found
        for own, rows in _alike(self.offsets):
            if rows.shape[1] > GRAM_BLOCK:
                found[own] = [self._top_eigenvalue(int(node)) for node in self.network.nodes[own]]
                continue
            scale = np.sqrt(self.max_curvature * self.weights[rows])
            block = np.asarray(samples[rows], dtype=np.float64) * scale[:, :, None]
            grams = block.transpose(0, 2, 1) @ block
            found[own] = np.linalg.eigvalsh(grams)[:, -1]
        return found

    @property
    def batches_are_known(self) -> bool:
        """Whether `batch_smoothness` was computed already."""
        return self._batch_smoothness is not None

    def whole_smoothness(self) -> float:
        """``lambda_max(sum_i B_i)``, of the losses of all nodes together, or an upper bound.

        Computed once; with ranks, all have to call it the first time.
        """
        if self._whole_smoothness is None and len(self.sigma) == 1:
            self._whole_smoothness = float(self.batch_smoothness()[0])
        if self._whole_smoothness is None:
            d = self.n_features
            with one_blas_thread():
                if d > GRAM_LIMIT:
                    self._whole_smoothness = _lanczos_bound(self)
                else:
                    grams = (self.gram(node).reshape(-1) for node in self.network.nodes.tolist())
                    total = self.network.sum_rows(grams, d * d).reshape(d, d)
                    self._whole_smoothness = float(np.linalg.eigvalsh(total)[-1])
        return self._whole_smoothness

    def kappa_b(self) -> float:
        """Batch condition number ``max_i (sigma_i + lambda_max(B_i)) / sigma_i``."""
        return float(np.max(1.0 + self.batch_smoothness() / self.sigma))

    def gram(self, node: int) -> Vector:
        """``B_i`` at and below the diagonal of a (d, d) matrix."""
        total, rows = np.zeros((self.n_features, self.n_features)), self._rows_of(node)
        if isinstance(self.rows, CsrRows):
            factors = self.max_curvature * self.weights[rows]
            certificate.sparse_outer_products(self.rows, factors, rows.start, rows.stop, total)
            return total
        for start in range(rows.start, rows.stop, GRAM_BLOCK):
            block = _scaled_rows(self, slice(start, min(rows.stop, start + GRAM_BLOCK)))
            total += block.T @ block
        return total

    def _top_eigenvalue(self, node: int) -> float:
        if self.n_features <= GRAM_LIMIT:
            return float(np.linalg.eigvalsh(self.gram(node))[-1])
        block = _scaled_rows(self, self._rows_of(node))
        if min(block.shape) <= GRAM_LIMIT:
            small = block @ block.T if block.shape[0] <= block.shape[1] else block.T @ block
            small = small.toarray() if sp.issparse(small) else small
            return float(np.linalg.eigvalsh(small)[-1])
        return _power_bound(block)


class DualBounds(_NodeSamples):
    """How far each sample's dual can move a model: Theorem 4 depends on this and the graph.

    A dual coefficient of the hinge or of the absolute loss is at most the sample's weight, so a
    virtual node moves by at most ``w |x|``.

    Attributes
    ----------
    sigma : array of shape (n_nodes,)
    totals : array of shape (n_nodes,)
        ``sum_j w_ij^2 |x_ij|^2``.
    kappa : array of shape (n_nodes,)
        ``1 + sum_j w_ij |x_ij|^2 / sigma_i``: the condition numbers of a loss of curvature 1.
    live_counts : array of shape (n_nodes,)
        Number of samples inside the augmented graph.
    """

    def __init__(self, problem: "Problem") -> None:
        super().__init__(problem)
        sums, counts = [], []
        with np.errstate(over="ignore"):  # refused by `require_scaled`
            for node in self.network.nodes.tolist():
                squares, rows = self.squares(node), self._rows_of(node)
                sums.append([squares.sum(), self.weights[rows] @ self.squared_norms[rows]])
                counts.append(np.count_nonzero(squares))
            self.totals, masses = self.network.facts(np.array(sums)).T.copy()
            self.kappa: Vector = 1.0 + masses / self.sigma
        self.live_counts: NDArray[np.int64] = self.network.facts(np.array(counts, dtype=np.int64))

    def squares(self, node: int) -> Vector:
        """``w^2 |x|^2`` of the samples of a node in this process; 0 outside the augmented graph."""
        rows = self._rows_of(node)
        norms = self.squared_norms[rows]
        squares: Vector = np.where(norms > 0.0, self.weights[rows], 0.0) ** 2 * norms
        return squares


def _alike(offsets: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Local numbers of some nodes with equally many samples, and their rows, one line per node.

    A sum along a line has the bits of a sum over the node's own array.
    """
    sizes = np.diff(offsets)
    order = np.argsort(sizes, kind="stable")
    starts = np.flatnonzero(np.diff(sizes[order], prepend=-1))
    for same in np.split(order, starts[1:]):
        size = int(sizes[same[0]])
        for part in np.array_split(same, max(1, len(same) * size // ROWS_AT_ONCE)):
            yield part, offsets[part][:, None] + np.arange(size)


def _importance(smoothness: Vector, sigma: Any) -> Vector:
    values: Vector = np.sqrt(1.0 + smoothness / sigma)
    values[smoothness == 0.0] = 0.0
    return values


def require_scaled(problem: "Problem") -> None:
    """Refuse samples so large, or a sigma so small, that double precision can certify no model."""
    numbers = problem.conditioning if problem.loss.smooth else problem.dual_bounds
    node = int(np.argmax(numbers.kappa))
    if not numbers.kappa[node] <= LARGEST_KAPPA:
        raise DataError(
            f"The condition number of node {node} is {numbers.kappa[node]:.2g}, beyond "
            f"{LARGEST_KAPPA:g}, where double precision can certify no model "
            f"(sigma={problem.sigma[node]:g}). Scale the features and the weights, or raise sigma."
        )


def _scaled_rows(conditioning: Conditioning, rows: slice) -> Any:
    """Rows ``sqrt(l''max w) x`` of a range, dense or CSR as they are stored."""
    scale = np.sqrt(conditioning.max_curvature * conditioning.weights[rows])
    block = slice_rows(conditioning.rows, conditioning.n_features, rows.start, rows.stop)
    return sp.diags(scale) @ block if sp.issparse(block) else block * scale[:, None]


def _power_bound(block: Any) -> float:
    """Upper bound on the largest eigenvalue of ``X^T X``: Lanczos plus its residual."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    size = block.shape[1]
    operator = LinearOperator((size, size), matvec=lambda v: block.T @ (block @ v), dtype=float)
    start = np.abs(np.asarray(abs(block).sum(axis=0)).ravel()) + 1.0 / size
    values, vectors = eigsh(operator, k=1, which="LA", v0=start, tol=1e-10)
    residual = operator @ vectors[:, 0] - values[0] * vectors[:, 0]
    return float(values[0] + np.linalg.norm(residual))


def _lanczos_bound(conditioning: Conditioning) -> float:
    """The same of all nodes' rows, with a sum over the network per product."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    size, network, cuts = conditioning.n_features, conditioning.network, conditioning.offsets
    rows = [slice_rows(conditioning.rows, size, a, b) for a, b in itertools.pairwise(cuts)]
    curvature = conditioning.max_curvature * conditioning.weights

    def product(v: Vector) -> Vector:
        own = zip(rows, itertools.pairwise(cuts), strict=True)
        parts = (X.T @ (curvature[a:b] * (X @ v.ravel())) for X, (a, b) in own)
        return network.sum_rows(parts, size)

    operator = LinearOperator((size, size), matvec=product, dtype=float)
    start = generator(0, "lanczos").standard_normal(size)
    values, vectors = eigsh(operator, k=1, which="LA", v0=start, tol=1e-6)
    residual = product(vectors[:, 0]) - values[0] * vectors[:, 0]
    return float(values[0] + np.linalg.norm(residual))

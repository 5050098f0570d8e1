"""Smoothness of samples and nodes, and the condition numbers of the paper's introduction."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.losses import names
from adfs.problems.shards import Rows, Vector, slice_rows
from adfs.threads import one_blas_thread

if TYPE_CHECKING:
    from adfs.problems.finite_sum import Problem

GRAM_LIMIT = 500
GRAM_BLOCK = 4096


@dataclass(frozen=True)
class Conditioning:
    """What the rates of the paper depend on.

    What there is one of a sample is made node by node, when asked for, to save memory.
    """

    squared_norms: Vector
    offsets: NDArray[np.int64]
    sigma: Vector
    rows: Rows
    weights: Vector
    max_curvature: float
    n_features: int

    @classmethod
    def of(cls, problem: "Problem") -> "Conditioning":
        """Condition numbers of a problem with a smooth loss."""
        loss = problem.loss
        if not loss.smooth:
            raise ParameterError(
                f"loss {loss.name!r} is not smooth, so it has no condition number; choose one of "
                f"{', '.join(names(smooth=True))}, or NonSmoothParameters instead of Parameters."
            )
        return cls(
            problem.squared_norms, problem.offsets, problem.sigma, problem.rows, problem.weights,
            loss.max_curvature, problem.n_features,
        )  # fmt: skip

    def smoothness(self, node: int) -> Vector:
        """``L_ij = w l''max |x|^2`` of a node's samples, 0 outside the augmented graph."""
        rows = slice(self.offsets[node], self.offsets[node + 1])
        smoothness: Vector = self.max_curvature * self.weights[rows] * self.squared_norms[rows]
        return smoothness

    def importance(self, node: int) -> Vector:
        """``sqrt(1 + L_ij / sigma_i)`` of a node's samples, 0 outside the augmented graph."""
        smoothness = self.smoothness(node)
        values: Vector = np.sqrt(1.0 + smoothness / self.sigma[node])
        values[smoothness == 0.0] = 0.0
        return values

    @functools.cached_property
    def total_smoothness(self) -> Vector:
        """``sum_j L_ij`` for each node."""
        return np.array([self.smoothness(node).sum() for node in range(len(self.sigma))])

    @functools.cached_property
    def importance_sums(self) -> Vector:
        """``S_i = sum_j sqrt(1 + L_ij / sigma_i)`` for each node."""
        return np.array([self.importance(node).sum() for node in range(len(self.sigma))])

    @functools.cached_property
    def live_counts(self) -> NDArray[np.int64]:
        """Number of samples of each node inside the augmented graph."""
        counts = [np.count_nonzero(self.smoothness(node)) for node in range(len(self.sigma))]
        return np.array(counts, dtype=np.int64)

    @property
    def kappa(self) -> Vector:
        """``kappa_i = 1 + sum_j L_ij / sigma_i``."""
        return 1.0 + self.total_smoothness / self.sigma

    @property
    def kappa_s(self) -> float:
        """Stochastic condition number ``max_i kappa_i``."""
        return float(np.max(self.kappa))

    @functools.cached_property
    def batch_smoothness(self) -> Vector:
        """``lambda_max(B_i)`` for each node, ``B_i = l''max sum_j w_ij x_ij x_ij^T``."""
        with one_blas_thread():
            return np.array([self._top_eigenvalue(node) for node in range(len(self.sigma))])

    @property
    def kappa_b(self) -> float:
        """Batch condition number ``max_i (sigma_i + lambda_max(B_i)) / sigma_i``."""
        return float(np.max(1.0 + self.batch_smoothness / self.sigma))

    def gram(self, node: int) -> Vector:
        """``B_i`` as a (d, d) matrix, summed over blocks of rows."""
        total = np.zeros((self.n_features, self.n_features))
        first, last = int(self.offsets[node]), int(self.offsets[node + 1])
        for start in range(first, last, GRAM_BLOCK):
            block = _scaled_rows(self, start, min(last, start + GRAM_BLOCK))
            product = block.T @ block
            total += product.toarray() if sp.issparse(product) else product
        return total

    def _top_eigenvalue(self, node: int) -> float:
        if self.n_features <= GRAM_LIMIT:
            return float(np.linalg.eigvalsh(self.gram(node))[-1])
        block = _scaled_rows(self, int(self.offsets[node]), int(self.offsets[node + 1]))
        if min(block.shape) <= GRAM_LIMIT:
            small = block @ block.T if block.shape[0] <= block.shape[1] else block.T @ block
            small = small.toarray() if sp.issparse(small) else small
            return float(np.linalg.eigvalsh(small)[-1])
        return _power_bound(block)


def _scaled_rows(conditioning: Conditioning, first: int, last: int) -> Any:
    """Rows ``sqrt(l''max w) x`` of a range, dense or CSR as they are stored."""
    scale = np.sqrt(conditioning.max_curvature * conditioning.weights[first:last])
    block = slice_rows(conditioning.rows, conditioning.n_features, first, last)
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

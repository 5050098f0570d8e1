"""The linear algebra of an interior-point method: one system, solved in the smaller of two spaces.

A Newton step of `adfs.problems.box_dual` moves theta by ``t`` and the dual coefficients by ``c``:

    sigma t + X^T c = -residual,    X t - c / D = -pull.

Without ``c`` it is ``(sigma I + X^T D X) t = ...``, a matrix of features. Up to
`optimum.DENSE_HESSIAN_LIMIT` of them it is factorised; beyond, it is only multiplied by, in
conjugate gradients, whose preconditioner holds the samples that weigh most. Without ``t`` it is
``(1 / D + X X^T / sigma) c = ...``, a matrix of samples, taken where they are fewer.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from adfs.kernels import certificate
from adfs.problems import optimum
from adfs.problems.finite_sum import Problem
from adfs.problems.optimum import Matrix
from adfs.problems.shards import Vector, as_rows, slice_rows

BLOCK = 1 << 14  # rows that are copied at a time where they are not float64
SAMPLE_LIMIT = 4000  # side of a dense matrix of samples
LIGHT = 1.0  # a sample with D |x|^2 below this part of sigma is left to its diagonal
MAX_REFINEMENTS = 3  # of a direct solution
MAX_ITERATIONS = 500  # of conjugate gradients
ACCURACY = 1e-3  # relative to the right side, at least

Inverse = Callable[[Vector], Vector]
NewtonSolver = Callable[[Vector, Vector, float], tuple[Vector, Vector]]


class LiveRows:
    """The samples that depend on theta, as the matrix ``X``: the others have nothing to decide."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.index = np.flatnonzero(problem.live)
        self.squared_norms = problem.squared_norms[self.index]
        self.sigma = problem.total_sigma
        self.few_samples = len(self.index) <= min(problem.n_features, SAMPLE_LIMIT)
        self.few_features = problem.n_features <= optimum.DENSE_HESSIAN_LIMIT

    def times(self, theta: Vector) -> Vector:
        """``X theta``."""
        scores = np.empty(self.problem.n_samples)
        certificate.predictions(self.problem.rows, theta, 0, self.problem.n_samples, scores)
        return scores[self.index]

    def transposed_times(self, values: Vector) -> Vector:
        """``X^T values``."""
        problem, total = self.problem, np.zeros(self.problem.n_features)
        everywhere = self.everywhere(values)
        for first in range(0, problem.n_samples, BLOCK):
            last = min(first + BLOCK, problem.n_samples)
            block = slice_rows(problem.rows, problem.n_features, first, last)
            total += block.T @ everywhere[first:last]
        return total

    def everywhere(self, values: Vector) -> Vector:
        """One number for every sample of the problem, zero where the sample is not live."""
        out = np.zeros(self.problem.n_samples)
        out[self.index] = values
        return out

    def matrix(self) -> Any:
        """A copy of ``X``, dense or CSR."""
        problem = self.problem
        return slice_rows(problem.rows, problem.n_features, 0, problem.n_samples)[self.index]

    @functools.cached_property
    def gram(self) -> Matrix:
        """``X X^T / sigma``, valid at and below the diagonal."""
        return scaled_gram(self.matrix(), np.full(self.problem.n_features, 1.0 / self.sigma))


def newton_solver(rows: LiveRows, weights: Vector) -> NewtonSolver:
    """A function of residual, pull and accuracy that returns ``(t, c)``; weights are D > 0.

    The accuracy is the largest norm allowed to what remains of the first equation.
    """
    if rows.few_samples:
        return _by_samples(rows, weights)
    return _by_features(rows, weights)


def _by_samples(rows: LiveRows, weights: Vector) -> NewtonSolver:
    factor = _factor(rows.gram + np.diag(1.0 / weights))

    def solve(residual: Vector, pull: Vector, accuracy: float) -> tuple[Vector, Vector]:
        c = np.zeros(len(pull))
        for _ in range(1 + MAX_REFINEMENTS):
            theta = -(residual + rows.transposed_times(c)) / rows.sigma
            c = c + _solve(factor, pull + rows.times(theta) - c / weights)
        return -(residual + rows.transposed_times(c)) / rows.sigma, c

    return solve


def _by_features(rows: LiveRows, weights: Vector) -> NewtonSolver:
    inverse = (_direct_inverse if rows.few_features else _heavy_inverse)(rows, weights)
    limit = MAX_REFINEMENTS if rows.few_features else MAX_ITERATIONS

    def times(vector: Vector) -> Vector:
        return rows.transposed_times(weights * rows.times(vector)) + rows.sigma * vector

    operator, preconditioner = (
        LinearOperator(2 * (rows.problem.n_features,), matvec=function, dtype=np.float64)
        for function in (times, inverse)
    )

    def solve(residual: Vector, pull: Vector, accuracy: float) -> tuple[Vector, Vector]:
        right = -residual - rows.transposed_times(weights * pull)
        accuracy = min(accuracy, ACCURACY * float(np.linalg.norm(right)))
        if not np.isfinite(accuracy):
            raise LinAlgError("The right side is not finite.")
        theta = cg(operator, right, rtol=0.0, atol=accuracy, maxiter=limit, M=preconditioner)[0]
        return theta, weights * (rows.times(theta) + pull)

    return solve


def _direct_inverse(rows: LiveRows, weights: Vector) -> Inverse:
    problem = rows.problem
    matrix = rows.sigma * np.eye(problem.n_features)
    everything = slice(0, problem.n_samples)
    optimum.add_outer_products(problem, rows.everywhere(weights), everything, matrix)
    return functools.partial(_solve, _factor(matrix))


def _heavy_inverse(rows: LiveRows, weights: Vector) -> Inverse:
    """Inverse of ``S + X_B^T D_B X_B``: B the heavy samples, S the diagonal of all the rest.

    It is ``S^-1 - S^-1 X_B^T (D_B^-1 + X_B S^-1 X_B^T)^-1 X_B S^-1``, by Woodbury's identity.
    """
    matrix, heaviness = rows.matrix(), weights * rows.squared_norms
    heavy = np.argsort(heaviness, kind="stable")[-SAMPLE_LIMIT:]
    heavy = heavy[heaviness[heavy] > LIGHT * rows.sigma]
    light = weights.copy()
    light[heavy] = 0.0
    squares = matrix.power(2) if sp.issparse(matrix) else matrix * matrix
    diagonal = rows.sigma + squares.T @ light
    if len(heavy) == 0:
        return lambda right: np.asarray(right / diagonal)
    part = matrix[heavy]
    factor = _factor(scaled_gram(part, 1.0 / diagonal) + np.diag(1.0 / weights[heavy]))

    def inverse(right: Vector) -> Vector:
        scaled = right / diagonal
        return np.asarray(scaled - part.T @ _solve(factor, part @ scaled) / diagonal)

    return inverse


def scaled_gram(matrix: Any, scale: Vector) -> Matrix:
    """``M diag(scale) M^T``, valid at and below the diagonal."""
    if not sp.issparse(matrix):
        return np.asarray((matrix * scale) @ matrix.T)
    columns, total = as_rows(matrix.T), np.zeros(2 * matrix.shape[:1])
    certificate.sparse_outer_products(columns, scale, 0, len(scale), total)
    return total


def _factor(matrix: Matrix) -> Any:
    return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)


def _solve(factor: Any, right: Vector) -> Vector:
    return np.asarray(cho_solve(factor, right, check_finite=False))

"""A certified minimiser of the whole sum, by second-order methods: the reference for all others."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.data.matrices import Vector
from adfs.data.shards import slice_rows
from adfs.kernels import certificate
from adfs.kernels.rows import CsrRows
from adfs.problem.certificate import quadratic

if TYPE_CHECKING:
    from adfs.problem.finite_sum import Problem

Matrix = NDArray[np.float64]

DENSE_HESSIAN_LIMIT = 1500
BLOCK = 1024  # rows that BLAS multiplies at a time: they stay in cache
MAX_STEPS = 200
TARGET = 1e-15  # gap relative to F
NOISE = 1e-14  # of F(0), which rounding may cost a value of F


class Optimum(NamedTuple):
    """The minimiser of F, its value, and a proven bound on what a better one could gain."""

    theta: Vector
    objective: float
    duality_gap: float


def find_optimum(problem: "Problem") -> Optimum:
    """Newton's method where the loss is smooth, interior points of the dual where it is not."""
    if problem.loss.smooth:
        return _minimise_smooth(problem)
    from adfs.problem.box_dual import minimise_non_smooth

    return minimise_non_smooth(problem)


def _minimise_smooth(problem: "Problem") -> Optimum:
    """Damped (semi-smooth) Newton until the gap ``|grad F|^2 / (2 sum sigma)`` stops shrinking."""
    theta, doubled_sigma = np.zeros(problem.n_features), 2.0 * problem.total_sigma
    objective, gradient = problem.objective_and_gradient(theta)
    noise = NOISE * objective
    for _ in range(MAX_STEPS):
        if quadratic(gradient, 1.0, doubled_sigma) <= TARGET * objective:
            break
        direction = -_newton_direction(problem, theta, gradient)
        step = _line_search(problem, theta, direction, objective, gradient, noise)
        if step is None:
            break
        theta, objective, gradient = step
    return Optimum(theta, objective, quadratic(gradient, 1.0, doubled_sigma))


def _line_search(
    problem: "Problem", theta: Vector, direction: Vector, objective: float, gradient: Vector,
    noise: float,
) -> tuple[Vector, float, Vector] | None:  # fmt: skip
    """Armijo; near the optimum, where F has no digits left, a smaller gradient decides."""
    slope = float(gradient @ direction)
    size = 1.0
    while size > 1e-12:
        trial = theta + size * direction
        value, trial_gradient = problem.objective_and_gradient(trial)
        enough = value <= objective + 1e-4 * size * slope
        shrinks = float(trial_gradient @ trial_gradient) < 0.5 * float(gradient @ gradient)
        if (enough and abs(size * slope) > noise) or (shrinks and value <= objective + noise):
            return trial, value, trial_gradient
        size *= 0.5
    return None


def _newton_direction(problem: "Problem", theta: Vector, gradient: Vector) -> Vector:
    everything = slice(0, problem.n_samples)
    weights = curvatures(problem, theta, everything)
    if problem.n_features > DENSE_HESSIAN_LIMIT:
        return _conjugate_gradients(problem, weights, gradient)
    from scipy.linalg import cho_factor, cho_solve

    hessian = problem.total_sigma * np.eye(problem.n_features)
    add_outer_products(problem, weights, everything, hessian)
    return np.asarray(cho_solve(cho_factor(hessian, lower=True), gradient))


def curvatures(problem: "Problem", theta: Vector, rows: slice) -> Vector:
    """``w l''(x . theta)`` of a range of rows: the diagonal of the Hessian's middle factor.

    At a kink of ``l'`` that of one side: an element of the generalised Hessian.
    """
    out = np.empty(rows.stop - rows.start)
    certificate.curvatures(*problem.samples, rows.start, rows.stop, theta, out)
    return out


def add_outer_products(problem: "Problem", weights: Vector, rows: slice, total: Matrix) -> None:
    """Add ``sum_r weights_r x_r x_r^T`` over a range of rows, weights >= 0, into ``total``.

    Only what lies at and below the diagonal is valid: a Cholesky factorisation reads no more.
    """
    if isinstance(problem.rows, CsrRows):
        certificate.sparse_outer_products(problem.rows, weights, rows.start, rows.stop, total)
        return
    scale = np.sqrt(weights)[:, None]
    for first in range(rows.start, rows.stop, BLOCK):
        last = min(rows.stop, first + BLOCK)
        block = slice_rows(problem.rows, problem.n_features, first, last)
        block = block * scale[first - rows.start : last - rows.start]
        total += block.T @ block  # the same array twice: BLAS does half the multiplications


def add_hessian(problem: "Problem", theta: Vector, rows: slice, total: Matrix) -> None:
    """Add the Hessian of the losses of a range of rows, as `add_outer_products` does."""
    add_outer_products(problem, curvatures(problem, theta, rows), rows, total)


def _conjugate_gradients(problem: "Problem", curvatures: Vector, gradient: Vector) -> Vector:
    from scipy.sparse.linalg import LinearOperator, cg

    matrix = slice_rows(problem.rows, problem.n_features, 0, problem.n_samples)
    sigma = problem.total_sigma

    def times(vector: Vector) -> Vector:
        return np.asarray(matrix.T @ (curvatures * (matrix @ vector)) + sigma * vector)

    operator = LinearOperator((len(gradient), len(gradient)), matvec=times, dtype=np.float64)
    solution, _ = cg(operator, gradient, rtol=1e-9, maxiter=10 * len(gradient))
    return np.asarray(solution)

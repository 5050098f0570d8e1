"""A certified minimiser by Newton's method on the whole sum: the yardstick of all methods."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from adfs.errors import ParameterError
from adfs.kernels import certificate
from adfs.problems.shards import Vector, slice_rows

if TYPE_CHECKING:
    from adfs.problems.finite_sum import Problem

DENSE_HESSIAN_LIMIT = 1500
BLOCK = 4096
MAX_STEPS = 200
TARGET = 1e-15


class Optimum(NamedTuple):
    """The minimiser of F, its value, and a proven bound on what a better one could gain."""

    theta: Vector
    objective: float
    duality_gap: float


def find_optimum(problem: "Problem") -> Optimum:
    """Damped (semi-smooth) Newton until the gap ``|grad F|^2 / (2 sum sigma)`` stops shrinking."""
    if not problem.loss.smooth:
        raise ParameterError(
            f"loss {problem.loss.name!r} is not smooth, so Newton's method cannot certify its "
            "optimum; choose logistic, squared, squared_hinge, smoothed_hinge or huber."
        )
    theta = np.zeros(problem.n_features)
    objective, gradient = problem.objective_and_gradient(theta)
    for _ in range(MAX_STEPS):
        if _gap(problem, gradient) <= TARGET * max(1.0, abs(objective)):
            break
        direction = -_newton_direction(problem, theta, gradient)
        step = _line_search(problem, theta, direction, objective, gradient)
        if step is None:
            break
        theta, objective, gradient = step
    return Optimum(theta, objective, _gap(problem, gradient))


def _gap(problem: "Problem", gradient: Vector) -> float:
    return float(gradient @ gradient) / (2.0 * problem.total_sigma)


def _line_search(
    problem: "Problem", theta: Vector, direction: Vector, objective: float, gradient: Vector
) -> tuple[Vector, float, Vector] | None:
    """Armijo; near the optimum, where F has no digits left, a smaller gradient decides."""
    slope = float(gradient @ direction)
    size = 1.0
    noise = 1e-14 * max(1.0, abs(objective))
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
    curvatures = _curvatures(problem, theta)
    if problem.n_features <= DENSE_HESSIAN_LIMIT:
        from scipy.linalg import cho_factor, cho_solve

        hessian = _hessian(problem, curvatures)
        return np.asarray(cho_solve(cho_factor(hessian), gradient))
    return _conjugate_gradients(problem, curvatures, gradient)


def _curvatures(problem: "Problem", theta: Vector) -> Vector:
    scores, out = np.empty(problem.n_samples), np.empty(problem.n_samples)
    certificate.predictions(problem.rows, theta, 0, problem.n_samples, scores)
    certificate.curvatures(
        problem.loss.code, scores, problem.labels, problem.weights, 0, problem.n_samples, out
    )
    return out


def _hessian(problem: "Problem", curvatures: Vector) -> Vector:
    total = problem.total_sigma * np.eye(problem.n_features)
    for first in range(0, problem.n_samples, BLOCK):
        last = min(problem.n_samples, first + BLOCK)
        block = slice_rows(problem.rows, problem.n_features, first, last)
        weights = curvatures[first:last]
        if sp.issparse(block):
            total += (block.T @ (sp.diags(weights) @ block)).toarray()
        else:
            total += block.T @ (weights[:, None] * block)
    return total


def _conjugate_gradients(problem: "Problem", curvatures: Vector, gradient: Vector) -> Vector:
    from scipy.sparse.linalg import LinearOperator, cg

    matrix = slice_rows(problem.rows, problem.n_features, 0, problem.n_samples)
    sigma = problem.total_sigma

    def times(vector: Vector) -> Vector:
        return np.asarray(matrix.T @ (curvatures * (matrix @ vector)) + sigma * vector)

    operator = LinearOperator((len(gradient), len(gradient)), matvec=times, dtype=np.float64)
    solution, _ = cg(operator, gradient, rtol=1e-9, maxiter=10 * len(gradient))
    return np.asarray(solution)

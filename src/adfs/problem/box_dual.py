"""A certified minimiser for losses that are not smooth, by an interior-point method on the dual.

The conjugates of the hinge and of the absolute loss are linear on an interval: with the label
``b``, ``w l*(c / w) = b c`` for ``low <= c <= high`` (hinge: ``-w <= b c <= 0``, absolute:
``|c| <= w``). So the dual of ``F``, with ``s`` the sum of all ``sigma_i``, is a quadratic program

    min_c |X^T c|^2 / (2 s) + b . c,   low <= c <= high,

whose optimality conditions are (z the multipliers of the two bounds, all >= 0)

    s theta + X^T c = 0,    X theta - b = z_high - z_low,
    (c - low) z_low = 0,    (high - c) z_high = 0.

Mehrotra's predictor and corrector (SIAM J. Optimization 2, 1992; Nocedal & Wright, Algorithm 16.4)
solve them with the last two products equal to a ``mu`` that goes to zero. What is left of a Newton
step without ``c`` and ``z`` is ``(s I + X^T D X) dtheta = r``, where ``1 / D`` is the diagonal
``z_low / (c - low) + z_high / (high - c)``.
Nothing is shared with NS-ADFS, so this is a reference for it.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from adfs.data.matrices import Vector
from adfs.data.shards import as_rows, slice_rows
from adfs.kernels import certificate, loss_functions
from adfs.problem import optimum
from adfs.problem.certificate import certify
from adfs.problem.finite_sum import Problem
from adfs.problem.optimum import Matrix, Optimum

BLOCK = 1 << 14  # rows that are copied at a time where they are not float64
SAMPLE_LIMIT = 4000  # side of a dense matrix of samples
LIGHT = 1.0  # a sample with D |x|^2 below this part of sigma is left to its diagonal
MAX_REFINEMENTS = 3  # of a direct solution
MAX_ITERATIONS = 500  # of conjugate gradients
ACCURACY = 1e-3  # relative to the right side, at least
MAX_STEPS = 200
MAX_IDLE = 6  # steps without a gain: only rounding is left
TARGET = 1e-15  # gap relative to F
TO_THE_BOUNDARY = 0.99  # part of the way, at least
START_RATIO = 1e4
RESIDUAL_SHARE = 1e-4  # of the gap, that an inexact solution of the linear system may cost

# Largest D |x|^2 / sigma, tried in this order: D has no limit at a kink. Without one the method is
# fastest, and fails where rounding makes the matrix singular; conjugate gradients fail before.
HEAVIEST = (math.inf, 1e14, 1e12, 1e10)
HEAVIEST_ITERATIVE = (1e12, 1e10)

Inverse = Callable[[Vector], Vector]
# From residual, pull and accuracy to ``(dtheta, dc)``. The accuracy is the largest norm that is
# allowed for the remainder of the first equation.
NewtonSolver = Callable[[Vector, Vector, float], tuple[Vector, Vector]]


class BoxDual:
    """The dual of a problem: the samples that depend on theta as the matrix ``X``, and bounds."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.index = np.flatnonzero(problem.live)
        self.squared_norms = problem.squared_norms[self.index]
        self.sigma = problem.total_sigma
        self.few_samples = len(self.index) <= min(problem.n_features, SAMPLE_LIMIT)
        self.few_features = problem.n_features <= optimum.DENSE_HESSIAN_LIMIT
        self.labels, weights = problem.labels[self.index], problem.weights[self.index]
        both = problem.loss.code == loss_functions.ABSOLUTE
        self.low = np.where(both | (self.labels > 0), -weights, 0.0)
        self.high = np.where(both | (self.labels <= 0), weights, 0.0)

    def times(self, theta: Vector) -> Vector:
        scores = np.empty(self.problem.n_samples)
        certificate.predictions(self.problem.rows, theta, 0, self.problem.n_samples, scores)
        return scores[self.index]

    def transposed_times(self, values: Vector) -> Vector:
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
        problem = self.problem
        return slice_rows(problem.rows, problem.n_features, 0, problem.n_samples)[self.index]

    @functools.cached_property
    def gram(self) -> Matrix:
        """``X X^T / sigma``, valid at and below the diagonal."""
        return scaled_gram(self.matrix(), np.full(self.problem.n_features, 1.0 / self.sigma))


def _by_samples(dual: BoxDual, weights: Vector) -> NewtonSolver:
    factor = _factor(dual.gram + np.diag(1.0 / weights))

    def solve(residual: Vector, pull: Vector, accuracy: float) -> tuple[Vector, Vector]:
        c = np.zeros(len(pull))
        for _ in range(1 + MAX_REFINEMENTS):
            theta = -(residual + dual.transposed_times(c)) / dual.sigma
            c = c + _solve(factor, pull + dual.times(theta) - c / weights)
        return -(residual + dual.transposed_times(c)) / dual.sigma, c

    return solve


def _by_features(dual: BoxDual, weights: Vector) -> NewtonSolver:
    inverse = (_direct_inverse if dual.few_features else _heavy_inverse)(dual, weights)
    limit = MAX_REFINEMENTS if dual.few_features else MAX_ITERATIONS

    def times(vector: Vector) -> Vector:
        return dual.transposed_times(weights * dual.times(vector)) + dual.sigma * vector

    operator, preconditioner = (
        LinearOperator(2 * (dual.problem.n_features,), matvec=function, dtype=np.float64)
        for function in (times, inverse)
    )

    def solve(residual: Vector, pull: Vector, accuracy: float) -> tuple[Vector, Vector]:
        right = -residual - dual.transposed_times(weights * pull)
        accuracy = min(accuracy, ACCURACY * float(np.linalg.norm(right)))
        if not np.isfinite(accuracy):
            raise LinAlgError("The right side is not finite.")
        theta = cg(operator, right, rtol=0.0, atol=accuracy, maxiter=limit, M=preconditioner)[0]
        return theta, weights * (dual.times(theta) + pull)

    return solve


def _direct_inverse(dual: BoxDual, weights: Vector) -> Inverse:
    problem = dual.problem
    matrix = dual.sigma * np.eye(problem.n_features)
    everything = slice(0, problem.n_samples)
    optimum.add_outer_products(problem, dual.everywhere(weights), everything, matrix)
    return functools.partial(_solve, _factor(matrix))


def _heavy_inverse(dual: BoxDual, weights: Vector) -> Inverse:
    """Inverse of ``S + X_B^T D_B X_B``: B the heavy samples, S the diagonal of all the rest.

    It is ``S^-1 - S^-1 X_B^T (D_B^-1 + X_B S^-1 X_B^T)^-1 X_B S^-1``, by Woodbury's identity.
    """
    matrix, heaviness = dual.matrix(), weights * dual.squared_norms
    heavy = np.argsort(heaviness, kind="stable")[-SAMPLE_LIMIT:]
    heavy = heavy[heaviness[heavy] > LIGHT * dual.sigma]
    light = weights.copy()
    light[heavy] = 0.0
    squares = matrix.power(2) if sp.issparse(matrix) else matrix * matrix
    diagonal = dual.sigma + squares.T @ light
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


class BoxPoint(NamedTuple):
    """An interior point: theta, the distances of c to its bounds, and the bounds' multipliers."""

    theta: Vector
    above_low: Vector
    below_high: Vector
    z_low: Vector
    z_high: Vector

    def duals(self, dual: BoxDual) -> Vector:
        """c, measured from the nearer bound: there the other one has no digits."""
        return np.where(
            self.above_low < self.below_high,
            dual.low + self.above_low,
            dual.high - self.below_high,
        )

    def complementarity(self) -> float:
        """Sum of all products of a distance and its multiplier: the gap, once the rest is zero."""
        return float(self.above_low @ self.z_low + self.below_high @ self.z_high)

    def moved(self, direction: "BoxPoint", size: float) -> "BoxPoint":
        return BoxPoint(*(a + size * b for a, b in zip(self, direction, strict=True)))

    def longest(self, direction: "BoxPoint") -> float:
        """The step at which the first distance or multiplier becomes zero."""
        pairs = zip(self[1:], direction[1:], strict=True)
        return 1.0 / max(1e-300, *(float(np.max(-b / a)) for a, b in pairs))


def minimise_non_smooth(problem: Problem) -> Optimum:
    """Interior points until the certified gap stops shrinking; the best of them."""
    dual = BoxDual(problem)
    point = _centred_start(dual)
    best = _certified(dual, point)
    for heaviest in HEAVIEST if dual.few_samples or dual.few_features else HEAVIEST_ITERATIVE:
        if best.duality_gap > TARGET * best.objective:
            point, best = _descend(dual, point, best, heaviest)
    return best._replace(objective=problem.objective(best.theta))


def _descend(
    dual: BoxDual, point: BoxPoint, best: Optimum, heaviest: float
) -> tuple[BoxPoint, Optimum]:
    """Steps until the target is reached or only rounding is left; last point, best optimum."""
    least, idle = point.complementarity(), 0
    for _ in range(MAX_STEPS):
        following = _step(dual, point, heaviest)
        if following is None:
            break
        point, total = following, following.complementarity()
        found = _certified(dual, point)
        gains = found.duality_gap < best.duality_gap or TARGET * best.objective < total < least
        idle = 0 if gains else idle + 1
        least = min(least, total)
        best = min(best, found, key=lambda optimum: optimum.duality_gap)
        if best.duality_gap <= TARGET * best.objective or idle == MAX_IDLE:
            break
    return point, best


def _centred_start(dual: BoxDual) -> BoxPoint:
    """``theta = 0``, and mu on the scale of the loss there, or larger.

    A larger mu moves c to the middle of the box, so that ``|X^T c|^2 / (2 s)``, what it costs that
    theta is not ``-X^T c / s``, does not exceed the complementarity by far.
    """
    mu = float(np.mean(dual.high - dual.low)) * (float(np.mean(np.abs(dual.labels))) or 1.0)
    point = _centred(dual, mu)
    for exponent in range(1, MAX_STEPS):
        slope = dual.transposed_times(point.duals(dual))
        if slope @ slope <= 2.0 * dual.sigma * START_RATIO * point.complementarity():
            break
        point = _centred(dual, mu * 10.0**exponent)
    return point


def _centred(dual: BoxDual, mu: float) -> BoxPoint:
    """``theta = 0`` and the only c and z that fit it with all products equal to mu.

    ``mu / (c - low) - mu / (high - c) = b`` is a quadratic equation; these are its stable roots.
    """
    middle = 2.0 * mu / (dual.high - dual.low)
    root = np.hypot(dual.labels, middle)
    above_low = 2.0 * mu / (root + middle + dual.labels)
    below_high = 2.0 * mu / (root + middle - dual.labels)
    theta = np.zeros(dual.problem.n_features)
    return BoxPoint(theta, above_low, below_high, mu / above_low, mu / below_high)


def _certified(dual: BoxDual, point: BoxPoint) -> Optimum:
    """The better of the point's own theta and the one that its c makes."""
    duals = point.duals(dual)
    found = []
    for theta in (point.theta, -dual.transposed_times(duals) / dual.sigma):
        objective, gap = certify(dual.problem, theta, dual.everywhere(duals))
        found.append(Optimum(theta, objective, gap))
    return min(found, key=lambda optimum: optimum.duality_gap)


def _step(dual: BoxDual, point: BoxPoint, heaviest: float) -> BoxPoint | None:
    """One predictor and corrector; None where rounding left no direction."""
    with np.errstate(all="ignore"):
        try:
            following = _newton_step(dual, point, heaviest)
        except (LinAlgError, ZeroDivisionError):
            return None
    return following if all(np.isfinite(part).all() for part in following) else None


def _newton_step(dual: BoxDual, point: BoxPoint, heaviest: float) -> BoxPoint:
    """Predict with mu = 0, then correct with the mu that the length of this step suggests."""
    theta_residual = dual.sigma * point.theta + dual.transposed_times(point.duals(dual))
    score_residual = dual.times(point.theta) - dual.labels - point.z_high + point.z_low
    # The last term is a proximal one: it keeps the matrix away from singular, and fades where the
    # iterates stop.
    weights = 1.0 / (
        point.z_low / point.above_low
        + point.z_high / point.below_high
        + dual.squared_norms / (dual.sigma * heaviest)
    )
    solve = (_by_samples if dual.few_samples else _by_features)(dual, weights)
    total = point.complementarity()
    # What is left of the first equation, r, costs |r|^2 / (2 s) of gap.
    accuracy = math.sqrt(2.0 * dual.sigma * (RESIDUAL_SHARE * total))

    def direction(low: Vector, high: Vector) -> BoxPoint:
        """The move that makes both residuals zero and lowers the products by low and high."""
        pull = score_residual + high / point.below_high - low / point.above_low
        theta, c = solve(theta_residual, pull, accuracy)
        z_low = -(low + point.z_low * c) / point.above_low
        z_high = -(high - point.z_high * c) / point.below_high
        return BoxPoint(theta, c, -c, z_low, z_high)

    low, high = point.above_low * point.z_low, point.below_high * point.z_high
    ahead = direction(low, high)
    reached = point.moved(ahead, min(1.0, point.longest(ahead))).complementarity()
    left = reached / total
    mu = left**3 * total / (2 * len(low))
    ahead = direction(
        low + ahead.above_low * ahead.z_low - mu, high + ahead.below_high * ahead.z_high - mu
    )
    # The better the prediction, the nearer it may go to the boundary, but never onto it.
    part = max(TO_THE_BOUNDARY, 1.0 - max(left, 1e-8))
    return point.moved(ahead, min(1.0, part * point.longest(ahead)))

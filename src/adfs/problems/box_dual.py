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
Nothing is shared with NS-ADFS, so this is its yardstick.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from adfs.kernels import scalar
from adfs.problems.certificates import certify
from adfs.problems.finite_sum import Problem
from adfs.problems.normal_equations import LiveRows, newton_solver
from adfs.problems.optimum import Optimum
from adfs.problems.shards import Vector

MAX_STEPS = 200
PATIENCE = 6  # steps without a gain: rounding has won
TARGET = 1e-15  # gap relative to F
TO_THE_BOUNDARY = 0.99  # part of the way, at least
START_RATIO = 1e4
RESIDUAL_SHARE = 1e-4  # of the gap, that an inexact solution of the linear system may cost

# Largest D |x|^2 / sigma, tried in this order: D has no limit at a kink. Without one the method is
# fastest, and fails where rounding makes the matrix singular; conjugate gradients fail before.
HEAVIEST = (math.inf, 1e14, 1e12, 1e10)
HEAVIEST_ITERATIVE = (1e12, 1e10)


class Box(NamedTuple):
    """The linear term and the bounds of the dual's variables."""

    labels: Vector
    low: Vector
    high: Vector


class Point(NamedTuple):
    """An interior point: theta, the distances of c to its bounds, and the bounds' multipliers."""

    theta: Vector
    above_low: Vector
    below_high: Vector
    z_low: Vector
    z_high: Vector

    def duals(self, box: Box) -> Vector:
        """c, measured from the nearer bound: there the other one has no digits."""
        return np.where(
            self.above_low < self.below_high,
            box.low + self.above_low,
            box.high - self.below_high,
        )

    def complementarity(self) -> float:
        """Sum of all products of a distance and its multiplier: the gap, once the rest is zero."""
        return float(self.above_low @ self.z_low + self.below_high @ self.z_high)

    def moved(self, direction: "Point", size: float) -> "Point":
        """The point plus ``size`` times a direction."""
        return Point(*(a + size * b for a, b in zip(self, direction, strict=True)))

    def longest(self, direction: "Point") -> float:
        """The step at which the first distance or multiplier becomes zero."""
        pairs = zip(self[1:], direction[1:], strict=True)
        return 1.0 / max(1e-300, *(float(np.max(-b / a)) for a, b in pairs))


def minimise_non_smooth(problem: Problem) -> Optimum:
    """Interior points until the certified gap stops shrinking; the best of them."""
    rows = LiveRows(problem)
    box = _box(problem, rows)
    point = _centred_start(rows, box)
    best = _certified(rows, box, point)
    for heaviest in HEAVIEST if rows.few_samples or rows.few_features else HEAVIEST_ITERATIVE:
        if best.duality_gap > TARGET * best.objective:
            point, best = _descend(rows, box, point, best, heaviest)
    return best._replace(objective=problem.objective(best.theta))


def _descend(
    rows: LiveRows, box: Box, point: Point, best: Optimum, heaviest: float
) -> tuple[Point, Optimum]:
    """Steps until the target is reached or rounding wins; the last point and the best optimum."""
    least, idle = point.complementarity(), 0
    for _ in range(MAX_STEPS):
        following = _step(rows, box, point, heaviest)
        if following is None:
            break
        point, total = following, following.complementarity()
        found = _certified(rows, box, point)
        gains = found.duality_gap < best.duality_gap or TARGET * best.objective < total < least
        idle = 0 if gains else idle + 1
        least = min(least, total)
        best = min(best, found, key=lambda optimum: optimum.duality_gap)
        if best.duality_gap <= TARGET * best.objective or idle == PATIENCE:
            break
    return point, best


def _box(problem: Problem, rows: LiveRows) -> Box:
    labels, weights = problem.labels[rows.index], problem.weights[rows.index]
    if problem.loss.code == scalar.ABSOLUTE:
        return Box(labels, -weights, weights)
    return Box(labels, np.where(labels > 0, -weights, 0.0), np.where(labels > 0, 0.0, weights))


def _centred_start(rows: LiveRows, box: Box) -> Point:
    """``theta = 0``, and mu on the scale of the loss there, or larger.

    A larger mu moves c to the middle of the box, so that ``|X^T c|^2 / (2 s)``, what it costs that
    theta is not ``-X^T c / s``, does not exceed the complementarity by far.
    """
    mu = float(np.mean(box.high - box.low)) * (float(np.mean(np.abs(box.labels))) or 1.0)
    point = _centred(rows, box, mu)
    for exponent in range(1, MAX_STEPS):
        slope = rows.transposed_times(point.duals(box))
        if slope @ slope <= 2.0 * rows.sigma * START_RATIO * point.complementarity():
            break
        point = _centred(rows, box, mu * 10.0**exponent)
    return point


def _centred(rows: LiveRows, box: Box, mu: float) -> Point:
    """``theta = 0`` and the only c and z that fit it with all products equal to mu.

    ``mu / (c - low) - mu / (high - c) = b`` is a quadratic equation; these are its stable roots.
    """
    middle = 2.0 * mu / (box.high - box.low)
    root = np.hypot(box.labels, middle)
    above_low = 2.0 * mu / (root + middle + box.labels)
    below_high = 2.0 * mu / (root + middle - box.labels)
    theta = np.zeros(rows.problem.n_features)
    return Point(theta, above_low, below_high, mu / above_low, mu / below_high)


def _certified(rows: LiveRows, box: Box, point: Point) -> Optimum:
    """The better of the point's own theta and the one that its c makes."""
    duals = point.duals(box)
    found = []
    for theta in (point.theta, -rows.transposed_times(duals) / rows.sigma):
        objective, gap = certify(rows.problem, theta, rows.everywhere(duals))
        found.append(Optimum(theta, objective, gap))
    return min(found, key=lambda optimum: optimum.duality_gap)


def _step(rows: LiveRows, box: Box, point: Point, heaviest: float) -> Point | None:
    """One predictor and corrector; None where rounding left no direction."""
    with np.errstate(all="ignore"):
        try:
            following = _Newton(rows, box, point, heaviest).step()
        except (LinAlgError, ZeroDivisionError):
            return None
    return following if all(np.isfinite(part).all() for part in following) else None


class _Newton:
    """Newton's equations at one point, factorised once for two right sides."""

    def __init__(self, rows: LiveRows, box: Box, point: Point, heaviest: float) -> None:
        self.rows, self.point = rows, point
        self.theta_residual = rows.sigma * point.theta + rows.transposed_times(point.duals(box))
        self.score_residual = rows.times(point.theta) - box.labels - point.z_high + point.z_low
        # The last term is a proximal one: it keeps the matrix away from singular, and fades where
        # the iterates stop.
        self.weights = 1.0 / (
            point.z_low / point.above_low
            + point.z_high / point.below_high
            + rows.squared_norms / (rows.sigma * heaviest)
        )
        self.solve = newton_solver(rows, self.weights)

    def step(self) -> Point:
        """Aim at mu = 0, see how far that leads, then aim at the mu this suggests."""
        point, total = self.point, self.point.complementarity()
        low, high = point.above_low * point.z_low, point.below_high * point.z_high
        ahead = self.direction(low, high)
        reached = point.moved(ahead, min(1.0, point.longest(ahead))).complementarity()
        left = reached / total
        mu = left**3 * total / (2 * len(low))
        ahead = self.direction(
            low + ahead.above_low * ahead.z_low - mu, high + ahead.below_high * ahead.z_high - mu
        )
        # The better the prediction, the nearer it may go to the boundary, but never onto it.
        part = max(TO_THE_BOUNDARY, 1.0 - max(left, 1e-8))
        return point.moved(ahead, min(1.0, part * point.longest(ahead)))

    def direction(self, low: Vector, high: Vector) -> Point:
        """The move that makes both residuals zero and lowers the products by low and high."""
        point, rows = self.point, self.rows
        pull = self.score_residual + high / point.below_high - low / point.above_low
        # What is left of the first equation, r, costs |r|^2 / (2 s) of gap.
        share = RESIDUAL_SHARE * point.complementarity()
        theta, c = self.solve(self.theta_residual, pull, math.sqrt(2.0 * rows.sigma * share))
        z_low = -(low + point.z_low * c) / point.above_low
        z_high = -(high - point.z_high * c) / point.below_high
        return Point(theta, c, -c, z_low, z_high)

"""The duality gap: how far a model can be from the best one, without knowing the best one.

For any ``theta`` and dual coefficients ``c_ij`` in the conjugate's domain, weak duality gives

    F(theta) - F* <= sum_ij [ w l(s) + w l*(c / w) - c s ]
                     + (sum sigma / 2) | theta + sum_ij c x / sum sigma |^2,    s = x_ij . theta.

Every bracket is a Fenchel gap computed without cancellation, so tiny gaps are real. With
``c = w l'(s)`` the brackets vanish and the bound is ``|grad F|^2 / (2 sum sigma)``: both choices
cost one pass together, and the smaller bound is reported.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adfs.kernels import certificate
from adfs.problems.finite_sum import Problem
from adfs.problems.shards import Vector


class Certificate(NamedTuple):
    """``F(theta)`` and a proven bound on ``F(theta) - F*``."""

    objective: float
    duality_gap: float

    @property
    def relative_gap(self) -> float:
        """``gap / max(1, |F|)``: what ``tol`` is compared with."""
        return self.duality_gap / max(1.0, abs(self.objective))


def certify(problem: Problem, theta: Vector, duals: Vector | None = None) -> Certificate:
    """Certificate of ``theta``, with dual coefficients (one a sample) if there are any.

    A model that is no longer a number has neither objective nor bound: both are nan.
    """
    if not np.isfinite(theta).all():
        return Certificate(math.nan, math.nan)
    if duals is None:
        objective, gradient = problem.objective_and_gradient(theta)
        return Certificate(objective, float(gradient @ gradient) / (2.0 * problem.total_sigma))
    return certify_nodes(problem, theta, lambda node: duals[problem.node_rows(node)])


def certify_nodes(problem: Problem, theta: Vector, duals: Callable[[int], Vector]) -> Certificate:
    """Certificate of ``theta`` with dual coefficients asked for node by node."""
    if not np.isfinite(theta).all():
        return Certificate(math.nan, math.nan)
    if not theta.any() and not any(duals(node).any() for node in range(problem.n_nodes)):
        return certify_zero(problem)
    losses, gaps = 0.0, 0.0
    dual_sum, gradient = np.zeros(problem.n_features), np.zeros(problem.n_features)
    for node in range(problem.n_nodes):
        node_losses, node_gaps, node_dual_sum, node_gradient = node_pass(
            problem, node, theta, duals(node)
        )
        losses, gaps = losses + node_losses, gaps + node_gaps
        dual_sum += node_dual_sum
        gradient += node_gradient
    return combine(losses, gaps, dual_sum, gradient, theta, problem.total_sigma)


def certify_zero(problem: Problem) -> Certificate:
    """Certificate of ``theta = 0`` with duals 0, where every run from nothing starts.

    It needs no pass over the features, and does without the bound by the gradient.
    """
    losses, gaps = 0.0, 0.0
    for node in range(problem.n_nodes):
        rows = problem.node_rows(node)
        node_losses, node_gaps = certificate.gap_at_zero(
            problem.loss.code, problem.labels, problem.weights, problem.squared_norms,
            rows.start, rows.stop,
        )  # fmt: skip
        losses, gaps = losses + node_losses, gaps + node_gaps
    return Certificate(losses, gaps)


def node_pass(
    problem: Problem, node: int, theta: Vector, duals: Vector
) -> tuple[float, float, Vector, Vector]:
    """One node's sums: losses, Fenchel gaps, ``sum c x`` and ``sum w l' x``."""
    first, last = problem.offsets[node], problem.offsets[node + 1]
    sums = np.zeros((1, 2 * problem.n_features))
    losses, gaps = certificate.gap_pass(
        problem.loss.code, problem.rows, problem.labels, problem.weights,
        first, last, theta, duals, sums,
    )  # fmt: skip
    return losses, gaps, sums[0, ::2], sums[0, 1::2]


def combine(
    losses: float, gaps: float, dual_sum: Vector, gradient: Vector, theta: Vector, sigma: float
) -> Certificate:
    """Certificate from sums over all nodes (zero rows have Fenchel gap 0 at ``c = w l'(0)``)."""
    objective = losses + 0.5 * sigma * float(theta @ theta)
    residual = theta + dual_sum / sigma
    by_duals = gaps + 0.5 * sigma * float(residual @ residual)
    slope = gradient + sigma * theta
    by_gradient = float(slope @ slope) / (2.0 * sigma)
    return Certificate(objective, min(by_duals, by_gradient))

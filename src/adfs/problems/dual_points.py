"""The dual point that belongs to a model."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.kernels import certificate
from adfs.problems.finite_sum import Problem
from adfs.problems.shards import Vector


class DualPoint(NamedTuple):
    """Predictions ``x . theta``, duals ``c = w l'``, and ``sum_j c x`` for each node."""

    scores: Vector
    duals: Vector
    sums: NDArray[np.float64]


def dual_point(problem: Problem, theta: Vector) -> DualPoint:
    """``c = w l'(x . theta)``; where the loss is not smooth, the subgradient nearest to zero."""
    scores, duals = np.empty(problem.n_samples), np.empty(problem.n_samples)
    certificate.predictions(problem.rows, theta, 0, problem.n_samples, scores)
    sums = np.zeros((problem.n_nodes, problem.n_features))
    for node in range(problem.n_nodes):
        certificate.dual_sum(
            problem.loss.code, problem.rows, problem.labels, problem.weights,
            problem.offsets[node], problem.offsets[node + 1], scores, duals, sums[node],
        )  # fmt: skip
    return DualPoint(scores, duals, sums)

"""The dual point that belongs to a model."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.kernels import certificate
from adfs.problems.finite_sum import Problem
from adfs.problems.shards import Vector


class DualPoint(NamedTuple):
    """Predictions ``x . theta``, duals ``c = w l'``, and ``sum_j c x`` for each node here."""

    scores: Vector
    duals: Vector
    sums: NDArray[np.float64]


def dual_point(problem: Problem, theta: Vector) -> DualPoint:
    """``c = w l'(x . theta)``; where the loss is not smooth, the subgradient nearest to zero."""
    scores, duals = np.empty(problem.n_rows), np.empty(problem.n_rows)
    certificate.predictions(problem.rows, theta, 0, problem.n_rows, scores)
    sums = np.zeros((len(problem.nodes), problem.n_features))
    for own in range(len(problem.nodes)):
        certificate.dual_sum(
            problem.loss.code, problem.rows, problem.labels, problem.weights,
            problem.offsets[own], problem.offsets[own + 1], scores, duals, sums[own],
        )  # fmt: skip
    return DualPoint(scores, duals, sums)

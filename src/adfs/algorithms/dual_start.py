"""Where an algorithm with one dual coefficient per sample starts when it is given a model."""

import numpy as np

from adfs.algorithms.base import Matrix, Vector
from adfs.problem.certificate import dual_point
from adfs.problem.finite_sum import Problem


def dual_start(problem: Problem, theta: Vector) -> tuple[Vector, Vector, Matrix]:
    """Predictions, duals ``c = w l'(x . theta)``, and the centres that go with them.

    The centres share ``-sum c x``, so that all rows of the augmented graph sum to zero; shared in
    proportion to ``sigma_i`` they agree: every node starts at the same model.
    """
    point = dual_point(problem, theta)
    shares = problem.own_sigma / problem.total_sigma
    total = problem.network.sum_rows(point.sums, problem.n_features)
    return point.scores, point.duals, -np.outer(shares, total)

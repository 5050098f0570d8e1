"""Ridge with an intercept on sparse rows, which centring would make dense.

Ridge minimises ``sum_j w_j (x_j . theta + b - y_j)^2 / 2 + alpha / 2 |theta|^2``, the intercept
``b`` free. For a given ``b`` the best ``theta`` is linear in the targets: it is ``u - b v``, where
``u`` and ``v`` are the models without intercept for the targets ``y`` and ``1``. Setting the
derivative by ``b`` to zero gives

    b = sum_j w_j (y_j - x_j . u) / sum_j w_j (1 - x_j . v).

The denominator is the least of ``sum w (1 - x . v)^2 + alpha |v|^2``, so it is positive. Both
models are trained together as one of twice the width: each row occurs twice, as ``(x, 0)`` for the
target ``y`` and as ``(0, x)`` for the target 1. Besides the messages only sums of a few numbers are
exchanged. An evaluation is that of the whole: with ``b`` eliminated, the objective
``G(theta) = min_b F(theta, b)`` is alpha-strongly convex, and ``G - G* <= |grad G|^2 / (2 alpha)``.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from adfs.data.shards import slice_rows
from adfs.engine.evaluation import Evaluation
from adfs.estimators.fitting import Matrix, Target, Vector
from adfs.estimators.node_layout import RowLayout
from adfs.network import Ask, Part, Steps
from adfs.problem.certificate import in_order, quadratic
from adfs.problem.finite_sum import Problem


def twice(X: csr_matrix, layout: RowLayout) -> tuple[csr_matrix, RowLayout]:
    """Rows and layout of both models; a node's rows for ``u``, then those for ``v``."""
    n, d = X.shape
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    indptr, indices = (
        np.concatenate([indptr, indptr[1:] + indptr[-1]]),
        np.concatenate([indices, indices + d]),
    )
    rows = csr_matrix((np.concatenate([X.data, X.data]), indices, indptr), shape=(2 * n, 2 * d))
    parts = np.split(layout.order, layout.cuts[1:-1])
    order = np.concatenate([half for part in parts for half in (part, part + n)])
    return rows, layout._replace(order=order, cuts=2 * layout.cuts)


def twice_labels(target: Target) -> Target:
    """The targets of both models."""
    ones = np.ones(len(target.labels))
    return Target(np.concatenate([target.labels, ones]), np.tile(target.weights, 2))


class Eliminated:
    """Evaluations of the model that ``(u, v)`` make, for a problem made by `twice`.

    Attributes
    ----------
    of_ones : array of shape (d,)
        ``v`` at the last evaluation, from which a warm start continues.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.half = problem, problem.n_features // 2
        self.halves = [self._first_half(node) for node in problem.nodes.tolist()]
        self.matrices = [
            slice_rows(problem.rows, problem.n_features, own.start, own.stop)[:, : self.half]
            for own in self.halves
        ]
        self.of_ones = np.zeros(self.half)

    def _first_half(self, node: int) -> slice:
        """The rows of a node that are for ``u``."""
        rows = self.problem.node_rows(node)
        return slice(rows.start, (rows.start + rows.stop) // 2)

    def steps(self, problem: Problem, outputs: list[Matrix], duals: Any) -> Steps[Evaluation]:
        """An evaluation of ``(u_i, v_i)`` of this process's nodes; sums are over all nodes."""
        both = outputs[0]
        half, alpha = self.half, self.problem.total_sigma
        total, sums = yield Ask(2 * half, 2, self._weighted(both))
        u, v = total[:half] / alpha, total[half:] / alpha
        targets, weight = _added(sums)
        _, sums = yield Ask(0, 3, self._residuals(u, v, targets / weight))
        above, below, at_zero = _added(sums)
        b = above / below
        theta, thetas = u - b * v, both[:, :half] - b * both[:, half:]
        residuals = [matrix @ theta - y for matrix, y, _ in self._nodes()]
        _, sums = yield Ask(0, 1, self._sums(residuals))
        slope, sums = yield Ask(half, 1, self._pulls(residuals, _added(sums)[0] / weight))
        objective = _added(sums)[0] + 0.5 * alpha * float(theta @ theta)
        square = (float(np.sum((own - theta) ** 2)) for own in thetas)
        _, distances = yield Ask(0, 1, (Part(np.empty(0), (each,)) for each in square))
        self.of_ones = v
        gap = quadratic(slope + alpha * theta, 1.0, 2.0 * alpha)
        spread = float(np.sqrt(np.mean(distances)))
        return Evaluation(theta, thetas, float(objective), gap, None, spread, at_zero)

    def _nodes(self) -> Iterator[tuple[Any, Vector, Vector]]:
        """Rows, targets and weights of each node."""
        for matrix, own in zip(self.matrices, self.halves, strict=True):
            yield matrix, self.problem.labels[own], self.problem.weights[own]

    def _weighted(self, both: Matrix) -> Iterator[Part]:
        """``sigma_i (u_i, v_i)``, and the sums of targets and of weights."""
        for sigma, row, (_, y, weights) in zip(
            self.problem.own_sigma, both, self._nodes(), strict=True
        ):
            yield Part(sigma * row, (float(weights @ y), float(weights.sum())))

    def _residuals(self, u: Vector, v: Vector, mean: float) -> Iterator[Part]:
        """The two sums whose ratio is ``b``, and the losses of ``theta = 0``."""
        for matrix, y, weights in self._nodes():
            above, below = weights @ (y - matrix @ u), weights @ (1.0 - matrix @ v)
            at_zero = 0.5 * weights @ (y - mean) ** 2
            yield Part(np.empty(0), (float(above), float(below), float(at_zero)))

    def _sums(self, residuals: list[Vector]) -> Iterator[Part]:
        for (_, _, weights), residual in zip(self._nodes(), residuals, strict=True):
            yield Part(np.empty(0), (float(weights @ residual),))

    def _pulls(self, residuals: list[Vector], mean: float) -> Iterator[Part]:
        """``X^T W r`` and the losses, with residuals ``r`` around their mean."""
        for (matrix, _, weights), residual in zip(self._nodes(), residuals, strict=True):
            centred = residual - mean
            pull = weights * centred
            yield Part(matrix.T @ pull, (0.5 * float(pull @ centred),))


def _added(values: Matrix) -> list[float]:
    """The sum of each column, added node after node."""
    return [in_order(column) for column in values.T]

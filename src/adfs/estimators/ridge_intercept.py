"""Ridge with an intercept on sparse rows, which centring would make dense.

For a given intercept ``b`` the best model is ``u - b v``, where ``u`` and ``v`` are the models
without intercept for the targets ``y`` and ``1``, and

    b = sum_j w_j (y_j - x_j . u) / sum_j w_j (1 - x_j . v).

Both are trained together as one model of twice the width: each row occurs twice, as ``(x, 0)`` for
the target ``y`` and as ``(0, x)`` for the target 1. Besides the messages only sums of a few numbers
are exchanged. Derivation, and the gap of the whole: docs/estimators.md, The intercept.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from adfs.data.shards import slice_rows
from adfs.engine.evaluation import Evaluation
from adfs.estimators.fitting import Matrix, Vector
from adfs.estimators.node_layout import RowLayout
from adfs.network import Ask, Part, Steps
from adfs.problem.certificate import in_order, quadratic
from adfs.problem.finite_sum import Problem

NO_ROW = np.empty(0)


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


class Eliminated:
    """Evaluations of the model that ``(u, v)`` make, for a problem made by `twice`.

    Attributes
    ----------
    nodes : list of (matrix, targets, weights)
        Of the rows of each node that are for ``u``.
    of_ones : array of shape (d,)
        ``v`` at the last evaluation, from which a warm start continues.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.half = problem, problem.n_features // 2
        self.of_ones = np.zeros(self.half)
        self.nodes: list[tuple[Any, Vector, Vector]] = []
        for node in problem.nodes.tolist():
            first = problem.node_rows(node).start
            last = (first + problem.node_rows(node).stop) // 2
            matrix = slice_rows(problem.rows, problem.n_features, first, last)[:, : self.half]
            self.nodes.append((matrix, problem.labels[first:last], problem.weights[first:last]))

    def steps(self, problem: Problem, outputs: list[Matrix], duals: Any) -> Steps[Evaluation]:
        """An evaluation of ``(u_i, v_i)`` of this process's nodes; sums are over all nodes."""
        both, nodes = outputs[0], self.nodes
        half, alpha = self.half, self.problem.total_sigma
        own = zip(self.problem.own_sigma, both, nodes, strict=True)
        total, sums = yield _ask(
            2 * half, 2, ((sigma * row, w @ y, w.sum()) for sigma, row, (_, y, w) in own)
        )
        u, v = total[:half] / alpha, total[half:] / alpha
        targets, weight = _added(sums)
        mean = targets / weight
        # The two sums whose ratio is b, and the losses of theta = 0.
        _, sums = yield _ask(0, 3, (
            (NO_ROW, w @ (y - X @ u), w @ (1.0 - X @ v), 0.5 * w @ (y - mean) ** 2)
            for X, y, w in nodes
        ))  # fmt: skip
        above, below, at_zero = _added(sums)
        b = above / below
        theta, thetas = u - b * v, both[:, :half] - b * both[:, half:]
        residuals = [(X, w, X @ theta - y) for X, y, w in nodes]
        _, sums = yield _ask(0, 1, ((NO_ROW, w @ r) for _, w, r in residuals))
        mean = _added(sums)[0] / weight
        # X^T W r and the losses, with residuals r around their mean.
        centred = [(X, w * (r - mean), r - mean) for X, w, r in residuals]
        slope, sums = yield _ask(half, 1, ((X.T @ wr, 0.5 * (wr @ r)) for X, wr, r in centred))
        objective = _added(sums)[0] + 0.5 * alpha * float(theta @ theta)
        _, distances = yield _ask(0, 1, ((NO_ROW, np.sum((own - theta) ** 2)) for own in thetas))
        self.of_ones = v
        gap = quadratic(slope + alpha * theta, 1.0, 2.0 * alpha)
        spread = float(np.sqrt(np.mean(distances)))
        return Evaluation(theta, thetas, float(objective), gap, None, spread, at_zero)


def _ask(width: int, n_values: int, parts: Iterable[tuple[Any, ...]]) -> Ask:
    """For sums over all nodes; a part is a row of ``width`` numbers, then ``n_values`` numbers."""
    return Ask(width, n_values, (Part(row, tuple(map(float, own))) for row, *own in parts))


def _added(values: Matrix) -> list[float]:
    """The sum of each column, added node after node."""
    return [in_order(column) for column in values.T]

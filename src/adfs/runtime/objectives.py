"""``F`` at the models of many nodes: n times the scores of all samples, so it has to be quick.

The logistic loss is ``max(0, -m) + log(1 + e^-|m|)`` at the margin ``m = y s``. NumPy's ``exp``
works on vectors, and one logarithm serves the product of many factors ``1 + e`` in [1, 2]; blocks
stay in the cache. A test holds the result equal to the definition, one sample at a time.
"""

import numpy as np
from numpy.typing import NDArray

from adfs.kernels import certificate, scalar
from adfs.problems.finite_sum import Problem
from adfs.problems.shards import slice_rows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SCORES_AT_ONCE = 1 << 15  # 256 kB: several passes over them stay in the cache
SCORES_FOR_KERNELS = 1 << 21  # which pass over them once
FACTORS = 512  # of at most 2 each: their product stays below 1e155


def objectives(problem: Problem, thetas: Matrix) -> Vector:
    """``F`` at each row of ``thetas``, samples taken in blocks."""
    if (thetas == thetas[0]).all():  # methods with one model for all nodes
        return np.full(len(thetas), _objectives(problem, thetas[:1])[0])
    return _objectives(problem, thetas)


def _objectives(problem: Problem, thetas: Matrix) -> Vector:
    totals: Vector = 0.5 * problem.total_sigma * np.sum(thetas**2, axis=1)
    quick = problem.loss.code == scalar.LOGISTIC and bool((problem.weights == 1.0).all())
    at_once = SCORES_AT_ONCE if quick else SCORES_FOR_KERNELS
    block = max(FACTORS, at_once // len(thetas))
    for first in range(0, problem.n_samples, block):
        last = min(problem.n_samples, first + block)
        rows = slice_rows(problem.rows, problem.n_features, first, last)
        scores = np.asarray(rows @ thetas.T)
        if quick:
            totals += logistic_sums(scores * problem.labels[first:last, None])
        else:
            totals += _kernel_sums(problem, scores, first, last)
    return totals


def _kernel_sums(problem: Problem, scores: Matrix, first: int, last: int) -> Vector:
    columns = np.ascontiguousarray(scores.T)
    return np.array([
        certificate.loss_sum(
            problem.loss.code, columns[k], problem.labels, problem.weights, first, last
        )
        for k in range(len(columns))
    ])  # fmt: skip


def logistic_sums(margins: Matrix) -> Vector:
    """Sums over rows of ``log(1 + e^-m)``, one a column; ``margins`` is used up.

    Examples
    --------
    >>> logistic_sums(np.array([[0.0], [0.0]])) / np.log(2)
    array([2.])
    """
    negative: Vector = np.sum(np.minimum(margins, 0.0), axis=0)
    np.abs(margins, out=margins)
    np.negative(margins, out=margins)
    np.exp(margins, out=margins)
    margins += 1.0
    products = np.multiply.reduceat(margins, np.arange(0, len(margins), FACTORS), axis=0)
    return np.asarray(np.sum(np.log(products), axis=0) - negative)

"""One pass over the samples: predictions, losses, dual coefficients and the duality gap."""

from numba import njit

from adfs.kernels.rows import axpy, dot, norm2
from adfs.kernels.scalar import clip, curvature, derivative, fenchel_gap, value


@njit(cache=True, _nrt=False)
def predictions(rows, theta, first, last, out):
    """``x . theta`` for rows ``first`` to ``last``."""
    for row in range(first, last):
        out[row - first] = dot(rows, row, theta)


@njit(cache=True, _nrt=False)
def loss_sum(code, scores, labels, weights, first, last):
    """Sum of the weighted losses of rows ``first`` to ``last`` at their ``scores``."""
    total = 0.0
    for row in range(first, last):
        total += weights[row] * value(code, scores[row - first], labels[row])
    return total


@njit(cache=True, _nrt=False)
def objective_gradient(code, rows, labels, weights, first, last, theta, gradient):
    """Sum of weighted losses; adds its gradient into ``gradient``."""
    total = 0.0
    for row in range(first, last):
        score = dot(rows, row, theta)
        total += weights[row] * value(code, score, labels[row])
        axpy(rows, row, weights[row] * derivative(code, score, labels[row]), gradient)
    return total


@njit(cache=True, _nrt=False)
def dual_sum(code, rows, labels, weights, first, last, scores, duals, total):
    """``duals = w l'(scores)`` for rows ``first`` to ``last``; adds ``sum c x`` into ``total``."""
    for row in range(first, last):
        duals[row] = weights[row] * derivative(code, scores[row], labels[row])
        axpy(rows, row, duals[row], total)


@njit(cache=True, _nrt=False)
def gap_pass(code, rows, labels, weights, first, last, theta, duals, dual_sum, gradient):
    """Objective and Fenchel gaps of rows ``first`` to ``last`` in one pass.

    ``duals`` are clipped to the conjugate's domain on the way; a zero row, which no update touches,
    takes ``c = w l'(0)``. ``dual_sum`` receives ``sum c x`` and ``gradient`` receives
    ``sum w l'(x . theta) x``. Returns (sum of losses, sum of gaps).
    """
    total = 0.0
    gaps = 0.0
    for row in range(first, last):
        weight, label = weights[row], labels[row]
        if weight == 0.0:
            continue
        score = dot(rows, row, theta)
        slope = derivative(code, score, label)
        total += weight * value(code, score, label)
        if score == 0.0 and norm2(rows, row) == 0.0:
            continue
        c = clip(code, label, duals[row - first] / weight)
        gaps += weight * fenchel_gap(code, score, label, c)
        axpy(rows, row, weight * c, dual_sum)
        axpy(rows, row, weight * slope, gradient)
    return total, gaps


@njit(cache=True, _nrt=False)
def curvatures(code, scores, labels, weights, first, last, out):
    """Weighted second derivatives at ``scores``: the diagonal of the Hessian's middle factor."""
    for row in range(first, last):
        out[row - first] = weights[row] * curvature(code, scores[row - first], labels[row])


@njit(cache=True, _nrt=False)
def squared_norms(rows, first, last, out):
    """``|x|^2`` of each row."""
    for row in range(first, last):
        out[row - first] = norm2(rows, row)

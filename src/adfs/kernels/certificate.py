"""One pass over the samples: predictions, losses, dual coefficients and the duality gap."""

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.loss_functions import (
    ABSOLUTE,
    HUBER,
    SQUARED,
    clip,
    curvature,
    derivative,
    summary,
    value,
)
from adfs.kernels.node_sums import close_row, finish_sum, open_row
from adfs.kernels.plugin_loss import PLUGIN
from adfs.kernels.rows import DenseRows, axpy, dot, max_norm, norm2, two_axpys


@njit(cache=True, _nrt=False, nogil=True)
def predictions(rows, theta, first, last, out):
    """``x . theta`` for rows ``first`` to ``last``."""
    for row in range(first, last):
        out[row - first] = dot(rows, row, theta)


@njit(cache=True, _nrt=False, nogil=True)
def loss_sum(code, scores, labels, weights, first, last):
    """Sum of the weighted losses of rows ``first`` to ``last`` at their ``scores``."""
    total = 0.0
    for row in range(first, last):
        total += weights[row] * value(code, scores[row - first], labels[row])
    return total


@njit(cache=True, _nrt=False, nogil=True)
def objective_gradient(code, rows, labels, weights, first, last, theta, gradient):
    """Sum of weighted losses; adds its gradient into ``gradient``."""
    total = 0.0
    for row in range(first, last):
        score = dot(rows, row, theta)
        total += weights[row] * value(code, score, labels[row])
        axpy(rows, row, weights[row] * derivative(code, score, labels[row]), gradient)
    return total


@njit(cache=True, _nrt=False, nogil=True)
def objective_gradients(code, rows, labels, weights, offsets, theta, links, stack):
    """Gradient of the sum of all nodes' losses, then that sum, in the first row of ``stack``."""
    depth, d = 0, stack.shape[1] - 1
    for node in range(offsets.size - 1):
        open_row(stack, depth)
        stack[depth, d] = objective_gradient(
            code, rows, labels, weights, offsets[node], offsets[node + 1], theta, stack[depth]
        )
        depth = close_row(stack, depth, links.merges[node])
    finish_sum(links, stack, depth)


@njit(cache=True, _nrt=False, nogil=True)
def node_gradients(code, rows, labels, weights, offsets, theta, sums, model):
    """Adds each node's gradient, then its losses, into ``sums[node, model]``."""
    last = sums.shape[2] - 1
    for node in range(offsets.size - 1):
        sums[node, model, last] = objective_gradient(
            code, rows, labels, weights, offsets[node], offsets[node + 1], theta, sums[node, model]
        )


@njit(cache=True, _nrt=False, nogil=True)
def curved_gradients(code, rows, labels, weights, offsets, theta, bends, links, stack):
    """The same, and ``w l''`` of every row here into ``bends``."""
    depth, d = 0, stack.shape[1] - 1
    for node in range(offsets.size - 1):
        open_row(stack, depth)
        total = 0.0
        for row in range(offsets[node], offsets[node + 1]):
            score = dot(rows, row, theta)
            weight, label = weights[row], labels[row]
            total += weight * value(code, score, label)
            bends[row] = weight * curvature(code, score, label)
            axpy(rows, row, weight * derivative(code, score, label), stack[depth])
        stack[depth, d] = total
        depth = close_row(stack, depth, links.merges[node])
    finish_sum(links, stack, depth)


@njit(cache=True, _nrt=False, nogil=True)
def hessian_products(rows, bends, offsets, p, links, stack):
    """``sum bends (x . p) x`` of all nodes, then ``sum bends (x . p)^2``, likewise."""
    depth, d = 0, stack.shape[1] - 1
    for node in range(offsets.size - 1):
        open_row(stack, depth)
        total = 0.0
        for row in range(offsets[node], offsets[node + 1]):
            score = dot(rows, row, p)
            scaled = bends[row] * score
            total += scaled * score
            axpy(rows, row, scaled, stack[depth])
        stack[depth, d] = total
        depth = close_row(stack, depth, links.merges[node])
    finish_sum(links, stack, depth)


@njit(cache=True, _nrt=False, nogil=True)
def dual_sums(code, rows, labels, weights, offsets, theta, scores, duals, totals):
    """``scores = x . theta`` and ``duals = w l'``; adds each node's ``sum c x`` into its total."""
    for node in range(offsets.size - 1):
        for row in range(offsets[node], offsets[node + 1]):
            scores[row] = dot(rows, row, theta)
            duals[row] = weights[row] * derivative(code, scores[row], labels[row])
            axpy(rows, row, duals[row], totals[node])


@njit(cache=True, _nrt=False, nogil=True)
def clipped_dual_sums(code, rows, labels, weights, offsets, theta, scores, duals, totals):
    """The same with given ``duals``, which are clipped to the conjugate's domain; 0 at weight 0."""
    for node in range(offsets.size - 1):
        for row in range(offsets[node], offsets[node + 1]):
            scores[row] = dot(rows, row, theta)
            weight = weights[row]
            given = duals[row] / weight if weight > 0.0 else 0.0
            c = clip(code, labels[row], given)
            if c != given or weight == 0.0:
                duals[row] = weight * c
            axpy(rows, row, duals[row], totals[node])


@njit(cache=True, _nrt=False, nogil=True)
def gap_pass(code, rows, labels, weights, squared_norms, first, last, theta, duals, sums):
    """Objective and Fenchel gaps of rows ``first`` to ``last`` in one pass.

    ``duals`` are clipped to the conjugate's domain on the way; a row whose squared norm is zero,
    which no update touches, takes ``c = w l'(x . theta)``. ``sums``, of shape (1, 2 d), receives
    the pairs ``sum c x`` and ``sum w l'(x . theta) x``. Returns (sum of losses, sum of gaps).
    """
    total = 0.0
    gaps = 0.0
    for row in range(first, last):
        weight, label = weights[row], labels[row]
        if weight == 0.0:
            continue
        score = dot(rows, row, theta)
        c = clip(code, label, duals[row - first] / weight)
        loss, slope, gap = summary(code, score, label, c)
        total += weight * loss
        if squared_norms[row] == 0.0:
            c, gap = slope, 0.0
        gaps += weight * gap
        two_axpys(rows, row, weight * c, weight * slope, sums, 0)
    return total, gaps


@njit(cache=True, _nrt=False, nogil=True)
def gap_at_zero(code, rows, labels, weights, squared_norms, first, last):
    """What ``gap_pass`` returns at ``theta = 0`` and ``c = 0``, without a pass over the features.

    A row of zeros adds nothing; a row whose squared norm underflows to 0 does.
    """
    total = 0.0
    gaps = 0.0
    targets = code == SQUARED or code == HUBER or code == ABSOLUTE or code >= PLUGIN
    loss, _, gap = summary(code, 0.0, 1.0, 0.0)  # of both classes, where there are two
    for row in range(first, last):
        if targets:
            loss, _, gap = summary(code, 0.0, labels[row], 0.0)
        total += weights[row] * loss
        if squared_norms[row] > 0.0 or max_norm(rows, row) > 0.0:
            gaps += weights[row] * gap
    return total, gaps


@njit(cache=True, _nrt=False, nogil=True)
def gaps_at_zero(code, rows, labels, weights, squared_norms, offsets, out):
    """The same for every node, one line of ``out`` each."""
    for node in range(offsets.size - 1):
        out[node, 0], out[node, 1] = gap_at_zero(
            code, rows, labels, weights, squared_norms, offsets[node], offsets[node + 1]
        )


@njit(cache=True, nogil=True)
def gap_passes(
    code, rows, labels, weights, squared_norms, offsets, theta, duals, values, sums, first
):
    """`gap_pass` for every node: losses and gaps in ``values``, ``sum c x`` and ``sum w l' x``.

    They go to the columns of ``values`` and ``sums`` from ``2 first`` and ``2 d first`` on.
    """
    d = theta.size
    pairs = np.empty((1, 2 * d))
    for node in range(offsets.size - 1):
        pairs[:] = 0.0
        start, stop = offsets[node], offsets[node + 1]
        values[node, 2 * first], values[node, 2 * first + 1] = gap_pass(
            code, rows, labels, weights, squared_norms, start, stop, theta, duals[start:stop], pairs
        )
        for k in range(d):
            sums[node, 2 * d * first + k] = pairs[0, 2 * k]
            sums[node, 2 * d * first + d + k] = pairs[0, 2 * k + 1]


@njit(cache=True, _nrt=False, nogil=True)
def curvatures(code, rows, labels, weights, first, last, theta, out):
    """Weighted second derivatives: the diagonal of the Hessian's middle factor."""
    for row in range(first, last):
        out[row - first] = weights[row] * curvature(code, dot(rows, row, theta), labels[row])


@njit(cache=True, _nrt=False, forceinline=True)
def add_outer_product(rows, row, weight, total):
    """Add ``weight x x^T`` of a CSR row into ``total``, at and below the diagonal.

    One multiplication for each pair of a row's non-zeros: columns are sorted, so a pair of
    positions is a pair of columns in the same order. Dense rows go to BLAS instead.
    """
    values, indices, indptr = rows.values, rows.indices, rows.indptr
    if weight == 0.0:
        return
    for a in range(indptr[row], indptr[row + 1]):
        scaled, column = weight * np.float64(values[a]), indices[a]
        for b in range(indptr[row], a + 1):
            total[column, indices[b]] += scaled * np.float64(values[b])


@njit(cache=True, _nrt=False, nogil=True)
def sparse_outer_products(rows, weights, first, last, total):
    """Add ``sum_r weights[r] x_r x_r^T`` over rows ``first`` to ``last``."""
    for row in range(first, last):
        add_outer_product(rows, row, weights[row - first], total)


@njit(cache=True, _nrt=False, nogil=True)
def sampled_outer_products(rows, weights, sample, total):
    """The same over the rows whose numbers are in ``sample``."""
    for k in range(sample.size):
        add_outer_product(rows, sample[k], weights[k], total)


@njit(cache=True, _nrt=False, nogil=True)
def sampled_curvatures(code, rows, labels, weights, sample, theta, out):
    """`curvatures` of the rows whose numbers are in ``sample``."""
    for k in range(sample.size):
        row = sample[k]
        out[k] = weights[row] * curvature(code, dot(rows, row, theta), labels[row])


@njit(cache=True, _nrt=False, nogil=True)
def sampled_gradients(
    code, rows, labels, weights, norms, order, starts, sizes, scales, theta, links, stack
):
    """`objective_gradients` of a sample of each node's rows, times the node's ``scales``.

    The sample of a node is the first ``sizes`` of its rows in ``order``, where they begin at
    ``starts``. The last column is the sum of all ``w^2 l'^2 |x|^2``: how much gradients vary.
    """
    depth, d = 0, stack.shape[1] - 2
    for node in range(sizes.size):
        open_row(stack, depth)
        total = spread = 0.0
        for k in range(starts[node], starts[node] + sizes[node]):
            row = order[k]
            score = dot(rows, row, theta)
            slope = weights[row] * derivative(code, score, labels[row])
            total += weights[row] * value(code, score, labels[row])
            spread += slope * slope * norms[row]
            axpy(rows, row, slope, stack[depth])
        stack[depth, d] = total
        stack[depth, d + 1] = spread
        for k in range(d + 2):
            stack[depth, k] *= scales[node]
        depth = close_row(stack, depth, links.merges[node])
    finish_sum(links, stack, depth)


@njit(cache=True, _nrt=False, nogil=True)
def squared_norms(rows, first, last, out):
    for row in range(first, last):
        out[row - first] = norm2(rows, row)


def square(a: np.ndarray) -> float:
    """``|a|^2`` in a fixed order; BLAS adds in another one when it has more threads."""
    return dot(DenseRows(a[None]), 0, a)

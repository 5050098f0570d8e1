"""What nodes compute on their own samples, each at a point of its own: one row per node here."""

import numpy as np

from adfs.kernels.certificate import objective_gradient
from adfs.kernels.compiled import njit
from adfs.kernels.loss_functions import derivative, value
from adfs.kernels.prox import slope_after
from adfs.kernels.rows import axpy, dot
from adfs.kernels.sampling import alias_draw, uniform


@njit(cache=True, _nrt=False, nogil=True)
def gradients(code, rows, labels, weights, offsets, sigma, points, values, out):
    """``values[i] = f_i(points[i])`` and ``out[i] = grad f_i(points[i])``."""
    for node in range(offsets.size - 1):
        point, square = points[node], 0.0
        for j in range(point.size):
            out[node, j] = sigma[node] * point[j]
            square += point[j] * point[j]
        total = objective_gradient(
            code, rows, labels, weights, offsets[node], offsets[node + 1], point, out[node]
        )
        values[node] = total + 0.5 * sigma[node] * square


@njit(cache=True, _nrt=False, nogil=True)
def values_along(code, rows, labels, weights, offsets, sigma, points, directions, sizes, out):
    """``out[i, k] = f_i(points[i] + sizes[k] directions[i])``."""
    for node in range(offsets.size - 1):
        point, direction = points[node], directions[node]
        a, b, c = 0.0, 0.0, 0.0
        for j in range(point.size):
            a += point[j] * point[j]
            b += point[j] * direction[j]
            c += direction[j] * direction[j]
        for k in range(sizes.size):
            out[node, k] = 0.5 * sigma[node] * (a + sizes[k] * (2.0 * b + sizes[k] * c))
        for row in range(offsets[node], offsets[node + 1]):
            score, change = dot(rows, row, point), dot(rows, row, direction)
            for k in range(sizes.size):
                loss = value(code, score + sizes[k] * change, labels[row])
                out[node, k] += weights[row] * loss


@njit(cache=True, _nrt=False, nogil=True)
def slopes(code, rows, labels, weights, places, points, out):
    """``out[i, r] = w l'(x . points[i])`` for the row ``places[i, r]``."""
    for node in range(places.shape[0]):
        for r in range(places.shape[1]):
            row = places[node, r]
            out[node, r] = weights[row] * derivative(
                code, dot(rows, row, points[node]), labels[row]
            )


@njit(cache=True, _nrt=False, nogil=True)
def all_slopes(code, rows, labels, weights, offsets, points, out):
    """``out[row] = w l'(x . points[i])`` for every row of every node ``i``."""
    for node in range(offsets.size - 1):
        for row in range(offsets[node], offsets[node + 1]):
            out[row] = weights[row] * derivative(code, dot(rows, row, points[node]), labels[row])


@njit(cache=True, _nrt=False, nogil=True)
def add_rows(rows, places, factors, out):
    """``out[i] += sum_r factors[i, r] x`` for the rows ``places[i, r]``."""
    for node in range(places.shape[0]):
        for r in range(places.shape[1]):
            axpy(rows, places[node, r], factors[node, r], out[node])


@njit(cache=True, _nrt=False, nogil=True)
def weighted_sums(rows, offsets, factors, out):
    """``out[i] += sum_j factors_j x_j`` over the rows of node ``i``."""
    for node in range(offsets.size - 1):
        for row in range(offsets[node], offsets[node + 1]):
            axpy(rows, row, factors[row], out[node])


@njit(cache=True, _nrt=False, nogil=True)
def hessian_products(rows, bends, offsets, sigma, vectors, out):
    """``out[i] = (X_i^T diag(bends) X_i + sigma_i I) vectors[i]``."""
    for node in range(offsets.size - 1):
        vector = vectors[node]
        for j in range(vector.size):
            out[node, j] = sigma[node] * vector[j]
        for row in range(offsets[node], offsets[node + 1]):
            axpy(rows, row, bends[row] * dot(rows, row, vector), out[node])


@njit(cache=True, _nrt=False, nogil=True)
def coordinate_steps(code, rows, labels, weights, norms, places, strength, points, duals):
    """Proximal steps one after another: with ``u = points[i]``, ``k = strength[i]`` and the row
    ``x`` at ``places[i, r]``, ``c' = w l'(x . u')`` for ``u' = u - k (c' - c) x``.
    """
    for node in range(places.shape[0]):
        point = points[node]
        for r in range(places.shape[1]):
            row = places[node, r]
            weight, k = weights[row], strength[node] * norms[row]
            score, old = dot(rows, row, point), duals[row]
            slope = derivative(
                code, score, labels[row]
            )  # at the warm start: old may be far from it
            new, _ = slope_after(code, labels[row], k * weight, score + k * old, score, slope)
            duals[row] = weight * new
            axpy(rows, row, -strength[node] * (duals[row] - old), point)


@njit(cache=True, _nrt=False, nogil=True)
def draw_rows(out, first, keys, tables, offsets):
    """``out[i, r]``: a row of node ``i`` by its alias table, draw number ``first + r``."""
    for node in range(out.shape[0]):
        start = offsets[node]
        size = offsets[node + 1] - start
        for r in range(out.shape[1]):
            out[node, r] = start + alias_draw(tables, start, size, uniform(keys[node], first + r))


@njit(cache=True, _nrt=False, nogil=True)
def draw_numbers(out, first, keys):
    """``out[i, r]``: uniform number ``first + r`` of node ``i``, in [0, 1)."""
    for node in range(out.shape[0]):
        for r in range(out.shape[1]):
            out[node, r] = np.float64(uniform(keys[node], first + r))

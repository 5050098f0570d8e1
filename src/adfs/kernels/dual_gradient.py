"""Dual gradients ``theta = grad f_i^*(x)``: the minimiser of ``f_i(theta) - x . theta``, by chords.

``f_i`` holds its ``sigma_i / 2 |theta|^2``. A node keeps the last point ``theta`` at which it
summed its slope ``grad f_i(theta)``, and the inverse ``H^{-1}`` of its Hessian at some earlier
point. A chord step goes to ``theta + p``, ``p = -H^{-1} r``, where ``r = grad f_i(theta) - x``; one
pass over the node's rows finds the slope there. The first step of a new ``x`` needs no pass: the
slope at ``theta`` is known, only ``x`` has moved.

A step is kept if it divides ``sqrt e`` by two at least, ``e = r . H^{-1} r``; where it does not, or
where a new Hessian would be cheaper, the caller has to help (docs/algorithms/msda.md).
"""

from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.loss_functions import derivative
from adfs.kernels.rows import axpy, dot

KEEP = 0.25  # most of the energy that a step may leave
LEAST_RATIO = 1e-6  # of energies: no step is trusted to leave less than this


class NodeSamples(NamedTuple):
    """What ``f_i`` is made of."""

    loss: int
    rows: NamedTuple
    labels: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    sigma: np.ndarray


class Memory(NamedTuple):
    """What the nodes remember of their last dual gradients, one row per node."""

    theta: np.ndarray  # (n, d)
    slope: np.ndarray  # (n, d), grad f_i there
    inverse: np.ndarray  # (n, d, d), symmetric; (n, 0, 0) where none is kept
    moved: np.ndarray  # (n,), steps since the Hessian was taken at theta
    excess: np.ndarray  # (n,), passes since then, beyond one per dual gradient


class Workspace(NamedTuple):
    """Vectors to work in, (d,) each."""

    point: np.ndarray
    slope: np.ndarray
    residual: np.ndarray
    step: np.ndarray
    next_step: np.ndarray


@njit(cache=True, _nrt=False, nogil=True)
def slope_at(samples, node, point, out):
    """``out = grad f_i(point)``: one pass over the rows of a node."""
    rows, labels, weights = samples.rows, samples.labels, samples.weights
    for j in range(point.size):
        out[j] = samples.sigma[node] * point[j]
    for row in range(samples.offsets[node], samples.offsets[node + 1]):
        score = dot(rows, row, point)
        axpy(rows, row, weights[row] * derivative(samples.loss, score, labels[row]), out)


@njit(cache=True, _nrt=False, nogil=True)
def chord(inverse, node, residual, step):
    """``step = -H^{-1} residual``; returns the energy."""
    d = step.size
    for j in range(d):
        step[j] = 0.0
    for a in range(d):
        for j in range(d):
            step[j] -= inverse[node, a, j] * residual[a]
    energy = 0.0
    for j in range(d):
        energy -= residual[j] * step[j]
    return energy


@njit(cache=True, _nrt=False, nogil=True)
def many_nodes(samples, memory, nodes, first, targets, tolerance, max_passes, out, work):
    """``out[k] = grad f_i^*(targets[k])`` for ``i = nodes[k]``, ``k = first, ...``.

    Returns the position of a node for which the caller has to help, or the end. A node stops when
    the ratio of the last two energies, times the last one, is below ``tolerance``: what the step
    that is still to come will leave. That step is made without another pass.
    """
    d = targets.shape[1]
    for k in range(first, nodes.size):
        node = nodes[k]
        for j in range(d):
            work.residual[j] = memory.slope[node, j] - targets[k, j]
        energy = chord(memory.inverse, node, work.residual, work.step)
        ratio, passes = 1.0, 0
        while not ratio * energy <= tolerance[node]:
            if memory.excess[node] + passes > max_passes and memory.moved[node] > 0:
                memory.excess[node] += passes
                return k
            for j in range(d):
                work.point[j] = memory.theta[node, j] + work.step[j]
            slope_at(samples, node, work.point, work.slope)
            passes += 1
            for j in range(d):
                work.residual[j] = work.slope[j] - targets[k, j]
            left = chord(memory.inverse, node, work.residual, work.next_step)
            if not left <= KEEP * energy:
                memory.excess[node] += passes
                return k
            for j in range(d):
                memory.theta[node, j] = work.point[j]
                memory.slope[node, j] = work.slope[j]
                work.step[j] = work.next_step[j]
            memory.moved[node] += 1
            ratio = max(left / energy, LEAST_RATIO)
            energy = left
        memory.excess[node] += max(0, passes - 1)
        for j in range(d):
            out[k, j] = memory.theta[node, j] + work.step[j]
    return nodes.size


@njit(cache=True, _nrt=False, nogil=True)
def hessian_times(samples, node, bend, vector, out):
    """``out = (X^T diag(bend) X + sigma_i I) vector``: one pass, no matrix."""
    first = samples.offsets[node]
    for j in range(vector.size):
        out[j] = samples.sigma[node] * vector[j]
    for row in range(first, samples.offsets[node + 1]):
        if bend[row - first] != 0.0:
            along = bend[row - first] * dot(samples.rows, row, vector)
            axpy(samples.rows, row, along, out)


@njit(cache=True, _nrt=False, nogil=True)
def conjugate_gradients(samples, node, bend, residual, share, step, work):
    """``step = -H^{-1} residual`` until ``|residual + H step| <= share |residual|``.

    Returns the energy ``-residual . step``. ``work.point`` is the direction, ``work.slope`` the
    Hessian times it, ``work.next_step`` what is left of the residual.
    """
    direction, product, rest = work.point, work.slope, work.next_step
    d = step.size
    left = 0.0
    for j in range(d):
        step[j] = 0.0
        rest[j] = -residual[j]
        direction[j] = rest[j]
        left += rest[j] * rest[j]
    enough = share * share * left
    for _ in range(10 * d):
        if not left > enough:
            break
        hessian_times(samples, node, bend, direction, product)
        bent = 0.0
        for j in range(d):
            bent += direction[j] * product[j]
        size, before, left = left / bent, left, 0.0
        for j in range(d):
            step[j] += size * direction[j]
            rest[j] -= size * product[j]
            left += rest[j] * rest[j]
        for j in range(d):
            direction[j] = rest[j] + left / before * direction[j]
    energy = 0.0
    for j in range(d):
        energy -= residual[j] * step[j]
    return energy

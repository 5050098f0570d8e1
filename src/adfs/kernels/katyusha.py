"""Katyusha's rounds: mini-batches drawn by every node, one all-reduce, one accelerated step.

After an all-reduce all nodes hold the same vectors, so there is one of each. The problem is in mean
form: ``f = (1 / N) sum_ij f_ij`` and the ridge ``lam / 2 |.|^2`` in the proximal step. Each node
adds its draws in their order; nodes are added along the tree of `adfs.kernels.node_sums`.
"""

from typing import NamedTuple

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.loss_functions import derivative
from adfs.kernels.node_sums import Links, close_row, finish_sum, open_row
from adfs.kernels.rows import axpy, dot, prefetch_row
from adfs.kernels.sampling import alias_draw, uniform

INNER, SNAPSHOT = 0, 1  # kinds of Katyusha's rounds; L-Katyusha's kind 1 is both, one after another
AHEAD = 8  # draws between asking for a row's memory and using it


class Batches(NamedTuple):
    """How nodes draw: node ``i`` takes ``sizes[i]`` of its rows, row ``j`` with ``p_ij``."""

    sizes: np.ndarray  # (n,), 0 for a node without a live sample
    keys: np.ndarray  # (n,), one counter stream a node
    tables: np.ndarray  # (N,), the nodes' alias tables end to end
    offsets: np.ndarray  # (n + 1,)
    factors: np.ndarray  # (N,), 1 / (N sizes[i] p_ij)
    drawn: np.ndarray  # buffer for the rows of one node's batch
    links: Links
    stack: np.ndarray  # buffer in which the nodes' parts are added


class AllSamples(NamedTuple):
    """The losses ``w l(x . theta, b)``, whose rows travel apart, and ``1 / N``."""

    code: int
    labels: np.ndarray
    weights: np.ndarray
    share: float


class Steps(NamedTuple):
    """Coupling and step: ``tau1``, ``tau2``, ``alpha``, ``1 / (1 + alpha lam)``, ``1 / theta``."""

    tau1: float
    tau2: float
    alpha: float
    shrink: float
    decay: float


class Vectors(NamedTuple):
    """What all nodes hold alike; ``slopes`` are each node's own, one per sample."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    w: np.ndarray  # the snapshot
    gradient: np.ndarray  # of f at the snapshot
    slopes: np.ndarray  # (N,), w l' at the snapshot
    estimate: np.ndarray  # of the gradient of f at x
    average: np.ndarray  # of y since the snapshot, newer ones weighing more
    mass: np.ndarray  # (1,), the sum of its weights over the newest one


@njit(cache=True, _nrt=False, nogil=True)
def draw(t, node, batches):
    """Rows of the batch of ``node`` in round ``t``, with replacement, into ``batches.drawn``."""
    first, last = batches.offsets[node], batches.offsets[node + 1]
    size = batches.sizes[node]
    for k in range(size):
        u = uniform(batches.keys[node], t * size + k)
        batches.drawn[k] = first + alias_draw(batches.tables, first, last - first, u)


@njit(cache=True, _nrt=False, nogil=True)
def take_snapshot(rows, samples, batches, vectors):
    """Full gradient at ``w`` and the slopes it is made of: one pass over all rows."""
    w, gradient, slopes, stack = vectors.w, vectors.gradient, vectors.slopes, batches.stack
    depth = 0
    for node in range(batches.sizes.size):
        open_row(stack, depth)
        top = stack[depth]
        for row in range(batches.offsets[node], batches.offsets[node + 1]):
            slope = derivative(samples.code, dot(rows, row, w), samples.labels[row])
            slopes[row] = samples.weights[row] * slope
            axpy(rows, row, samples.share * slopes[row], top)
        depth = close_row(stack, depth, batches.links.merges[node])
    finish_sum(batches.links, stack, depth)
    for k in range(w.size):
        gradient[k] = stack[0, k]


@njit(cache=True, _nrt=False, nogil=True)
def estimate_gradient(t, rows, samples, batches, vectors):
    """``grad f(w) + sum_i (1 / (N b_i)) sum_drawn (grad f_ij(x) - grad f_ij(w)) / p_ij``."""
    x, estimate, stack, drawn = vectors.x, vectors.estimate, batches.stack, batches.drawn
    depth = 0
    for node in range(batches.sizes.size):
        open_row(stack, depth)
        top = stack[depth]
        size = batches.sizes[node]
        draw(t, node, batches)
        for k in range(min(AHEAD, size)):
            prefetch_row(rows, drawn[k])
        for k in range(size):
            if k + AHEAD < size:
                prefetch_row(rows, drawn[k + AHEAD])
            row = drawn[k]
            slope = derivative(samples.code, dot(rows, row, x), samples.labels[row])
            change = samples.weights[row] * slope - vectors.slopes[row]
            axpy(rows, row, batches.factors[row] * change, top)
        depth = close_row(stack, depth, batches.links.merges[node])
    finish_sum(batches.links, stack, depth)
    for k in range(x.size):
        estimate[k] = vectors.gradient[k] + stack[0, k]


@njit(cache=True, _nrt=False, nogil=True)
def move(t, rows, samples, batches, steps, vectors):
    """One inner round.

    ``x = tau1 z + tau2 w + (1 - tau1 - tau2) y``; ``g`` estimates the gradient there;
    ``z+ = (z - alpha g) / (1 + alpha lam)``; ``y = x + tau1 (z+ - z)``.
    """
    x, y, z, w = vectors.x, vectors.y, vectors.z, vectors.w
    tau3 = 1.0 - steps.tau1 - steps.tau2
    for k in range(x.size):
        x[k] = steps.tau1 * z[k] + steps.tau2 * w[k] + tau3 * y[k]
    estimate_gradient(t, rows, samples, batches, vectors)
    for k in range(x.size):
        ahead = (z[k] - steps.alpha * vectors.estimate[k]) * steps.shrink
        y[k] = x[k] + steps.tau1 * (ahead - z[k])
        z[k] = ahead


@njit(cache=True, _nrt=False, nogil=True)
def average_in(decay, vectors):
    """``sum_k theta^k y_k / sum_k theta^k``, divided through by the newest weight: no overflow."""
    mass = 1.0 + decay * vectors.mass[0]
    for k in range(vectors.y.size):
        vectors.average[k] += (vectors.y[k] - vectors.average[k]) / mass
    vectors.mass[0] = mass


@njit(cache=True, _nrt=False, nogil=True)
def run_katyusha(start, which, rows, samples, batches, steps, vectors):
    """Rounds ``start, start + 1, ...`` of Katyusha; a snapshot is taken at the average so far."""
    for k in range(which.size):
        if which[k] == SNAPSHOT:
            if vectors.mass[0] > 0.0:
                for j in range(vectors.w.size):
                    vectors.w[j] = vectors.average[j]
            vectors.mass[0] = 0.0
            take_snapshot(rows, samples, batches, vectors)
        else:
            move(start + k, rows, samples, batches, steps, vectors)
            average_in(steps.decay, vectors)


@njit(cache=True, _nrt=False, nogil=True)
def run_l_katyusha(start, which, rows, samples, batches, steps, vectors):
    """Rounds of L-Katyusha; where the coin is 1, ``y`` is the snapshot before the round."""
    for k in range(which.size):
        if which[k] == SNAPSHOT:
            for j in range(vectors.w.size):
                vectors.w[j] = vectors.y[j]
            take_snapshot(rows, samples, batches, vectors)
        move(start + k, rows, samples, batches, steps, vectors)

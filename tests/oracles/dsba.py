"""DSBA, literally: EXTRA with SAGA's estimate at the new point; tables of vectors, means by hand.

Nothing is simplified: the mean of the table is formed anew each round, the last round's estimate is
kept as a vector, and the mixing matrices are dense. Mean form with m_bar = N / n: components
(m_i / m_bar) f_ij and ridge sigma_i / m_bar at node i, whose sample j is drawn with probability
p_ij. What is drawn stands for all m_i, so its change counts 1 / (m_i p_ij) times in the mean.
"""

import itertools
import math

import numpy as np

from . import augmented, point_saga


def mixed(shards, loss, beta):
    """p_ij = (1 - beta) / m_i + beta L_ij / sum_j L_ij."""
    found, first = [], 0
    smoothness = augmented.smoothness(shards, loss)
    for _, labels, _ in shards:
        own = smoothness[first : first + len(labels)]
        found.append((1 - beta) / len(own) + beta * own / own.sum())
        first += len(own)
    return found


class Network:
    """The data in mean form, W, W~ = (I + W) / 2, and the probabilities, uniform or given."""

    def __init__(self, shards, sigma, edges, loss, p=None):
        n = len(shards)
        sizes = np.array([len(labels) for _, labels, _ in shards])
        mean = sizes.sum() / n
        self.loss, self.sizes = loss, sizes
        self.p = [np.full(size, 1 / size) for size in sizes] if p is None else p
        self.ridge = np.broadcast_to(np.asarray(sigma, dtype=float), n) / mean
        self.components = [
            [(x, y, w * len(labels) / mean) for x, y, w in zip(rows, labels, weights, strict=True)]
            for rows, labels, weights in shards
        ]
        laplacian = np.zeros((n, n))
        for k, l in edges:
            unit = np.zeros(n)
            unit[k], unit[l] = 1.0, -1.0
            laplacian += np.outer(unit, unit)
        largest = np.linalg.eigvalsh(laplacian)[-1] if edges else 1.0
        self.w = np.eye(n) - laplacian / largest
        self.w_tilde = (np.eye(n) + self.w) / 2

    def gradient(self, node, j, z):
        """Gradient of component j of a node."""
        return point_saga.gradient(self.loss, self.components[node][j], z)

    def table(self, z):
        """Gradients of all components at the rows of z: a list of (m_i, d) arrays."""
        return [
            np.array([self.gradient(node, j, z[node]) for j in range(size)])
            for node, size in enumerate(self.sizes)
        ]

    def outcomes(self):
        """Every round's draws with their probability."""
        for drawn in itertools.product(*(range(size) for size in self.sizes)):
            yield drawn, math.prod(self.p[node][j] for node, j in enumerate(drawn))

    def backward(self, mixture, alpha, table, drawn):
        """z+ = mixture - alpha g(z+) at each node; returns (z+, g(z+), new table).

        g(z) = (grad B_ij(z) - phi_ij) / (m_i p_ij) + mean_j phi_ij + ridge z has the mean of the
        full gradient's table. z+ is a proximal step on B_ij / (m_i p_ij) from
        mixture + alpha (phi_ij / (m_i p_ij) - mean).
        """
        z, estimate, new = np.empty_like(mixture), np.empty_like(mixture), []
        for node, j in enumerate(drawn):
            phi, mean = table[node][j], table[node].mean(axis=0)
            stands_for = 1 / (self.sizes[node] * self.p[node][j])
            start = mixture[node] + alpha * (stands_for * phi - mean)
            x, y, w = self.components[node][j]
            z[node] = point_saga.prox(
                self.loss, (x, y, stands_for * w), alpha, self.ridge[node], start
            )
            fresh = self.gradient(node, j, z[node])
            estimate[node] = stands_for * (fresh - phi) + mean + self.ridge[node] * z[node]
            new.append(table[node].copy())
            new[node][j] = fresh
        return z, estimate, new


def iterates(network, alpha, start, sequence):
    """Yield (z_t, table_t) for t = 0, 1, ...; `sequence` holds each round's drawn samples."""
    z = np.array(start, dtype=float)
    table = network.table(z)
    before, estimate = None, None
    yield z, table
    for t, drawn in enumerate(sequence):
        mixture = network.w @ z if t == 0 else network.w_tilde @ (2 * z - before)
        if t > 0:
            mixture += alpha * estimate
        before = z
        z, estimate, table = network.backward(mixture, alpha, table, drawn)
        yield z, table

"""DSBA, literally: EXTRA with SAGA's estimate at the new point; tables of vectors, means by hand.

Nothing is simplified: the mean of the table is formed anew each round, the last round's estimate is
kept as a vector, and the mixing matrices are dense. Mean form with m_bar = N / n: components
(m_i / m_bar) f_ij and ridge sigma_i / m_bar at node i.
"""

import numpy as np

from . import point_saga


class Network:
    """The data in mean form, and W, W~ = (I + W) / 2."""

    def __init__(self, shards, sigma, edges, loss):
        n = len(shards)
        sizes = np.array([len(labels) for _, labels, _ in shards])
        mean = sizes.sum() / n
        self.loss, self.sizes = loss, sizes
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

    def backward(self, mixture, alpha, table, drawn):
        """z+ = mixture - alpha g(z+) at each node; returns (z+, g(z+), new table).

        g(z) = grad B_ij(z) - phi_ij + mean_j phi_ij + ridge z, so z+ is a proximal step from
        mixture + alpha (phi_ij - mean).
        """
        z, estimate, new = np.empty_like(mixture), np.empty_like(mixture), []
        for node, j in enumerate(drawn):
            phi, mean = table[node][j], table[node].mean(axis=0)
            start = mixture[node] + alpha * (phi - mean)
            sample = self.components[node][j]
            z[node] = point_saga.prox(self.loss, sample, alpha, self.ridge[node], start)
            fresh = self.gradient(node, j, z[node])
            estimate[node] = fresh - phi + mean + self.ridge[node] * z[node]
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

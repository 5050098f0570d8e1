"""Point-SAGA, literally, with N x d tables: as published, and with the ridge out of the table.

Mean form: F / N = (1/N) sum_k f_k + mu/2 |.|^2, f_k = w_k l(x_k .), mu = sum sigma / N. The second
may draw sample k with any probability p_k: it then stands for 1 / (N p_k) samples.
"""

import math

import numpy as np

from . import augmented, losses


def mean_form(shards, sigma):
    """All samples (x, y, w) in order, N and mu."""
    samples = [(x, y, w) for _, x, y, w in augmented.samples(shards)]
    return samples, len(samples), float(np.sum(np.broadcast_to(sigma, len(shards)))) / len(samples)


def published_step(n, smoothness, mu):
    """Defazio 2016, Theorem 5's gamma; `smoothness` and `mu` are those of f_k + mu/2 |.|^2."""
    root = math.sqrt((n - 1) ** 2 + 4 * n * smoothness / mu)
    return root / (2 * smoothness * n) - (1 - 1 / n) / (2 * smoothness)


def gradient(loss, sample, theta):
    """Gradient of w l(x . theta)."""
    x, y, w = sample
    return float(losses.derivative(loss, x @ theta, y, w)) * x


def prox(loss, sample, step, ridge, z):
    """argmin_v |v - z|^2 / (2 step) + w l(x . v) + ridge/2 |v|^2, by bisection along x.

    Off the line of x the minimiser is z scaled; on it, one unknown, the slope of the objective.
    """
    x, y, w = sample
    norm = np.linalg.norm(x)
    if norm == 0.0:
        return z / (1 + step * ridge)
    direction = x / norm
    along = float(direction @ z)

    def slope(tau):
        pull = norm * float(losses.derivative(loss, norm * tau, y, w))
        return (tau - along) / step + pull + ridge * tau

    tau = losses.minimiser_on_line(slope, -math.inf, math.inf, along)
    return (z - along * direction) / (1 + step * ridge) + tau * direction


def published(shards, sigma, loss, gamma, start, sequence):
    """Yield x_0, x_1, ...: Algorithm 1 of Defazio 2016 on g_k = f_k + mu/2 |.|^2."""
    samples, _, mu = mean_form(shards, sigma)
    x = np.array(start, dtype=float)
    table = np.array([gradient(loss, sample, x) + mu * x for sample in samples])
    yield x
    for k in sequence:
        z = x + gamma * (table[k] - table.mean(axis=0))
        x = prox(loss, samples[k], gamma, mu, z)
        table[k] = (z - x) / gamma
        yield x


def equal_rates(smoothness, gamma, mu):
    """(r, p) such that p_k 2a / (2a + gamma L_k / (N p_k)) = r for all k, by bisection in r."""
    n, a = len(smoothness), 1 + gamma * mu

    def p_of(r):  # the positive root of 2 a N p^2 = r (2 a N p + gamma L)
        return [(r + math.sqrt(r**2 + 2 * r * gamma * each / (a * n))) / 2 for each in smoothness]

    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(p_of(middle)) < 1 else (low, middle)
    return low, np.array(p_of(low))


def ridge_apart_step(samples, loss, mu, gamma, x, table, k, p=None):
    """One round with the ridge kept out of the table: (x+, table+)."""
    (row, label, weight), n = samples[k], len(samples)
    stands_for = 1.0 if p is None else 1 / (n * p[k])
    z = x + gamma * (stands_for * table[k] - table.mean(axis=0))
    x = prox(loss, (row, label, stands_for * weight), gamma, mu, z)
    table = table.copy()
    table[k] = gradient(loss, samples[k], x)
    return x, table


def ridge_apart(shards, sigma, loss, gamma, start, sequence, p=None):
    """Yield (x_t, table_t), the table holding gradients of the losses alone."""
    samples, _, mu = mean_form(shards, sigma)
    x = np.array(start, dtype=float)
    table = np.array([gradient(loss, sample, x) for sample in samples])
    yield x, table
    for k in sequence:
        x, table = ridge_apart_step(samples, loss, mu, gamma, x, table, k, p)
        yield x, table

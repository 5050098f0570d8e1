"""Katyusha and L-Katyusha with full vectors: every gradient is computed where it is asked for.

Mean form: f = (1/N) sum f_k over the N samples that depend on theta, prox term lam/2 |.|^2, and
P = f + lam/2 |.|^2. A batch is one list of sample numbers for each node. Nothing here knows what
was computed before: no cached slopes, no running averages.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from . import losses


class Data(NamedTuple):
    """All samples, the node of each, and sum_i sigma_i / N."""

    features: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    owner: np.ndarray
    loss: str
    lam: float


class Constants(NamedTuple):
    """What Allen-Zhu calls tau_1, tau_2, alpha, and the weight (1 + alpha sigma) of averages."""

    tau1: float
    tau2: float
    alpha: float
    theta: float


def data_of(shards, sigma, loss):
    """Shards (X, y, weights) end to end."""
    features = np.vstack([np.asarray(x, dtype=float) for x, _, _ in shards])
    labels, weights = (np.concatenate([shard[k] for shard in shards]) for k in (1, 2))
    owner = np.repeat(np.arange(len(shards)), [len(y) for _, y, _ in shards])
    data = Data(features, labels, weights, owner, loss, 0.0)
    total = float(np.sum(np.broadcast_to(sigma, len(shards))))
    return data._replace(lam=total / np.count_nonzero(smoothness(data)))


def smoothness(data):
    """L_k = w l''max |x_k|^2."""
    return losses.curvature_bound(data.loss) * data.weights * np.sum(data.features**2, axis=1)


def n_live(data):
    """N."""
    return np.count_nonzero(smoothness(data))


def node_sums(data):
    """S_i, the sum of L_k over the samples of node i."""
    return np.bincount(data.owner, smoothness(data), minlength=data.owner.max() + 1)


def sample_gradient(data, k, theta):
    """grad f_k(theta)."""
    x = data.features[k]
    return losses.derivative(data.loss, x @ theta, data.labels[k], data.weights[k]) * x


def gradient(data, theta):
    """grad f(theta)."""
    return sum(sample_gradient(data, k, theta) for k in range(len(data.labels))) / n_live(data)


def f(data, theta):
    """The mean of the losses of samples that depend on theta."""
    live = np.flatnonzero(smoothness(data))
    values = [
        losses.value(data.loss, data.features[k] @ theta, data.labels[k], data.weights[k])
        for k in live
    ]
    return sum(values) / len(live)


def objective(data, theta):
    """P(theta)."""
    return f(data, theta) + 0.5 * data.lam * theta @ theta


def probability(data, k):
    """That one draw of its node gives sample k: importance sampling within the node."""
    return smoothness(data)[k] / node_sums(data)[data.owner[k]]


def estimate(data, x, w, batches):
    """Every node's batch, weighed so that its mean is the node's part of the gradient."""
    g = gradient(data, w)
    for batch in batches:
        for k in batch:
            change = sample_gradient(data, k, x) - sample_gradient(data, k, w)
            g = g + change / (n_live(data) * len(batch) * probability(data, k))
    return g


def inner_round(data, c, y, z, w, batches):
    """(y, z) after one round: Allen-Zhu's Algorithm 1 with its option II for y."""
    x = c.tau1 * z + c.tau2 * w + (1 - c.tau1 - c.tau2) * y
    g = estimate(data, x, w, batches)
    z_next = (z - c.alpha * g) / (1 + c.alpha * data.lam)
    return x + c.tau1 * (z_next - z), z_next


def katyusha(data, c, start, epochs):
    """Yield (y, z, w) after each inner round; `epochs` holds lists of rounds' batches."""
    y = z = w = np.array(start, dtype=float)
    for epoch in epochs:
        ys = []
        for batches in epoch:
            y, z = inner_round(data, c, y, z, w, batches)
            ys.append(y)
            yield y, z, w
        powers = [c.theta**k for k in range(len(ys))]
        w = sum(power * y_k for power, y_k in zip(powers, ys, strict=True)) / sum(powers)


def l_katyusha(data, c, start, rounds):
    """Yield (y, z, w) after each round; `rounds` holds pairs (coin, batches)."""
    y = z = w = np.array(start, dtype=float)
    for coin, batches in rounds:
        if coin:
            w = y
        y, z = inner_round(data, c, y, z, w, batches)
        yield y, z, w


def bregman(data, w, x):
    """f(w) - f(x) - <grad f(x), w - x>."""
    return f(data, w) - f(data, x) - gradient(data, x) @ (w - x)


def all_batches(data, size):
    """Every batch of `size` draws a node, and its probability."""
    nodes = []
    for node in range(data.owner.max() + 1):
        rows = [k for k in np.flatnonzero(data.owner == node) if probability(data, k) > 0]
        draws = itertools.product(rows, repeat=size)
        nodes.append([(d, math.prod(probability(data, k) for k in d)) for d in draws])
    for choice in itertools.product(*nodes):
        yield [list(d) for d, _ in choice], math.prod(p for _, p in choice)


def loop_energy(data, c, length, best, y, z, w):
    """What an epoch of `length` rounds divides by theta^length; read when w has just moved."""
    above = [objective(data, point) - objective(data, best) for point in (y, w)]
    weights = sum(c.theta**k for k in range(length))
    tau3 = 1 - c.tau1 - c.tau2
    distance = np.sum((z - best) ** 2) / (2 * c.alpha)
    return c.tau2 / c.tau1 * weights * above[1] + tau3 / c.tau1 * above[0] + distance


def coin_energy(data, c, p, rho, best, y, z, w):
    """What a round multiplies by 1 - rho."""
    above = [objective(data, point) - objective(data, best) for point in (y, w)]
    snapshot = c.tau2 * (1 - p) / (p - rho) * above[1] if p < 1 else 0.0
    distance = (1 + c.alpha * data.lam) * np.sum((z - best) ** 2) / (2 * c.alpha)
    return (above[0] + snapshot) / c.tau1 + distance


def published_katyusha(lam, mean_smoothness, smoothness_of_mean, n_samples, total_batch):
    """(mm, tau1, tau2, alpha) as published, in its letters: Lbar, Lf, N, B."""
    L, Lf, B = mean_smoothness, smoothness_of_mean, total_batch
    if B == 1:
        mm, tau2 = 2 * n_samples, 1 / 2
        tau1 = min(math.sqrt(mm * lam / (3 * L)), 1 / 2)
        return mm, tau1, tau2, 1 / (3 * tau1 * L)
    mm, tau2 = math.ceil(n_samples / B), min(L / (2 * Lf * B), 1 / 2)
    if Lf <= L * mm / B:
        tau1, largest = min(math.sqrt(8 * B * mm * lam / (3 * L)) * tau2, tau2), L / (2 * B * tau2)
    else:
        tau1, largest = min(math.sqrt(2 * lam / (3 * Lf)), 1 / (2 * mm)), Lf
    return mm, tau1, tau2, 1 / (3 * tau1 * largest)


def published_l_katyusha(lam, variance, smoothness_of_mean, p):
    """(t1, t2, eta) of the authors' code, in its letters: Lcal, Lf, p."""
    Lcal, Lf = variance, smoothness_of_mean
    t2 = Lcal / (2 * max(Lf, Lcal))
    if Lf <= Lcal / p:
        t1 = min(1, math.sqrt(lam / (Lcal * p))) * t2
    else:
        t1 = min(math.sqrt(lam / Lf), p / 2)
    return t1, t2, 1 / (t1 * (Lf + 2 * max(Lcal, Lf)))

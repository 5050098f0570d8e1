"""Algorithm 1 (ADFS), line by line, on dense n(1+m) x d matrices; every row moves at every step."""

import numpy as np

from . import augmented, losses


def iterates(
    shards, sigma, edges, loss, mu2_edge, mu2_virtual, p, rho, sigma_a, sequence, start=None
):
    """Yield (x_t, v_t, y_t) for t = 0, ..., K, where K = len(sequence), from start = (x_0, v_0).

    `sequence` holds the sampled edges (line 5), indices 0 .. E+N-1. y_K is line 4 at t = K.
    W_kl carries no mu^2 and the tilde of line 8 is the node-level one.
    """
    all_samples = augmented.samples(shards)
    pairs = augmented.ends(shards, edges)
    n_nodes, n_edges = len(shards), len(edges)
    n_features = np.shape(shards[0][0])[1]
    inverse_sigma = augmented.inverse_diagonal(augmented.sigma_matrix(shards, sigma, loss))
    # line 1
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    mu2 = np.concatenate([np.asarray(mu2_edge, dtype=float), np.asarray(mu2_virtual, dtype=float)])
    eta_tilde = rho * mu2 / (sigma_a * np.asarray(p))
    r = augmented.resistances(a)
    # line 2
    x, v = np.zeros((2, n_nodes + len(all_samples), n_features)) if start is None else start
    for edge in sequence:  # line 3
        y = (x + rho * v) / (1 + rho)  # line 4
        yield x, v, y
        k, l = pairs[edge]  # line 5
        # line 6
        unit = np.zeros(len(x))
        unit[k], unit[l] = 1.0, -1.0
        w_kl = np.outer(unit, unit)
        z_next = (1 - rho) * v + rho * y - eta_tilde[edge] * (w_kl @ (inverse_sigma @ y))
        v_next = z_next.copy()
        if edge >= n_edges:  # line 7
            v_next[l] = prox(loss, all_samples[edge - n_edges], eta_tilde[edge], z_next[l])  # 8
            v_next[k] = z_next[k] + z_next[l] - v_next[l]  # line 9
        x = y + rho * r[edge] / p[edge] * (v_next - (1 - rho) * v - rho * y)  # line 11
        v = v_next
    yield x, v, (x + rho * v) / (1 + rho)


def prox(loss, sample, eta, z):
    """Line 8 for f_ij(theta) = w l(x . theta): f* is infinite off span(x), so project z on it."""
    _, x, y, w = sample
    q = x @ x
    return losses.prox_tilde_star(loss, y, w, q, eta, x @ z / q) * x


def final(shards, sigma, edges, loss, mu2_edge, mu2_virtual, p, rho, sigma_a, sequence):
    """(x_K, v_K, y_K) of `iterates`."""
    *_, last = iterates(
        shards, sigma, edges, loss, mu2_edge, mu2_virtual, p, rho, sigma_a, sequence
    )
    return last

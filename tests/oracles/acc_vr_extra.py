"""Acc-VR-EXTRA (Li, Lin and Fang 2022) with K rounds of Chebyshev gossip, sample by sample.

Node i has f_i(x) = sum_k f_ik(x) + sigma_i/2 |x|^2, f_ik(x) = w_k l(x_k . x, y_k).
mu = min sigma_i, U^2 = s (I - C). At first x = z = w = X_0, e = 0. A round, with b drawn rows j:

    y   = q z + r w + (1 - q - r) x
    g_i = grad f_i(w_i) + sigma_i (y_i - w_i) + (1/b) sum_j (grad f_ij(y_i) - grad f_ij(w_i)) / p_j
    0   = q (z+ - z) + mu a (z+ - y) + a g + e + q U^2 z
    e+  = e + q U^2 z+
    x+  = y + q (z+ - z)
    w+  = x (not x+) if the round's coin says so, else w
"""

import numpy as np


def chebyshev(laplacian, rounds):
    """C = T_K((high + low - 2 Lap) / (high - low)) / T_K((high + low) / (high - low))."""
    laplacian = np.asarray(laplacian, dtype=float)
    eigenvalues, vectors = np.linalg.eigh(laplacian)
    high = eigenvalues[-1]
    positive = [value for value in eigenvalues if value > 1e-9 * high]
    if not positive:  # one node
        return np.eye(len(laplacian))
    low = positive[0]
    if high - low <= 1e-9 * high:  # the limit
        return np.eye(len(laplacian)) - laplacian / high
    T = np.polynomial.chebyshev.Chebyshev([0] * rounds + [1])
    C = np.zeros_like(laplacian)
    for value, v in zip(eigenvalues, vectors.T, strict=True):
        inside, outside = (high + low - 2 * value) / (high - low), (high + low) / (high - low)
        C += T(inside) / T(outside) * np.outer(v, v)
    return C


def acc_vr_extra(
    rows, labels, weights, sigma, laplacian, X0, q, r, a, s, rounds, places, p, coins, slope
):
    """X_0 .. X_T for T = len(places) rounds of optimisation, `rounds` (K) of gossip in each.

    `rows`, `labels`, `weights` and `p` are lists over nodes (rows of shape (m_i, d)); `sigma` is a
    number or one per node; `places[t][i]` are the rows that node i draws in round t; `coins[t]` is
    true where w becomes the old x; `slope(z, y)` is l'.
    """
    n = len(X0)
    sigma = np.broadcast_to(np.asarray(sigma, dtype=float), n)
    mu = min(sigma)
    U2 = s * (np.eye(n) - chebyshev(laplacian, rounds))

    def sample_gradient(i, k, x):
        return weights[i][k] * slope(rows[i][k] @ x, labels[i][k]) * rows[i][k]

    def gradient(i, x):
        total = sigma[i] * x
        for k in range(len(rows[i])):
            total = total + sample_gradient(i, k, x)
        return total

    def pull(z):
        result = np.zeros_like(z)
        for i in range(n):
            for j in range(n):
                result[i] += q * U2[i, j] * z[j]
        return result

    x = z = w = np.array(X0, dtype=float)
    e = np.zeros_like(x)
    iterates = [x]
    for t in range(len(places)):
        y = q * z + r * w + (1 - q - r) * x
        g = np.zeros_like(x)
        for i in range(n):
            g[i] = gradient(i, w[i]) + sigma[i] * (y[i] - w[i])
            for j in places[t][i]:
                change = sample_gradient(i, j, y[i]) - sample_gradient(i, j, w[i])
                g[i] += change / (len(places[t][i]) * p[i][j])
        z_next = (q * z + mu * a * y - a * g - e - pull(z)) / (q + mu * a)
        e = e + pull(z_next)
        w = x if coins[t] else w
        x = y + q * (z_next - z)
        z = z_next
        iterates.append(x)
    return iterates

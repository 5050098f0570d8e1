"""DSA (Mokhtari and Ribeiro 2016, Algorithm 1): EXTRA with SAGA's estimates, sample by sample.

Node i has f_i(x) = sum_k w_k l(x_k . x, y_k) + sigma_i/2 |x|^2 and a table with one gradient
c_k x_k per sample, c_k = w_k l'(x_k . phi_k, y_k), phi_k = x_i at first. It draws j with p_j:

    g^_i  = sigma_i x_i + (c_new - c_j) / p_j x_j + sum_k c_k x_k   (the sum before phi_j <- x_i)
    X_1   = W X_0 - a g^_0
    X_t+2 = (I + W) X_{t+1} - (I + W)/2 X_t - a (g^_{t+1} - g^_t)
"""

import numpy as np


def dsa(rows, labels, weights, sigma, W, X0, step, places, p, slope):
    """X_0 .. X_T for T = len(places) rounds.

    `rows`, `labels`, `weights` and `p` are lists over nodes (rows of shape (m_i, d)); `sigma` is a
    number or one per node; `places[t][i]` is the row that node i draws in round t; `slope(z, y)`
    is l'.
    """
    n = len(X0)
    sigma = np.broadcast_to(np.asarray(sigma, dtype=float), n)

    def gradient(i, k, x):
        return weights[i][k] * slope(rows[i][k] @ x, labels[i][k]) * rows[i][k]

    iterates, estimates = [np.array(X0, dtype=float)], []
    table = [
        [gradient(i, k, iterates[0][i]) for k in range(len(rows[i]))] for i in range(n)
    ]  # vectors, not coefficients
    for t in range(len(places)):
        X = iterates[t]
        estimate = np.zeros_like(X)
        for i in range(n):
            j = places[t][i]
            fresh = gradient(i, j, X[i])
            estimate[i] = sigma[i] * X[i] + (fresh - table[i][j]) / p[i][j]
            for k in range(len(rows[i])):
                estimate[i] += table[i][k]
            table[i][j] = fresh
        estimates.append(estimate)
        new = np.zeros_like(X)
        for i in range(n):
            if t == 0:
                for j in range(n):
                    new[i] += W[i, j] * X[j]
                new[i] -= step * estimates[0][i]
            else:
                last = iterates[t - 1]
                for j in range(n):
                    one = 1.0 if i == j else 0.0
                    new[i] += (one + W[i, j]) * X[j] - (one + W[i, j]) / 2 * last[j]
                new[i] -= step * (estimates[t][i] - estimates[t - 1][i])
        iterates.append(new)
    return iterates

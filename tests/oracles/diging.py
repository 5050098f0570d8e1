"""DIGing (Nedic, Olshevsky, Shi 2017, Algorithm 1; also Qu and Li 2017), node by node.

X_{t+1} = W X_t - a Y_t
Y_{t+1} = W Y_t + g(X_{t+1}) - g(X_t),   Y_0 = g(X_0)
"""

import numpy as np


def diging(grads, W, X0, step, rounds):
    """X_0 .. X_rounds; `grads` is called once at each of X_0 .. X_rounds, in that order."""
    n = len(X0)
    X = np.array(X0, dtype=float)
    g = np.array(grads(X))
    Y = g.copy()
    iterates = [X]
    for _ in range(rounds):
        X_new, Y_new = np.zeros_like(X), np.zeros_like(X)
        for i in range(n):
            for j in range(n):
                X_new[i] += W[i, j] * X[j]
            X_new[i] -= step * Y[i]
        g_new = np.array(grads(X_new))
        for i in range(n):
            for j in range(n):
                Y_new[i] += W[i, j] * Y[j]
            Y_new[i] += g_new[i] - g[i]
        X, Y, g = X_new, Y_new, g_new
        iterates.append(X)
    return iterates

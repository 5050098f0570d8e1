"""Local SGD (Stich 2019, Algorithm 1), node by node: some steps alone, then the exact mean.

x_i <- x_i - a_t g~_i(x_i)    `local` times at each node i, each with its own a_t
x_i <- mean over j of x_j
"""

import numpy as np


def local_sgd(sample_grads, X0, steps, local):
    """X after each mean: X_0 .. X_T, T = len(steps) / local.

    `steps` has one number per local step; `sample_grads(t, X)` is called once for each of them,
    t = 0, 1, ... counting local steps.
    """
    n = len(X0)
    X = np.array(X0, dtype=float)
    iterates = [X.copy()]
    for t, step in enumerate(steps):
        g = np.array(sample_grads(t, X))
        X = np.array([X[i] - step * g[i] for i in range(n)])
        if (t + 1) % local == 0:
            mean = np.zeros_like(X[0])
            for j in range(n):
                mean += X[j] / n
            X = np.array([mean for _ in range(n)])
            iterates.append(X.copy())
    return iterates

"""DGD (Nedic and Ozdaglar 2009, equation 3), node by node; D-PSGD (Lian et al. 2017) if sampled.

X_{t+1} = W X_t - a_t g(X_t)
"""

import numpy as np


def dgd(grads, W, X0, steps):
    """X_0 .. X_T for `steps` a_0 .. a_{T-1}; `grads` is called once at each of X_0 .. X_{T-1}."""
    n = len(X0)
    iterates = [np.array(X0, dtype=float)]
    for step in steps:
        X = iterates[-1]
        g = np.array(grads(X))
        new = np.zeros_like(X)
        for i in range(n):
            for j in range(n):
                new[i] += W[i, j] * X[j]
            new[i] -= step * g[i]
        iterates.append(new)
    return iterates

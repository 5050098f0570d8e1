"""Distributed dual averaging (Duchi, Agarwal, Wainwright 2012, equations 5a, 5b), psi = |x|^2 / 2.

Z_{t+1} = W Z_t + g(X_t),   Z_0 = 0
X_{t+1} = argmin of <Z_{t+1}, x> + |x|^2 / (2 a_t) over |x| <= R: -a_t Z_{t+1} cut to length R
"""

import numpy as np


def projection(x, radius):
    """The nearest point of the ball around 0."""
    length = np.sqrt(sum(float(entry) ** 2 for entry in x))
    return x if length <= radius else radius / length * x


def dual_averaging(grads, W, X0, steps, radius):
    """(iterates X_0 .. X_T, running means) for `steps` a_0 .. a_{T-1}.

    The mean with number t >= 1 is that of X_1 .. X_t, each node's own; the one with number 0 is
    X_0. `grads` is called once at each of X_0 .. X_{T-1}, in that order. The method takes its
    points from Z alone: X_0 is only where the first gradients are taken, 0 in the publication.
    """
    n = len(X0)
    iterates = [np.array(X0, dtype=float)]
    means = [iterates[0].copy()]
    Z, total = np.zeros_like(iterates[0]), np.zeros_like(iterates[0])
    for t, step in enumerate(steps):
        g = np.array(grads(iterates[t]))
        Z_new, X_new = np.zeros_like(Z), np.zeros_like(Z)
        for i in range(n):
            for j in range(n):
                Z_new[i] += W[i, j] * Z[j]
            Z_new[i] += g[i]
            X_new[i] = projection(-step * Z_new[i], radius)
        Z = Z_new
        iterates.append(X_new)
        total = total + X_new
        means.append(total / (t + 1))
    return iterates, means

"""D2 (Tang et al. 2018, Algorithm 1) with V = (I + W) / 2 for its W.

    X_1     = V (X_0 - a g(X_0))
    X_{t+2} = V (2 X_{t+1} - X_t - a (g(X_{t+1}) - g(X_t)))

With full gradients this is exact diffusion (Yuan, Ying, Zhao, Sayed 2019), and NIDS (Li, Shi, Yan
2019) but for the first step: NIDS starts with X_1 = X_0 - a g(X_0), not mixed.
"""

import numpy as np


def d2(grads, W, X0, step, rounds):
    """X_0 .. X_rounds; `grads` is called once at each of X_0 .. X_{rounds-1}, in that order."""
    n = len(X0)
    iterates, slopes = [np.array(X0, dtype=float)], []
    for t in range(rounds):
        X = iterates[t]
        slopes.append(np.array(grads(X)))
        if t == 0:
            half = X - step * slopes[0]
        else:
            half = 2 * X - iterates[t - 1] - step * (slopes[t] - slopes[t - 1])
        new = np.zeros_like(X)
        for i in range(n):
            for j in range(n):
                V_ij = ((1.0 if i == j else 0.0) + W[i, j]) / 2
                new[i] += V_ij * half[j]
        iterates.append(new)
    return iterates

"""EXTRA (Shi, Ling, Wu, Yin 2015, equations 2.12 and 2.13 with W~ = (I + W) / 2), node by node.

X_1     = W X_0 - a g(X_0)
X_{t+2} = (I + W) X_{t+1} - W~ X_t - a (g(X_{t+1}) - g(X_t))
"""

import numpy as np


def extra(grads, W, X0, step, rounds):
    """X_0 .. X_rounds; `grads` is called once at each of X_0 .. X_{rounds-1}, in that order."""
    n = len(X0)
    iterates, slopes = [np.array(X0, dtype=float)], []
    for t in range(rounds):
        X = iterates[t]
        slopes.append(np.array(grads(X)))
        new = np.zeros_like(X)
        for i in range(n):
            if t == 0:
                for j in range(n):
                    new[i] += W[i, j] * X[j]
                new[i] -= step * slopes[0][i]
            else:
                last = iterates[t - 1]
                for j in range(n):
                    one = 1.0 if i == j else 0.0
                    new[i] += (one + W[i, j]) * X[j] - (one + W[i, j]) / 2 * last[j]
                new[i] -= step * (slopes[t][i] - slopes[t - 1][i])
        iterates.append(new)
    return iterates

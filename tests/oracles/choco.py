"""CHOCO-SGD (Koloskova, Stich, Jaggi 2019, Algorithm 2), node by node, and its compressions.

X~      = X_t - a_t g~(X_t)
H_{t+1} = H_t + Q(X~ - H_t)                       (H: what all neighbours know of X; H_0 = 0)
X_{t+1} = X~ + gamma (W H_{t+1} - H_{t+1})
"""

import numpy as np


def choco(sample_grads, W, X0, steps, gamma, compress, rounds, H0=None):
    """X_0 .. X_rounds. `sample_grads(t, X)` and `compress(t, i, vector)` for round t, node i."""
    n = len(X0)
    iterates = [np.array(X0, dtype=float)]
    H = np.zeros_like(iterates[0]) if H0 is None else np.array(H0, dtype=float)
    for t in range(rounds):
        X = iterates[t]
        g = np.array(sample_grads(t, X))
        half, H_new, new = np.zeros_like(X), np.zeros_like(X), np.zeros_like(X)
        for i in range(n):
            half[i] = X[i] - steps[t] * g[i]
            H_new[i] = H[i] + compress(t, i, half[i] - H[i])
        for i in range(n):
            new[i] = half[i]
            for j in range(n):
                new[i] += gamma * W[i, j] * (H_new[j] - H_new[i])
        H = H_new
        iterates.append(new)
    return iterates


def top(k, vector):
    """The k entries of largest modulus; of equal ones the first."""
    kept = np.zeros_like(vector)
    for entry in sorted(range(len(vector)), key=lambda entry: (-abs(vector[entry]), entry))[:k]:
        kept[entry] = vector[entry]
    return kept


def only(entries, vector):
    """The entries drawn (random-k), not rescaled."""
    kept = np.zeros_like(vector)
    for entry in entries:
        kept[entry] = vector[entry]
    return kept


def sign(vector):
    """|v|_1 / d for each entry, with the entry's sign; 0 stays 0."""
    size = sum(abs(entry) for entry in vector) / len(vector)
    return np.array([size * np.sign(entry) for entry in vector])

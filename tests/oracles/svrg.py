"""SVRG (Johnson and Zhang 2013), sample by sample, on one machine.

Mean form: F / N = (1/N) sum_k f_k(x) + mu/2 |x|^2, f_k(x) = w_k l(x_k . x, y_k) and mu = sigma / N,
sigma the sum over all nodes. Epoch s starts at x_0 = w_s with the mean gradient g there, then for
t = 0 .. m-1 draws j with probability p_j:

    x_{t+1} = x_t - a ((f_j'(x_t) - f_j'(w_s)) / (N p_j) + g + mu x_t),   g = (1/N) sum_k f_k'(w_s)

The next w, by the argument `keep`:
    "weighted": mean of x_0 .. x_{m-1} with weights (1 - a mu)^(m-1-t)
    "mean":     plain mean of x_0 .. x_{m-1}; the publication's option II draws one of them instead
    "last":     x_m, the publication's option I
The weights are those with which Konecny and Richtarik (S2GD, 2013) draw the next w.
"""

import numpy as np


def svrg(rows, labels, weights, sigma, x0, step, places, p, slope, keep="weighted"):
    """w_0 .. w_E for E = len(places) epochs; `places[s]` lists the m rows drawn in epoch s.

    `slope(z, y)` is l'.
    """
    N = len(rows)
    mu = sigma / N

    def gradient(k, x):
        return weights[k] * slope(rows[k] @ x, labels[k]) * rows[k]

    snapshots = [np.array(x0, dtype=float)]
    for drawn in places:
        w = snapshots[-1]
        g = sum(gradient(k, w) for k in range(N)) / N
        inner = [w]
        for j in drawn:
            x = inner[-1]
            change = (gradient(j, x) - gradient(j, w)) / (N * p[j])
            inner.append(x - step * (change + g + mu * x))
        m = len(drawn)
        if keep == "last":
            snapshots.append(inner[m])
            continue
        share = [(1 - step * mu) ** (m - 1 - t) if keep == "weighted" else 1.0 for t in range(m)]
        snapshots.append(sum(share[t] * inner[t] for t in range(m)) / sum(share))
    return snapshots

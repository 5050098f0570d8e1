"""Accelerated SDCA (Shalev-Shwartz and Zhang 2014): SDCA inside an outer loop of proximal points.

Stage t = 1, 2, ... runs SDCA, from the coefficients at hand, on

    F(x) + K/2 |x - y_{t-1}|^2,   F(x) = sum_k w_k l(x_k . x, y_k) + S/2 |x|^2,
    whose point is u(c) = (K y_{t-1} - sum_k c_k x_k) / (S + K);

then x_t = u and y_t = x_t + beta (x_t - x_{t-1}). The publication, in sum scaling, has
beta = (1 - eta) / (1 + eta) with eta = sqrt(S / (S + 2 K)); Catalyst (Lin, Mairal, Harchaoui 2015)
has eta = sqrt(S / (S + K)). Here `beta` is an argument.
"""

import numpy as np

from .sdca import best_coefficient


def acc_sdca(rows, labels, weights, S, K, beta, places, loss):
    """(x_0 .. x_T, c_0 .. c_T) from zero, for T = len(places) stages.

    `places[t - 1]` lists the rows drawn in stage t.
    """
    N = len(rows)
    c = np.zeros(N)
    x = np.zeros(len(rows[0]))
    y = x.copy()

    def point(c, y):
        u = K * y / (S + K)
        for k in range(N):
            u -= c[k] / (S + K) * rows[k]
        return u

    iterates, coefficients = [x], [c.copy()]
    for drawn in places:
        for j in drawn:
            u = point(c, y)
            c[j] = best_coefficient(loss, rows[j], labels[j], weights[j], S + K, c[j], u)
        new = point(c, y)
        y = new + beta * (new - x)
        x = new
        iterates.append(x)
        coefficients.append(c.copy())
    return iterates, coefficients

"""SAGA (Defazio, Bach, Lacoste-Julien 2014, equation 1) and SAG (Le Roux, Schmidt, Bach 2012).

One machine, mean form: F / N = (1/N) sum_k f_k(x) + mu/2 |x|^2, f_k(x) = w_k l(x_k . x, y_k) and
mu = sigma / N, sigma the sum over all nodes. A table has one gradient G_k per sample; j is drawn
with probability p_j (SAG: uniformly).

    SAGA: e = (f_j'(x) - G_j) / (N p_j) + (1/N) sum_k G_k, then G_j <- f_j'(x)
    SAG:  G_j <- f_j'(x), then e = (1/N) sum_k G_k

The ridge, by the argument `ridge`:
    "gradient": x <- x - a (e + mu x)
    "prox":     x <- (x - a e) / (1 + a mu), as published with h = mu/2 |.|^2
    "table":    the table has the gradients of f_k + mu/2 |.|^2, and x <- x - a e
"""

import numpy as np


def saga(rows, labels, weights, sigma, x0, step, places, p, slope, ridge="gradient", table=None):
    """x_0 .. x_T for T = len(places) draws of a row number; `slope(z, y)` is l'.

    `table` is the (N, d) table at the start; without it, the gradients at x_0.
    """
    N = len(rows)

    def estimate(table, j, fresh):
        correction = (fresh - table[j]) / (N * p[j])
        mean = sum(table) / N
        table[j] = fresh
        return correction + mean

    return _run(rows, labels, weights, sigma, x0, step, places, slope, ridge, table, estimate)


def sag(rows, labels, weights, sigma, x0, step, places, slope, ridge="gradient", table=None):
    """x_0 .. x_T for T = len(places) draws of a row number; arguments as for `saga`."""
    N = len(rows)

    def estimate(table, j, fresh):
        table[j] = fresh
        return sum(table) / N

    return _run(rows, labels, weights, sigma, x0, step, places, slope, ridge, table, estimate)


def _run(rows, labels, weights, sigma, x0, step, places, slope, ridge, table, estimate):
    N = len(rows)
    mu = sigma / N

    def gradient(k, x):
        found = weights[k] * slope(rows[k] @ x, labels[k]) * rows[k]
        return found + mu * x if ridge == "table" else found

    x = np.array(x0, dtype=float)
    table = [gradient(k, x) for k in range(N)] if table is None else [np.array(g) for g in table]
    iterates = [x]
    for j in places:
        e = estimate(table, j, gradient(j, x))
        if ridge == "gradient":
            x = x - step * (e + mu * x)
        elif ridge == "prox":
            x = (x - step * e) / (1 + step * mu)
        else:
            x = x - step * e
        iterates.append(x)
    return iterates

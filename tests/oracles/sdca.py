"""SDCA (Shalev-Shwartz and Zhang 2013): exact maximisation of the dual over one coefficient.

F(x) = sum_k w_k l(x_k . x, y_k) + S/2 |x|^2, S the sum of sigma over all nodes. Its dual, in
coefficients c_k (theirs are alpha_k = -c_k), is

    D(c) = -sum_k w_k l*(c_k / w_k) - S/2 |x(c)|^2,   x(c) = -(1/S) sum_k c_k x_k

One step maximises D over c_j, by bisection on its derivative; no primal equation is solved. At
the maximum c_j = w_j l'(x_j . x(c), y_j) if l is smooth.
"""

import numpy as np

from . import losses


def best_coefficient(loss, row, label, weight, strength, c, x):
    """The c' that minimises w l*(c' / w) + strength/2 |x - (c' - c) row / strength|^2."""

    def slope(new):
        moved = x - (new - c) / strength * row
        return losses.conjugate_derivative(loss, new, label, weight) - row @ moved

    low, high = losses.conjugate_domain(loss, label, weight)
    return losses.minimiser_on_line(slope, low, high, c)


def dual(loss, rows, labels, weights, S, c):
    """D(c)."""
    x = -sum(c[k] * rows[k] for k in range(len(rows))) / S
    conjugates = sum(losses.conjugate(loss, c[k], labels[k], weights[k]) for k in range(len(rows)))
    return -conjugates - S / 2 * float(x @ x)


def sdca(rows, labels, weights, S, places, loss):
    """(x_0 .. x_T, c_0 .. c_T) from c_0 = 0, for T = len(places) draws; `loss` is a name."""
    N = len(rows)
    c = np.zeros(N)

    def primal(c):
        x = np.zeros(len(rows[0]))
        for k in range(N):
            x -= c[k] / S * rows[k]
        return x

    iterates, coefficients = [primal(c)], [c.copy()]
    for j in places:
        x = primal(c)
        c[j] = best_coefficient(loss, rows[j], labels[j], weights[j], S, c[j], x)
        iterates.append(primal(c))
        coefficients.append(c.copy())
    return iterates, coefficients

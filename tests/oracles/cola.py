"""CoLA (He, Bian, Jaggi 2018, Algorithm 1) and CoCoA+ (Ma et al. 2015), node by node.

F(x) = sum_ij w_ij l(x_ij . x, y_ij) + S/2 |x|^2 with S the sum of sigma over the n nodes, dual
coefficients c_ij, and x(c) = -(1/S) sum_ij c_ij x_ij. In CoLA node i has an estimate X_i; the mean
of these is x(c). A round, with gamma = 1 and sigma' = n if not given otherwise:

    U = W X
    node i finds changes d of its coefficients that lower its subproblem
        sum_j w_ij l*((c_ij + d_j) / w_ij) - U_i . sum_j d_j x_ij + sigma'/(2 S) |sum_j d_j x_ij|^2
    by exact steps on one d_j after another, in the order of places[t][i] (j may come again)
    c_ij += gamma d_j
    X_i  = U_i - gamma n / S sum_j d_j x_ij

CoCoA+ has U_i = x for all i, and x - gamma/S sum_ij d_ij x_ij after the round.
"""

import numpy as np

from . import losses


def subproblem(rows, labels, weights, loss, S, sigma_prime, c, u, order):
    """The changes d at one node: exact minimisation over d_j for each j in `order`."""
    d = np.zeros(len(rows))
    for j in order:
        others = np.zeros(len(u))
        for k in range(len(rows)):
            if k != j:
                others += d[k] * rows[k]

        def slope(new, j=j, others=others):
            total = others + (new - c[j]) * rows[j]
            pull = losses.conjugate_derivative(loss, new, labels[j], weights[j])
            return pull - rows[j] @ u + sigma_prime / S * float(rows[j] @ total)

        low, high = losses.conjugate_domain(loss, labels[j], weights[j])
        d[j] = losses.minimiser_on_line(slope, low, high, c[j] + d[j]) - c[j]
    return d


def cola(rows, labels, weights, S, W, places, loss, gamma=1.0, sigma_prime=None):
    """(X_0 .. X_T, c_0 .. c_T) from zero, for T = len(places) rounds.

    `rows`, `labels`, `weights` are lists over nodes; `places[t][i]` lists the local rows that node
    i takes in round t; each c is a list of one array per node; `loss` is a name.
    """
    n = len(rows)
    sigma_prime = gamma * n if sigma_prime is None else sigma_prime
    X = np.zeros((n, rows[0].shape[1]))
    c = [np.zeros(len(own)) for own in rows]
    iterates, coefficients = [X], [[own.copy() for own in c]]
    for drawn in places:
        new = np.zeros_like(X)
        for i in range(n):
            u = np.zeros(X.shape[1])
            for j in range(n):
                u += W[i, j] * X[j]
            d = subproblem(rows[i], labels[i], weights[i], loss, S, sigma_prime, c[i], u, drawn[i])
            c[i] = c[i] + gamma * d
            new[i] = u
            for j in range(len(d)):
                new[i] -= gamma * n / S * d[j] * rows[i][j]
        X = new
        iterates.append(X)
        coefficients.append([own.copy() for own in c])
    return iterates, coefficients


def cocoa(rows, labels, weights, S, places, loss, gamma=1.0, sigma_prime=None):
    """(X_0 .. X_T with equal rows, c_0 .. c_T) from zero; arguments as for `cola`."""
    n = len(rows)
    sigma_prime = gamma * n if sigma_prime is None else sigma_prime
    x = np.zeros(rows[0].shape[1])
    c = [np.zeros(len(own)) for own in rows]
    iterates, coefficients = [np.array([x] * n)], [[own.copy() for own in c]]
    for drawn in places:
        new = x.copy()
        for i in range(n):
            d = subproblem(rows[i], labels[i], weights[i], loss, S, sigma_prime, c[i], x, drawn[i])
            c[i] = c[i] + gamma * d
            for j in range(len(d)):
                new -= gamma / S * d[j] * rows[i][j]
        x = new
        iterates.append(np.array([x] * n))
        coefficients.append([own.copy() for own in c])
    return iterates, coefficients

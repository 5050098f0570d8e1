"""ESDACD (Hendrikx, Bach and Massoulie, AISTATS 2019): every row moves at every step; its dual.

Dual gradients are those of `oracles.msda`: plain accelerated descent from zero.
"""

import numpy as np

from . import msda


def incidence(n_nodes, edges, mu2):
    """A_comm: column (k, l) is mu_kl (e_k - e_l)."""
    a = np.zeros((n_nodes, len(edges)))
    for column, (k, l) in enumerate(edges):
        a[k, column] = np.sqrt(mu2)
        a[l, column] = -np.sqrt(mu2)
    return a


def sigma_a(shards, sigma, loss, edges, mu2):
    """lambda_min^+(A^T diag(M_i)^{-1} A), E x E, taken by its index: A has rank n - 1."""
    a = incidence(len(shards), edges, mu2)
    inverse = np.diag(1 / msda.node_smoothness(shards, sigma, loss))
    return np.linalg.eigvalsh(a.T @ inverse @ a)[len(edges) - (len(shards) - 1)]


def edge_smoothness(sigma, edges, mu2):
    """M_kl = mu_kl^2 (1 / sigma_k + 1 / sigma_l)."""
    return np.array([mu2 * (1 / sigma[k] + 1 / sigma[l]) for k, l in edges])


def resistances(n_nodes, edges, mu2):
    """R_kl = e_kl^T A^+ A e_kl."""
    a = incidence(n_nodes, edges, mu2)
    return np.diag(np.linalg.pinv(a) @ a).copy()


def max_rho(shards, sigma, loss, edges, mu2, p):
    """min over edges of p_kl sqrt(sigma_A / (M_kl R_kl))."""
    strong = sigma_a(shards, sigma, loss, edges, mu2)
    smooth = edge_smoothness(sigma, edges, mu2)
    return min(np.asarray(p) * np.sqrt(strong / (smooth * resistances(len(shards), edges, mu2))))


def iterates(shards, sigma, loss, edges, mu2, p, rho, strong, sequence, start=None):
    """Yield (x_t, v_t, y_t), rows of nodes, t = 0, ..., K = len(sequence); start is (x_0, v_0)."""
    r = resistances(len(shards), edges, mu2)
    x, v = np.zeros((2, len(shards), np.shape(shards[0][0])[1])) if start is None else start
    smooth = msda.node_smoothness(shards, sigma, loss)
    for edge in sequence:
        y = (x + rho * v) / (1 + rho)
        yield x, v, y
        w = (1 - rho) * v + rho * y
        k, l = edges[edge]
        theta_k = msda.dual_gradient(shards[k], sigma[k], loss, y[k], smooth[k])
        theta_l = msda.dual_gradient(shards[l], sigma[l], loss, y[l], smooth[l])
        move = rho * mu2 / (strong * p[edge]) * (theta_k - theta_l)
        v_next = w.copy()
        v_next[k] -= move
        v_next[l] += move
        x = y + rho * r[edge] / p[edge] * (v_next - w)
        v = v_next
    yield x, v, (x + rho * v) / (1 + rho)


def edge_problem(shards, sigma, loss, edges, mu2):
    """grad_i and prox_i of sum_i f_i^*((A lambda)^(i)) for `oracles.apcg`; psi = 0."""
    a = incidence(len(shards), edges, mu2)
    smooth = msda.node_smoothness(shards, sigma, loss)

    def grad_i(i, y):
        theta = {
            node: msda.dual_gradient(shards[node], sigma[node], loss, a[node] @ y, smooth[node])
            for node in edges[i]
        }
        return sum(a[node, i] * theta[node] for node in edges[i])

    def prox_i(i, eta, z):
        return z

    return grad_i, prox_i

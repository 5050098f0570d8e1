"""Synchronous block ADFS, line by line, on dense matrices of all n + N augmented nodes.

A round is a communication of all edges at once, or one sample's proximal step at every node:

    y = (x + rho v) / (1 + rho),    w = (1 - rho) v + rho y,
    all edges:    D = -(rho / (sigma_A p_comm)) Lap Sigma_c^{-1} y_c,    Lap = A_c A_c^T,
                  v' = w + D,    x' = y + (rho / p_comm) D          on the centres;
    samples j(i): z = w - eta~ (e^(i) - e^(ij)) (e^(i) - e^(ij))^T Sigma^{-1} y  for every node i,
                  eta~ = rho mu_ij^2 / (sigma_A p_ij),    v'_ij = prox_{eta~ f~*}(z_ij),
                  v'_i = z_i + z_ij - v'_ij,    x' = y + (rho / p_ij) (v' - w)  on both.

`p_ij` is the probability that a round is a step of node i on sample j; it sums to 1 - p_comm over
the samples of each node.
"""

import numpy as np

from . import algorithm1, augmented


def iterates(
    shards, sigma, edges, loss, mu2_edge, mu2_virtual, p_comm, p, rho, sigma_a, rounds, start=None
):
    """Yield (x_t, v_t, y_t) for t = 0, ..., K; each of the `rounds` is None or a list of j(i)."""
    all_samples = augmented.samples(shards)
    n_nodes, n_features = len(shards), np.shape(shards[0][0])[1]
    first = np.concatenate([[0], np.cumsum([len(labels) for _, labels, _ in shards])])
    inverse_sigma = augmented.inverse_diagonal(augmented.sigma_matrix(shards, sigma, loss))
    a_comm = np.zeros((n_nodes, len(edges)))
    for column, (k, l) in enumerate(edges):
        a_comm[k, column], a_comm[l, column] = np.sqrt(mu2_edge), -np.sqrt(mu2_edge)
    x, v = np.zeros((2, n_nodes + len(all_samples), n_features)) if start is None else start
    for samples in rounds:
        y = (x + rho * v) / (1 + rho)
        yield x, v, y
        w = (1 - rho) * v + rho * y
        theta = inverse_sigma @ y
        v, x = w.copy(), y.copy()
        if samples is None:
            move = -rho / (sigma_a * p_comm) * (a_comm @ (a_comm.T @ theta[:n_nodes]))
            v[:n_nodes] += move
            x[:n_nodes] += rho / p_comm * move
            continue
        for i, j in enumerate(samples):
            index = first[i] + j
            k, l = i, n_nodes + index
            eta = rho * mu2_virtual[index] / (sigma_a * p[index])
            z_k = w[k] - eta * (theta[k] - theta[l])
            z_l = w[l] - eta * (theta[l] - theta[k])
            v[l] = algorithm1.prox(loss, all_samples[index], eta, z_l)
            v[k] = z_k + z_l - v[l]
            for node in (k, l):
                x[node] = y[node] + rho / p[index] * (v[node] - w[node])
    yield x, v, (x + rho * v) / (1 + rho)


def block_smoothness(sigma, edges, mu2_edge):
    """lambda_max(A_c^T Sigma_c^{-1} A_c): how smooth the dual is along all edges at once."""
    laplacian = np.zeros((len(sigma), len(sigma)))
    for k, l in edges:
        unit = np.zeros(len(sigma))
        unit[k], unit[l] = 1.0, -1.0
        laplacian += mu2_edge * np.outer(unit, unit)
    root = np.diag(1.0 / np.sqrt(sigma))
    return np.linalg.eigvalsh(root @ laplacian @ root)[-1]


def max_rho(sigma, edges, mu2_edge, mu2_virtual, smoothness, owner, p_comm, p, sigma_a):
    """sqrt(sigma_A) min(p_comm / sqrt(lambda_max), min p_ij / sqrt(M_ij)).

    M_ij = mu_ij^2 (1 / sigma_i + 1 / L_ij), R = 1 for the block and for each virtual edge.
    """
    found = [
        p[j] / np.sqrt(mu2_virtual[j] * (1 / sigma[owner[j]] + 1 / smoothness[j]))
        for j in range(len(p))
    ]
    if edges:
        found.append(p_comm / np.sqrt(block_smoothness(sigma, edges, mu2_edge)))
    return np.sqrt(sigma_a) * min(found)

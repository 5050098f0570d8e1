"""Problem (1), its augmented graph and the spectral constants of Algorithm 1, all dense.

Shards are a list of (X_i, y_i, w_i). Nodes: the n centres, then the virtual nodes shard by shard,
sample by sample. Edges: the E communication edges, then the virtual edges in the same order.
Rows of norm zero and weights zero are constant in theta and must have been removed.
"""

import numpy as np
from scipy.optimize import minimize, root

from . import losses


def samples(shards):
    """All (i, x, y, w), shard by shard, sample by sample: the order of the virtual nodes."""
    return [
        (i, np.asarray(x, dtype=float), float(y), float(w))
        for i, (features, labels, weights) in enumerate(shards)
        for x, y, w in zip(features, labels, weights, strict=True)
    ]


def objective(shards, sigma, loss, theta):
    """Problem (1): sum_i [ sum_j f_ij(theta) + sigma_i / 2 |theta|^2 ]."""
    total = 0.0
    for _, x, y, w in samples(shards):
        total += losses.value(loss, x @ theta, y, w)
    for sigma_i in sigma:
        total += sigma_i / 2 * (theta @ theta)
    return total


def gradient(shards, sigma, loss, theta):
    """Gradient of problem (1)."""
    total = np.zeros_like(theta)
    for _, x, y, w in samples(shards):
        total += losses.derivative(loss, x @ theta, y, w) * x
    for sigma_i in sigma:
        total += sigma_i * theta
    return total


def minimiser(shards, sigma, loss):
    """Theta-star of problem (1) for a smooth loss: L-BFGS by scipy, then a root of the gradient."""
    start = np.zeros(np.shape(shards[0][0])[1])
    rough = minimize(
        lambda theta: objective(shards, sigma, loss, theta),
        start,
        jac=lambda theta: gradient(shards, sigma, loss, theta),
        method="L-BFGS-B",
    )
    fine = root(lambda theta: gradient(shards, sigma, loss, theta), rough.x, tol=1e-15)
    return fine.x


def smoothness(shards, loss):
    """L_ij = w lmax |x|^2 for every sample; infinite where the loss is not smooth."""
    lmax = losses.curvature_bound(loss)
    return np.array([w * lmax * (x @ x) for _, x, _, w in samples(shards)])


def sigma_matrix(shards, sigma, loss):
    """Sigma after equation (5): sigma_i on centres, L_ij on virtual nodes."""
    return np.diag(np.concatenate([np.asarray(sigma, dtype=float), smoothness(shards, loss)]))


def inverse_diagonal(diagonal_matrix):
    """Sigma^{-1}; an infinite entry (loss that is not smooth, App. B.5) gives 0."""
    return np.diag(1.0 / np.diag(diagonal_matrix))


def ends(shards, edges):
    """The two augmented nodes (k, l) of every edge; a virtual edge goes centre to virtual node."""
    n_nodes = len(shards)
    virtual = [(i, n_nodes + index) for index, (i, *_) in enumerate(samples(shards))]
    return [(int(k), int(l)) for k, l in edges] + virtual


def incidence(shards, edges, mu2_edge, mu2_virtual):
    """Section 2: A e_kl = mu_kl (e^(k) - e^(l))."""
    pairs = ends(shards, edges)
    mu2 = np.concatenate([np.asarray(mu2_edge, dtype=float), np.asarray(mu2_virtual, dtype=float)])
    a = np.zeros((len(shards) + len(samples(shards)), len(pairs)))
    for column, (k, l) in enumerate(pairs):
        a[k, column] = np.sqrt(mu2[column])
        a[l, column] = -np.sqrt(mu2[column])
    return a


def rank(a):
    """Rank of A: that of the unit incidence matrix, since weights mu > 0 do not change it."""
    return int(np.linalg.matrix_rank(np.sign(a)))


def sigma_a(a, sigma_mat):
    """Algorithm 1, line 1: smallest non-zero eigenvalue of A^T Sigma^{-1} A, taken by its index."""
    eigenvalues = np.linalg.eigvalsh(a.T @ inverse_diagonal(sigma_mat) @ a)
    return eigenvalues[a.shape[1] - rank(a)]


def projector(a):
    """A^dagger A, the orthogonal projector on Ker(A)^perp, from the right singular vectors."""
    right = np.linalg.svd(a)[2][: rank(a)]
    return right.T @ right


def resistances(a):
    """Algorithm 1, line 1: R_kl = e_kl^T A^dagger A e_kl."""
    return np.diag(projector(a)).copy()


def restricted_incidence(shards, edges, mu2_edge, mu2_virtual):
    """A (x) I_d with lambda_ij restricted to span(x_ij): n(1+m)d rows, E d + N columns.

    A communication edge keeps its d directions, a virtual edge only x_ij / |x_ij|.
    """
    a = incidence(shards, edges, mu2_edge, mu2_virtual)
    n_features = np.shape(shards[0][0])[1]
    columns = []
    for edge in range(len(edges)):
        columns += [np.kron(a[:, edge], direction) for direction in np.eye(n_features)]
    for index, (_, x, _, _) in enumerate(samples(shards)):
        columns.append(np.kron(a[:, len(edges) + index], x / np.linalg.norm(x)))
    return np.array(columns).T


def projector_sigma_a(shards, edges, mu2_edge, mu2_virtual, sigma_mat):
    """Smallest non-zero eigenvalue of q_A on the restricted directions.

    The kernel's dimension comes from the rank (by SVD) of the restricted A with unit weights,
    so no threshold is put on an eigenvalue.
    """
    b = restricted_incidence(shards, edges, mu2_edge, mu2_virtual)
    unit = restricted_incidence(shards, edges, np.ones(len(edges)), np.ones(len(mu2_virtual)))
    n_features = np.shape(shards[0][0])[1]
    weights = np.kron(inverse_diagonal(sigma_mat), np.eye(n_features))
    eigenvalues = np.linalg.eigvalsh(b.T @ weights @ b)
    return eigenvalues[b.shape[1] - int(np.linalg.matrix_rank(unit))]


def max_rho(a, sigma_mat, p, sigma_a_value):
    """Theorem 1, equation (6): the largest admissible rho.

    rho^2 <= min over (k,l) of sigma_A / (Sigma_kk^{-1} + Sigma_ll^{-1}) p_kl^2 / (mu_kl^2 R_kl).
    """
    inverse = np.diag(inverse_diagonal(sigma_mat))
    r = resistances(a)
    bounds = []
    for column in range(a.shape[1]):
        k, l = np.flatnonzero(a[:, column])
        mu2 = a[k, column] ** 2
        bounds.append(
            sigma_a_value / (inverse[k] + inverse[l]) * p[column] ** 2 / (mu2 * r[column])
        )
    return np.sqrt(min(bounds))


def dual_objective(shards, sigma, loss, node_rows):
    """F_A^* of problem (5) at lambda with A lambda = node_rows, in its first form (before (5)).

    sum_ij f_ij^*((A lambda)^(ij)) + sum_i |(A lambda)^(i)|^2 / (2 sigma_i); its minimum is -F*.
    Rows are c x up to rounding: a c within 1e-12 w of the conjugate's domain counts as its end.
    """
    n_nodes = len(shards)
    total = sum(node_rows[i] @ node_rows[i] / (2 * sigma[i]) for i in range(n_nodes))
    for index, (_, x, y, w) in enumerate(samples(shards)):
        coefficient = x @ node_rows[n_nodes + index] / (x @ x)
        nearest = np.clip(coefficient, *losses.conjugate_domain(loss, y, w))
        if abs(coefficient - nearest) <= 1e-12 * w:
            coefficient = nearest
        total += losses.conjugate(loss, coefficient, y, w)
    return total


def optimal_rows(shards, sigma, loss, theta):
    """v*: sigma_i theta* on centres, grad f_ij(theta*) on virtual nodes."""
    centres = [sigma_i * theta for sigma_i in sigma]
    virtual = [losses.derivative(loss, x @ theta, y, w) * x for _, x, y, w in samples(shards)]
    return np.array(centres + virtual)

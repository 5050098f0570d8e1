"""Closed forms of the paper, one function per formula. `l_ij` is a list of arrays, one per node."""

import math

import numpy as np

from . import augmented


def kappa(l_ij, sigma):
    """Introduction: kappa_i = 1 + sum_j L_ij / sigma_i."""
    return [1 + sum(l_i) / sigma_i for l_i, sigma_i in zip(l_ij, sigma, strict=True)]


def kappa_s(l_ij, sigma):
    """App. D.4: kappa_s = max_i kappa_i."""
    return max(kappa(l_ij, sigma))


def s_comp(l_ij, sigma):
    """Section 5: S_comp = n^{-1} sum_i sum_j (1 + L_ij / sigma_i)^{1/2}."""
    total = 0.0
    for l_i, sigma_i in zip(l_ij, sigma, strict=True):
        for one in l_i:
            total += math.sqrt(1 + one / sigma_i)
    return total / len(sigma)


def laplacian(n_nodes, edges, mu2_edge):
    """Section 5: L = A_comm A_comm^T."""
    a_comm = np.zeros((n_nodes, len(edges)))
    for column, (k, l) in enumerate(edges):
        a_comm[k, column] = math.sqrt(mu2_edge[column])
        a_comm[l, column] = -math.sqrt(mu2_edge[column])
    return a_comm @ a_comm.T


def lambda_min_plus(lap):
    """lambda_min^+(L) of a connected graph: the second eigenvalue."""
    return np.linalg.eigvalsh(lap)[1]


def gamma(lap):
    """Trap T18: lambda_min^+(L) / lambda_max(L)."""
    return lambda_min_plus(lap) / np.linalg.eigvalsh(lap)[-1]


def gamma_tilde(n_nodes, edges, mu2_edge):
    """Section 5: min over communication edges of lambda_min^+(L) n^2 / (mu_kl^2 R_kl E^2)."""
    lap = laplacian(n_nodes, edges, mu2_edge)
    inverse = np.linalg.pinv(lap)
    values = []
    for (k, l), mu2 in zip(edges, mu2_edge, strict=True):
        resistance = mu2 * (inverse[k, k] + inverse[l, l] - inverse[k, l] - inverse[l, k])
        values.append(lambda_min_plus(lap) * n_nodes**2 / (mu2 * resistance * len(edges) ** 2))
    return min(values)


def p_comm_theorem_3(s_comp_value, gamma_tilde_value, kappa_s_value):
    """Theorem 3: min(1/2, (1 + S_comp sqrt(gamma~ / kappa_s))^{-1})."""
    return min(0.5, 1 / (1 + s_comp_value * math.sqrt(gamma_tilde_value / kappa_s_value)))


def p_comm_appendix(s_comp_value, gamma_tilde_value, kappa_min, delta_p=1.0):
    """App. D.4, end of the proof: (1 + sqrt(gamma~ / (2 kappa_min)) Delta_p S_comp)^{-1}.

    Capped at 1/2, as the paragraph after it says.
    """
    root = math.sqrt(gamma_tilde_value / (2 * kappa_min))
    return min(0.5, 1 / (1 + root * delta_p * s_comp_value))


def alpha(l_ij, sigma, lambda_min):
    """App. D.1: alpha_i = nu / kappa_i, nu = lambda_min^+(L) / sigma, sigma = max_i sigma_i."""
    return [lambda_min / max(sigma) / kappa_i for kappa_i in kappa(l_ij, sigma)]


def mu2_virtual(l_ij, sigma, lambda_min):
    """Section 5: mu_ij^2 = lambda_min^+(L) L_ij / (sigma kappa_i), in the order of the samples."""
    return np.concatenate(
        [
            alpha_i * np.asarray(l_i)
            for alpha_i, l_i in zip(alpha(l_ij, sigma, lambda_min), l_ij, strict=True)
        ]
    )


def probabilities(l_ij, sigma, n_edges, p_comm):
    """Section 5: p_kl = p_comm / E, p_ij = p_comp (1 + L_ij / sigma_i)^{1/2} / (n S_comp)."""
    scale = (1 - p_comm) / (len(sigma) * s_comp(l_ij, sigma))
    virtual = [
        scale * math.sqrt(1 + one / sigma_i)
        for l_i, sigma_i in zip(l_ij, sigma, strict=True)
        for one in l_i
    ]
    return np.array([p_comm / n_edges] * n_edges + virtual)


def sigma_a_lower_bound(lambda_min, sigma, kappa_s_value):
    """App. D.1, lemma: sigma_A >= lambda_min^+(L) / (2 sigma kappa), sigma = max_i sigma_i."""
    return lambda_min / (2 * max(sigma) * kappa_s_value)


def rho_lower_bound(n_nodes, p_comm, gamma_tilde_value, kappa_list, s_comp_value, delta_p=1.0):
    """App. D.3, lemma (sigma_i all equal).

    rho >= (1 / (sqrt2 n)) min(p_comm Delta_p sqrt(gamma~ / (2 kappa)), p_comp sqrt(r_k) / S_comp).
    """
    r_kappa = min(kappa_list) / max(kappa_list)
    comm = p_comm * delta_p * math.sqrt(gamma_tilde_value / (2 * max(kappa_list)))
    comp = (1 - p_comm) * math.sqrt(r_kappa) / s_comp_value
    return min(comm, comp) / (math.sqrt(2) * n_nodes)


def c_0(shards, sigma, edges, loss, mu2_edge, mu2_virtual_values, sigma_a, theta_star):
    """Theorem 1: lambda_max(A^T Sigma^{-2} A) [|A^+ A theta_A*|^2 + 2 (F*(0) - F*(opt)) / sigma_A].

    A theta_A* is `augmented.optimal_rows`, so A^+ A theta_A* is A^+ times it; F* is F_A^*.
    """
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual_values)
    inverse = augmented.inverse_diagonal(augmented.sigma_matrix(shards, sigma, loss))
    rows = augmented.optimal_rows(shards, sigma, loss, theta_star)
    edge_rows = np.linalg.lstsq(a, rows, rcond=None)[0]
    at_zero = augmented.dual_objective(shards, sigma, loss, np.zeros_like(rows))
    at_optimum = augmented.dual_objective(shards, sigma, loss, rows)
    largest = np.linalg.eigvalsh(a.T @ inverse @ inverse @ a)[-1]
    return largest * (np.sum(edge_rows**2) + 2 / sigma_a * (at_zero - at_optimum))


def p_comm_max(n_nodes, edges, p_edge):
    """Section 4: p_comm^max = n max_k sum_{l in N(k)} p_kl / 2."""
    incident = [0.0] * n_nodes
    for (k, l), one in zip(edges, p_edge, strict=True):
        incident[k] += one
        incident[l] += one
    return n_nodes * max(incident) / 2


def theorem_2_right_hand_side(n_nodes, edges, p_edge, tau):
    """Theorem 2 without its constant C < 24: (p_comp + 2 tau p_comm^max) / n, a time an event."""
    p_comp = 1 - sum(p_edge)
    return (p_comp + 2 * tau * p_comm_max(n_nodes, edges, p_edge)) / n_nodes


def theorem_3_time(m, kappa_s_value, gamma_tilde_value, tau):
    """Theorem 3 without C: time divided by log(1 / epsilon).

    sqrt2 (m + sqrt(m kappa_s) + sqrt2 (1 + 4 tau) sqrt(kappa_s / gamma~)).
    """
    local = m + math.sqrt(m * kappa_s_value)
    network = math.sqrt(2) * (1 + 4 * tau) * math.sqrt(kappa_s_value / gamma_tilde_value)
    return math.sqrt(2) * (local + network)

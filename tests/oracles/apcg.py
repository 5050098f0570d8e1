"""Generalized APCG (Appendix A, Algorithm 2) on block coordinates, and dual problem (5) for it.

A point is an array with one row (block) a coordinate. `grad_i(i, y)` is the i-th row of grad f_A,
`prox_i(i, eta, z)` the proximal step of psi_i (the identity where psi_i = 0).
"""

import math

import numpy as np

from . import augmented, losses


def next_a(big_a, big_b, s, sigma_a):
    """a_{t+1} > 0 with a^2 S^2 = (A_t + a) (B_t + sigma_A a): the positive root of a quadratic."""
    square = s**2 - sigma_a
    linear = big_a * sigma_a + big_b
    constant = big_a * big_b
    return (linear + math.sqrt(linear**2 + 4 * square * constant)) / (2 * square)


def generalized(grad_i, prox_i, shape, r, p, s, sigma_a, a_0, b_0, sequence):
    """Algorithm 2 with its sequences a, A, B, alpha, beta; yields (x_t, v_t) for t = 0, ..., K."""
    x = np.zeros(shape)
    v = np.zeros(shape)
    big_a, big_b = a_0, b_0
    yield x, v
    for i in sequence:
        a = next_a(big_a, big_b, s, sigma_a)
        big_a, big_b = big_a + a, big_b + sigma_a * a
        alpha, beta = a / big_a, sigma_a * a / big_b
        x, v = step(grad_i, prox_i, x, v, i, alpha, beta, a / (big_b * p[i]), r[i], p[i])
        yield x, v


def strongly_convex(grad_i, prox_i, shape, r, p, rho, sigma_a, sequence):
    """Corollary 1: alpha = beta = rho and eta_i = rho / (sigma_A p_i); yields (x_t, v_t)."""
    x = np.zeros(shape)
    v = np.zeros(shape)
    yield x, v
    for i in sequence:
        x, v = step(grad_i, prox_i, x, v, i, rho, rho, rho / (sigma_a * p[i]), r[i], p[i])
        yield x, v


def step(grad_i, prox_i, x, v, i, alpha, beta, eta, r_i, p_i):
    """The body of Algorithm 2's loop once coordinate i has been sampled."""
    y = ((1 - alpha) * x + alpha * (1 - beta) * v) / (1 - alpha * beta)
    w = (1 - beta) * v + beta * y
    z = w.copy()
    z[i] -= eta * grad_i(i, y)
    v_next = z.copy()
    v_next[i] = prox_i(i, eta, z[i])
    return y + alpha * r_i / p_i * (v_next - w), v_next


def strongly_convex_start(sigma_a):
    """Corollary 1: (A_0, B_0) = (1, sigma_A), from A_t = B_t / sigma_A = (1 - rho)^{-t}."""
    return 1.0, sigma_a


def convex_start(s, r, p, b_0=1.0):
    """Corollary 2: (A_0, B_0) with A_0 = 3 B_0 / (S^2 p_R^2), p_R = min_i p_i / R_i."""
    p_r = min(p_i / r_i for p_i, r_i in zip(p, r, strict=True))
    return 3 * b_0 / (s**2 * p_r**2), b_0


def smoothness_constant(a, sigma_mat, r, p):
    """S = max_i sqrt(M_i R_i) / p_i, where M_kl = mu_kl^2 (Sigma_kk^{-1} + Sigma_ll^{-1})."""
    m = np.diag(a.T @ augmented.inverse_diagonal(sigma_mat) @ a)
    return max(math.sqrt(m_i * r_i) / p_i for m_i, r_i, p_i in zip(m, r, p, strict=True))


def dual_problem(shards, sigma, edges, loss, mu2_edge, mu2_virtual):
    """Equation (5): grad_i of q_A and prox_i of psi_ij, in edge space.

    q_A(lambda) = Trace(lambda^T A^T Sigma^{-1} A lambda) / 2 and, in the main text's edge form,
    psi_ij(lambda) = f_ij^*(-mu_ij lambda) - mu_ij^2 / (2 L_ij) |lambda|^2. For a loss that is not
    smooth L_ij is infinite: Sigma^{-1} is 0 on virtual nodes and psi is plain (App. B.5).
    """
    all_samples = augmented.samples(shards)
    l_ij = augmented.smoothness(shards, loss)
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    inverse_sigma = augmented.inverse_diagonal(augmented.sigma_matrix(shards, sigma, loss))
    hessian = a.T @ inverse_sigma @ a

    def grad_i(i, y):
        return hessian[i] @ y

    def prox_i(i, eta, z):
        if i < len(edges):
            return z
        j = i - len(edges)
        return edge_prox(loss, all_samples[j], l_ij[j], math.sqrt(mu2_virtual[j]), eta, z)

    return grad_i, prox_i


def edge_prox(loss, sample, big_l, mu, eta, z):
    """Algorithm 2's proximal step on psi_ij, for lambda = e x (f* is infinite elsewhere).

    Minimises |lambda - z|^2 / (2 eta) + psi_ij(lambda), which in e reads
    q (e - z.x / q)^2 / (2 eta) + w l*(-mu e / w) - mu^2 q e^2 / (2 L), where q = |x|^2.
    """
    _, x, y, w = sample
    q = x @ x
    target = x @ z / q

    def slope(e):
        conjugate_part = -mu * losses.conjugate_derivative(loss, -mu * e, y, w)
        return q * (e - target) / eta + conjugate_part - mu**2 * q * e / big_l

    low, high = losses.conjugate_domain(loss, y, w)
    return losses.minimiser_on_line(slope, -high / mu, -low / mu, target) * x

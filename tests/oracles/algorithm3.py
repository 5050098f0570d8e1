"""Algorithm 3 (NS-ADFS) and Theorem 4, line by line, on dense n(1+m) x d matrices.

Sigma^{-1} is 0 on virtual nodes, where the proximal step is that of plain f* (App. B.5). Every row
is computed again at every step. B_0 = 1, as the recursion of Algorithm 3 has it.
"""

import math

import numpy as np
from scipy.optimize import minimize

from . import augmented, losses


def iterates(shards, sigma, edges, loss, mu2_edge, mu2_virtual, p, s, a_0, sequence, start=None):
    """Yield (x_t, v_t, y_t) for t = 0, ..., K, where K = len(sequence), from start = (x_0, v_0).

    `sequence` holds the sampled edges, indices 0 .. E+N-1; y_K is what step K would use. W_ij
    carries no mu^2, as eta_ij = mu_ij^2 / p_ij already does.
    """
    all_samples = augmented.samples(shards)
    pairs = augmented.ends(shards, edges)
    n_nodes, n_edges = len(shards), len(edges)
    n_features = np.shape(shards[0][0])[1]
    inverse_sigma = np.diag([1 / sigma_i for sigma_i in sigma] + [0.0] * len(all_samples))
    # line 1
    x, v = np.zeros((2, n_nodes + len(all_samples), n_features)) if start is None else start
    r = augmented.resistances(augmented.incidence(shards, edges, mu2_edge, mu2_virtual))
    eta = np.concatenate([mu2_edge, mu2_virtual]) / p
    big_a = a_0
    for edge in sequence:  # line 2
        a, big_a = next_a(big_a, s)  # lines 3 and 4
        alpha = a / big_a
        y = (1 - alpha) * x + alpha * v  # line 5
        yield x, v, y
        k, l = pairs[edge]  # line 6
        # line 7
        unit = np.zeros(len(x))
        unit[k], unit[l] = 1.0, -1.0
        z_next = v - a * eta[edge] * (np.outer(unit, unit) @ (inverse_sigma @ y))
        v_next = z_next.copy()
        if edge >= n_edges:  # line 8
            v_next[l] = prox(loss, all_samples[edge - n_edges], a * eta[edge], z_next[l])  # 9
            v_next[k] = z_next[k] + z_next[l] - v_next[l]  # line 10
        x = y + alpha * r[edge] / p[edge] * (v_next - v)  # line 12
        v = v_next
    a, big_a = next_a(big_a, s)
    yield x, v, (1 - a / big_a) * x + a / big_a * v


def next_a(big_a, s):
    """Lines 3 and 4: (a_{t+1}, A_{t+1}) from A_t, a_{t+1} = (1 + sqrt(1 + 4 S^2 A_t)) / (2 S^2)."""
    a = (1 + math.sqrt(1 + 4 * s**2 * big_a)) / (2 * s**2)
    return a, big_a + a


def prox(loss, sample, eta, z):
    """Line 9 for f_ij(theta) = w l(x . theta): f* is infinite off span(x), so project z on it."""
    _, x, y, w = sample
    q = x @ x
    return losses.prox_star(loss, y, w, q, eta, x @ z / q) * x


def output(x, sigma):
    """Trap T14: theta_i = x^(i) / sigma_i on centres, the point that has a primal bound."""
    return np.array([x[i] / sigma_i for i, sigma_i in enumerate(sigma)])


def weights(a_0, s, length):
    """A_0, ..., A_length."""
    found = [a_0]
    for _ in range(length):
        found.append(next_a(found[-1], s)[1])
    return np.array(found)


def smoothness_constant(shards, sigma, edges, mu2_edge, mu2_virtual, p):
    """S with S^2 = max M R / p^2; M_kl = mu_kl^2 (1/sigma_k + 1/sigma_l), M_ij = mu_ij^2 / sigma_i.

    On virtual edges R = 1 (Lemma 2).
    """
    r = augmented.resistances(augmented.incidence(shards, edges, mu2_edge, mu2_virtual))
    squares = [
        mu2_edge[e] * (1 / sigma[k] + 1 / sigma[l]) * r[e] / p[e] ** 2
        for e, (k, l) in enumerate(edges)
    ]
    for j, (i, *_) in enumerate(augmented.samples(shards)):
        squares.append(mu2_virtual[j] / sigma[i] / p[len(edges) + j] ** 2)
    return math.sqrt(max(squares))


def p_r(shards, edges, mu2_edge, mu2_virtual, p):
    """Line 1: p_R = min over all edges of p / R."""
    r = augmented.resistances(augmented.incidence(shards, edges, mu2_edge, mu2_virtual))
    return min(p_i / r_i for p_i, r_i in zip(p, r, strict=True))


def start(s, p_r_value):
    """Line 1 with B_0 = 1: A_0 = 3 / (S^2 p_R^2), so that alpha_t R / p <= 1 at every t."""
    return 3 / (s**2 * p_r_value**2)


def p_comm(gamma_tilde, m):
    """App. B.5, last line: (1 + sqrt(gamma~ m^2 / (2 (1 + m))))^{-1}."""
    return 1 / (1 + math.sqrt(gamma_tilde * m**2 / (2 * (1 + m))))


def dual_objective(shards, sigma, loss, x):
    """Before Theorem 4: F*(x) = sum_ij f_ij^*(x^(ij)) + sum_i |x^(i)|^2 / (2 sigma_i)."""
    return augmented.dual_objective(shards, sigma, loss, x)


def primal_distance(sigma, x, theta):
    """sum_i sigma_i / 2 |x^(i) / sigma_i - theta*|^2, at most F*(x) - F*.

    With v* of `optimal_rows` and x = A lambda, the quadratic part of F* gives the distance and
    <Sigma^{-1} v*, x - v*> beside it; the latter and the virtual nodes' part sum to at least 0
    because v* minimises F* over the range of A.
    """
    return sum(
        sigma_i / 2 * np.sum((x[i] / sigma_i - theta) ** 2) for i, sigma_i in enumerate(sigma)
    )


def edge_norm2(shards, edges, mu2_edge, mu2_virtual, rows):
    """|lambda|^2_{A^+ A} for any lambda with A lambda = rows: that of the shortest such lambda."""
    a = augmented.incidence(shards, edges, mu2_edge, mu2_virtual)
    shortest = np.linalg.lstsq(a, rows, rcond=None)[0]
    assert np.allclose(a @ shortest, rows, rtol=0, atol=1e-10), "rows must sum to zero"
    return np.sum(shortest**2)


def c_0(a_0, norm2, gap_0):
    """Theorem of App. A at t = 0: C_0 = B_0 |v_0 - lambda*|^2_{A^+ A} + 2 A_0 (F*(x_0) - F*).

    It bounds B_0 E|v_t - lambda*|^2_{A^+ A} + 2 A_t (E F*(x_t) - F*). Here B_0 = 1 and
    x_0 = v_0 = 0, so norm2 is |lambda*|^2_{A^+ A} and gap_0 is F*(0) - F*.
    """
    return norm2 + 2 * a_0 * gap_0


def exact_bound(big_a, a_0, norm2, gap_0):
    """E F*(x_t) - F* <= C_0 / (2 A_t): the line above without its first, positive term."""
    return c_0(a_0, norm2, gap_0) / (2 * big_a)


def theorem_4_bound(t, s, p_r_value, norm2, gap_0):
    """Theorem 4, corrected: (2 / t^2) [S^2 |lambda*|^2_{A^+ A} + 6 / p_R^2 (F*(0) - F*)].

    It is `exact_bound` with A_t >= t^2 / (4 S^2). The printed r_t^2 / lambda_min^+(A^T A) is a
    difference of norms of A lambda, which A^+ A does not bound.
    """
    return 2 / t**2 * (s**2 * norm2 + 6 / p_r_value**2 * gap_0)


def optimum(shards, sigma, loss):
    """(theta*, c*) of problem (1) for hinge or absolute, by its dual on a box; `gap` certifies it.

    Both conjugates are y c on an interval, so the dual is min over the box of
    |X^T c|^2 / (2 sum_i sigma_i) + y . c, and theta = -X^T c / sum_i sigma_i.
    """
    everything = augmented.samples(shards)
    rows = np.array([x for _, x, _, _ in everything])
    y = np.array([label for _, _, label, _ in everything])
    box = np.array([losses.conjugate_domain(loss, label, w) for _, _, label, w in everything])
    total = sum(sigma)

    def value_and_slope(c):
        push = rows.T @ c
        return push @ push / (2 * total) + y @ c, rows @ push / total + y

    options = {"maxiter": 100_000, "maxfun": 100_000, "ftol": 0.0, "gtol": 1e-15, "maxcor": 50}
    c = box.mean(axis=1)
    for _ in range(5):
        c = minimize(value_and_slope, c, jac=True, method="L-BFGS-B", bounds=box, options=options).x
        c = _settle(rows, y, box, total, c)
    return -rows.T @ c / total, c


def _settle(rows, y, box, total, c):
    """c with those at an end put there, and the others such that x . theta = y (slope 0)."""
    low, high = box.T
    free = (c > low + 1e-7) & (c < high - 1e-7)
    found = np.where(free, c, np.where(c < (low + high) / 2, low, high))
    slope = rows @ (rows.T @ found) / total + y
    gram = rows[free] @ rows[free].T / total
    found[free] -= np.linalg.lstsq(gram, slope[free], rcond=1e-12)[0]
    return np.clip(found, low, high)


def optimal_rows(shards, sigma, theta, c):
    """v*: sigma_i theta* on centres, c*_ij x_ij, a subgradient of f_ij, on virtual nodes."""
    virtual = [c_j * x for c_j, (_, x, _, _) in zip(c, augmented.samples(shards), strict=True)]
    return np.array([sigma_i * theta for sigma_i in sigma] + virtual)


def gap(shards, sigma, loss, theta, rows):
    """F(theta) + F*(rows): 0 at the optimum, never below when the rows sum to zero."""
    primal = augmented.objective(shards, sigma, loss, theta)
    return primal + dual_objective(shards, sigma, loss, rows)

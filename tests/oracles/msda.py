"""MSDA and SSDA of Scaman et al. (2017), line by line, with dual gradients by plain descent.

Shards are a list of (X_i, y_i, w_i); `lap` is the dense Laplacian with unit weights. Dual gradients
take no second derivative and no warm start: the point is that they share nothing with the code.
"""

import math

import numpy as np

from . import losses


def node_smoothness(shards, sigma, loss):
    """beta_i = M_i = sigma_i + lambda_max(sum_j w lmax x x^T)."""
    values = []
    for (features, _, weights), sigma_i in zip(shards, sigma, strict=True):
        scaled = np.sqrt(np.asarray(weights) * losses.curvature_bound(loss))[:, None] * features
        values.append(sigma_i + np.linalg.eigvalsh(scaled.T @ scaled)[-1])
    return np.array(values)


def node_gradient(shard, sigma_i, loss, theta):
    """Gradient of f_i, its sigma_i / 2 |theta|^2 included."""
    features, labels, weights = shard
    slopes = losses.derivative(loss, features @ theta, np.asarray(labels), np.asarray(weights))
    return features.T @ slopes + sigma_i * theta


def node_value(shard, sigma_i, loss, theta):
    """Value of f_i."""
    features, labels, weights = shard
    values = losses.value(loss, features @ theta, np.asarray(labels), np.asarray(weights))
    return values.sum() + sigma_i / 2 * (theta @ theta)


def dual_gradient(shard, sigma_i, loss, x, smooth):
    """argmin f_i(theta) - x . theta by accelerated gradient descent until it does not move."""
    root = math.sqrt(smooth / sigma_i)
    momentum = (root - 1) / (root + 1)
    theta = before = np.zeros_like(x)
    for _ in range(20_000):
        point = theta + momentum * (theta - before)
        gradient = node_gradient(shard, sigma_i, loss, point) - x
        if np.linalg.norm(gradient) <= 1e-14 * sigma_i * max(1.0, np.linalg.norm(point)):
            return point
        before, theta = theta, point - gradient / smooth
        if np.max(np.abs(theta - before)) <= 1e-17 * max(1.0, np.max(np.abs(theta))):
            return theta
    return theta


def all_dual_gradients(shards, sigma, loss, x):
    """Row i: grad f_i^*(x_i)."""
    smooth = node_smoothness(shards, sigma, loss)
    return np.array(
        [dual_gradient(shard, sigma[i], loss, x[i], smooth[i]) for i, shard in enumerate(shards)]
    )


def dual_objective(shards, sigma, loss, x):
    """sum_i f_i^*(x_i), each the largest of x_i . theta - f_i(theta)."""
    thetas = all_dual_gradients(shards, sigma, loss, x)
    return sum(
        x[i] @ thetas[i] - node_value(shard, sigma[i], loss, thetas[i])
        for i, shard in enumerate(shards)
    )


def constants(shards, sigma, loss, lap, rounds=None):
    """Algorithm 2's inputs: K, c1, c2, c3, eta, momentum."""
    eigenvalues = np.linalg.eigvalsh(lap)
    lambda_max = eigenvalues[-1]
    gamma = eigenvalues[1] / lambda_max
    if abs(gamma - 1.0) < 1e-12:
        gamma = 1.0
    k = rounds or max(1, math.floor(1 / math.sqrt(gamma) + 1e-9))
    alpha, beta = min(sigma), max(node_smoothness(shards, sigma, loss))
    kappa = beta / alpha
    c1 = (1 - math.sqrt(gamma)) / (1 + math.sqrt(gamma))
    c2 = (1 + gamma) / (1 - gamma) if gamma < 1 else math.inf
    c3 = 2 / ((1 + gamma) * lambda_max)
    eta = alpha * (1 + c1 ** (2 * k)) / (1 + c1**k) ** 2
    root = math.sqrt(kappa)
    momentum = ((1 + c1**k) * root - 1 + c1**k) / ((1 + c1**k) * root + 1 - c1**k)
    return k, c1, c2, c3, eta, momentum


def accelerated_gossip(u, lap, k, c2, c3):
    """AcceleratedGossip(u, W, K): u - u_K / a_K. With gamma = 1, K = 1 and Lap / lambda_max."""
    if math.isinf(c2):
        assert k == 1
        return c3 * (lap @ u)
    a_before, a = 1.0, c2
    u_before, u_now = u, c2 * (u - c3 * (lap @ u))
    for _ in range(1, k):
        a_before, a = a, 2 * c2 * a - a_before
        u_before, u_now = u_now, 2 * c2 * (u_now - c3 * (lap @ u_now)) - u_before
    return u - u_now / a


def iterates(shards, sigma, loss, lap, n_rounds, rounds=None):
    """Algorithm 2: yields (theta_t, y_{t+1}, x_{t+1})."""
    k, _, c2, c3, eta, momentum = constants(shards, sigma, loss, lap, rounds)
    x = y = np.zeros((len(shards), np.shape(shards[0][0])[1]))
    for _ in range(n_rounds):
        theta = all_dual_gradients(shards, sigma, loss, x)
        y_next = x - eta * accelerated_gossip(theta, lap, k, c2, c3)
        x = (1 + momentum) * y_next - momentum * y
        y = y_next
        yield theta, y, x


def single_step_iterates(shards, sigma, loss, lap, n_rounds):
    """Algorithm 1 (SSDA) in its own words: eta = alpha / lambda_1(W), momentum from gamma."""
    eigenvalues = np.linalg.eigvalsh(lap)
    gamma = eigenvalues[1] / eigenvalues[-1]
    alpha, beta = min(sigma), max(node_smoothness(shards, sigma, loss))
    kappa = beta / alpha
    eta = alpha / eigenvalues[-1]
    momentum = (math.sqrt(kappa) - math.sqrt(gamma)) / (math.sqrt(kappa) + math.sqrt(gamma))
    x = y = np.zeros((len(shards), np.shape(shards[0][0])[1]))
    for _ in range(n_rounds):
        theta = all_dual_gradients(shards, sigma, loss, x)
        y_next = x - eta * (lap @ theta)
        x = (1 + momentum) * y_next - momentum * y
        y = y_next
        yield theta, y, x


def gossip_matrix(lap, scale, k):
    """S^{1/2} P_K(S^{-1/2} Lap S^{-1/2}) S^{1/2}, P_K by NumPy's Chebyshev polynomials."""
    root = np.sqrt(scale)
    values, vectors = np.linalg.eigh(lap / np.outer(root, root))
    low, high = values[1], values[-1]
    if high - low <= 1e-12 * high:
        p = values / high
    else:
        chebyshev = np.polynomial.chebyshev.Chebyshev([0] * k + [1])
        c2, c3 = (high + low) / (high - low), 2 / (high + low)
        p = 1 - chebyshev(c2 * (1 - c3 * values)) / chebyshev(c2)
    return root[:, None] * ((vectors * p) @ vectors.T) * root


def nesterov_iterates(shards, sigma, loss, gossip, eta, momentum, n_rounds):
    """Accelerated gradient on lambda -> sum_i f_i^*((G^{1/2} lambda)_i), square root and all.

    Yields (theta_t, x_{t+1}) with x = G^{1/2} lambda.
    """
    values, vectors = np.linalg.eigh(gossip)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    lam = point = np.zeros((len(shards), np.shape(shards[0][0])[1]))
    for _ in range(n_rounds):
        theta = all_dual_gradients(shards, sigma, loss, root @ point)
        lam_next = point - eta * (root @ theta)
        point = lam_next + momentum * (lam_next - lam)
        lam = lam_next
        yield theta, root @ point

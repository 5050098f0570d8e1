"""Newton's method and L-BFGS, dense and literal: every matrix is written out and inverted.

Shards are a list of (X_i, y_i, w_i); one iteration is one evaluation of F and its derivatives.
"""

import numpy as np
from scipy.special import expit

from . import augmented, losses


def curvature(loss, s, y):
    """l''(s); at a kink of l' the larger of the two sides."""
    if loss == "logistic":
        return expit(s) * expit(-s)
    if loss == "squared":
        return 1.0
    if loss == "huber":
        return float(abs(s - y) <= losses.DELTA)
    if loss == "squared_hinge":
        return 2.0 * float(y * s <= 1.0)
    if loss == "smoothed_hinge":
        return float(1.0 - losses.GAMMA <= y * s <= 1.0) / losses.GAMMA
    raise KeyError(loss)


def hessian(shards, sigma, loss, theta):
    """Second derivative of problem (1)."""
    total = sum(sigma) * np.eye(len(theta))
    for _, x, y, w in augmented.samples(shards):
        total += w * curvature(loss, x @ theta, y) * np.outer(x, x)
    return total


def falls_enough(value, slope, new_value, new_slope, at_zero):
    """Armijo with 1e-4; within 1e-12 of F or F(0) the slopes decide (Hager and Zhang)."""
    armijo = new_value <= value + 1e-4 * slope
    rounding = 1e-12 * max(at_zero, abs(value))
    return armijo or (new_value <= value + rounding and new_slope <= -0.8 * slope)


def newton(shards, sigma, loss, start, n_evaluations):
    """Points taken after each evaluation, and the next trial points: two (K, d) arrays.

    Trial: theta - (H + damping I)^{-1} g. Success: damping / 4, nothing below sum sigma; failure:
    8 damping, at least sum sigma.
    """
    total_sigma = sum(sigma)
    theta = trial = np.array(start, dtype=float)
    at_zero = augmented.objective(shards, sigma, loss, 0.0 * theta)
    value = gradient = direction = None
    damping, taken, trials = 0.0, [], []
    for _ in range(n_evaluations):
        new_value = augmented.objective(shards, sigma, loss, trial)
        new_gradient = augmented.gradient(shards, sigma, loss, trial)
        if direction is None or falls_enough(
            value, gradient @ direction, new_value, new_gradient @ direction, at_zero
        ):
            theta, value, gradient = trial, new_value, new_gradient
            damping = damping / 4 if damping / 4 >= total_sigma else 0.0
        else:
            damping = max(8 * damping, total_sigma)
        matrix = hessian(shards, sigma, loss, theta) + damping * np.eye(len(theta))
        direction = -np.linalg.inv(matrix) @ gradient
        trial = theta + direction
        taken.append(theta)
        trials.append(trial)
    return np.array(taken), np.array(trials)


def inverse_bfgs(pairs, n_features):
    """H of Nocedal and Wright (7.19): H <- (I - r s y') H (I - r y s') + r s s', r = 1 / s.y."""
    s, y = pairs[-1]
    matrix = (s @ y) / (y @ y) * np.eye(n_features)
    for s, y in pairs:
        r = 1.0 / (s @ y)
        left = np.eye(n_features) - r * np.outer(s, y)
        matrix = left @ matrix @ left.T + r * np.outer(s, s)
    return matrix


def lbfgs(shards, sigma, loss, start, n_evaluations, memory, smoothness):
    """Points taken after each evaluation, (K, d).

    A failed step is cut to where the line through both slopes is zero, 0.1 to 0.5 of its length.
    """
    theta = trial = np.array(start, dtype=float)
    at_zero = augmented.objective(shards, sigma, loss, 0.0 * theta)
    value = gradient = direction = None
    pairs, size, taken = [], 1.0, []
    for _ in range(n_evaluations):
        new_value = augmented.objective(shards, sigma, loss, trial)
        new_gradient = augmented.gradient(shards, sigma, loss, trial)
        if direction is not None:
            slope, new_slope = gradient @ direction, new_gradient @ direction
        if direction is None or falls_enough(
            value, size * slope, new_value, size * new_slope, at_zero
        ):
            if direction is not None:
                s, y = trial - theta, new_gradient - gradient
                if s @ y >= sum(sigma) / 2 * (s @ s) and s @ s > 1e-26 * (theta @ theta):
                    pairs = [*pairs, (s, y)][-memory:]
            theta, value, gradient = trial, new_value, new_gradient
            matrix = inverse_bfgs(pairs, len(theta)) if pairs else np.eye(len(theta)) / smoothness
            direction, size = -matrix @ gradient, 1.0
        else:
            size *= np.clip(-slope / (new_slope - slope), 0.1, 0.5)
        trial = theta + size * direction
        taken.append(theta)
    return np.array(taken)

"""Newton's method, L-BFGS and TRON, dense and literal: every matrix is written out.

Shards are a list of (X_i, y_i, w_i); one iteration is one evaluation of F and its derivatives, or,
for TRON, one product with the Hessian.
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


def krylov_minimiser(matrix, gradient, dimension):
    """The minimiser of g.s + s.H s / 2 over span(g, H g, ..., H^(dimension - 1) g)."""
    basis = np.zeros((len(gradient), 0))
    vector = gradient
    for _ in range(dimension):
        for _ in range(2):  # Gram and Schmidt, twice for the digits
            vector = vector - basis @ (basis.T @ vector)
        vector = vector / np.linalg.norm(vector)
        basis = np.column_stack([basis, vector])
        vector = matrix @ vector
    return -basis @ np.linalg.solve(basis.T @ matrix @ basis, basis.T @ gradient)


def steps_of_the_region(matrix, gradient, radius, accuracy):
    """The steps after one, two, ... products (Steihaug); one at the radius is the last."""
    steps = [np.zeros(len(gradient))]
    for dimension in range(1, len(gradient) + 1):
        inside, beyond = steps[-1], krylov_minimiser(matrix, gradient, dimension)
        if np.linalg.norm(beyond) > radius:
            move = beyond - inside
            roots = np.roots([move @ move, 2 * inside @ move, inside @ inside - radius**2])
            return [*steps[1:], inside + max(roots.real) * move]
        steps.append(beyond)
        if np.linalg.norm(gradient + matrix @ beyond) <= accuracy:
            break
    return steps[1:]


def tron(shards, sigma, loss, start, n_passes):
    """Points taken after each pass, and trial points: two (K, d) arrays.

    The model is solved to 0.3 |g|, or 0.9 |g| (|g| / |previous g|)^1.618 if that is less. A failed
    step is cut as in L-BFGS, and its length is the radius; a full one makes the radius at least
    four times its length.
    """
    theta = trial = np.array(start, dtype=float)
    at_zero = augmented.objective(shards, sigma, loss, 0.0 * theta)
    value = gradient = step = previous = None
    radius, size, taken, trials = np.inf, 1.0, [], []
    while len(taken) < n_passes:
        new_value = augmented.objective(shards, sigma, loss, trial)
        new_gradient = augmented.gradient(shards, sigma, loss, trial)
        if step is not None:
            slope, new_slope = gradient @ step, new_gradient @ step
        if step is not None and not falls_enough(
            value, size * slope, new_value, size * new_slope, at_zero
        ):
            size *= np.clip(-slope / (new_slope - slope), 0.1, 0.5)
            trial = theta + size * step
            taken.append(theta)
            trials.append(trial)
            continue
        if step is not None:
            length, previous = size * np.linalg.norm(step), np.linalg.norm(gradient)
            radius = max(radius, 4 * length) if size == 1.0 else length
        theta, value, gradient, size = trial, new_value, new_gradient, 1.0
        taken.append(theta)
        trials.append(theta)
        fell = 1.0 if previous is None else min(1.0, np.linalg.norm(gradient) / previous)
        accuracy = min(0.3, 0.9 * fell ** ((1 + 5**0.5) / 2)) * np.linalg.norm(gradient)
        matrix = hessian(shards, sigma, loss, theta)
        steps = steps_of_the_region(matrix, gradient, radius, accuracy)
        step = steps[-1]
        for each in steps:
            trial = theta + each
            taken.append(theta)
            trials.append(trial)
    return np.array(taken[:n_passes]), np.array(trials[:n_passes])

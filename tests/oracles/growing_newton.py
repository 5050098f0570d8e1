"""Newton's method on growing samples, dense and literal: every sample is a problem of its own.

Shards are a list of (X_i, y_i, w_i). ``samples[k][i]`` are the numbers of node i's rows in sample
k; the last sample has all rows. Times are pairs: an evaluation with a Hessian, and without.
"""

import math

import numpy as np

from . import augmented, losses, second_order


def sampled(shards, rows):
    """The sampled rows, each with the weight of as many as it stands for."""
    return [
        (X[own], y[own], len(y) / len(own) * w[own])
        for (X, y, w), own in zip(shards, rows, strict=True)
    ]


def squared_gradients(shards, rows, loss, theta):
    """tr G: the sum of |w l' x|^2, of all rows that the sampled ones stand for."""
    total = 0.0
    for (X, y, w), own in zip(shards, rows, strict=True):
        for j in own:
            slope = losses.derivative(loss, X[j] @ theta, y[j], w[j])
            total += len(y) / len(own) * (slope * np.linalg.norm(X[j])) ** 2
    return total


def growing_newton(shards, sigma, loss, samples, shares, times, n_evaluations):
    """Points taken, trial points, and (sample, with a Hessian or not) of each evaluation."""
    n, n_rows, last = len(shards), sum(len(y) for _, y, _ in shards), len(samples) - 1
    d, total = shards[0][0].shape[1], sum(sigma)
    theta = trial = np.zeros(d)
    at_zero = augmented.objective(shards, sigma, loss, trial)
    level, keeps, spent, row, damping = 0, False, 0.0, 0.0, 0.0
    value = direction = gradient = None
    curve = left = math.inf
    unit, stale, failed = 0.0, False, False
    taken, trials, kinds = [], [], []
    for t in range(n_evaluations):
        kinds.append((level, not keeps))
        spent += times[level][int(keeps)]
        here, odds = sampled(shards, samples[level]), 1 / shares[level] - 1
        ridge = [each + odds * row / n for each in sigma]
        new_value = augmented.objective(here, ridge, loss, trial)
        new_gradient = augmented.gradient(here, ridge, loss, trial)
        before = None if value is None else -(gradient @ direction)
        was_stale, was_damped = stale, damping > 0
        good = value is None or second_order.falls_enough(
            value, gradient @ direction, new_value, new_gradient @ direction, at_zero
        )
        if good:
            theta, value, gradient = trial, new_value, new_gradient
            damping = damping / 4 if damping / 4 >= total else 0.0
            stale = keeps
            if not keeps:
                bare = second_order.hessian(here, [0.0], loss, theta)
                if t == 0:
                    row = np.trace(bare) / n_rows
                hessian, curvature = bare + (total + odds * row) * np.eye(d), np.trace(bare)
        else:
            damping, failed = max(8 * damping, total), True
        direction = -np.linalg.inv(hessian + damping * np.eye(d)) @ gradient
        trial = theta + direction
        decrement = -(gradient @ direction)
        if good and before is not None and not was_damped:
            if was_stale:
                left = decrement / before
            else:
                curve = decrement / before**1.5
        if not stale:
            left = 4 * curve * math.sqrt(decrement)
        expected = decrement * (left if stale else curve * math.sqrt(decrement))
        taken.append(theta)
        trials.append(trial)
        if level < last:
            spread = squared_gradients(shards, samples[level], loss, trials[-2] if t else 0 * theta)
            unit = d * spread / curvature if curvature > 0 else 0.0
            following = level + (expected <= odds * unit and damping == 0)
            if spent + times[following][0] > 0.5 * times[last][0]:
                following = last
            if following > level:
                level, value, keeps, failed = following, None, False, False
                continue
        fresh = curve * math.sqrt(expected)
        keeps = False
        if not failed and damping == 0 and fresh < 1 and left < 1:
            gains = [
                min(math.log(1e4), math.inf if part == 0 else -math.log(part))
                for part in (fresh, left)
            ]
            keeps = gains[1] / times[level][1] > gains[0] / times[level][0]
    return np.array(taken), np.array(trials), kinds

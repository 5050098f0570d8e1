"""Newton's method on growing samples, dense and literal: every sample is a problem of its own.

Shards are a list of (X_i, y_i, w_i). ``samples[k][i]`` are the numbers of node i's rows in sample
k; the last sample has all rows. Times are pairs: an evaluation with a Hessian, and without;
``sampled_time`` is that of one at all rows with the Hessian of the sample below.
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


def growing_newton(shards, sigma, loss, samples, shares, times, sampled_time, n_evaluations):
    """Points taken, trial points, and (sample, Hessian) of each evaluation.

    The Hessian is "own", "kept" or "sampled".
    """
    n, n_rows, last = len(shards), sum(len(y) for _, y, _ in shards), len(samples) - 1
    d, total = shards[0][0].shape[1], sum(sigma)
    theta = trial = np.zeros(d)
    at_zero = augmented.objective(shards, sigma, loss, trial)
    level, which, spent, row, damping = 0, "own", 0.0, 0.0, 0.0
    value = direction = gradient = None
    curve = left = math.inf
    more = 4 * d / sum(len(own) for own in samples[last - 1])
    unit, stale, of_sample, failed, settled = 0.0, False, False, False, False
    taken, trials, kinds = [], [], []

    def time(level, which):
        return sampled_time if which == "sampled" else times[level][int(which == "kept")]

    def chosen(level, decrement, left):
        """The Hessian with which the decrement falls most per time."""
        fresh = curve * math.sqrt(decrement)
        if failed or damping > 0 or fresh >= 1:
            return "own"
        parts = {"own": fresh, "kept": left}
        if level == last and 0 < 2 * row <= total:
            parts["sampled"] = fresh + more
        gains = {
            each: min(math.log(1e4), math.inf if part == 0 else -math.log(part)) / time(level, each)
            for each, part in parts.items()
            if part < 1
        }
        return max(gains, key=lambda each: gains[each])

    for t in range(n_evaluations):
        kinds.append((level, which))
        spent += time(level, which)
        here, odds = sampled(shards, samples[level]), 1 / shares[level] - 1
        ridge = [each + odds * row / n for each in sigma]
        new_value = augmented.objective(here, ridge, loss, trial)
        new_gradient = augmented.gradient(here, ridge, loss, trial)
        before = None if value is None else -(gradient @ direction)
        was_stale, was_of_sample, was_damped = stale, of_sample, damping > 0
        good = value is None or second_order.falls_enough(
            value, gradient @ direction, new_value, new_gradient @ direction, at_zero
        )
        if not good and (stale or of_sample or (level == last and not settled)):
            trial = theta if stale or of_sample else np.zeros(d)  # from 0: samples have misled
            which, value, failed, settled = "own", None, True, settled or level == last
            taken.append(theta)
            trials.append(trial)
            continue
        settled = settled or (level == last and value is not None)
        if good:
            theta, value, gradient = trial, new_value, new_gradient
            damping = damping / 4 if damping / 4 >= total else 0.0
            stale = which == "kept"
            if not stale:
                of_sample = which == "sampled"
                of = sampled(shards, samples[last - 1]) if of_sample else here
                bare = second_order.hessian(of, [0.0], loss, theta)
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
            elif was_of_sample:
                more = max(more, decrement / before)
            else:
                curve = decrement / before**1.5
        fresh = curve * math.sqrt(decrement) + (more if of_sample else 0)
        if not stale:
            left = fresh + 3 * curve * math.sqrt(decrement)
        expected = decrement * (left if stale else fresh)
        taken.append(theta)
        trials.append(trial)
        if level < last:
            spread = squared_gradients(shards, samples[level], loss, trials[-2] if t else 0 * theta)
            unit = d * spread / curvature if curvature > 0 else 0.0
            following = level + (expected <= odds * unit and damping == 0)
            if spent + times[following][0] > 0.3 * times[last][0]:
                following = last
            if following > level:
                level, value, failed = following, None, False
                which = chosen(level, max(expected, odds * unit), math.inf)
                continue
        which = chosen(level, expected, left)
    return np.array(taken), np.array(trials), kinds

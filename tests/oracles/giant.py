"""GIANT with its fallback, dense and literal: all matrices are written out, inverses too.

With S = sum_i sigma_i, N samples in all and q_i = m_i / N, node i's own estimate of the Hessian is

    H_i = (1 / q_i) sum_j w_ij l''(x_ij . theta) x_ij x_ij' + S I,

for equal shards n times that of f_i. The direction is -P gradient with P = sum_i q_i H_i^{-1}.
One round evaluates F and its gradient at theta + size direction. The point is taken if F falls
enough (second_order.falls_enough). If not, F is evaluated at size / 2, ..., size / 2^10, and the
size of the least value is tried in the next round. The size after one that was taken is twice that,
at most 1.

It is noticed that shards differ when a point is not taken, or when after a full step the slope
along the direction is more than half of the one before, up or down. From then on P is what BFGS
makes of it with the last 10 pairs (s, y) of points taken.
"""

import numpy as np

from . import augmented, second_order

HALVINGS, MEMORY = 10, 10


def averaged_inverse(shards, sigma, loss, theta):
    """P = sum_i q_i H_i^{-1}."""
    total = sum(len(labels) for _, labels, _ in shards)
    found = np.zeros((len(theta), len(theta)))
    for features, labels, weights in shards:
        q = len(labels) / total
        own = sum(sigma) * np.eye(len(theta))
        for x, y, w in zip(features, labels, weights, strict=True):
            own += w * second_order.curvature(loss, x @ theta, y) * np.outer(x, x) / q
        found += q * np.linalg.inv(own)
    return found


def bfgs(first, pairs):
    """H <- (I - r s y') H (I - r y s') + r s s', r = 1 / s.y, from the first matrix."""
    matrix = first
    for s, y in pairs:
        r = 1.0 / (s @ y)
        left = np.eye(len(s)) - r * np.outer(s, y)
        matrix = left @ matrix @ left.T + r * np.outer(s, s)
    return matrix


def run(shards, sigma, loss, start, n_rounds):
    """Yield after each round: point taken, next trial point, whether shards are seen to differ."""
    theta = trial = np.array(start, dtype=float)
    value, gradient, direction, size = None, None, None, 1.0
    pairs, noticed = [], False
    for _ in range(n_rounds):
        new_value = augmented.objective(shards, sigma, loss, trial)
        new_gradient = augmented.gradient(shards, sigma, loss, trial)
        if direction is None or second_order.falls_enough(
            value, size * (gradient @ direction), new_value, size * (new_gradient @ direction), 0.0
        ):
            if direction is not None:
                before, after = gradient @ direction, new_gradient @ direction
                noticed = noticed or (size == 1.0 and abs(after) > 0.5 * abs(before))
                pairs = [*pairs, (trial - theta, new_gradient - gradient)][-MEMORY:]
            size = min(1.0, 2.0 * size)
            theta, value, gradient = trial, new_value, new_gradient
            matrix = averaged_inverse(shards, sigma, loss, theta)
            direction = -(bfgs(matrix, pairs) if noticed else matrix) @ gradient
        else:
            noticed = True
            sizes = [size / 2**k for k in range(1, HALVINGS + 1)]
            values = [augmented.objective(shards, sigma, loss, theta + each * direction)
                      for each in sizes]  # fmt: skip
            size = sizes[int(np.argmin(values))]
        trial = theta + size * direction
        yield theta, trial, noticed


def one_class_per_node(shards):
    """The same samples sorted by label, cut into shards of the same sizes."""
    features = np.vstack([rows for rows, _, _ in shards])
    labels, weights = (np.concatenate([shard[k] for shard in shards]) for k in (1, 2))
    order = np.argsort(labels, kind="stable")
    cuts = np.cumsum([len(labels) for _, labels, _ in shards])[:-1]
    parts = (np.split(each[order], cuts) for each in (features, labels, weights))
    return list(zip(*parts, strict=True))

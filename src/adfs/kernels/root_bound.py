"""The closed lower bound on ``sigma_A``, by bisection."""

from adfs.kernels.compiled import njit

STEPS = 200


@njit(cache=True, _nrt=False)
def root_bound(target, high, heaviest_centre, sigma, masses, alpha):
    """Largest ``lambda < high`` with ``lambda max_i D_i(lambda) < target``, within rounding.

    ``D_i(lambda) = sigma_i + S_i alpha_i / (alpha_i - lambda)`` grows with ``lambda``; a node
    without samples has ``D_i = sigma_i``, of which ``heaviest_centre`` is the largest.
    """
    low = 0.0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if middle == low or middle == high:
            break
        heaviest = heaviest_centre
        for i in range(sigma.size):
            if masses[i] > 0.0:
                heaviest = max(heaviest, sigma[i] + masses[i] * alpha[i] / (alpha[i] - middle))
        if middle * heaviest < target:
            low = middle
        else:
            high = middle
    return low

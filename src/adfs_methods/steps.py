"""Steps and rates that several methods of this package share.

EXTRA, DIGing and D2 relate second differences of the errors ``e_t = X_t - X*``. In each mode of
the mixing matrix (an eigenvector, whose eigenvalue is below 1)

    e_{t+2} - 2 e_{t+1} + e_t + p (e_{t+1} - e_t) + q e_t = b (w_{t+1} - w_t),

where gradients became ``g(X_t) - g(X*) = (L + mu) / 2 e_t - (L - mu) / 2 w_t``. All ``f_i`` are
mu-strongly convex with L-Lipschitz gradients, so ``|w_t| <= |e_t|`` at each node, and summed over
all modes. By the circle criterion in powers of r (Kalman, Yakubovich, Popov; Lessard, Recht,
Packard 2016) there is a quadratic function of the state that falls by ``r^2`` per round if in every
mode, for all ``|z| = r`` and ``u = z - 1``,

    b^2 |u|^2 <= |u^2 + p u + q|^2,    and the roots of the right-hand side have |z| < r.

On that circle ``2 Re u = -(g + m)`` with ``m = |u|^2`` and ``g = 1 - r^2``, so the condition is a
quadratic function of ``m`` that must not be negative in ``[(1 - r)^2, (1 + r)^2]``. The mean of all
nodes is a gradient step with errors that vanish: it falls by `descent`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

import adfs
from adfs.plugins import Fact, MixingWeights, Nodes, Uses, positive, whole

Array = NDArray[np.float64]

LONGEST = 65_536  # steps or samples in a round on one machine
MOST_ROUNDS = 1_000_000  # of an epoch or a stage
HALVINGS = 48  # of the logarithm of 1 - r, from 0 down to that of LEAST
LEAST = 1e-13
ROUNDING = 1e-14  # of the condition, relative to its terms
DECREASING = "the first one; step t is 2 / (mean sigma_i (t + t_0))"


def smoothness(nodes: Nodes) -> float:
    """``L = max_i (sigma_i + lambda_max(B_i))``."""
    return float(nodes.smoothness.max())


def convexity(nodes: Nodes) -> float:
    """``mu = min_i sigma_i``."""
    return float(nodes.problem.sigma.min())


def problem_facts(nodes: Nodes) -> list[Fact]:
    """What all the steps here depend on."""
    return [
        Fact("L", smoothness(nodes), "max_i (sigma_i + lambda_max(B_i))"),
        Fact("mu", convexity(nodes), "min_i sigma_i"),
    ]


def step_of_modes(
    nodes: Nodes, gaps: Array, q: Array, share: Array | None = None, step: float | None = None
) -> tuple[float, float]:
    """The step of the largest ``rho = 1 - r^2``, or the one given, and that; 0 if none is proven.

    ``gaps`` is 1 less the eigenvalues, ``p = 2 gaps + share a (L + mu) / 2``, and ``b = share a (L
    - mu) / 2`` for the step ``a``; ``share`` is 1 by default.
    """
    largest, mu = smoothness(nodes), convexity(nodes)
    shares = np.ones_like(gaps) if share is None else share

    def fall(step: Array) -> Array:
        pushes = 0.5 * shares * step[:, None]
        p, b = 2.0 * gaps + pushes * (largest + mu), pushes * (largest - mu)
        return np.minimum(descent(step, largest, mu), fall_of_modes(p, q, b))

    return step_of(fall, 2.0 / largest, step)


def step_of(
    fall: Callable[[Array], Array], largest: float, step: float | None = None, name: str = "step"
) -> tuple[float, float]:
    """The step up to ``largest`` of the largest ``fall``, or the one given, and its ``fall``."""
    if step is not None:
        step = positive(name, step)
        return step, max(0.0, float(fall(np.array([step]))[0]))
    low, high = 1e-12 * largest, largest
    for _ in range(4):  # ever finer
        steps = np.geomspace(low, high, 65)
        falls = fall(steps)
        k = int(np.argmax(falls))
        low, high = steps[max(k - 1, 0)], steps[min(k + 1, len(steps) - 1)]
    return float(steps[k]), max(0.0, float(falls[k]))


def least_probabilities(rate: float, k: Array, drawn: NDArray[np.bool_]) -> Array:
    """The least ``p`` with ``k (1 / p + 1 / (p - rate)) <= 1``; 0 for samples never ``drawn``."""
    return np.where(drawn, 0.5 * rate + k + np.sqrt(0.25 * rate * rate + k * k), 0.0)


def largest_with_sum(total: Callable[[float], float], top: float) -> float:
    """The largest number up to ``top`` where ``total``, which grows from 0, is at most 1."""
    if total(top) <= 1.0:
        return top
    high = np.log(top)
    low = high - 60.0
    while total(np.exp(low)) > 1.0:
        low -= 60.0
    return float(np.exp(brentq(lambda v: total(np.exp(v)) - 1.0, low, high)))


def in_rounds(steps: float, n_samples: int, name: str) -> tuple[int, int]:
    """Rounds of a pass at most for so many ``steps``, and the steps in each of them."""
    in_one = min(n_samples, LONGEST)
    if not steps <= MOST_ROUNDS * in_one:
        raise adfs.ParameterError(
            f"{name} would take {steps:.1e} steps, which is more than {MOST_ROUNDS:,} passes over "
            "the samples. Scale the columns (--standardize), or make sigma larger."
        )
    rounds = -(-int(steps) // in_one)
    return rounds, -(-int(steps) // rounds)


def descent(step: Array, smoothness: float, convexity: float) -> Array:
    """``1 - r^2`` of a gradient step: ``r = max(|1 - a mu|, |1 - a L|)``."""
    worst = np.maximum(np.abs(1.0 - step * convexity), np.abs(1.0 - step * smoothness))
    return np.asarray(1.0 - worst**2)


def eigenvalues(weights: MixingWeights) -> Array:
    """Many numbers from the least to the second eigenvalue, dense where they come close to +-1."""
    if weights.matrix.shape[0] == 1:
        return np.empty(0)
    low, high = np.arctanh(np.clip([weights.least, weights.second], -1.0 + 1e-15, 1.0 - 1e-15))
    return np.asarray(np.tanh(np.linspace(low, high, 65)))


def fall_of_modes(p: Array, q: Array, b: Array) -> Array:
    """The largest ``1 - r^2`` for which the condition at the head holds, 0 if there is none.

    The last axis has the modes.
    """
    p, q, b = np.broadcast_arrays(p, q, b)
    slack = largest_slack(lambda slack: _holds(p, q, b, slack), p.shape[:-1])
    return slack * (2.0 - slack)


def largest_slack(holds: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
    """The largest ``1 - r`` for which a condition holds that holds for larger ``r`` too, or 0."""
    low, high = np.full(shape, np.log(LEAST)), np.zeros(shape)
    ever = holds(np.exp(low))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        found = holds(np.exp(middle))
        low, high = np.where(found, middle, low), np.where(found, high, middle)
    return np.where(ever, np.exp(low), 0.0)


def _holds(p: Array, q: Array, b: Array, slack: Array) -> Array:
    """Whether the condition holds in all modes for ``r = 1 - slack``."""
    s = slack[..., None]
    g = s * (2.0 - s)
    roots = (p - q > g) & (s * s - p * s + q > 0.0) & ((2.0 - s) * (2.0 - s - p) + q > 0.0)
    square, line = 1.0 - p + q, p * (p - g) - q * (2.0 + p - 2.0 * g) - b * b
    constant = q * (q - g * (p - g))
    first, last = s * s, (2.0 - s) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest = np.clip(np.where(square > 0.0, -0.5 * line / square, first), first, last)
    ends = np.stack([first + 0.0 * p, last + 0.0 * p, lowest])
    terms = square * ends**2, line * ends, constant
    value = terms[0] + terms[1] + terms[2]
    size = np.abs(terms[0]) + np.abs(terms[1]) + np.abs(terms[2])
    return np.asarray(np.all(roots & np.all(value >= ROUNDING * size, axis=0), axis=-1))


class Gradients:
    """Gradients of all samples of each node, or estimates from ``batch`` of them."""

    def __init__(self, nodes: Nodes, batch: int | None = None) -> None:
        self._nodes, self._batch, self.uses = nodes, batch, Uses(gradients=1)
        if batch is not None:
            self._batch = whole("batch", batch, least=1)
            self._sampler, self.uses = nodes.sampler(), Uses(samples=self._batch)

    def __call__(self, points: Array, t: int) -> Array:
        """One for each node; ``t`` counts the draws."""
        if self._batch is None:
            return self._nodes.gradients(points)
        places = self._sampler.draw(t, self._batch)
        return self._nodes.sampled_gradients(points, places, self._sampler.p)

    @property
    def smoothness(self) -> float:
        """``E |g(x) - g(x*)|^2`` is at most this times ``<grad f(x) - grad f(x*), x - x*>``.

        Rows are drawn by `Nodes.mixed_law`, under which ``L_j / p_j`` is at most twice the sum of
        all ``L_j``.
        """
        if self._batch is None:
            return smoothness(self._nodes)
        found, share = self._nodes.problem.conditioning, 1.0 / self._batch
        rows = 2.0 * share * found.total_smoothness + (1.0 - share) * found.batch_smoothness()
        return float(np.max(self._nodes.problem.sigma + rows))


def given(step: float | None, default: float) -> float:
    """The option ``step``, or its default."""
    return default if step is None else positive("step", step)


def decreasing(first: float, nodes: Nodes, t: int) -> float:
    """``a_t = 2 / (mu (t + t_0))`` with ``a_0 = first`` and ``mu = mean_i sigma_i``.

    The mean of all nodes minimises ``F / n``, which is mu-strongly convex. Errors of the size
    ``a_t`` in its gradient leave it at a distance O(1 / t), noise at O(t^-1/2).
    """
    mean = nodes.problem.total_sigma / nodes.problem.n_nodes
    return first / (1.0 + 0.5 * mean * first * t)

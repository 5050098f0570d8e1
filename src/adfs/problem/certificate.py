"""The duality gap: how far a model can be from the best one, without knowing the best one.

For any ``theta`` and dual coefficients ``c_ij`` in the conjugate's domain, weak duality gives

    F(theta) - F* <= sum_ij [ w l(s) + w l*(c / w) - c s ]
                     + (sum sigma / 2) | theta + sum_ij c x / sum sigma |^2,    s = x_ij . theta.

Every bracket is a Fenchel gap computed without cancellation, so tiny gaps are real. With
``c = w l'(s)`` the brackets vanish and the bound is ``|grad F|^2 / (2 sum sigma)``: both choices
cost one pass together, and the smaller bound is reported.
"""

import functools
import itertools
import math
import operator
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.data.matrices import Vector
from adfs.kernels import certificate
from adfs.network import NO_VALUES, Ask, Part, Steps, ask_values, node_blocks
from adfs.problem.finite_sum import Problem

TO_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # of F(0): a smaller gap is not a measurement
VANISHING = 1e-280  # a sum of squares below has lost digits to underflow


class DualPoint(NamedTuple):
    """Predictions ``x . theta``, duals ``c = w l'``, and ``sum_j c x`` for each node here."""

    scores: Vector
    duals: Vector
    sums: NDArray[np.float64]


def dual_point(problem: Problem, theta: Vector, given: Vector | None = None) -> DualPoint:
    """``c = w l'(x . theta)``; where the loss is not smooth, the subgradient nearest to zero.

    With ``given`` duals the nearest ones in the conjugate's domain instead.
    """
    scores, duals = np.empty((2, problem.n_rows))
    add = certificate.dual_sums
    if given is not None:
        duals[:], add = given, certificate.clipped_dual_sums
    sums = np.zeros((len(problem.nodes), problem.n_features))
    add(*problem.samples, problem.offsets, theta, scores, duals, sums)
    return DualPoint(scores, duals, sums)


def relative(error: float, objective: float) -> float:
    """``error / |F|``: what ``tol`` is compared with, in any unit of F.

    An error of 0 gives 0, even if F is 0. If F is not finite, the result is nan.

    Examples
    --------
    >>> relative(1e-9, 1e-3), relative(0.0, 0.0), relative(1.0, math.inf)
    (1e-06, 0.0, nan)
    """
    if not math.isfinite(objective):
        return math.nan
    if objective == 0.0:
        return error * math.inf if error else 0.0
    return error / abs(objective)


def certified_text(value: float, gap: float, at_zero: float, form: str = ".2g") -> str:
    """A certified ``value`` as text; "to rounding" if the gap is below the rounding of F(0).

    Examples
    --------
    >>> certified_text(3e-7, gap=6e-7, at_zero=8.0), certified_text(3e-30, gap=6e-30, at_zero=8.0)
    ('3e-07', 'to rounding')
    """
    if gap <= TO_ROUNDING * at_zero < math.inf:
        return "to rounding"
    return format(value, form) if math.isfinite(value) else "not finite"


class Certificate(NamedTuple):
    """``F(theta)`` and a proven bound on ``F(theta) - F*``."""

    objective: float
    duality_gap: float

    @property
    def relative_gap(self) -> float:
        """``gap / |F|``: what ``tol`` is compared with."""
        return relative(self.duality_gap, self.objective)


NOT_A_MODEL = Certificate(math.nan, math.nan)


def load_kernels(problem: Problem) -> None:
    """Compile or load the kernels of evaluations during set-up, by calls without samples."""
    theta, nobody, rows = np.zeros(problem.n_features), np.zeros(1, np.int64), np.empty((0, 0))
    samples = (*problem.samples, problem.squared_norms)
    certificate.gap_passes(*samples, nobody, theta, np.empty(0), rows, rows, 0)
    certificate.node_gradients(*problem.samples, nobody, theta, np.empty((0, 0, 0)), 0)
    certificate.square(theta)


def certify(problem: Problem, theta: Vector, duals: Vector | None = None) -> Certificate:
    """Certificate of ``theta``, with dual coefficients (one per sample here) if there are any.

    A model that is no longer a number has neither objective nor bound: both are nan.
    """
    if duals is not None and not any(problem.network.gather(bool(theta.any() or duals.any()))):
        return problem.network.run(zero_steps(problem))
    return problem.network.run(certificate_steps(problem, [theta], duals))[0]


def certificate_steps(
    problem: Problem, thetas: list[Vector], duals: Vector | None
) -> Steps[list[Certificate]]:
    """A certificate for each of ``thetas``; without duals it follows from the gradient alone."""
    finite = [bool(np.isfinite(theta).all()) for theta in thetas]
    models = list(itertools.compress(thetas, finite))
    found: list[Certificate] = []
    if models and duals is not None:
        found = yield from _steps_with_duals(problem, models, duals)
    elif models:
        found = yield from _gradient_steps(problem, models)
    rest = iter(found)
    return [next(rest) if known else NOT_A_MODEL for known in finite]


def _gradient_steps(problem: Problem, thetas: list[Vector]) -> Steps[list[Certificate]]:
    """``|grad F|^2 / (2 sigma)``."""
    width, sigma, count = problem.n_features + 1, problem.total_sigma, len(thetas)

    def parts() -> Iterator[Part]:
        """Each node's gradient and losses for all of ``thetas``."""
        for own, offsets in _blocks(problem, width * count):
            rows = np.zeros((own, count, width))
            for k, theta in enumerate(thetas):
                certificate.node_gradients(*problem.samples, offsets, theta, rows, k)
            yield Part(rows.reshape(own, -1), NO_VALUES)

    total, _ = yield Ask(width * count, 0, parts())
    found = []
    for theta, row in zip(thetas, total.reshape(-1, width), strict=True):
        objective = float(row[-1]) + quadratic(theta, 0.5 * sigma)
        gap = quadratic(row[:-1] + sigma * theta, 1.0, 2.0 * sigma)
        found.append(Certificate(objective, gap))
    return found


def _blocks(problem: Problem, numbers: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Sizes of blocks of nodes here, if each makes so many numbers, and where their rows begin."""
    for own in node_blocks(len(problem.nodes), numbers):
        yield own.stop - own.start, problem.offsets[own.start : own.stop + 1]


def _steps_with_duals(
    problem: Problem, thetas: list[Vector], duals: Vector
) -> Steps[list[Certificate]]:
    width, count = 2 * problem.n_features, len(thetas)
    samples = (*problem.samples, problem.squared_norms)

    def parts() -> Iterator[Part]:
        """Each node's sums for all of ``thetas``."""
        for own, offsets in _blocks(problem, width * count):
            values, rows = np.empty((own, 2 * count)), np.empty((own, width * count))
            for k, theta in enumerate(thetas):
                certificate.gap_passes(*samples, offsets, theta, duals, values, rows, k)
            yield Part(rows, values)

    total, values = yield Ask(width * count, 2 * count, parts())
    rows, found = total.reshape(len(thetas), 2, -1), []
    for k, theta in enumerate(thetas):
        losses, gaps = in_order(values[:, 2 * k]), in_order(values[:, 2 * k + 1])
        sums = losses, gaps, rows[k, 0], rows[k, 1]
        found.append(gap_from_sums(*sums, theta, problem.total_sigma))
    return found


def zero_steps(problem: Problem) -> Steps[Certificate]:
    """Certificate of ``theta = 0`` with duals 0, without a pass over the features."""
    _, values = yield ask_values(problem.at_zero)
    return Certificate(in_order(values[:, 0]), in_order(values[:, 1]))


def objective_at_zero(problem: Problem) -> float:
    """``F(0)``, the size of the problem in units of F; called on all ranks."""
    return in_order(problem.network.facts(problem.at_zero[:, 0].copy()))


def in_order(values: Vector) -> float:
    """Their sum, added one after the other: ``sum`` compensates for rounding since Python 3.12."""
    return functools.reduce(operator.add, values.tolist(), 0.0)


def gap_from_sums(
    losses: float, gaps: float, dual_sum: Vector, gradient: Vector, theta: Vector, sigma: float
) -> Certificate:
    objective = losses + quadratic(theta, 0.5 * sigma)
    by_duals = gaps + quadratic(theta + dual_sum / sigma, 0.5 * sigma)
    by_gradient = quadratic(gradient + sigma * theta, 1.0, 2.0 * sigma)
    return Certificate(objective, min(by_duals, by_gradient))


def quadratic(vector: Vector, factor: float, divisor: float = 1.0) -> float:
    """``factor |vector|^2 / divisor``, also where squares alone would vanish.

    Examples
    --------
    >>> quadratic(np.array([1e-170]), 1.0, 1e-300)
    1e-40
    """
    total = float(certificate.square(vector))
    if total >= VANISHING:
        return factor * total / divisor
    return float(certificate.square(math.sqrt(factor) / math.sqrt(divisor) * vector))

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
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.data.matrices import Vector
from adfs.kernels import certificate
from adfs.network import Ask, Part, Steps
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
    add = certificate.dual_sum
    if given is not None:
        duals[:], add = given, certificate.clipped_dual_sum
    sums = np.zeros((len(problem.nodes), problem.n_features))
    for own, ends in enumerate(itertools.pairwise(problem.offsets.tolist())):
        add(*problem.samples, *ends, theta, scores, duals, sums[own])
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
    theta, sums = np.zeros(problem.n_features), np.zeros((1, 2 * problem.n_features))
    certificate.gap_pass(*problem.samples, problem.squared_norms, 0, 0, theta, np.empty(0), sums)
    certificate.objective_gradient(*problem.samples, 0, 0, theta, theta.copy())
    certificate.square(theta)


def certify(problem: Problem, theta: Vector, duals: Vector | None = None) -> Certificate:
    """Certificate of ``theta``, with dual coefficients (one per sample here) if there are any.

    A model that is no longer a number has neither objective nor bound: both are nan.
    """
    if duals is not None and not any(problem.network.gather(bool(theta.any() or duals.any()))):
        return problem.network.run(zero_steps(problem))
    own = None if duals is None else lambda node: duals[problem.node_rows(node)]
    return problem.network.run(certificate_steps(problem, [theta], own))[0]


def certificate_steps(
    problem: Problem, thetas: list[Vector], duals: Callable[[int], Vector] | None
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
    width, sigma = problem.n_features + 1, problem.total_sigma

    def parts() -> Iterator[Part]:
        """Each node's gradient and losses for all of ``thetas``."""
        for ends in itertools.pairwise(problem.offsets.tolist()):
            row = np.zeros((len(thetas), width))
            for theta, part in zip(thetas, row, strict=True):
                part[-1] = certificate.objective_gradient(*problem.samples, *ends, theta, part)
            yield Part(row.reshape(-1), ())

    total, _ = yield Ask(width * len(thetas), 0, parts())
    found = []
    for theta, row in zip(thetas, total.reshape(-1, width), strict=True):
        objective = float(row[-1]) + quadratic(theta, 0.5 * sigma)
        gap = quadratic(row[:-1] + sigma * theta, 1.0, 2.0 * sigma)
        found.append(Certificate(objective, gap))
    return found


def _steps_with_duals(
    problem: Problem, thetas: list[Vector], duals: Callable[[int], Vector]
) -> Steps[list[Certificate]]:
    def parts() -> Iterator[Part]:
        """Each node's sums for all of ``thetas``."""
        for node in problem.nodes.tolist():
            own = duals(node)
            passes = [node_pass(problem, node, theta, own) for theta in thetas]
            row = np.concatenate([vector for each in passes for vector in each[2:]])
            yield Part(row, tuple(number for each in passes for number in each[:2]))

    total, values = yield Ask(2 * problem.n_features * len(thetas), 2 * len(thetas), parts())
    rows, found = total.reshape(len(thetas), 2, -1), []
    for k, theta in enumerate(thetas):
        losses, gaps = in_order(values[:, 2 * k]), in_order(values[:, 2 * k + 1])
        sums = losses, gaps, rows[k, 0], rows[k, 1]
        found.append(gap_from_sums(*sums, theta, problem.total_sigma))
    return found


def zero_steps(problem: Problem) -> Steps[Certificate]:
    """Certificate of ``theta = 0`` with duals 0, without a pass over the features."""
    own = (Part(np.empty(0), (losses, gaps)) for losses, gaps in problem.at_zero.tolist())
    _, values = yield Ask(0, 2, own)
    return Certificate(in_order(values[:, 0]), in_order(values[:, 1]))


def objective_at_zero(problem: Problem) -> float:
    """``F(0)``, the size of the problem in units of F; called on all ranks."""
    return in_order(problem.network.facts(problem.at_zero[:, 0].copy()))


def in_order(values: Vector) -> float:
    """Their sum, added one after the other: ``sum`` compensates for rounding since Python 3.12."""
    return functools.reduce(operator.add, values.tolist(), 0.0)


def node_pass(
    problem: Problem, node: int, theta: Vector, duals: Vector
) -> tuple[float, float, Vector, Vector]:
    """One node's sums: losses, Fenchel gaps, ``sum c x`` and ``sum w l' x``."""
    rows, sums = problem.node_rows(node), np.zeros((1, 2 * problem.n_features))
    samples = (*problem.samples, problem.squared_norms, rows.start, rows.stop)
    losses, gaps = certificate.gap_pass(*samples, theta, duals, sums)
    return losses, gaps, sums[0, ::2], sums[0, 1::2]


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

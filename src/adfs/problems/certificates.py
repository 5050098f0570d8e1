"""The duality gap: how far a model can be from the best one, without knowing the best one.

For any ``theta`` and dual coefficients ``c_ij`` in the conjugate's domain, weak duality gives

    F(theta) - F* <= sum_ij [ w l(s) + w l*(c / w) - c s ]
                     + (sum sigma / 2) | theta + sum_ij c x / sum sigma |^2,    s = x_ij . theta.

Every bracket is a Fenchel gap computed without cancellation, so tiny gaps are real. With
``c = w l'(s)`` the brackets vanish and the bound is ``|grad F|^2 / (2 sum sigma)``: both choices
cost one pass together, and the smaller bound is reported.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from adfs.kernels import certificate
from adfs.network import Ask, Part, Steps
from adfs.problems.finite_sum import Problem
from adfs.problems.shards import Vector


class Certificate(NamedTuple):
    """``F(theta)`` and a proven bound on ``F(theta) - F*``."""

    objective: float
    duality_gap: float

    @property
    def relative_gap(self) -> float:
        """``gap / max(1, |F|)``: what ``tol`` is compared with."""
        return self.duality_gap / max(1.0, abs(self.objective))


def load_kernels(problem: Problem) -> None:
    """Compile or load what evaluations call, on no sample: that belongs to set-up."""
    theta, sums = np.zeros(problem.n_features), np.zeros((1, 2 * problem.n_features))
    of_samples = (problem.loss.code, problem.rows, problem.labels, problem.weights, 0, 0)
    certificate.gap_pass(*of_samples, theta, np.empty(0), sums)
    certificate.objective_gradient(*of_samples, theta, theta.copy())
    certificate.gap_at_zero(
        problem.loss.code, problem.labels, problem.weights, problem.squared_norms, 0, 0
    )
    certificate.square(theta)


def certify(problem: Problem, theta: Vector, duals: Vector | None = None) -> Certificate:
    """Certificate of ``theta``, with dual coefficients (one per sample here) if there are any.

    A model that is no longer a number has neither objective nor bound: both are nan.
    """
    if not np.isfinite(theta).all():
        return Certificate(math.nan, math.nan)
    if duals is None:
        return problem.network.run(gradient_steps(problem, [theta]))[0]
    if not any(problem.network.gather(bool(theta.any() or duals.any()))):
        return problem.network.run(zero_steps(problem))
    own = lambda node: duals[problem.node_rows(node)]  # noqa: E731
    return problem.network.run(certificate_steps(problem, [theta], own))[0]


def gradient_steps(problem: Problem, thetas: list[Vector]) -> Steps[list[Certificate]]:
    """A certificate for each of ``thetas`` from the gradient alone: ``|grad F|^2 / (2 sigma)``."""
    finite = [bool(np.isfinite(theta).all()) for theta in thetas]
    width = problem.n_features + 1
    total, _ = yield Ask(width * len(thetas), 0, _gradients(problem, thetas, finite))
    sigma, found = problem.total_sigma, []
    for k, theta in enumerate(thetas):
        row = total[k * width : (k + 1) * width]
        objective = float(row[-1]) + 0.5 * sigma * certificate.square(theta)
        slope = row[:-1] + sigma * theta
        gap = certificate.square(slope) / (2.0 * sigma)
        found.append(Certificate(objective, gap) if finite[k] else Certificate(math.nan, math.nan))
    return found


def _gradients(problem: Problem, thetas: list[Vector], finite: list[bool]) -> Iterator[Part]:
    """Each node's gradient and losses for all of ``thetas``."""
    for own in range(len(problem.nodes)):
        row = np.zeros((len(thetas), problem.n_features + 1))
        for k, theta in enumerate(thetas):
            if finite[k]:
                row[k, -1] = certificate.objective_gradient(
                    problem.loss.code, problem.rows, problem.labels, problem.weights,
                    problem.offsets[own], problem.offsets[own + 1], theta, row[k],
                )  # fmt: skip
        yield Part(row.reshape(-1), ())


def certificate_steps(
    problem: Problem, thetas: list[Vector], duals: Callable[[int], Vector]
) -> Steps[list[Certificate]]:
    """A certificate for each of ``thetas``, with dual coefficients asked for node by node."""
    sigma = problem.total_sigma
    finite = [bool(np.isfinite(theta).all()) for theta in thetas]
    width, n_values = 2 * problem.n_features * len(thetas), 2 * len(thetas)
    total, values = yield Ask(width, n_values, _passes(problem, thetas, finite, duals))
    rows = total.reshape(len(thetas), 2, -1)
    found = []
    for k, theta in enumerate(thetas):
        losses, gaps = _in_order(values[:, 2 * k]), _in_order(values[:, 2 * k + 1])
        one = combine(losses, gaps, rows[k, 0], rows[k, 1], theta, sigma)
        found.append(one if finite[k] else Certificate(math.nan, math.nan))
    return found


def _passes(
    problem: Problem, thetas: list[Vector], finite: list[bool], duals: Callable[[int], Vector]
) -> Iterator[Part]:
    """Each node's sums for all of ``thetas``; nothing is summed where one is not finite."""
    for node in problem.nodes.tolist():
        row = np.zeros((len(thetas), 2, problem.n_features))
        values = [0.0] * (2 * len(thetas))
        own = duals(node)
        for k, theta in enumerate(thetas):
            if finite[k]:
                losses, gaps, row[k, 0], row[k, 1] = node_pass(problem, node, theta, own)
                values[2 * k : 2 * k + 2] = losses, gaps
        yield Part(row.reshape(-1), tuple(values))


def zero_steps(problem: Problem) -> Steps[Certificate]:
    """Certificate of ``theta = 0`` with duals 0, where every run from nothing starts.

    It needs no pass over the features, and does without the bound by the gradient.
    """
    _, values = yield Ask(0, 2, _at_zero(problem))
    return Certificate(_in_order(values[:, 0]), _in_order(values[:, 1]))


def _at_zero(problem: Problem) -> Iterator[Part]:
    for node in problem.nodes.tolist():
        rows = problem.node_rows(node)
        losses, gaps = certificate.gap_at_zero(
            problem.loss.code, problem.labels, problem.weights, problem.squared_norms,
            rows.start, rows.stop,
        )  # fmt: skip
        yield Part(np.empty(0), (losses, gaps))


def _in_order(values: Vector) -> float:
    """Their sum, added one after the other."""
    total = 0.0
    for value in values.tolist():
        total += value
    return total


def node_pass(
    problem: Problem, node: int, theta: Vector, duals: Vector
) -> tuple[float, float, Vector, Vector]:
    """One node's sums: losses, Fenchel gaps, ``sum c x`` and ``sum w l' x``."""
    rows, sums = problem.node_rows(node), np.zeros((1, 2 * problem.n_features))
    losses, gaps = certificate.gap_pass(
        problem.loss.code, problem.rows, problem.labels, problem.weights,
        rows.start, rows.stop, theta, duals, sums,
    )  # fmt: skip
    return losses, gaps, sums[0, ::2], sums[0, 1::2]


def combine(
    losses: float, gaps: float, dual_sum: Vector, gradient: Vector, theta: Vector, sigma: float
) -> Certificate:
    """Certificate from sums over all nodes (zero rows have Fenchel gap 0 at ``c = w l'(0)``)."""
    objective = losses + 0.5 * sigma * certificate.square(theta)
    residual = theta + dual_sum / sigma
    by_duals = gaps + 0.5 * sigma * certificate.square(residual)
    slope = gradient + sigma * theta
    by_gradient = certificate.square(slope) / (2.0 * sigma)
    return Certificate(objective, min(by_duals, by_gradient))

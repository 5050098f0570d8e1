"""Ridge with an intercept on sparse rows, which centring would make dense.

Ridge minimises ``sum_j w_j (x_j . theta + b - y_j)^2 / 2 + alpha / 2 |theta|^2``, the intercept
``b`` free. For a given ``b`` the best ``theta`` is linear in the targets: it is ``u - b v``, where
``u`` and ``v`` are the models without intercept for the targets ``y`` and ``1``. Setting the
derivative by ``b`` to zero gives

    b = sum_j w_j (y_j - x_j . u) / sum_j w_j (1 - x_j . v).

The denominator is the least of ``sum w (1 - x . v)^2 + alpha |v|^2``, so it is positive. Both
models are trained by the same events, two numbers a sample and two vectors a message; only two
sums of numbers go around beside them. A reading is that of the whole: with ``b`` eliminated, the
objective ``G(theta) = min_b F(theta, b)`` is alpha-strongly convex, and
``G - G* <= |grad G|^2 / (2 alpha)``.
"""

import dataclasses
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Algorithm, Counts, Setting, get_algorithm
from adfs.estimators.models import keepable, shareable, speaker
from adfs.estimators.options import Options
from adfs.problems.finite_sum import Problem
from adfs.problems.shards import slice_rows
from adfs.runtime.evaluation import Reading
from adfs.runtime.runner import Run
from adfs.runtime.signals import Interrupts
from adfs.runtime.solve import Result, automatic, pace_of
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Pair:
    """Two algorithms that execute the same events; models side by side, ``(n_nodes, 2 d)``."""

    def __init__(self, first: Algorithm[Any], second: Algorithm[Any]) -> None:
        self.first, self.second = first, second

    def init(self, theta: Vector | None = None) -> tuple[Any, Any]:
        """Both from zero, or from the two halves of a model."""
        if theta is None:
            return self.first.init(), self.second.init()
        half = len(theta) // 2
        return self.first.init(theta[:half].copy()), self.second.init(theta[half:].copy())

    def step(self, state: tuple[Any, Any], events: Events) -> tuple[Any, Any]:
        """The events on both."""
        return self.first.step(state[0], events), self.second.step(state[1], events)

    def output(self, state: tuple[Any, Any]) -> Matrix:
        """``u_i`` and ``v_i`` of every node, side by side."""
        return np.hstack([self.first.output(state[0]), self.second.output(state[1])])

    def duals(self, state: tuple[Any, Any], node: int) -> None:
        """None: the certificate is that of the gradient."""

    def counts(self, events: Events) -> Counts:
        """What both cost."""
        return self.first.counts(events).plus(self.second.counts(events))


class EliminatedRun(Run):
    """A run of a `Pair`, read as the one model that the two make."""

    def __post_init__(self) -> None:
        problem = self.problem
        self.matrix = slice_rows(problem.rows, problem.n_features, 0, problem.n_samples)
        super().__post_init__()

    def read(self) -> Reading:
        """Model, objective and gap of ridge regression with its intercept."""
        problem = self.problem
        both = self.algorithm.output(self.state)
        mean = problem.sigma @ both / problem.total_sigma
        half = problem.n_features
        b = self.intercept(mean[:half], mean[half:])
        thetas = both[:, :half] - b * both[:, half:]
        theta = mean[:half] - b * mean[half:]
        objective, gap = self.certificate(theta)
        spread = float(np.sqrt(np.mean(np.sum((thetas - theta) ** 2, axis=1))))
        return Reading(theta, thetas, objective, gap, None, spread)

    def intercept(self, u: Vector, v: Vector) -> float:
        """``b`` of the module's text."""
        weights, labels = self.problem.weights, self.problem.labels
        above = float(weights @ (labels - self.matrix @ u))
        return above / float(weights @ (1.0 - self.matrix @ v))

    def certificate(self, theta: Vector) -> tuple[float, float]:
        """``G(theta)`` and ``|grad G|^2 / (2 alpha)``."""
        problem, alpha = self.problem, self.problem.total_sigma
        residuals = self.matrix @ theta - problem.labels
        residuals -= problem.weights @ residuals / problem.weights.sum()
        pull = problem.weights * residuals
        gradient = self.matrix.T @ pull + alpha * theta
        objective = 0.5 * float(pull @ residuals) + 0.5 * alpha * float(theta @ theta)
        return objective, float(gradient @ gradient) / (2.0 * alpha)


def solve_eliminated(
    of_targets: Problem, of_ones: Problem, options: Options, start: Vector | None
) -> tuple[Result, Vector]:
    """Ridge with an intercept from its two problems; also ``v``, from which a fit can go on."""
    began = time.perf_counter()
    name = automatic(of_targets) if options.algorithm == "auto" else options.algorithm
    setting = Setting("tuned", options.tau, delays=Delays(tau=options.tau), seed=options.seed)
    method = get_algorithm(name)(of_targets, setting)
    second = get_algorithm(name)(of_ones, setting._replace(rule=shareable(method.parameters)))
    both = dataclasses.replace(method, algorithm=Pair(method.algorithm, second.algorithm))
    stopping = options.stopping
    pace = pace_of(method.sharp, method.rho, method.shortest, stopping.tol, None)
    run = EliminatedRun(of_targets, both, stopping, pace, start)
    setup_time = time.perf_counter() - began
    with Interrupts() as interrupts:
        speak = speaker(options, 0, 1)
        run.course.callbacks = () if speak is None else (speak,)
        status, reading = run.go(interrupts)
    result = Result(
        reading.theta, reading.thetas, status, reading.objective, reading.duality_gap,
        method.parameters, run.trace, name, "tuned", method.rho, options.tau, setting.clock,
        options.seed, setup_time, interrupts.received,
    )  # fmt: skip
    means = of_targets.sigma @ run.algorithm.output(run.state) / of_targets.total_sigma
    return keepable(result), means[of_targets.n_features :]

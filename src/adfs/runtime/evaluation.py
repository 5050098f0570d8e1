"""Reading a run: the model, its certificate, and how far the nodes are from each other."""

from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms.base import Algorithm, Matrix, Vector
from adfs.problems.certificates import Certificate, certify, certify_nodes
from adfs.problems.finite_sum import Problem
from adfs.runtime.objectives import objectives


class Reading(NamedTuple):
    """What an evaluation finds."""

    theta: Vector
    thetas: Matrix
    objective: float
    duality_gap: float
    suboptimality: float | None
    consensus_error: float

    @property
    def relative_gap(self) -> float:
        """``gap / max(1, |F|)``."""
        return self.duality_gap / max(1.0, abs(self.objective))


def read(problem: Problem, algorithm: Algorithm[Any], state: Any) -> Reading:
    """Evaluate a state; of two models that an algorithm offers, the one that certifies better."""
    found = _read(problem, algorithm, state, algorithm.output(state))
    second_output = getattr(algorithm, "second_output", None)
    if second_output is None:
        return found
    other = _read(problem, algorithm, state, second_output(state))
    return other if other.duality_gap < found.duality_gap else found


def _read(problem: Problem, algorithm: Algorithm[Any], state: Any, thetas: Matrix) -> Reading:
    """``theta`` is the sigma-weighted mean over nodes."""
    with np.errstate(over="ignore", invalid="ignore"):  # a run that blows up is told by its status
        theta = problem.sigma @ thetas / problem.total_sigma
        found = _certificate(problem, algorithm, state, theta)
        spread = float(np.sqrt(np.mean(np.sum((thetas - theta) ** 2, axis=1))))
        missing = _suboptimality(problem, thetas)
    objective, gap = float(found.objective), float(found.duality_gap)
    return Reading(theta, thetas, objective, gap, missing, spread)


def _certificate(
    problem: Problem, algorithm: Algorithm[Any], state: Any, theta: Vector
) -> Certificate:
    if algorithm.duals(state, 0) is None:
        return certify(problem, theta)
    return certify_nodes(problem, theta, lambda node: np.asarray(algorithm.duals(state, node)))


def _suboptimality(problem: Problem, thetas: Matrix) -> float | None:
    """Mean over nodes of ``F(theta_i) - F*``, relative; only if the optimum is known."""
    if not problem.optimum_is_known:
        return None
    best = problem.optimum().objective
    return float(np.mean(objectives(problem, thetas)) - best) / max(1.0, abs(best))

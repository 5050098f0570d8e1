"""Reading a run: the model, its certificate, and how far the nodes are from each other."""

from collections.abc import Callable
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
    """Evaluate a state; of two models that an algorithm offers, the one that certifies better.

    ``theta`` is the sigma-weighted mean over nodes.
    """
    outputs = [algorithm.output(state)]
    if (second_output := getattr(algorithm, "second_output", None)) is not None:
        outputs.append(second_output(state))
    duals = _duals(algorithm, state)
    with np.errstate(over="ignore", invalid="ignore"):  # a run that blows up is told by its status
        means = [problem.sigma @ thetas / problem.total_sigma for thetas in outputs]
        found = [_certificate(problem, theta, duals) for theta in means]
        best = min(range(len(found)), key=lambda k: found[k].duality_gap)
        theta, thetas = means[best], outputs[best]
        spread = float(np.sqrt(np.mean(np.sum((thetas - theta) ** 2, axis=1))))
        missing = _suboptimality(problem, thetas)
    objective, gap = float(found[best].objective), float(found[best].duality_gap)
    return Reading(theta, thetas, objective, gap, missing, spread)


def _duals(algorithm: Algorithm[Any], state: Any) -> Callable[[int], Vector] | None:
    """Duals by node, None if there are none; the first node's, asked for to know that, are kept."""
    first = algorithm.duals(state, 0)
    if first is None:
        return None
    return lambda node: first if node == 0 else np.asarray(algorithm.duals(state, node))


def _certificate(
    problem: Problem, theta: Vector, duals: Callable[[int], Vector] | None
) -> Certificate:
    return certify(problem, theta) if duals is None else certify_nodes(problem, theta, duals)


def _suboptimality(problem: Problem, thetas: Matrix) -> float | None:
    """Mean over nodes of ``F(theta_i) - F*``, relative; only if the optimum is known."""
    if not problem.optimum_is_known:
        return None
    best = problem.optimum().objective
    return float(np.mean(objectives(problem, thetas)) - best) / max(1.0, abs(best))

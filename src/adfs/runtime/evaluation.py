"""Reading a run: the model, its certificate, and how far the nodes are from each other."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms.base import Algorithm, Matrix, Vector
from adfs.network import Ask, Part, Steps
from adfs.problems.certificates import (
    Certificate,
    certificate_steps,
    gradient_steps,
    zero_steps,
)
from adfs.problems.finite_sum import Problem
from adfs.runtime.objectives import objectives


class Reading(NamedTuple):
    """What an evaluation finds; ``thetas`` are those of this process's nodes."""

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


Evaluate = Callable[[Problem, list[Matrix], "Duals | None"], Steps[Reading]]
Duals = Callable[[int], Vector]  # of a node's samples


def models(algorithm: Algorithm[Any], state: Any) -> list[Matrix]:
    """The models that an algorithm offers, one or two, of the nodes in this process."""
    second = getattr(algorithm, "second_output", None)
    return [algorithm.output(state)] + ([] if second is None else [second(state)])


def duals_of(algorithm: Algorithm[Any], state: Any, node: int) -> Duals | None:
    """Duals by node, None if there are none; those of ``node`` are asked for once."""
    first = algorithm.duals(state, node)
    if first is None:
        return None
    return lambda each: first if each == node else np.asarray(algorithm.duals(state, each))


def read(problem: Problem, algorithm: Algorithm[Any], state: Any) -> Reading:
    """Evaluate a state; of two models that an algorithm offers, the one that certifies better.

    ``theta`` is the sigma-weighted mean over nodes.
    """
    own = duals_of(algorithm, state, int(problem.nodes[0]))
    with np.errstate(over="ignore", invalid="ignore"):  # a run that blows up is told by its status
        return problem.network.run(reading_steps(problem, models(algorithm, state), own))


def reading_steps(problem: Problem, outputs: list[Matrix], duals: Duals | None) -> Steps[Reading]:
    """A reading from the models and duals of this process's nodes."""
    d, count = problem.n_features, len(outputs)
    started = yield Ask(d * count, 1, _weighted(problem, outputs, duals))
    means = [started.total[k * d : (k + 1) * d] / problem.total_sigma for k in range(count)]
    if duals is None:
        found = yield from gradient_steps(problem, means)
    elif started.values.any():
        found = yield from certificate_steps(problem, means, duals)
    else:
        found = [(yield from zero_steps(problem))] * count
    best = _best(found)
    theta, thetas = means[best], outputs[best]
    _, distances = yield Ask(0, 1, _distances(thetas, theta))
    spread = float(np.sqrt(np.mean(distances)))
    objective, gap = float(found[best].objective), float(found[best].duality_gap)
    return Reading(theta, thetas, objective, gap, _suboptimality(problem, thetas), spread)


def _best(found: list[Certificate]) -> int:
    return min(range(len(found)), key=lambda k: found[k].duality_gap)


def _weighted(problem: Problem, outputs: list[Matrix], duals: Duals | None) -> Iterator[Part]:
    """``sigma_i theta_i`` of each model, and whether the node has left its start at zero."""
    for own, node in enumerate(problem.nodes.tolist()):
        row = np.concatenate([problem.sigma[node] * thetas[own] for thetas in outputs])
        left = bool(row.any()) or (duals is not None and bool(duals(node).any()))
        yield Part(row, (float(left),))


def _distances(thetas: Matrix, theta: Vector) -> Iterator[Part]:
    for own in thetas:
        yield Part(np.empty(0), (float(np.sum((own - theta) ** 2)),))


def _suboptimality(problem: Problem, thetas: Matrix) -> float | None:
    """Mean over nodes of ``F(theta_i) - F*``, relative; only if the optimum is known."""
    if not problem.optimum_is_known:
        return None
    best = problem.optimum().objective
    return float(np.mean(objectives(problem, thetas)) - best) / max(1.0, abs(best))

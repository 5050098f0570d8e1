"""Evaluating a run: the model, its certificate, and how far the nodes are from each other."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms.base import Algorithm, Matrix, Vector
from adfs.data.shards import slice_rows
from adfs.kernels import certificate, loss_functions
from adfs.network import Ask, Part, Steps
from adfs.problem.certificate import (
    Certificate,
    certificate_steps,
    certified_text,
    gradient_steps,
    in_order,
    relative,
    zero_steps,
)
from adfs.problem.finite_sum import Problem

SCORES_AT_ONCE = 1 << 15  # 256 kB: several passes over them stay in the cache
SCORES_FOR_KERNELS = 1 << 21  # which pass over them once
FACTORS = 512  # of at most 2 each: their product stays below 1e155


def objectives(problem: Problem, thetas: Matrix) -> Vector:
    """``F`` at each row of ``thetas``, samples taken in blocks."""
    if (thetas == thetas[0]).all():  # methods with one model for all nodes
        return np.full(len(thetas), _objectives(problem, thetas[:1])[0])
    return _objectives(problem, thetas)


def _objectives(problem: Problem, thetas: Matrix) -> Vector:
    totals: Vector = 0.5 * problem.total_sigma * np.sum(thetas**2, axis=1)
    quick = problem.loss.code == loss_functions.LOGISTIC and bool((problem.weights == 1.0).all())
    at_once = SCORES_AT_ONCE if quick else SCORES_FOR_KERNELS
    block = max(FACTORS, at_once // len(thetas))
    for first in range(0, problem.n_samples, block):
        last = min(problem.n_samples, first + block)
        rows = slice_rows(problem.rows, problem.n_features, first, last)
        scores = np.asarray(rows @ thetas.T)
        if quick:
            totals += logistic_sums(scores * problem.labels[first:last, None])
        else:
            totals += _kernel_sums(problem, scores, first, last)
    return totals


def _kernel_sums(problem: Problem, scores: Matrix, first: int, last: int) -> Vector:
    columns = np.ascontiguousarray(scores.T)
    return np.array([
        certificate.loss_sum(
            problem.loss.code, columns[k], problem.labels, problem.weights, first, last
        )
        for k in range(len(columns))
    ])  # fmt: skip


def logistic_sums(margins: Matrix) -> Vector:
    """Sums over rows of ``log(1 + e^-m)``, one per column; ``margins`` is overwritten.

    Examples
    --------
    >>> logistic_sums(np.array([[0.0], [0.0]])) / np.log(2)
    array([2.])
    """
    negative: Vector = np.sum(np.minimum(margins, 0.0), axis=0)
    np.abs(margins, out=margins)
    np.negative(margins, out=margins)
    np.exp(margins, out=margins)
    margins += 1.0
    products = np.multiply.reduceat(margins, np.arange(0, len(margins), FACTORS), axis=0)
    return np.asarray(np.sum(np.log(products), axis=0) - negative)


class Evaluation(NamedTuple):
    """The result of an evaluation; ``thetas`` are those of this process's nodes.

    ``objective_at_zero`` is F of the model 0, which sets the size of rounding errors.
    """

    theta: Vector
    thetas: Matrix
    objective: float
    duality_gap: float
    suboptimality: float | None
    consensus_error: float
    objective_at_zero: float

    @property
    def relative_gap(self) -> float:
        """``gap / |F|``."""
        return relative(self.duality_gap, self.objective)

    @property
    def gap_text(self) -> str:
        """The relative gap as text."""
        return certified_text(self.relative_gap, self.duality_gap, self.objective_at_zero)


Evaluator = Callable[[Problem, list[Matrix], "Duals | None"], Steps[Evaluation]]
Duals = Callable[[int], Vector]  # of a node's samples


def models(algorithm: Algorithm[Any], state: Any) -> list[Matrix]:
    """The models that an algorithm offers, one or two, of the nodes in this process."""
    second = getattr(algorithm, "second_output", None)
    return [algorithm.output(state)] + ([] if second is None else [second(state)])


def duals_of(algorithm: Algorithm[Any], state: Any, node: int) -> Duals | None:
    """Duals by node, None if there are none; those of ``node`` are computed once."""
    first = algorithm.duals(state, node)
    if first is None:
        return None
    return lambda each: first if each == node else np.asarray(algorithm.duals(state, each))


def evaluate(problem: Problem, algorithm: Algorithm[Any], state: Any) -> Evaluation:
    """Evaluate a state; of two models that an algorithm offers, the one that certifies better.

    ``theta`` is the sigma-weighted mean over nodes.
    """
    own = duals_of(algorithm, state, int(problem.nodes[0]))
    with np.errstate(over="ignore", invalid="ignore"):  # the status says that a run diverged
        return problem.network.run(evaluation_steps(problem, models(algorithm, state), own))


def evaluation_steps(
    problem: Problem, outputs: list[Matrix], duals: Duals | None
) -> Steps[Evaluation]:
    """An evaluation from the models and duals of this process's nodes."""
    d, count = problem.n_features, len(outputs)
    started = yield Ask(d * count, 2, _weighted(problem, outputs, duals))
    means = [started.total[k * d : (k + 1) * d] / problem.total_sigma for k in range(count)]
    if duals is None:
        found = yield from gradient_steps(problem, means)
    elif started.values[:, 0].any():
        found = yield from certificate_steps(problem, means, duals)
    else:
        found = [(yield from zero_steps(problem))] * count
    best = _best(found)
    theta, thetas = means[best], outputs[best]
    _, distances = yield Ask(0, 1, _distances(thetas, theta))
    spread = float(np.sqrt(np.mean(distances)))
    objective, gap = float(found[best].objective), float(found[best].duality_gap)
    at_zero = in_order(started.values[:, 1])
    return Evaluation(
        theta, thetas, objective, gap, _suboptimality(problem, thetas), spread, at_zero
    )


def _best(found: list[Certificate]) -> int:
    return min(range(len(found)), key=lambda k: found[k].duality_gap)


def _weighted(problem: Problem, outputs: list[Matrix], duals: Duals | None) -> Iterator[Part]:
    """``sigma_i theta_i`` of each model, whether the node left its start at zero, losses there."""
    for own, node in enumerate(problem.nodes.tolist()):
        row = np.concatenate([problem.sigma[node] * thetas[own] for thetas in outputs])
        left = bool(row.any()) or (duals is not None and bool(duals(node).any()))
        yield Part(row, (float(left), problem.at_zero[own, 0]))


def _distances(thetas: Matrix, theta: Vector) -> Iterator[Part]:
    for own in thetas:
        yield Part(np.empty(0), (float(np.sum((own - theta) ** 2)),))


def _suboptimality(problem: Problem, thetas: Matrix) -> float | None:
    """Mean over nodes of ``F(theta_i) - F*``, relative; only if the optimum is known."""
    if not problem.optimum_is_known:
        return None
    best = problem.optimum().objective
    return relative(float(np.mean(objectives(problem, thetas)) - best), best)

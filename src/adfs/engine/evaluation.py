"""Evaluating a run: the model, its certificate, and how far the nodes are from each other."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from adfs.algorithms.base import Matrix, Vector
from adfs.data.shards import slice_rows
from adfs.kernels import certificate, loss_functions
from adfs.network import Ask, Part, Steps, ask_values, node_blocks
from adfs.problem.certificate import (
    certificate_steps,
    certified_text,
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
    if len(thetas) > 1 and (thetas == thetas[0]).all():  # methods with one model for all nodes
        return np.full(len(thetas), objectives(problem, thetas[:1])[0])
    code, labels, weights = problem.loss.code, problem.labels, problem.weights
    totals: Vector = 0.5 * problem.total_sigma * np.sum(thetas**2, axis=1)
    quick = code == loss_functions.LOGISTIC and bool((weights == 1.0).all())
    block = max(FACTORS, (SCORES_AT_ONCE if quick else SCORES_FOR_KERNELS) // len(thetas))
    for first in range(0, problem.n_samples, block):
        last = min(problem.n_samples, first + block)
        rows = slice_rows(problem.rows, problem.n_features, first, last)
        scores = np.asarray(rows @ thetas.T)
        if quick:
            totals += logistic_sums(scores * labels[first:last, None])
        else:
            columns = np.ascontiguousarray(scores.T)
            sums = [certificate.loss_sum(code, s, labels, weights, first, last) for s in columns]
            totals += np.array(sums)
    return totals


def logistic_sums(margins: Matrix) -> Vector:
    """Sums over rows of ``log(1 + e^-m)``, one per column; ``margins`` is overwritten."""
    negative: Vector = np.sum(np.minimum(margins, 0.0), axis=0)
    np.abs(margins, out=margins)
    np.negative(margins, out=margins)
    np.exp(margins, out=margins)
    margins += 1.0
    products = np.multiply.reduceat(margins, np.arange(0, len(margins), FACTORS), axis=0)
    return np.asarray(np.sum(np.log(products), axis=0) - negative)


class Evaluation(NamedTuple):
    """The result of an evaluation."""

    theta: Vector
    thetas: Matrix  # of this process's nodes
    objective: float
    duality_gap: float
    suboptimality: float | None  # mean over nodes of F(theta_i) - F*, relative, if F* is known
    consensus_error: float
    objective_at_zero: float  # F of the model 0, which sets the size of rounding errors

    @property
    def relative_gap(self) -> float:
        return relative(self.duality_gap, self.objective)

    @property
    def gap_text(self) -> str:
        return certified_text(self.relative_gap, self.duality_gap, self.objective_at_zero)


Evaluator = Callable[[Problem, list[Matrix], Vector | None], Steps[Evaluation]]


def evaluation_steps(
    problem: Problem, outputs: list[Matrix], duals: Vector | None
) -> Steps[Evaluation]:
    """An evaluation from the models of this process's nodes and the duals of their samples.

    Of several models that an algorithm offers it is the one that certifies better; its ``theta`` is
    the sigma-weighted mean over nodes.
    """
    d, count = problem.n_features, len(outputs)
    started = yield Ask(d * count, 2, _weighted(problem, outputs, duals))
    means = [started.total[k * d : (k + 1) * d] / problem.total_sigma for k in range(count)]
    if duals is None or started.values[:, 0].any():
        found = yield from certificate_steps(problem, means, duals)
    else:
        found = [(yield from zero_steps(problem))] * count
    best = min(range(count), key=lambda k: found[k].duality_gap)
    theta, thetas, (objective, gap) = means[best], outputs[best], found[best]
    _, distances = yield ask_values(np.sum((thetas - theta) ** 2, axis=1, keepdims=True))
    spread, at_zero = float(np.sqrt(np.mean(distances))), in_order(started.values[:, 1])
    suboptimality = None
    if problem.optimum_is_known:
        lowest = problem.optimum().objective
        suboptimality = relative(float(np.mean(objectives(problem, thetas)) - lowest), lowest)
    return Evaluation(theta, thetas, float(objective), float(gap), suboptimality, spread, at_zero)


def _weighted(problem: Problem, outputs: list[Matrix], duals: Vector | None) -> Iterator[Part]:
    """``sigma_i theta_i`` of each model, whether the node left its start at zero, losses there."""
    sigma, offsets, n = problem.own_sigma[:, None], problem.offsets, len(problem.nodes)
    has_duals = np.zeros(n, np.bool_)
    if duals is not None:
        so_far = np.append(0, np.cumsum(duals != 0.0))
        has_duals = so_far[offsets[1:]] > so_far[offsets[:-1]]
    for own in node_blocks(n, problem.n_features * len(outputs)):
        rows = np.concatenate([sigma[own] * thetas[own] for thetas in outputs], axis=1)
        left = rows.any(axis=1) | has_duals[own]
        yield Part(rows, np.column_stack([left, problem.at_zero[own, 0]]))

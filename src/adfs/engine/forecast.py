"""How long a run may take: an upper limit for every run, and a warning before a very long one."""

import math
import warnings
from typing import NamedTuple

import numpy as np

from adfs.algorithms.base import Method
from adfs.data.matrices import Vector
from adfs.data.shards import slice_rows
from adfs.engine.stopping import Stopping
from adfs.errors import LongRunWarning
from adfs.problem.finite_sum import Problem
from adfs.problem.optimum import DENSE_HESSIAN_LIMIT

MOST_PASSES = 1_000_000  # over the data: no default iteration limit is larger
HOPELESS = 10.0  # where theory needs so many times more, the limit is a tenth of that
NEAR = 1e-6  # a bound that is not a rate is not used for a smaller tol (ns-adfs.md)
LONG = (1_000, 200_000_000)  # passes and sample steps: a warning comes before more than both
LONG_BY_A_BOUND = (100_000, 1_000_000_000)  # the same where runs need a small part of the bound
ROWS_AT_ONCE = 4096
SMOOTH_NEIGHBOUR = {"hinge": "smoothed_hinge", "absolute": "huber"}
UNEVEN = 10.0  # a column so many times as large as the median column is named


class Forecast(NamedTuple):
    """How many iterations bring the relative gap from 1 to ``goal``, which is ``tol`` or larger.

    ``rho`` is the mean rate down to ``tol``; ``long`` is the number beyond which there is a
    warning, infinite where the rate is only a guess.
    """

    expected: float
    goal: float
    rho: float
    long: float
    per_pass: float

    @property
    def most_passes(self) -> int:
        """Passes over the data that no default iteration limit exceeds."""
        hopeless = self.expected > HOPELESS * MOST_PASSES * self.per_pass
        return MOST_PASSES // 10 if hopeless else MOST_PASSES

    @property
    def ceiling(self) -> int:
        """The same in iterations."""
        return math.ceil(self.most_passes * self.per_pass)

    @property
    def is_long(self) -> bool:
        return self.expected > self.long


def forecast(problem: Problem, method: Method, tol: float) -> Forecast:
    efolds, per_pass = math.log(1.0 / min(tol, 0.5)), problem.n_samples / method.work
    passes, steps = LONG if method.needed is None else LONG_BY_A_BOUND
    long = min(max(passes, steps / problem.n_samples), MOST_PASSES) * per_pass
    if method.needed is not None:
        goal, rho = max(tol, NEAR), efolds / method.needed(tol)
        return Forecast(method.needed(goal), goal, rho, long, per_pass)
    expected = efolds / method.rho if method.rho > 0.0 else math.inf
    is_known = method.proven or method.sharp
    return Forecast(expected, tol, method.rho, long if is_known else math.inf, per_pass)


def warn_if_long(problem: Problem, ahead: Forecast, stopping: Stopping) -> None:
    """Warn, on the first rank, before a run that is very long by theory.

    Not where ``max_iter`` keeps it short, nor in a comparison that ends at an idealized time.
    """
    limit = math.inf if stopping.max_iter is None else stopping.max_iter
    if min(ahead.expected, limit) <= ahead.long or stopping.clock_limit is not None:
        return
    reason = _reason(problem)  # sums over all nodes: on every rank
    end = ""
    if stopping.max_iter is None and ahead.expected > ahead.ceiling:
        end = f"; without max_iter this run stops after {ahead.most_passes:,} passes"
    if problem.loss.smooth:
        few = problem.n_features <= DENSE_HESSIAN_LIMIT
        other = f"algorithm {'newton' if few else 'lbfgs'}"
    else:
        other = f"the loss {SMOOTH_NEIGHBOUR[problem.loss.name]}"
    if problem.network.rank == 0:
        warnings.warn(
            f"Theory promises a relative gap of {ahead.goal:g} only after {ahead.expected:.2g} "
            f"iterations ({ahead.expected / ahead.per_pass:.2g} passes over the data){end}. "
            f"{reason} Scale the columns, regularise more (a larger sigma, a smaller C), or choose "
            f"{other}.",
            LongRunWarning,
            stacklevel=4,
        )


def _reason(problem: Problem) -> str:
    """What makes the condition number large, also one large column; called on all ranks."""
    smooth = problem.loss.smooth
    kappa = (problem.conditioning if smooth else problem.dual_bounds).kappa
    node = int(np.argmax(kappa))
    largest = np.array([problem.squared_norms.max(initial=0.0), problem.weights.max(initial=0.0)])
    norm2, weight = np.max(problem.network.gather(largest), axis=0)
    sizes = column_sizes(problem)
    widest, median = int(np.argmax(sizes)), float(np.median(sizes[sizes > 0.0]))
    column = ""
    if sizes[widest] >= UNEVEN * median:
        ratio = sizes[widest] / median
        column = f"; column {widest + 1} is {ratio:.2g} times as large as the median column"
    return (
        f"The condition number kappa_s is {kappa[node]:.2g} (row norms up to "
        f"{math.sqrt(norm2):.2g}, weights up to {weight:.2g}, sigma {problem.sigma[node]:.2g} per "
        f"node){column}."
    )


def column_sizes(problem: Problem) -> Vector:
    """Mean absolute value of what is not zero in each column, over all nodes; on all ranks."""
    d = problem.n_features

    def sums(rows: slice) -> Vector:
        total = np.zeros((2, d))
        for first in range(rows.start, rows.stop, ROWS_AT_ONCE):
            block = slice_rows(problem.rows, d, first, min(rows.stop, first + ROWS_AT_ONCE))
            total += [np.asarray(each.sum(axis=0)).ravel() for each in (abs(block), block != 0.0)]
        return total.ravel()

    own = (sums(problem.node_rows(node)) for node in problem.nodes.tolist())
    sizes, counts = problem.network.sum_rows(own, 2 * d).reshape(2, d)
    return sizes / np.maximum(counts, 1.0)

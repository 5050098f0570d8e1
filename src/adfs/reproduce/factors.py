"""Time for a factor e of the error, by Table 1 and measured, of all methods in some settings."""

import math
from typing import NamedTuple

import numpy as np

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import REGISTRY
from adfs.bench.comparison import Comparison
from adfs.bench.curves import FLOOR, Curve, first_reach
from adfs.graphs.topology import Topology
from adfs.problems.finite_sum import Problem
from adfs.problems.partition import partition
from adfs.reproduce.order import Order
from adfs.reproduce.rates import TABLE_1, Sizes
from adfs.reproduce.samples import Pool
from adfs.reproduce.times import Time

METHODS = (
    "adfs", "point-saga", "msda", "esdacd", "dsba", "ssda", "katyusha", "l-katyusha", "newton",
    "lbfgs",
)  # fmt: skip
TOL = 1e-8
MEASURABLE = 2.0  # fewest factors e that tell a rate
PATIENCE = 30.0  # most time of a run, in factors e of the slowest row of Table 1


class Case(NamedTuple):
    """A setting, and what sets it apart."""

    name: str
    graph: str
    m: int
    tau: float
    sigma: float


FULL = (
    Case("base", "grid:3x3", 200, 5.0, 1.0),
    Case("10x10", "grid:10x10", 200, 5.0, 1.0),
    Case("tau = 50", "grid:3x3", 200, 50.0, 1.0),
    Case("tau = 0.5", "grid:6x6", 200, 0.5, 1.0),
    Case("m = 1,000", "grid:3x3", 1000, 5.0, 1.0),
    Case("sigma = 0.1", "grid:3x3", 200, 5.0, 0.1),
)
QUICK = (
    Case("base", "grid:3x3", 40, 5.0, 1.0),
    Case("large graph", "grid:4x4", 40, 5.0, 1.0),
    Case("tau = 50", "grid:3x3", 40, 50.0, 1.0),
)


class Entry(NamedTuple):
    """A method in a setting: idealized time for a factor e, by theory and measured.

    Where it was too slow to be measured, ``least`` is a time that it exceeds. A method that was
    broken off has neither.
    """

    case: Case
    method: str
    theory: float | None
    measured: float | None
    least: float | None = None

    @property
    def time(self) -> Time:
        """The measured time, or the one that it exceeds."""
        return Time(self.least, arrived=False) if self.measured is None else Time(self.measured)

    @property
    def ratio(self) -> float | None:
        """Measured over theory."""
        if self.theory is None or self.measured is None:
            return None
        return self.measured / self.theory


def measure(case: Case, pool: Pool, seeds: int, order: Order) -> list[Entry]:
    """All methods in one setting, run side by side."""
    topology = Topology.parse(case.graph)
    shards = partition(pool.X, pool.y, topology.n_nodes, how="draw", m=case.m)
    problem = Problem(shards, "logistic", case.sigma, topology)
    sizes = Sizes.of(problem, case.tau)
    theory = {name: row.time(sizes) for name, row in TABLE_1.items()}
    methods = [name for name in METHODS if name in REGISTRY]
    found = order.compare(
        problem, methods, f"{case.name} {'quick' if order.quick else 'full'}", tol=TOL,
        tau=case.tau, seeds=seeds, clock_limit=PATIENCE * max(theory.values()),
    )  # fmt: skip
    return [
        Entry(case, name, theory.get(name), late_time_per_factor_e(found, name),
              least_time_per_factor_e(found, name))
        for name in found.labels
    ]  # fmt: skip


def late_time_per_factor_e(comparison: Comparison, label: str) -> float | None:
    """Median over seeds of the time for a factor e, in the later half of the error's decades.

    A run that a signal broke off has no later half; one that was too slow took longer than all
    others.
    """
    slopes = _late_slopes(comparison, label)
    if not slopes:
        return None
    median = float(np.median([math.inf if slope is None else slope for slope in slopes]))
    return median if math.isfinite(median) else None


def least_time_per_factor_e(comparison: Comparison, label: str) -> float | None:
    """What a method needs more than, if it was too slow to be measured; None if it was not.

    By then the error had not fallen by two factors e in all the time that it was given.
    """
    slopes, limit = _late_slopes(comparison, label), comparison.clock_limit
    if not slopes or limit is None or late_time_per_factor_e(comparison, label) is not None:
        return None
    return limit / MEASURABLE


def _late_slopes(comparison: Comparison, label: str) -> list[float | None]:
    """Of the runs that no signal broke off."""
    pairs = zip(comparison.runs(label), comparison.curves(label), strict=True)
    return [late_slope(curve) for run, curve in pairs if run.status != "interrupted"]


def late_slope(curve: Curve) -> float | None:
    """Time for a factor e from the middle of the curve to its end; None if it hardly fell.

    The middle is the geometric mean of the first and the last error: the start, where methods
    differ by more than their rate, is left out.

    Examples
    --------
    >>> late_slope(Curve(np.array([0.0, 10.0, 20.0]), np.exp([0.0, -1.0, -6.0])))
    2.0
    """
    first, last = curve.error[0], max(curve.error[-1], FLOOR)
    if not last < first / math.e**MEASURABLE:
        return None
    # A slope needs the point between iterations: no rounding up to the end of one.
    start = first_reach(curve._replace(iteration=None), math.sqrt(first * last))
    assert start is not None  # the last error is below the middle
    return float((curve.x[-1] - start) / (0.5 * math.log(first / last)))

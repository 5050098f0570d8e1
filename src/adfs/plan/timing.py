"""Seconds of a method, from a few of its steps on the rows and on the ranks that are there."""

import math
from collections.abc import Sequence

import numpy as np

from adfs.algorithms.base import MethodSetting
from adfs.engine.interrupts import Interrupts
from adfs.engine.stopping import Stopping
from adfs.engine.trace import Trace
from adfs.plan.prediction import Prediction
from adfs.problem.certificate import relative
from adfs.problem.finite_sum import Problem
from adfs.run import Result, RunOptions, run

SHARE = 0.05  # of the predicted iterations, twice
FEWEST = 4  # iterations
LONGEST = 1.0  # seconds
TRUST = 1.0 / 3.0  # see `share_left`; fitted by benchmarks/plan_seconds.py
NEVER = 1e-300  # a relative gap that no run reaches
# Methods whose logarithm of the gap falls evenly, so that first steps tell how far the end is.
EVEN = ("adfs", "dsba", "esdacd", "katyusha", "l-katyusha", "msda", "point-saga", "ssda")


def with_seconds(
    problem: Problem, setting: MethodSetting, predictions: Sequence[Prediction], tol: float
) -> list[Prediction]:
    """Predictions with the seconds that their idealized time takes here; ranks call it together.

    Dual methods begin at the nodes' own optima, which may be close: the gap after the steps says
    how much of the predicted run is left.

    A first, untimed run loads what is compiled and brings the rows into caches. Of the second one
    only the later half counts, because solutions of inner problems are remembered, and so become
    cheaper, along a run. It has whole periods: a snapshot of Katyusha is cheaper than its other
    rounds. A method whose first iterations are of another kind is timed by its plain form.
    """
    found = []
    for each in predictions:
        half = each.period * math.ceil(max(FEWEST, SHARE * each.iterations) / each.period)
        plain = setting if each.alike else setting._replace(rule="theory")
        for length in (half, 2 * half):
            stopping, quiet = Stopping(NEVER, length, LONGEST), Interrupts(())
            options = RunOptions(evaluate_every=half)
            result = run(problem, each.algorithm, plain, stopping, options, quiet)
        per_unit = _seconds_per_unit(result.trace)
        slowest = max(problem.network.gather(per_unit))
        share = share_left(each, result, tol) if each.algorithm in EVEN else 1.0
        found.append(each._replace(seconds=share * each.idealized_time * slowest))
    return found


def share_left(each: Prediction, result: Result, tol: float) -> float:
    """What the run takes in all, over the prediction, by the gap that its first steps left.

    A gap that fell faster than predicted between the last two evaluations, by a factor ``fast``,
    falls ``fast ** TRUST`` times as fast in the mean of what is left.
    """
    if not 0.0 < result.relative_gap < math.inf:
        return 1.0
    efolds = math.log(1.0 / min(tol, 0.5))
    left = max(0.0, math.log(result.relative_gap / tol)) / efolds
    fast = max(1.0, _last_fall(result.trace) / efolds * each.iterations)
    return left / math.pow(fast, TRUST) + min(1.0, result.iterations / each.iterations)


def _last_fall(trace: Trace) -> float:
    """Factors e by which the relative gap fell per iteration, between the last two evaluations."""
    columns = (trace[name] for name in ("iteration", "duality_gap", "objective"))
    last, errors, values = (np.array(column, dtype=float)[-2:].tolist() for column in columns)
    gaps = [relative(*each) for each in zip(errors, values, strict=True)]
    if len(gaps) < 2 or not 0.0 < gaps[1] < gaps[0] < math.inf:
        return 0.0
    return math.log(gaps[0] / gaps[1]) / float(last[1] - last[0])


def _seconds_per_unit(trace: Trace) -> float:
    """Seconds per unit of idealized time, of the later part of a run if it has one."""
    spent, clock = (np.array(trace[name], dtype=float) for name in ("wall_time", "idealized_time"))
    first = 1 if len(spent) > 2 and spent[-1] > spent[1] else 0
    units = float(clock[-1] - clock[first])
    return float(spent[-1] - spent[first]) / units if units > 0.0 else 0.0  # 0: nothing to do

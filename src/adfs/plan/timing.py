"""Seconds of a method, from a few of its steps on the rows and on the ranks that are there."""

from collections.abc import Sequence

import numpy as np

from adfs.algorithms.base import MethodSetting
from adfs.engine.interrupts import Interrupts
from adfs.engine.stopping import Stopping
from adfs.engine.trace import Trace
from adfs.plan.prediction import Prediction
from adfs.problem.finite_sum import Problem
from adfs.run import RunOptions, run

SHARE = 0.05  # of the predicted iterations, twice
FEWEST = 4  # iterations
LONGEST = 1.0  # seconds
NEVER = 1e-300  # a relative gap that no run reaches


def with_seconds(
    problem: Problem, setting: MethodSetting, predictions: Sequence[Prediction]
) -> list[Prediction]:
    """Predictions with the seconds that their idealized time takes here; ranks call it together.

    A first, untimed run loads what is compiled and brings the rows into caches. Of the second one
    only the later half counts, because solutions of inner problems are remembered, and so become
    cheaper, along a run. A method whose first iterations are of another kind is timed by its plain
    form.
    """
    found = []
    for each in predictions:
        half = int(max(FEWEST, SHARE * each.iterations))
        plain = setting if each.alike else setting._replace(rule="theory")
        for length in (half, 2 * half):
            stopping, quiet = Stopping(NEVER, length, LONGEST), Interrupts(())
            options = RunOptions(evaluate_every=half)
            result = run(problem, each.algorithm, plain, stopping, options, quiet)
        per_unit = _seconds_per_unit(result.trace)
        slowest = max(problem.network.gather(per_unit))
        found.append(each._replace(seconds=each.idealized_time * slowest))
    return found


def _seconds_per_unit(trace: Trace) -> float:
    """Seconds per unit of idealized time, of the later part of a run if it has one."""
    spent, clock = (np.array(trace[name], dtype=float) for name in ("wall_time", "idealized_time"))
    first = 1 if len(spent) > 2 and spent[-1] > spent[1] else 0
    units = float(clock[-1] - clock[first])
    return float(spent[-1] - spent[first]) / units if units > 0.0 else 0.0  # 0: nothing to do

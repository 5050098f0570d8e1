"""Seconds of a method, from a few of its steps on the rows and on the ranks that are there."""

from collections.abc import Sequence

from adfs.algorithms.base import MethodSetting
from adfs.engine.interrupts import Interrupts
from adfs.engine.stopping import Stopping
from adfs.plan.prediction import Prediction
from adfs.problem.finite_sum import Problem
from adfs.run import RunOptions, run

SHARE = 0.1  # of the predicted iterations
FEWEST = 4  # iterations
LONGEST = 1.0  # seconds
NEVER = 1e-300  # a relative gap that no run reaches


def with_seconds(
    problem: Problem, setting: MethodSetting, predictions: Sequence[Prediction]
) -> list[Prediction]:
    """Predictions with the seconds that their idealized time takes here; ranks call it together.

    A first, untimed run loads what is compiled and brings the rows into caches. A method whose
    first iterations differ from the others is timed by its plain form.
    """
    found = []
    for each in predictions:
        stopping = Stopping(NEVER, int(max(FEWEST, SHARE * each.iterations)), LONGEST)
        plain = setting if each.alike else setting._replace(rule="theory")
        for _ in range(2):
            quiet = Interrupts(())
            result = run(problem, each.algorithm, plain, stopping, RunOptions(), quiet)
        slowest = max(problem.network.gather(result.wall_time))
        seconds = each.idealized_time * slowest / result.idealized_time
        found.append(each._replace(seconds=seconds))
    return found

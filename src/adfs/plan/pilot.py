"""Pilot runs: how many iterations a method needs, from a run on a part of the rows.

Each node takes every k-th of its rows and ``sigma / k``, so that the objective is about 1/k of the
whole one and the number of iterations carries over. The pilot talks over the same network and is
charged on the same clock; its length is counted in idealized time, so that plans repeat.
"""

from collections.abc import Sequence

import numpy as np

from adfs.algorithms.base import MethodSetting
from adfs.data.shards import slice_rows
from adfs.engine.interrupts import Interrupts
from adfs.engine.stopping import Stopping
from adfs.errors import AdfsError
from adfs.plan.prediction import Prediction
from adfs.problem.finite_sum import Problem
from adfs.run import RunOptions, run

PILOTED = ("newton", "lbfgs", "tron")  # no theorem says how many iterations they need
SHARE = 0.05  # most idealized time of all pilots, of the fastest predicted run
FEWEST_ROWS = 20  # per node
STEPS = (4, 8, 16, 32, 64)  # every so many rows
RIVALS = 4.0  # methods predicted slower than so many times the fastest are not tried
SURPRISE = 3.0  # iterations of a pilot, over those expected, at which it is given up


def refine(
    problem: Problem, setting: MethodSetting, tol: float, predictions: Sequence[Prediction]
) -> tuple[list[Prediction], float]:
    """Predictions with iterations from pilots where they are affordable, and the pilots' time."""
    goal = predictions[0].idealized_time
    rivals = [each for each in predictions if each.idealized_time <= RIVALS * goal]
    tried = [each for each in rivals if each.algorithm in PILOTED and each.alike]
    if len(rivals) < 2 or not tried or problem.network.size > problem.n_nodes:
        return list(predictions), 0.0
    step = affordable_step(problem, tried, SHARE * goal)
    part = None if step is None else part_of(problem, step)
    if step is None or part is None:
        return list(predictions), 0.0
    spent, found = 0.0, {}
    for each in tried:
        waiting = each.idealized_time - each.computing
        per_iteration = (each.computing / step + waiting) / each.iterations
        most = int(min(SURPRISE * each.iterations, (SHARE * goal - spent) / per_iteration))
        if most < 1:
            break
        stopping = Stopping(tol, most)
        quiet = Interrupts(())
        result = run(part, each.algorithm, setting, stopping, RunOptions(), quiet)
        spent += result.idealized_time
        if result.status == "converged":
            found[each.algorithm] = each.with_iterations(float(result.iterations))
        elif result.iterations > each.iterations:  # at least so many
            found[each.algorithm] = each.with_iterations(1.5 * result.iterations)
    better = [found.get(each.algorithm, each) for each in predictions]
    return sorted(better, key=lambda each: each.idealized_time), spent


def affordable_step(problem: Problem, tried: Sequence[Prediction], budget: float) -> int | None:
    """The least k for which pilots on every k-th row fit into the budget; None without one."""
    fewest = int(problem.sizes.min())
    for step in STEPS:
        waiting = sum(each.idealized_time - each.computing for each in tried)
        cost = waiting + sum(each.computing for each in tried) / step
        if fewest < step * FEWEST_ROWS:
            return None
        if cost <= budget:
            return step
    return None


def part_of(problem: Problem, step: int) -> Problem | None:
    """Every ``step``-th row of each node, with as much less regularisation; None if refused."""
    shards = []
    for node in problem.nodes.tolist():
        rows = problem.node_rows(node)
        X = slice_rows(problem.rows, problem.n_features, rows.start, rows.stop)[::step]
        shards.append((X, problem.labels[rows][::step], problem.weights[rows][::step]))
    shares = -(-problem.sizes // step) / problem.sizes
    try:
        sigma = np.asarray(problem.sigma * shares)
        return Problem(shards, problem.loss, sigma, network=problem.network)
    except AdfsError:  # such as one class only
        return None

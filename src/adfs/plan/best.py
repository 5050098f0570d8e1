"""`algorithm="best"`: the method that the plan recommends, and the next one if it does not hold.

A run that has not converged in `PATIENCE` times its predicted idealized time is left, and the next
method continues from its model. Decisions follow from the plan and the clock alone, so they are the
same in one process and on ranks.
"""

from dataclasses import replace

from adfs.algorithms.base import MethodSetting
from adfs.engine.interrupts import Interrupts
from adfs.engine.stopping import Stopping
from adfs.plan.planning import Plan, plan_choice
from adfs.plan.prediction import Prediction
from adfs.problem.finite_sum import Problem
from adfs.run import Choice, Result, RunOptions, run

PATIENCE = 2.5  # times the predicted idealized time, before the next method is tried
RIVALS = 3  # methods tried, at most; the last one has no such limit


def run_best(
    problem: Problem,
    algorithm: str,
    setting: MethodSetting,
    stopping: Stopping,
    options: RunOptions,
    interrupts: Interrupts,
) -> Result:
    """Run what the plan recommends; all ranks call it with the same arguments."""
    if not isinstance(setting.rule, str):  # parameters of one method, shared by many classes
        setting = setting._replace(rule="tuned")
    plan = plan_choice(problem, setting, stopping.tol)
    tried: list[tuple[str, float]] = []
    rivals = plan.predictions[:RIVALS]
    if options.checkpoints is not None:  # which belong to one method
        rivals = rivals[:1]
    for number, each in enumerate(rivals):
        limits = _limits(stopping, each, tried, is_last=number == len(rivals) - 1)
        result = run(problem, each.algorithm, setting, limits, options, interrupts)
        tried.append((each.algorithm, result.idealized_time))
        if not _is_late(result, limits, stopping):
            break
        options = options._replace(warm_start=result)
    return replace(result, choice=Choice(reason(plan, tried), plan.pilot_time, tuple(tried)))


def _limits(
    stopping: Stopping, each: Prediction, tried: list[tuple[str, float]], is_last: bool
) -> Stopping:
    """The run's own limits, and for all but the last method the time at which it is left."""
    spent = sum(time for _, time in tried)
    own = None if stopping.clock_limit is None else max(stopping.clock_limit - spent, 0.0)
    if is_last:
        return replace(stopping, clock_limit=own)
    patience = PATIENCE * each.idealized_time
    return replace(stopping, clock_limit=patience if own is None else min(own, patience))


def _is_late(result: Result, limits: Stopping, stopping: Stopping) -> bool:
    """Whether the run was left at the time of its prediction, and not at a limit of the user's."""
    if result.status == "diverged":
        return True
    reached = limits.clock_limit is not None and result.idealized_time >= limits.clock_limit
    own = stopping.clock_limit is not None and limits.clock_limit == stopping.clock_limit
    return result.status == "time_limit" and reached and not own


def reason(plan: Plan, tried: list[tuple[str, float]]) -> str:
    """One line: which method, and why."""
    text = plan.recommendation
    if len(tried) > 1:
        left = ", ".join(f"{name} (left at {time:,.3g})" for name, time in tried[:-1])
        text += f" It did not converge as predicted: {left}, then {tried[-1][0]}."
    return text

"""Seconds that algorithms take on the ranks of a problem, one after another.

`adfs.study.compare` measures against the optimum, which needs all rows in one process. Here a run
ends at a relative duality gap, which ranks compute together.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from adfs.algorithms.base import MethodSetting
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import named
from adfs.engine.run_controller import Callback
from adfs.engine.stopping import Stopping
from adfs.problem.finite_sum import Problem
from adfs.solver import RunOptions
from adfs.solver import run as solve
from adfs.study.contenders import Contender


class TimedRun(NamedTuple):
    """One run: the same on every rank.

    ``wall_time`` are seconds in the loop, without evaluations; ``setup_time`` those before it, on
    the rank that took longest.
    """

    label: str
    algorithm: str
    rule: str
    status: str
    wall_time: float
    setup_time: float
    iterations: int
    idealized_time: float
    n_prox: int
    n_grad: int
    n_comm: int
    bytes: int
    objective: float
    duality_gap: float
    relative_gap: float
    signal: int | None
    objective_at_zero: float


COUNTS = ("n_prox", "n_grad", "n_comm", "bytes")  # of the trace's last row


def time_runs(
    problem: Problem,
    contenders: Sequence[Contender],
    setting: MethodSetting,
    stopping: Stopping,
    timeout: float,
    interrupts: Interrupts,
    callback: Callback,
    watcher: Callback | None = None,
) -> list[TimedRun]:
    """Run one after another; a signal ends the one in progress, and no other one starts.

    With ranks, all of them call it together.
    """
    runs: list[TimedRun] = []
    for contender in contenders:
        if runs and runs[-1].status == "interrupted":
            break
        options = RunOptions(
            callbacks=(callback,), timeout=timeout, gather_thetas=False,
            watcher=named(watcher, contender.label, setting.seed),
        )  # fmt: skip
        rule = setting._replace(rule=contender.rule)
        result = solve(problem, contender.algorithm, rule, stopping, options, interrupts)
        last = result.trace.last()
        values: dict[str, Any] = {
            name: int(last[name] or 0) if name in COUNTS else getattr(result, name)
            for name in TimedRun._fields[1:]
        }
        values["setup_time"] = max(problem.network.gather(result.setup_time))
        runs.append(TimedRun(contender.label, **values))
    return runs


def fastest(runs: Sequence[TimedRun]) -> str | None:
    """The label of the run that converged in the fewest seconds; None where none did."""
    converged = [run for run in runs if run.status == "converged"]
    return min(converged, key=lambda run: run.wall_time).label if converged else None

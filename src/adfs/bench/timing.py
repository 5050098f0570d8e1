"""Seconds that algorithms take on the ranks of a problem, one after another.

`adfs.bench.compare` measures against the optimum, which needs all rows in one process. Here a run
ends at a relative duality gap, which ranks know.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from adfs.algorithms.base import Setting
from adfs.bench.contenders import Contender
from adfs.bench.progress import RunProgress
from adfs.problems.finite_sum import Problem
from adfs.runtime.course import Progress
from adfs.runtime.signals import Interrupts
from adfs.runtime.solve import Options, Result
from adfs.runtime.solve import run as solve
from adfs.runtime.stopping import Stopping


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


def time_runs(
    problem: Problem,
    contenders: Sequence[Contender],
    setting: Setting,
    stopping: Stopping,
    timeout: float,
    interrupts: Interrupts,
    callback: Callable[[RunProgress], Any],
) -> list[TimedRun]:
    """Run one after another; a signal ends the one in progress, and no other one starts.

    With ranks, all of them call it together.
    """
    runs: list[TimedRun] = []
    for contender in contenders:
        if runs and runs[-1].status == "interrupted":
            break
        result = solve(
            problem, contender.algorithm, setting._replace(rule=contender.rule), stopping,
            Options(
                callbacks=(_labelled(contender.label, setting.seed, callback),), timeout=timeout,
                gather_thetas=False,
            ),
            interrupts,
        )  # fmt: skip
        setup_time = max(problem.network.gather(result.setup_time))
        runs.append(_timed(contender, result, setup_time))
    return runs


def fastest(runs: Sequence[TimedRun]) -> str | None:
    """The label of the run that converged in the fewest seconds; None where none did."""
    arrived = [run for run in runs if run.status == "converged"]
    return min(arrived, key=lambda run: run.wall_time).label if arrived else None


def _labelled(
    label: str, seed: int, callback: Callable[[RunProgress], Any]
) -> Callable[[Progress], Any]:
    return lambda progress: callback(RunProgress(**vars(progress), label=label, seed=seed))


def _timed(contender: Contender, result: Result, setup_time: float) -> TimedRun:
    last = result.trace.last()
    n_prox, n_grad, n_comm, n_bytes = (
        int(last[name] or 0) for name in ("n_prox", "n_grad", "n_comm", "bytes")
    )
    return TimedRun(
        contender.label, contender.algorithm, contender.rule, result.status, result.wall_time,
        setup_time, result.iterations, result.idealized_time, n_prox, n_grad, n_comm, n_bytes,
        result.objective, result.duality_gap, result.relative_gap, result.signal,
    )  # fmt: skip

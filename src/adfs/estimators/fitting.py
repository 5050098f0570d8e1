"""From rows and targets to certified models: one problem per class or target, one schedule for all.

Problems that differ in their labels alone have the same condition numbers, so the parameters are
chosen once; with one seed they then execute the same events in the same order.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import require_same
from adfs.algorithms.base import MethodSetting
from adfs.data.scaling import Scaler, measure
from adfs.engine.evaluation import Evaluator, evaluation_steps
from adfs.engine.interrupts import Interrupts
from adfs.engine.run_controller import Callback, Progress
from adfs.engine.stopping import Stopping
from adfs.estimators.node_layout import RowLayout
from adfs.problem.finite_sum import Problem
from adfs.run import Result, RunOptions
from adfs.schedule.delays import Delays
from adfs.solver import run_named

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Target = tuple[Vector, Vector]  # labels and weights of one model; all models have the same rows


class Objective(NamedTuple):
    """Loss times ``factor``, ``sigma`` in total; targets over ``unit``, models times it."""

    loss: str
    sigma: float
    factor: float = 1.0
    unit: float = 1.0


class FitOptions(NamedTuple):
    """The options of a fit besides its data and its loss."""

    algorithm: str
    stopping: Stopping
    tau: float
    seed: int
    verbose: bool

    def setting(self, rule: Any) -> MethodSetting:
        """For parameters by this rule, or for these parameters."""
        delays = Delays(tau=self.tau)
        return MethodSetting(rule, self.tau, delays=delays, seed=self.seed, schedule="auto")


class FitTask(NamedTuple):
    """A fit once everything that a user gave is checked; ``weights`` include the factor."""

    rows: Any
    y: NDArray[Any]
    weights: Vector
    objective: Objective
    options: FitOptions
    layout: RowLayout
    scaler: Scaler | None = None


def standardized(task: FitTask) -> FitTask:
    """The task with standardised columns; all ranks call it together."""
    shards = task.layout.shards(task.rows, task.y, task.weights)
    is_scaled = np.ones(task.rows.shape[1], dtype=bool)
    scaler = measure(task.layout.network(), shards, is_scaled)
    return task._replace(rows=scaler.scaled(task.rows), scaler=scaler)


def train(
    task: FitTask,
    targets: Sequence[Target],
    starts: Matrix | None = None,
    evaluator: Callable[[Problem], Evaluator] = lambda problem: evaluation_steps,
) -> list[Result]:
    """Minimise one problem per target to ``tol``.

    The rows are copied once; a rank has those of its own nodes. After Ctrl-C the remaining models
    stay at their start. ``evaluator`` makes the evaluation of a problem.
    """
    layout, options, (loss, sigma, *_) = task.layout, task.options, task.objective
    rule = "warm_start=True continues from one model on all ranks"
    way_out = "fit all ranks together from the beginning."
    require_same(layout.ranks, {"start": starts}, way_out, rule)
    shards = layout.shards(task.rows, *targets[0])
    problem = Problem(shards, loss, sigma / layout.topology.n_nodes, network=layout.network())
    parameters: Any = None
    results: list[Result] = []
    for k, (labels, weights) in enumerate(targets):
        if k > 0:
            problem = problem.with_targets(labels[layout.order], weights[layout.order])
        # Other weights need other parameters, and so another schedule.
        is_shared = hasattr(parameters, "belongs_to") and parameters.belongs_to(problem)
        setting = options.setting(parameters if is_shared else "tuned")
        start = None if starts is None else starts[k]
        printers = progress_printers(options.verbose, k, len(targets))
        how = RunOptions(start, "curve", printers, evaluate=evaluator(problem))
        with Interrupts() as interrupts:
            result = run_named(
                problem, options.algorithm, setting, options.stopping, how, interrupts
            )
        parameters = result.parameters
        results.append(without_rows(result))
        if result.status == "interrupted":
            stopped = dataclasses.replace(options.stopping, max_iter=0)
            options = options._replace(stopping=stopped)
    return results


def without_rows(result: Result) -> Result:
    """The result as an estimator keeps it, which is pickled and kept for long.

    The text of its parameters does not keep the rows alive, as the parameters would, and duals are
    as many as the rows.
    """
    parameters = str(result.parameters)
    return dataclasses.replace(result, parameters=parameters, execution=None, duals=None)


def progress_printers(verbose: bool, k: int, count: int) -> tuple[Callback, ...]:
    """For ``verbose``: prints a line per evaluation, as scikit-learn's solvers do."""
    which = f" model {k + 1} of {count}," if count > 1 else ""

    def show(progress: Progress) -> None:
        reading = progress.reading
        print(
            f"[adfs]{which} iteration {progress.iteration}: objective {reading.objective:.10g}, "
            f"relative gap {reading.gap_text} (tol {progress.tol:g})",
            flush=True,
        )

    return (show,) if verbose else ()

"""From rows and targets to certified models: one problem per class or target, one schedule for all.

Problems that differ in their labels alone have the same condition numbers, so the parameters are
chosen once; with one seed they then execute the same events in the same order.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import MethodSetting
from adfs.engine.evaluation import Evaluator, evaluation_steps
from adfs.engine.interrupts import Interrupts
from adfs.engine.run_controller import Callback, Progress
from adfs.engine.stopping import Stopping
from adfs.estimators.node_layout import RowLayout
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.solver import Result, RunOptions, run

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class FitOptions(NamedTuple):
    """The options of a fit besides its data and its loss."""

    algorithm: str
    stopping: Stopping
    tau: float
    seed: int
    verbose: bool


class Target(NamedTuple):
    """Labels and weights of one model; all models of a fit have the same rows."""

    labels: Vector
    weights: Vector


def train(
    X: Any,
    targets: Sequence[Target],
    loss: str,
    sigma: float,
    options: FitOptions,
    layout: RowLayout,
    starts: Matrix | None = None,
    evaluator: Callable[[Problem], Evaluator] = lambda problem: evaluation_steps,
) -> list[Result]:
    """Minimise one problem per target to ``tol``, with ``sigma`` in total.

    The rows are copied once; a rank has those of its own nodes. After Ctrl-C the remaining models
    stay at their start. ``evaluator`` makes the evaluation of a problem.
    """
    layout.ranks.require_same(
        "warm_start=True continues from one model on all ranks",
        "fit all ranks together from the beginning.", start=starts,
    )  # fmt: skip
    per_node = sigma / layout.topology.n_nodes
    problem = Problem(layout.shards(X, *targets[0]), loss, per_node, network=layout.network())
    parameters: Any = None
    results: list[Result] = []
    for k, (labels, weights) in enumerate(targets):
        if k > 0:
            problem = problem.with_targets(labels[layout.order], weights[layout.order])
        # Other weights need other parameters, and so another schedule.
        is_shared = hasattr(parameters, "belongs_to") and parameters.belongs_to(problem)
        setting = MethodSetting(
            parameters if is_shared else "tuned",
            options.tau, delays=Delays(tau=options.tau), seed=options.seed,
        )  # fmt: skip
        start = None if starts is None else starts[k]
        printers = progress_printers(options.verbose, k, len(targets))
        with Interrupts() as interrupts:
            result = run(
                problem, options.algorithm, setting, options.stopping,
                RunOptions(start, "curve", printers, evaluate=evaluator(problem)), interrupts,
            )  # fmt: skip
        parameters = result.parameters
        # An estimator is pickled and kept for long: the text of its parameters does not keep the
        # rows alive, as the parameters would.
        results.append(dataclasses.replace(result, parameters=str(parameters), execution=None))
        if result.status == "interrupted":
            stopped = dataclasses.replace(options.stopping, max_iter=0)
            options = options._replace(stopping=stopped)
    return results


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

"""From rows and targets to certified models: one problem a class or target, one schedule for all.

Problems that differ in their labels alone have the same condition numbers, so the parameters are
chosen once; with one seed they then execute the same events in the same order.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Setting
from adfs.estimators.layout import Layout
from adfs.estimators.options import Options
from adfs.problems.finite_sum import Problem
from adfs.runtime.course import Callback, Progress
from adfs.runtime.evaluation import Evaluate, reading_steps
from adfs.runtime.signals import Interrupts
from adfs.runtime.solve import Options as RunOptions
from adfs.runtime.solve import Result, run
from adfs.schedule.delays import Delays

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Target(NamedTuple):
    """What tells one model from the others on the same rows."""

    labels: Vector
    weights: Vector


def build_problems(
    X: Any, targets: Sequence[Target], loss: str, sigma: float, layout: Layout
) -> list[Problem]:
    """One problem a target, with ``sigma`` in total; the rows are copied once.

    Among ranks, each has the rows of its own nodes.
    """
    shards = layout.shards(X, targets[0].labels, targets[0].weights)
    every = sigma / layout.topology.n_nodes
    first = Problem(shards, loss, every, network=layout.network())
    order = layout.order
    others = targets[1:]
    return [first] + [first.with_targets(t.labels[order], t.weights[order]) for t in others]


def train(
    problems: Sequence[Problem], options: Options, starts: Matrix | None = None
) -> list[Result]:
    """Minimise each problem to ``tol``; after Ctrl-C the remaining ones stay where they start."""
    rule: Any = "tuned"
    results: list[Result] = []
    for k, problem in enumerate(problems):
        if not (isinstance(rule, str) or rule.belongs_to(problem)):
            rule = "tuned"  # other weights, so another schedule
        start = None if starts is None else starts[k]
        result = minimise(problem, options, rule, start, speaker(options, k, len(problems)))
        rule = shareable(result.parameters)
        results.append(keepable(result))
        options = after(result, options)
    return results


def minimise(
    problem: Problem, options: Options, rule: Any, start: Vector | None, callback: Callback | None,
    evaluate: Evaluate = reading_steps,
) -> Result:  # fmt: skip
    """Minimise a problem on its network; a Ctrl-C that any process has ends it on all."""
    setting = Setting(rule, options.tau, delays=Delays(tau=options.tau), seed=options.seed)
    callbacks = () if callback is None else (callback,)
    with Interrupts() as interrupts:
        return run(
            problem, options.algorithm, setting, options.stopping,
            RunOptions(start, "curve", callbacks, evaluate=evaluate), interrupts,
        )  # fmt: skip


def after(result: Result, options: Options) -> Options:
    """The options of the next model: after Ctrl-C, no iterations."""
    if result.status != "interrupted":
        return options
    return options._replace(stopping=dataclasses.replace(options.stopping, max_iter=0))


def shareable(parameters: Any) -> Any:
    """The parameters themselves where another problem can be given them, else the rule."""
    return parameters if hasattr(parameters, "belongs_to") else "tuned"


def keepable(result: Result) -> Result:
    """``result`` with the text of its parameters: the object would keep all rows alive.

    An estimator is pickled and kept for long, and must not carry the data it was trained on.
    """
    return dataclasses.replace(result, parameters=str(result.parameters), execution=None)


def speaker(options: Options, k: int, count: int) -> Callback | None:
    """For ``verbose``: what prints a line an evaluation, as scikit-learn's solvers do."""
    if not options.verbose:
        return None
    which = f" model {k + 1} of {count}," if count > 1 else ""

    def speak(progress: Progress) -> None:
        reading = progress.reading
        print(
            f"[adfs]{which} iteration {progress.iteration}: objective {reading.objective:.10g}, "
            f"relative gap {reading.relative_gap:.2g} (tol {progress.tol:g})",
            flush=True,
        )

    return speak

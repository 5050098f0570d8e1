"""From rows and targets to certified models: one problem a class or target, one schedule for all.

Problems that differ in their labels alone have the same condition numbers, so the parameters are
chosen once; with one seed they then execute the same events in the same order.
"""

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Setting
from adfs.estimators.layout import Layout
from adfs.estimators.options import Options
from adfs.losses import get_loss
from adfs.problems.finite_sum import Problem
from adfs.runtime.course import Callback, Progress
from adfs.runtime.signals import Interrupts
from adfs.runtime.solve import Result, solve
from adfs.schedule.delays import Delays
from adfs.theory.non_smooth import NonSmoothParameters
from adfs.theory.parameters import Parameters

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

    Among ranks, the rank's share of each.
    """
    shards = layout.shards(X, targets[0].labels, targets[0].weights)
    first = _problem(shards, loss, sigma / layout.topology.n_nodes, layout)
    if first.loss.smooth:
        _ = first.conditioning  # made now, so that the copies below share it
    return [first] + [_sibling(first, target, layout) for target in targets[1:]]


def _problem(shards: Sequence[Any], loss: str, sigma: float, layout: Layout) -> Problem:
    if layout.peers.size == 1:
        return Problem(shards, loss, sigma, layout.topology)
    from adfs.distributed.mapping import Mapping
    from adfs.distributed.share import Share

    classes = np.array([-1.0, 1.0]) if get_loss(loss).binary else None
    mapping = Mapping(layout.rank_of, layout.peers.size)
    every = np.full(layout.topology.n_nodes, sigma)
    return Share(layout.peers, shards, loss, every, layout.topology, mapping, classes)


def _sibling(first: Problem, target: Target, layout: Layout) -> Problem:
    """The same rows with other labels, and other weights if they are others."""
    other = copy.copy(first)
    other.labels = np.ascontiguousarray(target.labels[layout.order])
    weights = target.weights[layout.order]
    # All ranks take the new weights or none: what follows from them is computed together.
    if any(layout.peers.gather(not np.array_equal(weights, first.weights))):
        other.weights = np.ascontiguousarray(weights)
        other.__dict__.pop("conditioning", None)
        other.__dict__.pop("reach", None)
        if layout.peers.size > 1:
            other.__dict__.update(_conditioning=None, _reach=None)
    return other


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
        result = _minimise(problem, options, rule, start, speaker(options, k, len(problems)))
        rule = shareable(result.parameters)
        results.append(keepable(result))
        options = after(result, options)
    return results


def _minimise(
    problem: Problem, options: Options, rule: Any, start: Vector | None, callback: Callback | None
) -> Result:
    if is_share(problem):
        return minimise_on_ranks(problem, options, rule, start, callback)
    return solve(
        problem, options.algorithm, options.stopping.tol, options.stopping.max_iter,
        tau=options.tau, parameters=rule, seed=options.seed, callback=callback, warm_start=start,
        progress=False, evaluate_every="curve",
    )  # fmt: skip


def is_share(problem: Problem) -> bool:
    """Whether the problem is one rank's share of it."""
    return hasattr(problem, "peers")


def minimise_on_ranks(
    share: Any, options: Options, rule: Any, start: Vector | None, callback: Callback | None,
    reading: Any = None,
) -> Result:  # fmt: skip
    """The same run as in one process, on ranks; a Ctrl-C that any of them has ends it on all."""
    from adfs.distributed.solve import solve_on_ranks

    setting = Setting(rule, options.tau, delays=Delays(tau=options.tau), seed=options.seed)
    callbacks = () if callback is None else (callback,)
    share.peers.limit = None  # one rank may have more rows to look at than another
    with Interrupts() as interrupts:
        result, _ = solve_on_ranks(
            share.peers, share, options.algorithm, options.stopping, setting, start, "curve",
            callbacks=callbacks, interrupts=interrupts, reading=reading,
        )  # fmt: skip
    return result


def after(result: Result, options: Options) -> Options:
    """The options of the next model: after Ctrl-C, no iterations."""
    if result.status != "interrupted":
        return options
    return options._replace(stopping=dataclasses.replace(options.stopping, max_iter=0))


def shareable(parameters: Any) -> Any:
    """The parameters themselves where another problem can be given them, else the rule."""
    return parameters if isinstance(parameters, Parameters | NonSmoothParameters) else "tuned"


def keepable(result: Result) -> Result:
    """``result`` with the text of its parameters: the object would keep all rows alive.

    An estimator is pickled and kept for long, and must not carry the data it was trained on.
    """
    return dataclasses.replace(result, parameters=str(result.parameters))


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

"""What a run of a method will take: iterations, idealized time, messages, and what limits it.

Iterations come from theory and from what runs have been seen to need (`Method.typical`), time and
messages from the method's own clock and counts over a short piece of its schedule.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms.base import ONE_MACHINE, REGISTRY, Counts, Method, MethodSetting, usual_names
from adfs.errors import ParameterError
from adfs.plan.sizes import Sizes
from adfs.problem.finite_sum import Problem

MOST_EVENTS = 300_000  # of a schedule that is timed
MOST_DRAWS = 2_000_000  # of random delays, one per sample step
ALL_REDUCE = ("newton", "lbfgs", "tron")  # predicted by formulas, in no time
TUNED_GAIN = 1.1  # of ADFS's tuned parameters over exact ones, as usual (docs/tuning.md)
CHANCE = 2.5  # the formulas of `Sizes` are good to about a factor 2
DUAL = ("msda", "ssda", "esdacd")  # charged one pass for the minimiser of a node's own objective
LONG = 3.0  # passes per factor e, above which conditioning limits a method, not its computing


class Prediction(NamedTuple):
    """A method's predicted run from zero to a relative gap.

    ``computing`` is the part of the idealized time in which the busiest node computes, and
    ``work`` what all nodes compute, both in proximal steps. ``limit`` is ``computing``, ``visits``
    (every sample has to be seen), ``conditioning`` (many passes) or ``network``; ``basis`` says
    where the number of iterations comes from: ``theory`` or ``pilot``. ``seconds`` are known where
    the costs have those of a proximal step, else None. A method that chooses its kinds of rounds on
    its way is not ``alike``: their number does not say how long it takes. Kinds repeat after a
    ``period``.
    """

    algorithm: str
    iterations: float
    idealized_time: float
    computing: float
    work: float
    n_comm: float
    bytes: float
    limit: str
    basis: str
    seconds: float | None = None
    alike: bool = True
    period: int = 1

    def with_iterations(self, iterations: float, basis: str = "pilot") -> "Prediction":
        """The same method with other iterations, such as those that a pilot has found."""
        scale = iterations / self.iterations
        names = ("idealized_time", "computing", "work", "n_comm", "bytes")
        scaled = {name: scale * getattr(self, name) for name in names}
        seconds = None if self.seconds is None else scale * self.seconds
        return self._replace(iterations=iterations, basis=basis, seconds=seconds, **scaled)


def predict(
    problem: Problem, name: str, setting: MethodSetting, tol: float, ranks: int | None = None
) -> Prediction:
    """Predict a run of the method ``name`` from zero to the relative gap ``tol``.

    Seconds are those on ``ranks`` processes, each with a core of its own; by default as many as the
    problem is spread over, or one per node where it is in one process.
    """
    method = REGISTRY[name](problem, setting)
    iterations = max(1.0, expected_iterations(method, tol))
    clock, counts, n_events = timed(method, iterations, setting.delays.law != "constant")
    scale = iterations / n_events
    busy = float(np.max(clock.busy))
    passes = iterations * method.work / problem.n_samples / math.log(1.0 / min(tol, 0.5))
    return Prediction(
        algorithm=name,
        iterations=iterations,
        idealized_time=scale * clock.time,
        computing=scale * busy,
        work=scale * float(np.sum(clock.busy)),
        n_comm=scale * counts.n_comm,
        bytes=scale * counts.bytes,
        limit=_limit(method, busy / clock.time if clock.time > 0.0 else 1.0, passes),
        basis="theory",
        seconds=_seconds(problem, setting, clock, scale, ranks),
        alike=not hasattr(method.algorithm, "executed"),
        period=getattr(method.source, "period", 1),
    )


def _seconds(
    problem: Problem, setting: MethodSetting, clock: Any, scale: float, ranks: int | None
) -> float | None:
    """What a rank waits, and what the busiest one computes for all of its nodes."""
    seconds = setting.costs.of(problem).seconds
    if np.isnan(seconds).any():
        return None
    n, network = problem.n_nodes, problem.network
    size = ranks or (n if network.is_whole else network.size)
    rank_of = np.arange(n) * min(size, n) // n if network.is_whole else network.rank_of
    computing = float(np.bincount(rank_of, clock.busy * seconds).max())
    waiting = max(0.0, clock.time - float(np.max(clock.busy)))
    return scale * (computing + (waiting * float(seconds.max()) if size > 1 else 0.0))


def expected_iterations(method: Method, tol: float) -> float:
    """Iterations from a relative gap of 1 to ``tol``: as seen in runs, else as theory has them."""
    if method.typical is not None:
        return method.typical(tol)
    if method.needed is not None:
        return method.needed(tol)
    return math.log(1.0 / min(tol, 0.5)) / method.rho if method.rho > 0.0 else math.inf


def timed(method: Method, iterations: float, is_random: bool) -> tuple[Any, Counts, int]:
    """The method's clock and counts after a first piece of its schedule, and the piece's length."""
    most = MOST_DRAWS / max(1.0, method.work) if is_random else MOST_EVENTS
    n_events = math.ceil(min(iterations, max(2.0, min(most, MOST_EVENTS))))
    events = (method.timing or method.source).draw(0, n_events)
    clock = method.clock.copy()
    clock.advance(events)
    return clock, method.algorithm.counts(events), n_events


def _limit(method: Method, busy: float, passes: float) -> str:
    """What to change to be faster; ``busy`` is the busiest node's share of the time."""
    if busy < 0.5:
        return "network"
    if getattr(method.parameters, "visits_bind", False):
        return "visits"
    return "conditioning" if passes > LONG else "computing"


def reason_against(name: str, n_nodes: int) -> str | None:
    """Why a method is not planned on so many nodes; None if it is."""
    if n_nodes > 1 and name in ONE_MACHINE:
        return "It is for one machine that holds all samples."
    if n_nodes == 1 and name in DUAL:
        return "It is for several nodes: on one node, its dual gradient is the whole problem."
    return None


def predict_all(
    problem: Problem, setting: MethodSetting, tol: float, names: list[str] | None = None,
    ranks: int | None = None,
) -> tuple[list[Prediction], dict[str, str]]:  # fmt: skip
    """Predictions of all methods that take the problem, fastest first; and why others do not."""
    return _predict_each(usual_names() if names is None else names, problem, setting, tol, ranks)


def predict_likely(
    problem: Problem, setting: MethodSetting, tol: float
) -> tuple[list[Prediction], dict[str, str]]:
    """The same without methods that are not expected to win, which saves their set-up.

    Left out is what by the formulas of `Sizes` takes more than `CHANCE` times the shortest
    prediction. The formulas know no random delays and no slow nodes, with which a method only takes
    longer. Where delays are constant, ADFS is predicted with the parameters ``exact``, and
    `TUNED_GAIN`: choosing ``tuned`` takes ten times as long.
    """
    rough = Sizes.of(problem, setting.tau, setting.costs).runs(tol)
    others = sorted(set(rough) - set(ALL_REDUCE), key=lambda name: rough[name].time)
    first = [name for name in usual_names() if name not in others]
    found, refused = _predict_each(first, problem, setting, tol, None)
    for name in others:
        goal = CHANCE * min((each.idealized_time for each in found), default=math.inf)
        if rough[name].time > goal:
            break
        quicker, gain = setting, 1.0
        if (name, setting.rule) == ("adfs", "tuned") and setting.delays.is_constant:
            quicker, gain = setting._replace(rule="exact"), TUNED_GAIN
        more, also_refused = _predict_each([name], problem, quicker, tol, None)
        found += [each.with_iterations(each.iterations / gain, each.basis) for each in more]
        refused |= also_refused
    return sorted(found, key=lambda each: each.idealized_time), refused


def _predict_each(
    names: Iterable[str], problem: Problem, setting: MethodSetting, tol: float, ranks: int | None
) -> tuple[list[Prediction], dict[str, str]]:
    found, refused = [], {}
    for name in names:
        if (why := reason_against(name, problem.n_nodes)) is not None:
            refused[name] = why
            continue
        try:
            found.append(predict(problem, name, setting, tol, ranks))
        except ParameterError as error:
            refused[name] = str(error)
    return sorted(found, key=lambda each: each.idealized_time), refused

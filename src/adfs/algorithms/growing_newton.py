"""Newton's method on growing samples, for nodes with many rows: the tuned form of `newton`.

First steps are taken on samples of the rows (`nested_samples`), each level with a Hessian of its
own. A sample is a smaller problem with the same minimiser but for its statistical error, so

- it has more regularisation than its share of all rows: in all, ``sum sigma`` and ``1 / share - 1``
  times the curvature of a mean row (at 0), because a feature that is rare in the sample would
  otherwise get a weight from which Newton's method at all rows does not come back;
- it is left once the next decrement ``g . H^-1 g`` is expected below that error,
  ``d (1 / share - 1) tr G / tr H``, G the sum of the squared gradients of single rows.

A step is expected to leave the part ``curve sqrt(decrement)`` of a decrement, with the ``curve`` of
the last step. At all rows the Hessian may be that of the sample below, if ``sum sigma`` is at least
the curvature of two mean rows, because a step along a feature that the sample does not have ends at
the regularisation only. It leaves more, by four times d over the rows of that sample, or as much as
the worst such step left. A step with the Hessian of an earlier point leaves four times as much as
its own, or what the last such step left. The next evaluation has the Hessian with which the
decrement falls most per time.

At all rows this is Newton's method with its damping. Two things end the savings there: a step that
fails with a Hessian that is not its point's own is followed by an evaluation with it; and if the
first step from the point that samples led to fails, Newton's method begins at 0.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Vector
from adfs.algorithms.descent import messages
from adfs.algorithms.nested_samples import NestedSamples
from adfs.algorithms.newton import (
    BLOCK,
    Newton,
    NewtonParameters,
    NewtonState,
    evaluation_costs,
    usual_steps,
)
from adfs.costs import NodeCosts
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost, RoundClock, Rounds
from adfs.threads import one_blas_thread

GROWTHS = (8, 16, 32, 64)  # of the sample from level to level: the first that is cheap enough
LEAST = 50  # rows per feature in a sample
# Most time of all samples, over that of one evaluation at all rows. A run has three of these or
# more, so it loses at most 10 % where samples gain nothing.
SHARE = 0.3
OPENING = 2  # evaluations that the first sample usually takes; the others take one
STALE = 4.0  # what a step with an earlier Hessian leaves, over what a step with its own leaves
SAMPLED = 4.0  # what a step with a sample's Hessian leaves more, over d / rows of the sample
ENOUGH = 2.0  # mean rows, whose curvature sum sigma has at least where such steps are taken
DIGITS = math.log(1e4)  # most that a step at all rows is credited with: runs end


def choose_shares(
    n_samples: int, n_features: int, time_of: Callable[[float], float]
) -> tuple[float, ...]:
    """Shares of the rows in nested samples; only 1 where samples are not expected to pay.

    ``time_of`` is the time of an evaluation on a share of the rows. Samples save at least one
    evaluation at all rows, and may take `SHARE` of it.

    Examples
    --------
    >>> choose_shares(10_000, 20, lambda share: 100.0 * share + 1.0)
    (0.125, 1.0)
    >>> choose_shares(10_000, 20, lambda share: 100.0 * share + 40.0)
    (1.0,)
    """
    for growth in GROWTHS:
        chains: list[tuple[float, tuple[float, ...]]] = []
        smallest = 1.0 / growth
        while n_samples * smallest >= LEAST * n_features:
            above = chains[-1][1] if chains else (1.0,)
            shares = (smallest, *above)
            time = (OPENING - 1) * time_of(smallest) + sum(time_of(each) for each in shares[:-1])
            chains.append((time, shares))
            smallest /= growth
        time, shares = min(chains, default=(math.inf, (1.0,)))
        if time <= SHARE * time_of(1.0):
            return shares
    return (1.0,)


@dataclass
class GrowingState(NewtonState):
    """State of a run: beside Newton's, the sample in use, and what was learnt."""

    level: int = 0  # sample of the next evaluation
    keeps: bool = False  # the next evaluation keeps the Hessian
    sampled: bool = False  # or its Hessian is that of the sample below all rows
    center: Vector = field(default_factory=lambda: np.zeros(0))  # where the Hessian was taken
    bend: int = 0  # its sample
    ridge: float = 0.0  # regularisation in it, beside sum sigma
    stale: bool = False  # the Hessian is not that of theta
    curve: float = math.inf  # what a step leaves, over the root of the decrement
    sampled_left: float = 0.0  # what one with the Hessian of the sample below leaves more
    left: float = math.inf  # what a step with an earlier Hessian leaves
    row: float = 0.0  # curvature of a mean row
    unit: float = 0.0  # statistical error, over 1 / share - 1
    careful: bool = False  # a step has failed at this level
    settled: bool = False  # a step at all rows was taken, or begins at 0
    spent: float = 0.0  # time so far
    kinds: list[int] = field(default_factory=list)  # of the evaluations in the last block


class GrowingNewton(Newton[GrowingState]):
    """Newton's method on nested samples.

    There are two kinds of evaluations per sample, with a Hessian and without, and last the one at
    all rows with the Hessian of the sample below; ``times`` are in that order.
    """

    new_state = GrowingState
    vectors = (*Newton.vectors, "center")
    numbers = (
        *Newton.numbers, "level", "keeps", "sampled", "bend", "ridge", "stale", "curve",
        "sampled_left", "left", "row", "unit", "careful", "settled", "spent",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, parameters: NewtonParameters, samples: NestedSamples,
        times: Vector,
    ) -> None:  # fmt: skip
        super().__init__(problem, parameters)
        self.samples, self._times = samples, times
        self._odds = [1.0 / share - 1.0 for share in samples.shares]
        self.prices = [
            self._price(level, with_hessian)
            for level in range(samples.last + 1)
            for with_hessian in (True, False)
        ]
        self.prices.append(self.prices[2 * samples.last])
        self._sampled = 2 * samples.last + 2
        samples.load_kernels()

    def _price(self, level: int, with_hessian: bool) -> base.Counts:
        d = self.problem.n_features
        n_numbers = d + 1 + (level < self.samples.last) + with_hessian * d * (d + 1) // 2
        price = messages(self.problem.n_nodes, n_numbers, d)
        return price._replace(n_grad=int(self.samples.sizes[level].sum()))

    def init(self, theta: Vector | None = None) -> GrowingState:
        """A model to start from is improved at all rows."""
        state = super().init(theta)
        state.center = state.theta
        state.level, state.settled = (0, False) if theta is None else (self.samples.last, True)
        state.sampled_left = SAMPLED * len(state.theta) / float(self.samples.sizes[-2].sum())
        return state

    def step(self, state: GrowingState, events: Events) -> GrowingState:
        state.kinds = []
        return super().step(state, events)

    def executed(self, state: GrowingState, events: Events) -> Events:
        """The block with the kinds of evaluations that it came to be."""
        return events._replace(which=np.array(state.kinds, dtype=np.int32))

    def _evaluate(self, state: GrowingState) -> None:
        kind = self._sampled if state.sampled else 2 * state.level + state.keeps
        state.kinds.append(kind)
        state.spent += float(self._times[kind])
        objective, gradient, spread = self._values(state)
        is_first, before = np.isinf(state.objective), -state.slope
        at_all = state.level == self.samples.last
        was_stale, was_sampled = state.stale, state.bend < state.level
        good = self._is_good(state, 1.0, objective, float(state.direction @ gradient))
        learns = good and not is_first and state.damping == 0.0
        if good:
            state.trusted = state.trusted if is_first else state.damping == 0.0
            self._take(state, objective, gradient)
            state.stale = state.keeps
            if not state.stale:
                self._bend(state)
            state.settled = state.settled or (at_all and not is_first)
        elif state.stale or state.bend < state.level:
            self._go_back(state, state.theta)
            return
        elif at_all and not state.settled:
            self._go_back(state, np.zeros_like(state.theta))
            return
        else:
            self._refuse(state)
            state.careful = True
        self._aim(state)
        if learns:
            self._learn(state, before, was_stale, was_sampled)
        if state.level < self.samples.last:
            d = len(state.theta)
            sigma = self.problem.total_sigma + state.ridge
            curvature = float(np.trace(state.hessian)) - d * sigma
            state.unit = d * spread / curvature if curvature > 0.0 else 0.0
        self._choose(state)

    def _go_back(self, state: GrowingState, theta: Vector) -> None:
        """Evaluate a point with its own Hessian, whatever F there."""
        state.trial, state.objective = theta, math.inf
        state.keeps = state.sampled = state.trusted = False
        state.careful = True
        state.settled = state.settled or state.level == self.samples.last

    def _values(self, state: GrowingState) -> tuple[float, Vector, float]:
        """The sample's objective, gradient and squared gradients at the trial point."""
        theta, more = state.trial, self._odds[state.level] * state.row
        objective, gradient, spread = self.samples.objective_and_gradient(theta, state.level)
        return objective + 0.5 * more * float(theta @ theta), gradient + more * theta, spread

    def _bend(self, state: GrowingState) -> None:
        """Compute the Hessian at ``theta``, which is 0 in the first evaluation of a run."""
        state.center, state.bend = state.theta, state.level - state.sampled
        hessian = self._plain_hessian(state)
        if state.level == 0 and len(state.hessian) == 0:
            losses = float(np.trace(hessian)) - len(hessian) * self.problem.total_sigma
            state.row = max(0.0, losses) / self.problem.n_samples
        state.ridge = self._odds[state.level] * state.row
        state.hessian = self._regularised(state, hessian)

    def _plain_hessian(self, state: GrowingState) -> base.Matrix:
        """That of the sample, with the regularisation of all rows."""
        add = functools.partial(self.samples.add_hessian, state.center, state.bend)
        return self._sum_of_hessians(add)

    def _regularised(self, state: GrowingState, hessian: base.Matrix) -> base.Matrix:
        hessian[np.diag_indices_from(hessian)] += state.ridge
        return hessian

    def _learn(
        self, state: GrowingState, before: float, was_stale: bool, was_sampled: bool
    ) -> None:
        """What the step that was taken has left of the decrement."""
        left = -state.slope / before if before > 0.0 else 0.0
        if was_stale:
            state.left = left
        elif was_sampled:
            state.sampled_left = max(state.sampled_left, left)
        else:
            state.curve = left / math.sqrt(before) if before > 0.0 else 0.0

    def _choose(self, state: GrowingState) -> None:
        """The sample of the next evaluation, and its Hessian."""
        decrement = max(0.0, -state.slope)
        fresh = self._left(state, decrement)
        if state.bend < state.level:
            fresh += state.sampled_left
        if not state.stale:
            state.left = fresh + (STALE - 1.0) * self._left(state, decrement)
        expected = decrement * (state.left if state.stale else fresh)
        state.keeps = state.sampled = False
        if state.level < self.samples.last:
            error = state.unit * self._odds[state.level]
            level = state.level + (expected <= error and state.damping == 0.0)
            if state.spent + self._times[2 * level] > SHARE * self._times[2 * self.samples.last]:
                level = self.samples.last
            if level > state.level:
                state.level, state.careful = level, False
                state.objective = math.inf  # of another function
                self._choose_hessian(state, max(expected, error), math.inf)
                return
        self._choose_hessian(state, expected, state.left)

    def _left(self, state: GrowingState, decrement: float) -> float:
        """What a step is expected to leave of a decrement."""
        return state.curve * math.sqrt(decrement)

    def _choose_hessian(self, state: GrowingState, decrement: float, left: float) -> None:
        """The one with which the decrement falls most per time; an earlier one leaves ``left``."""
        fresh = self._left(state, decrement)
        if state.careful or state.damping > 0.0 or not fresh < 1.0:
            return
        options = [(fresh, 2 * state.level), (left, 2 * state.level + 1)]
        enough = 0.0 < ENOUGH * state.row <= self.problem.total_sigma
        if enough and state.level == self.samples.last:
            options.append((fresh + state.sampled_left, self._sampled))
        falls = {
            kind: min(DIGITS, -math.log(part) if part > 0.0 else DIGITS) / self._times[kind]
            for part, kind in options
            if part < 1.0
        }
        best = max(falls, key=falls.__getitem__)
        state.keeps, state.sampled = best == 2 * state.level + 1, best == self._sampled

    def restore(self, state: GrowingState, shared: base.Named) -> None:
        super(Newton, self).restore(state, shared)
        for name in ("level", "bend", "keeps", "sampled"):
            setattr(state, name, int(getattr(state, name)))
        if state.spent > 0.0:
            with one_blas_thread():
                state.hessian = self._regularised(state, self._plain_hessian(state))


def prepare_growing(
    problem: Problem, chosen: NewtonParameters, costs: NodeCosts, setting: base.MethodSetting
) -> base.Method | None:
    """The method on growing samples; None where they are not expected to pay."""

    def times(every: list[Cost]) -> Vector:
        edges = problem.topology.edges
        return RoundClock(every, edges, problem.n_nodes, setting.delays).lengths

    shares = choose_shares(
        problem.n_samples,
        problem.n_features,
        lambda share: float(times(evaluation_costs(problem, costs, share))[0]),
    )
    if len(shares) == 1:
        return None
    every = [cost for share in shares for cost in evaluation_costs(problem, costs, share)]
    every.append(evaluation_costs(problem, costs, 1.0, shares[-2])[0])
    samples = NestedSamples(problem, shares, setting.seed)
    algorithm = GrowingNewton(
        problem,
        dataclasses.replace(chosen, shares=shares),
        samples,
        times(every),
    )
    opening = [0] * (OPENING - 1) + list(range(0, 2 * samples.last, 2))
    return base.method_in_rounds(
        algorithm, setting, every, Rounds([2 * samples.last + 2], opening), block=BLOCK, shortest=1,
        work=problem.n_samples,
        typical=functools.partial(_usual, problem, len(opening), samples.last),
    )  # fmt: skip


def _usual(problem: Problem, n_opening: int, n_levels: int, tol: float) -> float:
    """Evaluations that runs took: every sample saves one at all rows, but at least two are left."""
    whole = usual_steps(problem.conditioning.kappa_b(), tol) - n_levels
    return n_opening + max(2.0, whole)

"""L-BFGS over an all-reduce (Nocedal, 1980): a baseline outside the paper.

One event is one evaluation: every node computes the losses and the gradient of its samples at the
trial point, an all-reduce adds them, and every node, holding the same numbers, does the same
next: it takes the point or shortens the step (`descent.sufficient`), and moves along

    direction = -H gradient,   H = the two-loop recursion (Nocedal and Wright, Algorithm 7.4)

on the last pairs ``s = theta_k+1 - theta_k``, ``y = gradient_k+1 - gradient_k``. Why there is no
search for a longer step: docs/algorithms/lbfgs.md.
"""

import functools
import math
from dataclasses import dataclass, field

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Vector
from adfs.algorithms.descent import Descent, DescentState, shortened
from adfs.problem.finite_sum import Problem
from adfs.schedule.rounds import Cost
from adfs.theory.description import Description, Fact, SelfDescribing

MEMORY = 20  # twice the usual 10: on real rows 15 to 35 % fewer evaluations, at no charge
TINY = 1e-13  # a step so small, relative to theta, says nothing about the curvature
POWER_LAW, PER_FEATURE = (3.3, 0.363), 2.8
BLOCK = 8  # evaluations between two checks of limits and signals


@dataclass(frozen=True)
class LbfgsParameters(SelfDescribing):
    """What L-BFGS runs with; there is nothing to tune."""

    memory: int
    smoothness: float
    sigma: float
    rounds: int

    @property
    def rho(self) -> float:
        """``4 sqrt(sigma / L)``, at most 1/2: how F falls under conjugate gradients. No theorem."""
        return min(0.5, 4.0 * math.sqrt(self.sigma / self.smoothness))

    def description(self) -> Description:
        curvature = "sum_i (sigma_i + lambda_max(B_i)); the first step is 1 / L"
        rate = "4 sqrt(sigma / L), at most 1/2; only sets the default iteration limit"
        facts = [
            Fact("memory", self.memory, "pairs (s, y) kept"),
            Fact("L", self.smoothness, curvature),
            Fact("sigma", self.sigma, "sum_i sigma_i"),
            Fact("rounds", self.rounds, "of communication per evaluation: the diameter"),
            Fact("rho", self.rho, rate),
        ]
        return Description("L-BFGS over an all-reduce", facts)


@dataclass
class LbfgsState(DescentState):
    """State of a run: beside that of any descent, the length of the step and the pairs kept."""

    size: float = 1.0
    pairs: list[tuple[Vector, Vector]] = field(default_factory=list)


class Lbfgs(Descent[LbfgsState]):
    """L-BFGS on the sum of all nodes, one evaluation per event."""

    new_state = LbfgsState
    numbers = ("objective", "slope", "size")

    def _evaluate(self, state: LbfgsState) -> None:
        objective, gradient = self.problem.objective_and_gradient(state.trial)
        slope = float(state.direction @ gradient)
        if self._is_good(state, state.size, objective, slope):
            if np.isfinite(state.objective):
                self._remember(state, gradient)
            state.theta, state.objective, state.gradient = state.trial, objective, gradient
            # Of full length; without pairs the direction of the gradient, 1 / L long.
            state.direction, state.size = -two_loops(gradient, state.pairs), 1.0
            if not state.pairs:
                state.direction = state.direction / self.parameters.smoothness
            state.slope = float(state.direction @ gradient)
        else:
            state.size = shortened(state.size, state.slope, slope)
        state.trial = state.theta + state.size * state.direction

    def _remember(self, state: LbfgsState, gradient: Vector) -> None:
        """Keep the pair unless it is made of rounding: a tiny step, or against convexity."""
        s, y = state.trial - state.theta, gradient - state.gradient
        moved = s @ s > TINY * TINY * (state.theta @ state.theta)
        if moved and s @ y >= 0.5 * self.parameters.sigma * (s @ s):
            state.pairs = [*state.pairs, (s, y)][-self.parameters.memory :]

    def arrays(self, state: LbfgsState) -> base.Arrays:
        pairs = np.array(state.pairs).reshape(len(state.pairs), 2, self.problem.n_features)
        return base.Arrays({}, {}, super().arrays(state).shared | {"pairs": pairs})

    def restore(self, state: LbfgsState, shared: base.Named) -> None:
        super().restore(state, shared)
        state.pairs = [(s, y) for s, y in shared["pairs"]]


def two_loops(gradient: Vector, pairs: list[tuple[Vector, Vector]]) -> Vector:
    """``H gradient``, where ``H`` starts from ``s.y / y.y`` of the last pair."""
    r = gradient.copy()
    alphas = []
    for s, y in reversed(pairs):
        alphas.append((s @ r) / (s @ y))
        r -= alphas[-1] * y
    if pairs:
        s, y = pairs[-1]
        r *= (s @ y) / (y @ y)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r += (alpha - (y @ r) / (s @ y)) * s
    return r


def usual_evaluations(kappa: float, n_features: int, tol: float) -> float:
    """Evaluations that runs took; fitted by ``benchmarks/plan.py``, off by up to a factor 2.

    TRON's passes are about as many (0.66 to 1.9 times).

    A power of the condition number for ``tol = 1e-6``, but not much more than two per feature.
    """
    usual = min(POWER_LAW[0] * kappa ** POWER_LAW[1], PER_FEATURE * n_features)
    return float(usual * (0.3 + 0.7 * math.log(1.0 / min(tol, 0.5)) / math.log(1e6)))


@base.register("lbfgs", smooth=True, rules=("theory", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """L-BFGS with its clock: an evaluation is m_i gradients, then an all-reduce of a vector."""
    smoothness = problem.total_sigma + float(problem.conditioning.batch_smoothness().sum())
    rounds, d = problem.topology.diameter, problem.n_features
    chosen = LbfgsParameters(MEMORY, smoothness, problem.total_sigma, rounds)
    algorithm = Lbfgs(problem, chosen, d + 1)
    cost = Cost(problem.sizes * setting.costs.of(problem).gradient, rounds)
    return base.method_in_rounds(
        algorithm, setting, [cost], block=BLOCK, shortest=1, work=problem.n_samples,
        typical=functools.partial(usual_evaluations, smoothness / problem.total_sigma, d),
    )  # fmt: skip

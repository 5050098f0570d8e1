"""Truncated Newton over an all-reduce, in a trust region: a baseline outside the paper.

One event is one pass over the samples and one sum of d + 1 numbers, of one of two kinds: an
evaluation (losses and gradient at the trial point), or a product of the Hessian with a vector. The
clock does not know which, and charges the mean of both as runs usually mix them.

The direction approximately minimises the quadratic model of F at ``theta``,

    gradient . s + s . H s / 2   over |s| <= radius,

by conjugate gradients, which need products only and end where they leave the region (Steihaug,
1983) or where the residual is small enough (Eisenstat and Walker, 1996, choice 2). The trial point
``theta + s`` is taken if F fell enough (`descent.sufficient`); otherwise the step is shortened, and
the radius becomes its length. Why not a new solve in the smaller region, as in TRON (Lin, Weng,
Keerthi, 2008), which gave the name: docs/algorithms/tron.md.
"""

import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.descent import Descent, DescentState, shortened
from adfs.algorithms.lbfgs import usual_evaluations
from adfs.kernels import certificate
from adfs.problem.finite_sum import Problem
from adfs.problem.optimum import curvatures
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost
from adfs.theory.description import Description, Fact, SelfDescribing
from adfs.threads import one_blas_thread

LOOSEST, SAFETY = 0.3, 0.9  # of the residual that conjugate gradients may leave
ORDER = 0.5 * (1.0 + math.sqrt(5.0))  # of convergence near the optimum
WIDER = 4.0  # radius, in lengths of a full step that was taken
PRODUCTS = 0.87  # of all passes, median of seven runs, 0.74 to 0.95 (benchmarks/costs.py)
BLOCK = 8  # passes between two checks of limits and signals


@dataclass(frozen=True)
class TronParameters(SelfDescribing):
    """What the truncated Newton method runs with; there is nothing to tune."""

    smoothness: float
    sigma: float
    rounds: int

    @property
    def rho(self) -> float:
        """``2 sqrt(sigma / L)``, at most 1/4: half the rate of conjugate gradients. No theorem."""
        return min(0.25, 2.0 * math.sqrt(self.sigma / self.smoothness))

    def description(self) -> Description:
        facts = [
            Fact("L", self.smoothness, "sum_i (sigma_i + lambda_max(B_i))"),
            Fact("sigma", self.sigma, "sum_i sigma_i"),
            Fact("rounds", self.rounds, "of communication per pass: the diameter"),
            Fact("rho", self.rho, "2 sqrt(sigma / L); only sets the default iteration limit"),
        ]
        return Description("Truncated Newton over an all-reduce", facts)


@dataclass
class TronState(DescentState):
    """State of a run; ``direction`` is the step so far, and ``trial`` where it leads.

    Beside that of any descent: the solve by conjugate gradients that is under way, the length of
    the step, and ``w l''`` of the samples here at ``theta``.
    """

    residual: Vector = field(default_factory=lambda: np.zeros(0))
    search: Vector = field(default_factory=lambda: np.zeros(0))
    n_products: int = 0
    solving: bool = False
    goal: float = 0.0  # norm of the residual that ends the solve
    last_norm: float = 0.0  # of the gradient before this one; 0 for none
    size: float = 1.0
    radius: float = math.inf
    bounded: bool = False  # the step ends at the radius
    trusted: bool = False  # the last step was taken at full length, within the region
    curvatures: Vector = field(default_factory=lambda: np.zeros(0))


class Tron(Descent[TronState]):
    """Truncated Newton on the sum of all nodes, one pass per event."""

    new_state = TronState
    vectors = (*Descent.vectors, "residual", "search")
    numbers = (
        "objective", "slope", "n_products", "solving", "goal", "last_norm", "size", "radius",
        "bounded", "trusted",
    )  # fmt: skip

    def __init__(self, problem: Problem, parameters: TronParameters) -> None:
        super().__init__(problem, parameters, problem.n_features + 1)
        self._load()

    def _load(self) -> None:
        """Load the compiled kernels, which belongs to set-up, by calls for no rows."""
        problem, zero, none = self.problem, np.zeros(self.problem.n_features), np.zeros(0)
        ends = problem.offsets[:1], zero
        alone = problem.network.links._replace(call=0)
        certificate.curved_gradients(*problem.samples, *ends, none, alone, self._stack())
        certificate.hessian_products(problem.rows, none, *ends, alone, self._stack())

    def init(self, theta: Vector | None = None) -> TronState:
        state = super().init(theta)
        state.residual = state.search = np.zeros(self.problem.n_features)
        return state

    def step(self, state: TronState, events: Events) -> TronState:
        with one_blas_thread():
            for _ in range(len(events.which)):
                (self._multiply if state.solving else self._evaluate)(state)
        return state

    def _evaluate(self, state: TronState) -> None:
        bends = np.empty(self.problem.n_rows)
        objective, gradient = self._values(state.trial, bends)
        slope = float(state.direction @ gradient)
        if self._is_good(state, state.size, objective, slope):
            if np.isfinite(state.objective):
                self._learn(state)
            state.theta, state.objective, state.gradient = state.trial, objective, gradient
            state.curvatures = bends
            self._begin(state)
        else:
            state.trusted = False
            state.size = shortened(state.size, state.slope, slope)
            state.trial = state.theta + state.size * state.direction

    def _values(self, theta: Vector, bends: Vector) -> tuple[float, Vector]:
        """F and its gradient, and ``w l''`` of every sample here into ``bends``."""
        problem, d = self.problem, self.problem.n_features
        stack = self._stack()
        certificate.curved_gradients(
            *problem.samples, problem.offsets, problem.vector(theta), bends, problem.network.links,
            stack,
        )  # fmt: skip
        sigma = problem.total_sigma
        objective = float(stack[0, d] + 0.5 * sigma * certificate.square(theta))
        return objective, stack[0, :d] + sigma * theta

    def _stack(self) -> Matrix:
        return np.empty((self.problem.network.n_levels, self.problem.n_features + 1))

    def _learn(self, state: TronState) -> None:
        """Let the radius and the next solve's accuracy follow from a step that was taken."""
        full, length = state.size == 1.0, state.size * norm(state.direction)
        state.radius = max(state.radius, WIDER * length) if full else length
        state.trusted = full and not state.bounded
        state.last_norm = norm(state.gradient)

    def _begin(self, state: TronState) -> None:
        """Start conjugate gradients from the step 0; nothing is left to solve at gradient 0."""
        steepness = norm(state.gradient)
        fell = steepness / state.last_norm if state.last_norm > 0.0 else math.inf
        state.goal = steepness * min(LOOSEST, SAFETY * min(fell, 1.0) ** ORDER)
        state.residual = state.search = -state.gradient
        state.direction, state.trial = np.zeros(len(state.theta)), state.theta
        state.slope, state.size, state.n_products, state.bounded = 0.0, 1.0, 0, False
        state.solving = steepness > 0.0

    def _multiply(self, state: TronState) -> None:
        """One step of conjugate gradients, in the region."""
        product, bend = self._product(state)
        if bend == 0.0:  # so small a gradient that its squares are lost to underflow
            state.solving = False
            return
        before = float(state.residual @ state.residual)
        length = before / bend
        state.n_products += 1
        state.bounded = norm(state.direction + length * state.search) > state.radius
        if state.bounded:
            length = to_the_boundary(state.direction, state.search, state.radius)
        state.direction = state.direction + length * state.search
        state.residual = state.residual - length * product
        after = float(state.residual @ state.residual)
        state.search = state.residual + after / before * state.search
        state.trial = state.theta + state.direction
        state.slope = float(state.direction @ state.gradient)
        solved = math.sqrt(after) <= state.goal or state.n_products >= len(state.theta)
        state.solving = not (solved or state.bounded)

    def _product(self, state: TronState) -> tuple[Vector, float]:
        """``H p`` and ``p . H p``, where the search direction is ``p``."""
        problem, p, d = self.problem, state.search, self.problem.n_features
        stack = self._stack()
        certificate.hessian_products(
            problem.rows, state.curvatures, problem.offsets, p, problem.network.links, stack
        )
        sigma = problem.total_sigma
        return stack[0, :d] + sigma * p, float(stack[0, d] + sigma * certificate.square(p))

    def output(self, state: TronState) -> Matrix:
        """The point taken last; after a full step, where the solve under way has led so far.

        Close to the optimum every product brings the model nearer. Far from it the point is shown
        once it has been seen to be better, as in Newton's method.
        """
        theta = state.trial if state.trusted else state.theta
        return np.tile(theta, (len(self.problem.nodes), 1))

    def restore(self, state: TronState, shared: base.Named) -> None:
        super().restore(state, shared)
        if np.isfinite(state.objective):  # something was evaluated
            everything = slice(0, self.problem.n_rows)
            state.curvatures = curvatures(self.problem, state.theta, everything)


def norm(vector: Vector) -> float:
    return math.sqrt(float(vector @ vector))


def to_the_boundary(inside: Vector, direction: Vector, radius: float) -> float:
    """The positive ``t`` with ``|inside + t direction| = radius``.

    Examples
    --------
    >>> to_the_boundary(np.array([3.0, 0.0]), np.array([0.0, 2.0]), 5.0)
    2.0
    """
    square, along = float(direction @ direction), float(inside @ direction)
    room = max(0.0, radius * radius - float(inside @ inside))
    root = math.sqrt(along * along + square * room)
    return room / (along + root) if along + root > 0.0 else 0.0


def pass_cost(costs: Any) -> Any:
    """What one sample costs in a pass, the usual mix of gradients and products."""
    return costs.gradient + PRODUCTS * (costs.product - costs.gradient)


@base.register("tron", smooth=True, rules=("theory", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """The method with its clock: a pass over m_i samples, then an all-reduce of a vector."""
    smoothness = problem.total_sigma + float(problem.conditioning.batch_smoothness().sum())
    rounds, d = problem.topology.diameter, problem.n_features
    chosen = TronParameters(smoothness, problem.total_sigma, rounds)
    algorithm = Tron(problem, chosen)
    cost = Cost(problem.sizes * pass_cost(setting.costs.of(problem)), rounds)
    return base.method_in_rounds(
        algorithm, setting, [cost], block=BLOCK, shortest=1, work=problem.n_samples,
        typical=functools.partial(usual_evaluations, smoothness / problem.total_sigma, d),
    )  # fmt: skip

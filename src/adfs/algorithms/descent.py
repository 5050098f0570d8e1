"""What Newton's method, L-BFGS and TRON share: an evaluation per event, the test of a trial point.

Every node computes the losses and derivatives of its samples at the trial point, an all-reduce adds
them, and every node, holding the same numbers, does the same next. The test needs one value and one
slope, no evaluation more.

A sum travels up a spanning tree to its root and down again: 2 (n - 1) messages for each d numbers
or fewer. Time is charged as in the paper: one vector takes D rounds, the diameter (Appendix E),
half of them to the middle of the tree and half back. Half a d x d matrix, a gradient and a number
are q messages of d numbers, one behind another: D / 2 + q - 1 rounds to the middle and as many
back, at most D + d + 3 in all (docs/time-model.md).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from adfs.algorithms.base import Arrays, Counts, Matrix, Named, RoundAlgorithm, Vector
from adfs.graphs.topology import Topology
from adfs.problem.certificate import objective_at_zero
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.threads import one_blas_thread

ARMIJO = 1e-4
TURN = 0.8  # most slope up, over the slope down at the start, at a point taken for its slope
# Of F, or of F(0) if more: above what summing a million losses loses, below any sensible tolerance.
ROUNDING = 1e-12
SHORTEST, LONGEST = 0.1, 0.5  # of a step that failed


def sufficient(
    objective: float, slope: float, size: float, trial_objective: float, trial_slope: float,
    at_zero: float = 0.0,
) -> bool:  # fmt: skip
    """Armijo's rule; where F has no digits left, the slopes decide.

    With ``phi(s) = F(theta + s direction)``, ``slope = phi'(0) < 0`` and ``trial_slope = phi'(s)``
    the rule is ``phi(s) <= phi(0) + 1e-4 s phi'(0)``. Close to the optimum its right-hand side is
    ``phi(0)`` but for rounding, so a point that is no worse than that is taken if ``phi'(s) <= -0.8
    phi'(0)``: the approximate Wolfe condition of Hager and Zhang (2005, equation 2.3), the same as
    Armijo's with constant 0.1 where F is quadratic. A step short enough always passes, so no run
    can be stuck in rejected steps. ``at_zero`` is ``F(0)``, whose rounding a small F may have.
    """
    if trial_objective <= objective + ARMIJO * size * slope:
        return True
    no_worse = trial_objective <= objective + ROUNDING * max(at_zero, abs(objective))
    return no_worse and trial_slope <= -TURN * slope


def shortened(size: float, slope: float, trial_slope: float) -> float:
    """A shorter step: where the straight line through both slopes is zero, 0.1 to 0.5 of it."""
    zero = slope / (slope - trial_slope) if trial_slope > slope else LONGEST
    return size * min(LONGEST, max(SHORTEST, zero))


def matrix_rounds(topology: Topology, n_features: int) -> int:
    """Communication rounds of a sum of half a d x d matrix, a vector and a number: D + d + 3.

    In ``q = ceil((d + 3) / 2 + 1 / d)`` messages: ``D + 2 (q - 1)`` rounds, which is that for odd d
    and one less for even d.
    """
    return topology.diameter + n_features + 3 if topology.n_nodes > 1 else 0


def messages(n_nodes: int, n_numbers: int, n_features: int) -> Counts:
    """Messages of at most d numbers, and bytes, of one all-reduce of ``n_numbers`` numbers."""
    links = 2 * (n_nodes - 1)
    return Counts(n_comm=links * math.ceil(n_numbers / n_features), bytes=8 * links * n_numbers)


@dataclass
class DescentState:
    """The point taken last with its value and gradient, and the step tried from it."""

    trial: Vector
    theta: Vector
    objective: float
    gradient: Vector
    direction: Vector
    slope: float = 0.0


D = TypeVar("D", bound=DescentState)


class Descent(RoundAlgorithm[D]):
    """A descent method on the sum of all nodes; ``n_numbers`` are summed in one evaluation."""

    new_state: type[D]
    vectors: ClassVar[tuple[str, ...]] = ("trial", "theta", "gradient", "direction")
    numbers: ClassVar[tuple[str, ...]]  # of the state, in a checkpoint beside the vectors

    def __init__(self, problem: Problem, parameters: Any, n_numbers: int) -> None:
        price = messages(problem.n_nodes, n_numbers, problem.n_features)
        super().__init__(problem, parameters, [price._replace(n_grad=problem.n_samples)])
        self._at_zero = objective_at_zero(problem)

    def init(self, theta: Vector | None = None) -> D:
        """Nothing evaluated yet: the first point is taken whatever its value."""
        zero = np.zeros(self.problem.n_features)
        start = zero if theta is None else theta.copy()
        return self.new_state(start, start, np.inf, zero, zero)

    def step(self, state: D, events: Events) -> D:
        with one_blas_thread():
            for _ in range(len(events.which)):
                self._evaluate(state)
        return state

    def _evaluate(self, state: D) -> None:
        """Evaluate the trial point, take it or not, and choose the next one."""
        raise NotImplementedError

    def _is_good(self, state: D, size: float, objective: float, slope: float) -> bool:
        """Whether the trial point is taken; the first one is, whatever its value."""
        return np.isinf(state.objective) or sufficient(
            state.objective, state.slope, size, objective, slope, self._at_zero
        )

    def output(self, state: D) -> Matrix:
        return np.tile(state.theta, (len(self.problem.nodes), 1))

    def arrays(self, state: D) -> Arrays:
        vectors = {name: getattr(state, name) for name in self.vectors}
        numbers = np.array([float(getattr(state, name)) for name in self.numbers])
        return Arrays({}, {}, {**vectors, "numbers": numbers})

    def restore(self, state: D, shared: Named) -> None:
        for name in self.vectors:
            setattr(state, name, shared[name])
        for name, number in zip(self.numbers, shared["numbers"].tolist(), strict=True):
            setattr(state, name, number)

"""GIANT: every node solves with its own Hessian, and the directions are averaged.

Wang, Roosta-Khorasani, Xu, Mahoney: GIANT, globally improved approximate Newton method for
distributed optimization (2018). With ``S = sum_i sigma_i``, ``q_i = m_i / N`` and the exact
gradient ``g`` of ``F`` at ``theta``,

    H_i = (1 / q_i) sum_j w_ij l''(x_ij . theta) x_ij x_ij^T + S I,    p = sum_i q_i H_i^-1 g,

for equal shards ``p = mean_i (n hess f_i)^-1 g``. The next point is ``theta - p``; where F does not
fall enough there (Armijo's rule), it is evaluated at ten shorter steps at once. Only vectors are
summed.

The publication's theorem needs shards that are alike. Two things say that they are not, or that the
optimum is still far: a full step is refused, or the slope along a full step changed to more than
half of what it was, up or down, where Newton's model says 0. From then on ``sum_i q_i H_i^-1`` is
only the first matrix of L-BFGS, which corrects it with the last ten pairs of points and gradients.

Deviations: unequal shards count by their sizes; shorter steps are tried only where a full one
fails, and the next one is at most twice as long as the last.

What is proven: on any partition the matrix lies between two positive ones, because ``S > 0``, F is
strongly convex, and the pairs are few (Liu and Nocedal 1989, theorem 6.1); hence with Armijo's rule
F falls at a linear rate from anywhere. No useful number for that rate is known.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import adfs
from adfs.plugins import AdaptiveRoundMethod, Fact, Nodes, PerNode, Shared, Uses

HALVINGS, MEMORY = 10, 10
ARMIJO, TURN, HALF = 1e-4, 0.8, 0.5
ROUNDING = 1e-12  # of F: where it has no more digits, slopes decide
MOST_FEATURES = 2000  # a matrix of d x d numbers per node, as for newton
TINY = 1e-13  # a step so small, relative to theta, says nothing about the curvature


@dataclass
class GiantState:
    """The point taken last with its value and gradient, and the step tried from it."""

    theta: Shared
    gradient: Shared
    direction: Shared
    pairs: Shared  # (k, 2, d)
    value: Shared = np.inf
    size: Shared = 1.0
    trusted: Shared = False  # a full step was taken
    noticed: Shared = False
    kinds: list[int] = field(default_factory=list)


@adfs.register("giant", by_name=True)
class Giant(AdaptiveRoundMethod[GiantState]):
    """GIANT, with L-BFGS on top of it where shards differ."""

    theorem = (
        "On any partition F falls at a linear rate, of which no useful number is known; what is "
        "stated only sets the default iteration limit."
    )

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes)
        if nodes.d > MOST_FEATURES:
            raise adfs.ParameterError(
                f"Algorithm 'giant' factors a d x d matrix per node and d={nodes.d} is more than "
                f"{MOST_FEATURES}; take lbfgs or tron, which need vectors only."
            )
        problem = nodes.problem
        self.shares = (problem.sizes / problem.n_samples)[nodes.numbers]
        width = max(nodes.d, HALVINGS)
        search = Uses(2, sums=1 + width // nodes.d, numbers=1 + width % nodes.d)
        self.uses = [Uses(1, hessians=1, factorisations=1, sums=2, numbers=1), search]
        smoothness = problem.total_sigma + float(problem.conditioning.batch_smoothness().sum())
        self.rho = min(0.1, 4.0 * float(np.sqrt(problem.total_sigma / smoothness)))
        self.facts = [Fact("memory", MEMORY, "pairs for L-BFGS once shards are seen to differ")]

    def start(self, theta: PerNode) -> GiantState:
        """Nothing evaluated yet: the first point is taken whatever its value."""
        zero = np.zeros(self.nodes.d)
        return GiantState(theta[0].copy(), zero, zero, np.zeros((0, 2, self.nodes.d)))

    def round(self, state: GiantState, t: int, kind: int) -> int:
        """F and its gradient at the trial point, then a new direction or a shorter step."""
        nodes, trial = self.nodes, self.trial(state)
        values, gradients = nodes.values_and_gradients(np.tile(trial, (nodes.n, 1)))
        found = nodes.sum(np.column_stack([gradients, values]))
        gradient, value = found[:-1], float(found[-1])
        before = float(state.gradient @ state.direction)
        after = float(gradient @ state.direction)
        if not falls_enough(state, value, before, after):
            self.shorten(state)
            return 1
        if np.isfinite(state.value):
            full = state.size == 1.0
            state.noticed = state.noticed or bool(full and abs(after) > HALF * abs(before))
            state.trusted = bool(full)
            step, change = trial - state.theta, gradient - state.gradient
            moved = step @ step > TINY**2 * (trial @ trial)
            if moved and step @ change >= HALF * self.problem.total_sigma * (step @ step):
                state.pairs = np.concatenate([state.pairs, [[step, change]]])[-MEMORY:]
        state.size = min(1.0, 2.0 * state.size)
        state.theta, state.value, state.gradient = trial, value, gradient
        state.direction = -self.corrected(gradient, state.pairs if state.noticed else [], trial)
        return 0

    def trial(self, state: GiantState) -> Any:
        """The point to be evaluated next."""
        return state.theta + state.size * state.direction

    def shorten(self, state: GiantState) -> None:
        """The best of ten shorter steps; their values take the room of a vector in a sum."""
        nodes = self.nodes
        sizes = state.size * 0.5 ** np.arange(1.0, HALVINGS + 1.0)
        found = np.zeros((nodes.n, max(nodes.d, HALVINGS)))
        points, directions = (np.tile(x, (nodes.n, 1)) for x in (state.theta, state.direction))
        found[:, :HALVINGS] = nodes.values_along(points, directions, sizes)
        state.size = float(sizes[np.argmin(nodes.sum(found)[:HALVINGS])])
        state.noticed, state.trusted = True, False

    def corrected(self, gradient: Any, pairs: Any, theta: Any) -> Any:
        """``P gradient``: two loops over the pairs around ``sum_i q_i H_i^-1``."""
        r, factors = gradient.copy(), []
        for step, change in reversed(pairs):
            factors.append(step @ r / (step @ change))
            r -= factors[-1] * change
        r = self.averaged(r, theta)
        for (step, change), factor in zip(pairs, reversed(factors), strict=True):
            r += (factor - change @ r / (step @ change)) * step
        return r

    def averaged(self, vector: Any, theta: Any) -> Any:
        """``sum_i q_i H_i^-1 vector``."""
        nodes, out = self.nodes, np.empty((self.nodes.n, self.nodes.d))
        bends = nodes.bends(np.tile(theta, (nodes.n, 1)))
        diagonal = np.diag_indices(nodes.d)
        for i, hessian in enumerate(nodes.hessians(bends)):
            hessian /= self.shares[i]
            rounding = nodes.d * np.finfo(float).eps * float(np.max(hessian[diagonal]))
            hessian[diagonal] += self.problem.total_sigma + rounding
            out[i] = self.shares[i] * cho_solve(cho_factor(hessian, lower=True), vector)
        nodes.asked["factorisations"] += 1
        return nodes.sum(out)

    def output(self, state: GiantState) -> PerNode:
        """The point taken last, at every node; after a full step the one that follows from it."""
        theta = self.trial(state) if state.trusted else state.theta
        return np.tile(theta, (self.nodes.n, 1))


def falls_enough(state: GiantState, value: float, before: float, after: float) -> bool:
    """Armijo's rule; within the rounding of F, slopes decide (Hager and Zhang 2005)."""
    if not np.isfinite(state.value) or value <= state.value + ARMIJO * state.size * before:
        return True
    return value <= state.value + ROUNDING * abs(state.value) and after <= -TURN * before

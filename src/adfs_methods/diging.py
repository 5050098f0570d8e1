"""DIGing: gradient descent whose directions track the mean gradient.

With the mixing matrix ``W`` and gradients ``g_t`` of the nodes at ``x_t``,

    x_{t+1} = W x_t - a y_t,    y_{t+1} = W y_t + g_{t+1} - g_t,    y_0 = g_0.

Nedic, Olshevsky, Shi: Achieving geometric convergence (2017); Qu and Li: Harnessing smoothness
(2017). Rules:

tuned    the step and its proven rate are those of `adfs_methods.steps`: in a mode of ``W`` with the
         eigenvalue ``1 - s`` it is ``p = 2 s + a (L + mu) / 2`` and ``q = s^2``
paper    those of Qu and Li, by `bound_matrix`: a far smaller step
"""

from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, MixingWeights, Nodes, PerNode, RoundMethod, Uses
from adfs_methods import steps


def bound_matrix(
    step: steps.Array, smoothness: float, convexity: float, weights: MixingWeights
) -> steps.Array:
    """``z_{t+1} <= G z_t`` for ``z = (|Y - 1 gbar|, L |X - 1 xbar|, L sqrt(n) |xbar - x*|)``.

    The mean of ``y_t`` is ``gbar``, that of ``g_t``. It differs from the gradient of ``F / n`` at
    ``xbar`` by at most ``L / sqrt(n) |X - 1 xbar|``: third row. Second row: ``X+ - 1 xbar+`` is the
    mixed ``X - 1 xbar`` less ``a (Y - 1 gbar)``. First row: ``|g+ - g| <= L |X+ - X|``, where ``X+
    - X = (W - I) (X - 1 xbar) - a (Y - 1 gbar) - a 1 gbar``, and ``sqrt(n) |gbar|`` is at most
    ``L |X - 1 xbar| + L sqrt(n) |xbar - x*|``. Norms are of all nodes together.
    """
    slem, move, a = weights.slem, 1.0 - weights.least, step * smoothness
    kept = np.sqrt(1.0 - steps.descent(step, smoothness, convexity))
    zero = np.zeros_like(a)
    rows = [[slem + a, move + a, a], [a, slem + zero, zero], [zero, a, kept]]
    return np.moveaxis(np.array(rows), -1, 0)


@dataclass
class DigingState:
    """The points, and of the round before the directions and gradients."""

    theta: PerNode
    direction: PerNode
    gradient: PerNode


@adfs.register("diging", by_name=True)
class Diging(RoundMethod[DigingState]):
    """DIGing, gradient tracking."""

    rules = ("tuned", "paper")
    proven = True

    def __init__(
        self, nodes: Nodes, step: float | None = None, weights: str = "metropolis"
    ) -> None:
        super().__init__(nodes)
        self.mix = nodes.mixer(weights)
        gaps = 1.0 - steps.eigenvalues(self.mix.weights)
        if self.rule == "paper":
            smoothness, mu = steps.smoothness(nodes), steps.convexity(nodes)

            def fall(step: steps.Array) -> steps.Array:
                matrices = bound_matrix(step, smoothness, mu, self.mix.weights)
                return np.asarray(1.0 - np.abs(np.linalg.eigvals(matrices)).max(axis=-1) ** 2)

            self.step_size, self.rho = steps.step_of(fall, 2.0 / smoothness, step)
            what = "by default the one of the least spectral radius of Qu and Li's matrix"
        else:
            self.step_size, self.rho = steps.step_of_modes(nodes, gaps, gaps**2, step=step)
            what = "by default the one of the largest proven rate"
        self.uses = Uses(gradients=1, gossips=2)
        self.facts = [*steps.problem_facts(nodes), Fact("step", self.step_size, what)]

    def start(self, theta: PerNode) -> DigingState:
        """All nodes at one model."""
        return DigingState(theta, np.zeros_like(theta), np.zeros_like(theta))

    def round(self, state: DigingState, t: int, kind: int) -> None:
        """One gradient per node; points and directions go over each edge in both directions."""
        gradient = self.nodes.gradients(state.theta)
        direction = self.mix(state.direction) + gradient - state.gradient
        state.theta = self.mix(state.theta) - self.step_size * direction
        state.direction, state.gradient = direction, gradient

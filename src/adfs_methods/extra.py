"""EXTRA: gradient descent with mixing that corrects the bias of DGD.

With the mixing matrix ``W``, ``V = (I + W) / 2``, and gradients ``g_t`` of the nodes at ``x_t``,

    x_1 = W x_0 - a g_0,    x_{t+2} = V (2 x_{t+1} - x_t) - a (g_{t+1} - g_t).

Shi, Ling, Wu, Yin: EXTRA, an exact first-order algorithm (2015). It converges for ``a < (1 +
lambda_min(W)) / L``.
"""

from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, Nodes, PerNode, RoundMethod, Uses


@dataclass
class ExtraState:
    """The last two points, and the gradient at the older one."""

    theta: PerNode
    before: PerNode
    gradient: PerNode


@adfs.register("extra", by_name=True)
class Extra(RoundMethod[ExtraState]):
    """EXTRA."""

    def __init__(
        self, nodes: Nodes, step: float | None = None, weights: str = "metropolis"
    ) -> None:
        super().__init__(nodes)
        mixing = nodes.problem.topology.weights(weights).lazy()
        self.mix = nodes.mixer(mixing)
        smoothness = float(nodes.smoothness.max())
        self.step_size = 1.0 / smoothness if step is None else step
        self.uses = Uses(gradients=1, gossips=1)
        self.rho = min(0.5, float(nodes.problem.sigma.min()) / smoothness / 4.0)
        self.facts = [Fact("step", self.step_size, "1 / L, L = max_i (sigma_i + lambda_max(B_i))")]

    def start(self, theta: PerNode) -> ExtraState:
        """All nodes at one model."""
        return ExtraState(theta, theta.copy(), np.zeros_like(theta))

    def round(self, state: ExtraState, t: int, kind: int) -> None:
        """One gradient per node, and one message over each edge in both directions."""
        gradient = self.nodes.gradients(state.theta)
        if t == 0:
            moved = 2.0 * self.mix(state.theta) - state.theta - self.step_size * gradient
        else:
            moved = self.mix(2.0 * state.theta - state.before)
            moved -= self.step_size * (gradient - state.gradient)
        state.theta, state.before, state.gradient = moved, state.theta, gradient

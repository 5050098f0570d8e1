"""EXTRA: gradient descent with mixing that corrects the bias of DGD.

With the mixing matrix ``W``, ``V = (I + W) / 2``, and gradients ``g_t`` of the nodes at ``x_t``,

    x_1 = W x_0 - a g_0,    x_{t+2} = V (2 x_{t+1} - x_t) - a (g_{t+1} - g_t).

Shi, Ling, Wu, Yin: EXTRA, an exact first-order algorithm (2015). Their step is less than ``(1 +
lambda_min(W)) / L``. Here the step and its proven rate are those of `adfs_methods.steps`: in a mode
of ``V`` with the eigenvalue ``1 - s`` it is ``p = 2 s + a (L + mu) / 2`` and ``q = s``.
"""

from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, Nodes, PerNode, RoundMethod, Uses
from adfs_methods import steps


@dataclass
class ExtraState:
    """The last two points, and the gradient at the older one."""

    theta: PerNode
    before: PerNode
    gradient: PerNode


@adfs.register("extra", by_name=True)
class Extra(RoundMethod[ExtraState]):
    """EXTRA."""

    proven = True

    def __init__(
        self, nodes: Nodes, step: float | None = None, weights: str = "metropolis"
    ) -> None:
        super().__init__(nodes)
        lazy = nodes.problem.topology.weights(weights).lazy()
        self.mix, gaps = nodes.mixer(lazy), 1.0 - steps.eigenvalues(lazy)
        self.step_size, self.rho = steps.step_of_modes(nodes, gaps, gaps, step=step)
        self.uses = Uses(gradients=1, gossips=1)
        self.facts = [
            *steps.problem_facts(nodes),
            Fact("step", self.step_size, "by default the one of the largest proven rate"),
        ]

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

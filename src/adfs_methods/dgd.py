"""DGD: decentralised gradient descent, which mixes and takes a gradient step.

With the mixing matrix ``W`` and gradients ``g_t`` of the nodes at ``x_t``,

    x_{t+1} = W x_t - a_t g_t.

Nedic and Ozdaglar: Distributed subgradient methods (2009). Rules:

constant    gradient descent on ``sum_i f_i(x_i) + X . (I - W) X / (2 a)``, whose minimiser is at a
            distance O(a) from the optimum (Yuan, Ling, Yin 2016). The step ``(1 + lambda_min(W)) /
            (L + mu)`` comes there fastest: by ``1 - a mu`` per round
decreasing  ``a_t`` is about ``2 / (mu t)``; distances to the optimum are O(1 / t)
sampled     the same with sampled gradients: D-PSGD (Lian et al. 2017). Squared distances are O(1 /
            t)
"""

from dataclasses import dataclass

import adfs
from adfs.plugins import Fact, Nodes, PerNode, RoundMethod
from adfs_methods import steps


@dataclass
class DgdState:
    """The points."""

    theta: PerNode


@adfs.register("dgd", by_name=True)
class Dgd(RoundMethod[DgdState]):
    """DGD, decentralised gradient descent."""

    rules = ("constant", "decreasing", "sampled")
    rho = 0.0
    theorem = "Constant steps come to a distance O(step) from the optimum, others to the optimum."

    def __init__(
        self,
        nodes: Nodes,
        step: float | None = None,
        batch: int = 1,
        weights: str = "metropolis",
    ) -> None:
        super().__init__(nodes)
        self.mix = nodes.mixer(weights)
        self.gradients = steps.Gradients(nodes, batch if self.rule == "sampled" else None)
        smoothness = self.gradients.smoothness + steps.convexity(nodes)
        first = (1.0 + self.mix.weights.least) / smoothness
        self.step_size = steps.given(step, first)
        self.uses = self.gradients.uses._replace(gossips=1)
        what = "(1 + lambda_min(W)) / (L + mu) by default"
        what = what if self.rule == "constant" else steps.DECREASING
        self.facts = [*steps.problem_facts(nodes), Fact("step", self.step_size, what)]

    def start(self, theta: PerNode) -> DgdState:
        """All nodes at one model."""
        return DgdState(theta)

    def round(self, state: DgdState, t: int, kind: int) -> None:
        """One gradient per node, and one message over each edge in both directions."""
        step = self.step_size
        if self.rule != "constant":
            step = steps.decreasing(step, self.nodes, t)
        state.theta = self.mix(state.theta) - step * self.gradients(state.theta, t)

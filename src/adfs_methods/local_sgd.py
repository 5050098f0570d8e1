"""Local SGD: steps of each node alone, and then the mean of all models.

A round is ``local`` steps with sampled gradients, ``x_i <- x_i - a_t g~_i(x_i)``, where ``t``
counts steps and ``a_t`` is about ``2 / (mu t)``, then ``x_i <- mean_j x_j``, an exact sum. Stich:
Local SGD converges fast and communicates little (2019). Expected squared distances to the optimum
are O(1 / t); the part of it that grows with ``local`` is O(1 / t^2).
"""

from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, Nodes, PerNode, RoundMethod, Uses, whole
from adfs_methods import steps


@dataclass
class LocalState:
    """The points."""

    theta: PerNode


@adfs.register("local-sgd", by_name=True)
class LocalSgd(RoundMethod[LocalState]):
    """Local SGD."""

    rho = 0.0
    theorem = "Expected squared distances to the optimum are O(1 / t) (Stich 2019)."

    def __init__(
        self, nodes: Nodes, local: int = 10, step: float | None = None, batch: int = 1
    ) -> None:
        super().__init__(nodes)
        self.local, self.gradients = whole("local", local, least=1), steps.Gradients(nodes, batch)
        self.step_size = steps.given(step, 1.0 / self.gradients.smoothness)
        self.uses = Uses(samples=self.local * self.gradients.uses.samples, sums=1)
        self.facts = [
            *steps.problem_facts(nodes),
            Fact("local", self.local, "steps between two means"),
            Fact("step", self.step_size, steps.DECREASING),
        ]

    def start(self, theta: PerNode) -> LocalState:
        """All nodes at one model."""
        return LocalState(theta)

    def round(self, state: LocalState, t: int, kind: int) -> None:
        """Some sampled gradients per node, and a sum over all nodes."""
        points = state.theta
        for k in range(t * self.local, (t + 1) * self.local):
            step = steps.decreasing(self.step_size, self.nodes, k)
            points = points - step * self.gradients(points, k)
        state.theta = np.tile(self.nodes.mean(points), (self.nodes.n, 1))

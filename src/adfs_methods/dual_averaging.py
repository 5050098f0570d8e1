"""Distributed dual averaging: nodes mix sums of gradients, and step from zero.

With the mixing matrix ``W`` and gradients ``g_t`` of the nodes at ``x_t``,

    z_{t+1} = W z_t + g_t,    x_{t+1} = the point of |x| <= R closest to -a_t z_{t+1},

and the models are the means of ``x_1 ... x_t``. Duchi, Agarwal, Wainwright: Dual averaging for
distributed optimization (2012). Theorem 2, with ``r = R / sqrt(2)``, gradients of the nodes of at
most ``G`` in the ball, ``s`` the second largest modulus of the eigenvalues of ``W``, and ``a_t = r
sqrt(1 - s) / (4 G sqrt(t))``: after T rounds every node has

    F - F* <= 8 n r G log(T sqrt(n)) / sqrt(T (1 - s)).

The ball holds the optimum: ``F(0) - F* >= S / 2 |x*|^2``, ``F* >= S / 2 |x*|^2`` and ``|grad F(0)|
>= S |x*|``.
"""

import math
from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, Nodes, PerNode, RoundMethod, Uses
from adfs_methods import steps


@dataclass
class AveragingState:
    """The means, the last points, and the sums of gradients."""

    theta: PerNode
    point: PerNode
    sums: PerNode


@adfs.register("dual-averaging", by_name=True)
class DualAveraging(RoundMethod[AveragingState]):
    """Distributed dual averaging."""

    rho = 0.0
    theorem = "Theorem 2 of Duchi, Agarwal and Wainwright: F - F* is O(log(T) / sqrt(T))."

    def __init__(
        self, nodes: Nodes, step: float | None = None, weights: str = "metropolis"
    ) -> None:
        super().__init__(nodes)
        self.mix = nodes.mixer(weights)
        problem, zero = nodes.problem, np.zeros((nodes.n, nodes.d))
        value, gradient = problem.objective_and_gradient(zero[0])
        sigma = problem.total_sigma
        self.radius = min(math.sqrt(value / sigma), float(np.linalg.norm(gradient)) / sigma)
        norms = problem.network.facts(np.linalg.norm(nodes.gradients(zero), axis=1))
        self.bound = float(np.max(norms + nodes.smoothness * self.radius))
        first = self.radius * math.sqrt(self.mix.weights.gap / 2.0)
        first /= max(4.0 * self.bound, np.finfo(float).tiny)  # all models are the optimum if G = 0
        self.step_size = steps.given(step, first)
        self.uses = Uses(gradients=1, gossips=1)
        self.facts = [
            Fact("R", self.radius, "min(sqrt(F(0) / S), |grad F(0)| / S), S = sum_i sigma_i"),
            Fact("G", self.bound, "max_i (|grad f_i(0)| + L_i R)"),
            Fact("step", self.step_size, "R sqrt((1 - s) / 2) / (4 G); step t is this / sqrt(t)"),
        ]

    def start(self, theta: PerNode) -> AveragingState:
        """First gradients are taken at the model; the points start from zero."""
        return AveragingState(theta, theta.copy(), np.zeros_like(theta))

    def round(self, state: AveragingState, t: int, kind: int) -> None:
        """One gradient per node, and one message over each edge in both directions."""
        state.sums = self.mix(state.sums) + self.nodes.gradients(state.point)
        point = -self.step_size / math.sqrt(t + 1.0) * state.sums
        lengths = np.sqrt(np.sum(point * point, axis=1, keepdims=True))
        outside = lengths > self.radius
        state.point = np.where(outside, self.radius / np.where(outside, lengths, 1.0), 1.0) * point
        state.theta = state.theta + (state.point - state.theta) / (t + 1.0)

"""D2: decentralised SGD that removes the bias of different nodes.

With the mixing matrix ``W``, ``V = (I + W) / 2``, and gradients ``g_t`` of the nodes at ``x_t``,

    x_1 = V (x_0 - a g_0),    x_{t+2} = V (2 x_{t+1} - x_t - a (g_{t+1} - g_t)).

It is computed with ``h_t = x_t - a g_t - c_t``: ``x_{t+1} = V h_t``, ``c_{t+1} = c_t + h_t - V
h_t``, ``c_0 = 0``. Rules:

tuned     full gradients: exact diffusion, or NIDS (Li, Shi, Yan 2019) but for the first round. The
          step and its proven rate are those of `adfs_methods.steps`: in a mode of ``V`` with the
          eigenvalue ``v = 1 - s`` it is ``p = 2 s + v a (L + mu) / 2`` and ``q = s``
sampled   Tang, Lian, Yan, Zhang, Liu: D2 (2018). Sampled gradients and steps that decrease, with
          ``a_{t+1} g_{t+1} - a_t g_t`` above; squared distances are O(1 / t)

Any step below ``2 / L`` converges, whatever the network. With ``e = x - x*`` and ``p = c - c*``,
``e+ = v (u - p)`` and ``p+ = (1 - v) u + v p`` in a mode, for ``u = e - a (g - g*)``, and therefore
``e+^2 + v / (1 - v) p+^2 = v (u^2 + v / (1 - v) p^2)``. Sums over all modes fall by ``max(|1 - a
mu|^2, |1 - a L|^2, v_2)``, as ``|u|`` is at most ``max(|1 - a mu|, |1 - a L|) |e|``.
"""

from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, Nodes, PerNode, RoundMethod
from adfs_methods import steps


@dataclass
class D2State:
    """The points and their corrections."""

    theta: PerNode
    correction: PerNode


@adfs.register("d2", by_name=True)
class D2(RoundMethod[D2State]):
    """D2."""

    rules = ("tuned", "sampled")
    proven = True

    def __init__(
        self,
        nodes: Nodes,
        step: float | None = None,
        batch: int = 1,
        weights: str = "metropolis",
    ) -> None:
        super().__init__(nodes)
        lazy = nodes.problem.topology.weights(weights).lazy()
        self.mix, gaps = nodes.mixer(lazy), 1.0 - steps.eigenvalues(lazy)
        self.gradients = steps.Gradients(nodes, batch if self.rule == "sampled" else None)
        self.uses = self.gradients.uses._replace(gossips=1)
        if self.rule == "sampled":
            first, what = 1.0 / self.gradients.smoothness, steps.DECREASING
            self.step_size, self.rho = steps.given(step, first), 0.0
        else:
            share, what = 1.0 - gaps, "by default the one of the largest proven rate"
            self.step_size, self.rho = steps.step_of_modes(nodes, gaps, gaps, share, step)
        self.facts = [*steps.problem_facts(nodes), Fact("step", self.step_size, what)]

    def start(self, theta: PerNode) -> D2State:
        """All nodes at one model."""
        return D2State(theta, np.zeros_like(theta))

    def round(self, state: D2State, t: int, kind: int) -> None:
        """One gradient per node, and one message over each edge in both directions."""
        step = self.step_size
        if self.rule == "sampled":
            step = steps.decreasing(step, self.nodes, t)
        half = state.theta - step * self.gradients(state.theta, t) - state.correction
        state.theta = self.mix(half)
        state.correction = state.correction + half - state.theta

"""CHOCO-SGD: decentralised SGD whose messages are compressed differences.

With the mixing matrix ``W``, sampled gradients ``g~_t`` of the nodes at ``x_t``, and a compression
``Q``,

    x' = x_t - a_t g~_t,    h_{t+1} = h_t + Q(x' - h_t),    x_{t+1} = x' + gamma (W - I) h_{t+1}.

``h`` is what all neighbours know of ``x``; only ``Q(x' - h)`` is sent, and every node adds up ``W
h`` from that. Koloskova, Stich, Jaggi: Decentralized stochastic optimization and gossip
algorithms with compressed communication (2019). Expected squared distances to the optimum are
O(1 / t). Rules, with ``|Q(v) - v|^2 <= (1 - w) |v|^2``:

top     the ``k`` entries of largest modulus, with their places; ``w = k / d``
random  ``k`` entries, drawn with a seed that neighbours know; ``w = k / d`` in expectation
sign    signs, and the mean modulus; ``w >= 1 / d``

``gamma`` is the one of the largest proven rate of consensus without gradients, at most 1. With ``q
= X - H`` and ``e = q - Q(q)`` a mode of ``W`` with the eigenvalue ``1 - s`` has

    x+ = (1 - k) x + k e,    q+ = -k x + (1 + k) e,    k = gamma s,

and ``|e|^2 <= (1 - w) |q|^2`` summed over all modes. By the circle criterion (`adfs_methods.steps`)
a quadratic function of ``X - 1 xbar`` and ``q`` falls by ``r^2`` if ``|1 - k| < r`` and ``(1 - w)
|(1 + k) z - 1|^2 <= |z|^2 |z - 1 + k|^2`` for all ``|z| = r``; both sides are linear in ``Re z``,
so for ``z = r`` and ``z = -r``. The mean is the mode ``k = 0``: ``r^2 >= 1 - w``. That is consensus
in O(1 / (w s)) rounds for the least ``s``; the publication proves O(1 / (w s^2)).
"""

import math
from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, MixingWeights, Nodes, PerNode, RoundMethod, positive, whole
from adfs_methods import steps


def consensus_slack(gamma: steps.Array, kept: float, weights: MixingWeights) -> steps.Array:
    """The largest ``1 - r`` of the page's condition, for modes at both ends of the spectrum."""
    lost = math.sqrt(1.0 - kept)
    k = gamma[:, None] * np.array([1.0 - weights.second, 1.0 - weights.least])

    def holds(slack: steps.Array) -> steps.Array:
        r = 1.0 - slack[:, None]
        right = (r >= lost) & (lost * np.abs(k - (1.0 + k) * (1.0 - r)) <= r * (k - (1.0 - r)))
        left = lost * ((1.0 + k) * r + 1.0) <= r * (r + 1.0 - k)
        return np.asarray(np.all(right & left & (np.abs(1.0 - k) < r), axis=1))

    return steps.largest_slack(holds, gamma.shape)


@dataclass
class ChocoState:
    """The points, what neighbours know of them, and the same of the neighbours, mixed."""

    theta: PerNode
    known: PerNode
    mixed: PerNode


@adfs.register("choco", by_name=True)
class Choco(RoundMethod[ChocoState]):
    """CHOCO-SGD."""

    rules = ("top", "random", "sign")
    rho = 0.0
    theorem = "Expected squared distances to the optimum are O(1 / t) (Koloskova et al. 2019)."

    def __init__(
        self,
        nodes: Nodes,
        share: float = 0.1,
        k: int | None = None,
        gamma: float | None = None,
        step: float | None = None,
        batch: int = 1,
        weights: str = "metropolis",
    ) -> None:
        super().__init__(nodes)
        d, self.mix, self.coins = nodes.d, nodes.mixer(weights), nodes.uniforms("choco")
        chosen = min(d, math.ceil(positive("share", share) * d)) if k is None else k
        self.k = whole("k", chosen, least=1, most=d)
        kept = 1.0 / d if self.rule == "sign" else self.k / d

        def fall(gamma: steps.Array) -> steps.Array:
            return consensus_slack(gamma, kept, self.mix.weights)

        self.gamma, self.slack = steps.step_of(fall, 1.0, gamma, "gamma")
        self.gradients = steps.Gradients(nodes, batch)
        self.step_size = steps.given(step, 1.0 / self.gradients.smoothness)
        size = {"top": 12 * self.k, "random": 8 * self.k, "sign": math.ceil(d / 8) + 8}[self.rule]
        self.uses = self.gradients.uses._replace(gossips=1, message_bytes=size)
        self.facts = [
            *steps.problem_facts(nodes),
            Fact("w", kept, "what the compression keeps, at least"),
            Fact("gamma", self.gamma, "by default the one of the largest proven rate of consensus"),
            Fact("step", self.step_size, steps.DECREASING),
        ]

    def start(self, theta: PerNode) -> ChocoState:
        """All nodes at one model, which all know."""
        return ChocoState(theta, theta.copy(), theta.copy())

    def round(self, state: ChocoState, t: int, kind: int) -> None:
        """Sampled gradients per node, and a compressed message over each edge both ways."""
        step = steps.decreasing(self.step_size, self.nodes, t)
        half = state.theta - step * self.gradients(state.theta, t)
        message = self.compressed(half - state.known, t)
        state.known = state.known + message
        state.mixed = state.mixed + self.mix(message)
        state.theta = half + self.gamma * (state.mixed - state.known)

    def compressed(self, rows: PerNode, t: int) -> PerNode:
        """``Q`` of each row in a round."""
        if self.rule == "sign":
            return np.asarray(np.sign(rows) * np.abs(rows).mean(axis=1, keepdims=True))
        first = -np.abs(rows) if self.rule == "top" else self.coins.draw(t, self.nodes.d)
        places = np.argsort(first, axis=1, kind="stable")[:, : self.k]
        out = np.zeros_like(rows)
        np.put_along_axis(out, places, np.take_along_axis(rows, places, axis=1), axis=1)
        return out

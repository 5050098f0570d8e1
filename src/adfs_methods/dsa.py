"""DSA: EXTRA with SAGA's estimates of the gradients, one sample per node and round.

Node i has ``f_i = sum_j f_ij + sigma_i/2 |.|^2``, with ``f_ij`` convex and ``L_ij``-smooth, and a
table ``c_ij = w l'`` of its samples. In each round it draws ``j`` with probability ``p_ij``:

    g_i = sigma_i x_i + (c' - c_ij) x_ij / p_ij + sum_k c_ik x_ik,   c' = w l'(x_ij . x_i),

and with ``V = (I + W) / 2``, ``x_1 = W x_0 - a g_0``, ``x_{t+2} = 2 V x_{t+1} - V x_t - a (g_{t+1}
- g_t)``. Here it runs summed up, so that rounding errors do not: ``x+ = V x - w - a g``, where
``w_t`` is the sum of ``(I - W)/2 x_s`` over ``s <= t``.

Mokhtari and Ribeiro: DSA, decentralized double stochastic averaging gradient algorithm (2016).

Theorem. Let W have no negative eigenvalues and second largest ``lambda_2``. Let ``2 a sigma_i < 1``
and, for ``0 < rho <= min((1 - lambda_2) / 2, min_i 2 a sigma_i (1 - a sigma_i))`` and all samples,
``a L_ij (1 / p_ij + 1 / (p_ij - rho)) <= 1 - 2 a sigma_i``. With U^2 = (I - W)/2, w = U q, and all
letters as differences to the optimum, a round contracts by ``1 - rho`` in expectation

    E = <x, V x> + |q|^2 + sum_ij a_ij |c_ij x_ij|^2,   a_ij = 2 a^2 / (p_ij (p_ij - rho)).

Proof: V + U^2 = I gives <x+, V x+> + |q+|^2 = |x+ + w|^2 - |w|^2 + |q|^2 = |V x - a g|^2 - |U q|^2
+ |q|^2. Its mean has |V x - a G|^2, G_i = grad f_i(x_i), and the variance of a g, at most 2 a^2
sum_ij (|grad f_ij(x_i)|^2 + |c_ij x_ij|^2) / p_ij - 2 a^2 |G - sigma x|^2. And |V x - a G|^2 <=
<x, V x> - 2 a <x, G> + 2 a^2 |G|^2, as U^2 <= V. Collect terms as in the proof of SAGA.

So ``p_ij = rho/2 + k + sqrt(rho^2/4 + k^2)`` with ``k = a L_ij / (1 - 2 a sigma_i)``, and ``a`` is
the largest for which these sum up to at most 1 at every node: about 1 / (2 sum_j L_ij). The
published theorem is for uniform draws and a much smaller step. W is lazy, (I + W') / 2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import adfs
from adfs.plugins import Fact, Nodes, PerNode, PerSample, RoundMethod, Uses
from adfs_methods import steps

Vector = NDArray[np.float64]


@dataclass
class DsaState:
    """The points, what mixing has summed up, and the table with its sums."""

    theta: PerNode
    pull: PerNode
    total: PerNode
    table: PerSample


@adfs.register("dsa", by_name=True)
class Dsa(RoundMethod[DsaState]):
    """DSA: EXTRA with SAGA's estimates of the gradients, one sample per node and round."""

    proven = True
    dual = "table"

    def __init__(self, nodes: Nodes, weights: str = "metropolis") -> None:
        super().__init__(nodes)
        problem = nodes.problem
        mixing = problem.topology.weights(weights).lazy()
        self.mix, sigma = nodes.mixer(mixing), problem.sigma
        self.network_rate = 1.0 if problem.n_nodes == 1 else 0.5 * (1.0 - mixing.second)
        each = [problem.conditioning.smoothness(node) for node in nodes.numbers.tolist()]
        own = problem.own_sigma
        largest = [self._largest_step(smooth, own[i]) for i, smooth in enumerate(each)]
        self.step_size = float(problem.network.facts(np.array(largest)).min())
        self.rho = self._rate(self.step_size)
        parts = [self._law(smooth, own[i], self.step_size) for i, smooth in enumerate(each)]
        self.sampler = nodes.sampler(np.concatenate([p / p.sum() for p in parts]), "dsa")
        self.uses = Uses(samples=1, gossips=1)
        self.facts = [
            Fact("step", self.step_size, "largest for which the theorem has probabilities p_ij"),
            Fact("samples", float(2.0 * self.step_size * sigma.min() *
                 (1.0 - self.step_size * sigma.min())), "2 a sigma (1 - a sigma), least sigma"),
            Fact("network", self.network_rate, "(1 - lambda_2) / 2 of the lazy mixing matrix"),
        ]  # fmt: skip

    def _rate(self, step: float) -> float:
        relative = step * float(self.problem.sigma.min())
        return min(self.network_rate, 2.0 * relative * (1.0 - relative))

    def _law(self, smoothness: Vector, sigma: float, step: float) -> Vector:
        """The least probabilities that the theorem allows; rows without smoothness change nothing,
        and are drawn only where a node has no others.
        """
        rate, k = self._rate(step), smoothness * step / (1.0 - 2.0 * step * sigma)
        if not smoothness.any():
            return np.full(len(smoothness), rate)
        return steps.least_probabilities(rate, k, smoothness > 0.0)

    def _largest_step(self, smoothness: Vector, sigma: float) -> float:
        top = (0.5 - 1e-9) / float(self.problem.sigma.max())
        if not smoothness.any():
            return top

        return steps.largest_with_sum(lambda step: self._law(smoothness, sigma, step).sum(), top)

    def start(self, theta: PerNode) -> DsaState:
        """The table at ``theta``: one pass, counted nowhere, as set-up."""
        table = self.nodes.slopes(theta)
        return DsaState(theta, np.zeros_like(theta), self.nodes.row_sums(table), table)

    def round(self, state: DsaState, t: int, kind: int) -> None:
        """One sample per node, and one message over each edge in both directions."""
        nodes, places = self.nodes, self.sampler.draw(t)
        fresh = nodes.sample_slopes(state.theta, places)
        change = fresh - state.table[places]
        gradient = nodes.sigma * state.theta + state.total
        nodes.add_rows(change / self.sampler.p[places], places, gradient)
        nodes.add_rows(change, places, state.total)
        state.table[places] = fresh
        mixed = self.mix(state.theta)
        state.pull += 0.5 * (state.theta - mixed)
        state.theta = 0.5 * (state.theta + mixed) - state.pull - self.step_size * gradient

"""SDCA on one machine: exact steps on one dual coefficient after another.

``F(x) = sum_j f_j(x) + S/2 |x|^2`` with ``f_j = w_j l(x_j .)``, ``L_j``-smooth, and ``S = sum_i
sigma_i`` has the dual ``D(c) = -sum_j f_j*(c_j x_j) - S/2 |x(c)|^2``, ``x(c) = -(1/S) sum_j c_j
x_j``. A step draws ``j`` with probability ``p_j`` and maximises ``D`` over ``c_j``:

    c' = w_j l'(x_j . x'),   x' = x - (c' - c_j) x_j / S.

Shalev-Shwartz and Zhang: Stochastic dual coordinate ascent methods (2013). It starts from zero, or
from the slopes at a model. A round is a pass of N steps, at most 65,536.

Theorem: ``E[D* - D(c)]`` falls by ``1 - rho`` per step, ``rho = min_j p_j / (1 + L_j / S)``; and
``|x - x*|^2 <= 2 (D* - D(c)) / S``. Proof: moving ``c_j`` by the share ``s = 1 / (1 + L_j / S)``
towards ``w_j l'(x_j . x)`` gains at least ``s`` times the Fenchel gap of sample j, and an exact
step no less; the gaps sum up to the duality gap. ``p_j`` in proportion to ``1 + L_j / S`` makes
``rho = 1 / sum_j (1 + L_j / S)``, where uniform draws have ``1 / (N + N max L_j / S)``.
"""

from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, Nodes, PerNode, PerSample, RoundMethod, Uses, whole
from adfs_methods import steps


@dataclass
class SdcaState:
    """The dual coefficients and their model."""

    theta: PerNode
    duals: PerSample


@adfs.register("sdca", by_name=True)
class Sdca(RoundMethod[SdcaState]):
    """SDCA on one machine: exact steps on one dual coefficient after another."""

    proven = True
    one_machine = True
    dual = "duals"

    def __init__(self, nodes: Nodes, batch: int | None = None) -> None:
        super().__init__(nodes)
        problem = nodes.problem
        weight = np.where(problem.live, 1.0 + problem.conditioning.smoothness(0) / problem.sigma, 0)
        in_one = min(problem.n_samples, steps.LONGEST)
        self.batch = in_one if batch is None else whole("batch", batch, least=1)
        self.sampler = nodes.sampler(weight / weight.sum(), "sdca")
        self.uses = Uses(steps=self.batch)
        rate = min(1.0 / float(weight.sum()), 0.99)
        self.rho = min(float(-np.expm1(self.batch * np.log1p(-rate))), 0.999)
        self.facts = [
            Fact("rate", rate, "1 / sum_j (1 + L_j / S), per step"),
            Fact("batch", self.batch, "steps in a round"),
        ]

    def start(self, theta: PerNode) -> SdcaState:
        """From zero; else from the slopes at ``theta``."""
        duals = self.nodes.slopes(theta)
        if not theta.any():
            duals[self.problem.squared_norms > 0.0] = 0.0
        return SdcaState(-self.nodes.row_sums(duals) / self.nodes.sigma, duals)

    def round(self, state: SdcaState, t: int, kind: int) -> None:
        """``batch`` proximal steps."""
        places, strength = self.sampler.draw(t, self.batch), 1.0 / self.nodes.sigma[:, 0]
        self.nodes.coordinate_steps(state.theta, state.duals, places, strength)

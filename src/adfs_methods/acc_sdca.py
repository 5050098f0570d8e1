"""Accelerated SDCA on one machine: proximal points with momentum, each by dual coordinate steps.

``F`` has the ridge ``S = sum_i sigma_i`` and samples of smoothness ``L_j``. Stage t takes steps of
SDCA, from the dual coefficients at hand, on ``F(x) + K/2 |x - y_{t-1}|^2``, whose points are ``u =
(K y_{t-1} - sum_j c_j x_j) / (S + K)``:

    c' = w_j l'(x_j . u'),   u' = u - (c' - c_j) x_j / (S + K),
    at the end of the stage   x_t = u,   y_t = x_t + beta (x_t - x_{t-1}).

Shalev-Shwartz and Zhang: Accelerated proximal stochastic dual coordinate ascent (2014), with K such
that one stage takes about two passes: ``S + K = max(S, mean L_j)``, the mean in the place of the
largest as rows are drawn with ``p_j`` in proportion to ``1 + L_j / (S + K)``. ``beta = (1 - sqrt q)
/ (1 + sqrt q)``, ``q = S / (S + K)``, as in Catalyst, where they have ``q = S / (S + 2 K)``.

Rule ``tuned`` takes as many passes a stage as ``passes`` says; nothing is proven. Rule ``theory``:

Theorem (Lin, Mairal, Harchaoui: Catalyst, 2015, theorem 3.1; recalled, not proven here). If stage
t ends with an expected error of at most ``e_t = (2/9) E (1 - r)^t`` in its own objective, ``E >=
F(x_0) - F*``, ``r < sqrt q``, then ``E[F(x_t)] - F* <= 8 E (1 - r)^(t+1) / (sqrt q - r)^2``.

How many steps bring that about, from the coefficients at hand: let ``G`` be the dual error of a
stage's objective, and ``E`` at least the first one. When y moves by d, sqrt G grows by at most ``K
|d| / sqrt(2 (S + K))``, as the dual's derivative in y is ``K (y - u)`` and its maximum's ``K (y -
prox)``, and prox is monotone. By the theorem and strong convexity, ``E|d|^2`` is at most ``36 (2/S)
8 E (1 - r)^(t-2) / (sqrt q - r)^2``. With ``rho_in = 1 / sum_j (1 + L_j / (S + K))``, T steps leave
a gap of at most ``(1 - rho_in)^T G / rho_in``. So, for ``r = 0.9 sqrt q``, it is enough that

    T >= log((4.5 + 2592 K^2 / (S (S + K) (sqrt q - r)^2)) / (rho_in (1 - r)^2)) / rho_in,

some fifty passes. Without K it is SDCA and its theorem.

Kinds of rounds: 0 is a pass of steps, at most 65,536; 1 is one that ends a stage.
"""

import math
from dataclasses import dataclass

import numpy as np

import adfs
from adfs.plugins import Fact, Nodes, PerNode, PerSample, RoundMethod, Rounds, Uses, positive
from adfs_methods import steps

SHARE = 0.9  # r / sqrt q


@dataclass
class AccSdcaState:
    """The last stage's point, the point y, and what coordinate steps work on."""

    theta: PerNode
    y: PerNode
    u: PerNode
    duals: PerSample


@adfs.register("acc-sdca", by_name=True)
class AccSdca(RoundMethod[AccSdcaState]):
    """Accelerated SDCA on one machine: proximal points with momentum, by dual coordinate steps."""

    rules = ("tuned", "theory")
    one_machine = True
    dual = "duals"

    def __init__(self, nodes: Nodes, passes: float = 1.0) -> None:
        super().__init__(nodes)
        problem = nodes.problem
        n, ridge, each = problem.n_samples, problem.total_sigma, problem.conditioning.smoothness(0)
        self.strong = max(ridge, float(each.mean()))  # S + K
        self.pull = 1.0 - ridge / self.strong  # K / (S + K)
        root = math.sqrt(ridge / self.strong)
        self.beta = (1.0 - root) / (1.0 + root)
        weight = np.where(problem.live, 1.0 + each / self.strong, 0.0)
        self.proven = self.rule == "theory"
        if self.proven and self.pull > 0.0:
            wanted = enough_steps(float(weight.sum()), ridge, self.strong)
        else:
            wanted = max(1, round(positive("passes", passes) * n))
        rounds, self.batch = steps.in_rounds(wanted, n, "a stage of acc-sdca")
        rate = min(1.0 / float(weight.sum()), 0.99)
        inner = -rounds * self.batch * math.log1p(-rate)  # factors e of the dual error in a stage
        stage = SHARE * root if self.proven else 1.0 / (1.0 / (SHARE * root) + 2.0 / inner)
        self.proven = self.proven or self.pull == 0.0
        stage = -math.expm1(-inner) if self.pull == 0.0 else stage
        self.rho = min(1.0 - (1.0 - stage) ** (1.0 / rounds), 0.999)
        self.sampler = nodes.sampler(weight / weight.sum(), "acc-sdca")
        self.uses = [Uses(steps=self.batch)] * 2
        self.source = Rounds([0] * (rounds - 1) + [1])
        self.facts = [
            Fact("K", self.strong - ridge, "mean of L_j, less S; at least 0"),
            Fact("beta", self.beta, "(1 - sqrt q) / (1 + sqrt q), q = S / (S + K)"),
            Fact("steps", rounds * self.batch, "of SDCA in a stage, in rounds of a pass at most"),
        ]

    def start(self, theta: PerNode) -> AccSdcaState:
        """From zero; else from the slopes at ``theta``, which is the first point."""
        duals = self.nodes.slopes(theta)
        if not theta.any():
            duals[self.problem.squared_norms > 0.0] = 0.0
        u = self.pull * theta - self.nodes.row_sums(duals) / self.strong
        return AccSdcaState(theta, theta.copy(), u, duals)

    def round(self, state: AccSdcaState, t: int, kind: int) -> None:
        """``batch`` proximal steps; then, at the end of a stage, momentum."""
        places, strength = self.sampler.draw(t, self.batch), np.array([1.0 / self.strong])
        self.nodes.coordinate_steps(state.u, state.duals, places, strength)
        if kind == 1:
            y = state.u + self.beta * (state.u - state.theta)
            state.theta = state.u.copy()
            state.u += self.pull * (y - state.y)
            state.y = y


def enough_steps(inverse_rate: float, ridge: float, strong: float) -> float:
    """T of the theorem; ``inverse_rate`` is ``1 / rho_in``."""
    root = math.sqrt(ridge / strong)
    moved = 2592.0 * (1.0 - ridge / strong) ** 2 * (strong / ridge) / (root - SHARE * root) ** 2
    inside = (4.5 + moved) * inverse_rate / (1.0 - SHARE * root) ** 2
    return float(np.ceil(inverse_rate * np.log(inside)))

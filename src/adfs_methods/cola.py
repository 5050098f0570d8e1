"""CoLA and CoCoA+: passes over dual coefficients at every node, then gossip or an exact mean.

``F(x) = sum_ij f_ij(x) + S/2 |x|^2`` with ``S = sum_i sigma_i`` has the dual ``D(c) = -sum_ij
f_ij*(c_ij x_ij) - S/2 |x(c)|^2``, ``x(c) = -(1/S) sum_ij c_ij x_ij``. Node i has a point ``X_i``;
their mean is ``x(c)``. In a round of CoLA (``gamma = 1``, ``sigma' = n``) the nodes mix their
points, ``U = W X``, then each draws rows of its own, one after another, with exact steps

    c' = w l'(x_ij . u'),   u' = u_i - (n/S) (c' - c_ij) x_ij,   and X_i+ is the last u.

In CoCoA+ all points are equal, and a round ends with the exact mean of the last ``u``.

He, Bian, Jaggi: CoLA, decentralized linear learning (2018). Ma, Smith, Jaggi, Jordan, Richtarik,
Takac: Adding vs. averaging in distributed primal-dual optimization (2015).

Theorem. Let ``beta`` be the second largest modulus of W (0 for CoCoA+), ``k = n/S max_i lambda_max
(B_i)``, ``B_i`` the curvature of node i's losses, ``r = min_i 1 / sum_j (1 + n L_ij / S)``, ``v =
max(r, (1 - (1 - r)^H) / (1 + k))`` for ``H`` local steps drawn in proportion to ``1 + n L_ij / S``.
For every ``e > 0`` the mean of ``D* - D(c) + S/(2n) sum_i |X_i - x(c)|^2`` falls per round by

    1 - rho,   rho = min(v / (1 + e), (1 - beta^2) / (1 + beta^2 (1 + 1/e) k)).

Proof: it is, up to D*, ``H = sum_ij f_ij* + S/(2n) sum_i |X_i|^2``: the local steps descend on
node i's terms of H, whose change of c_i has exactly the subproblem of ``sigma' = n``. As for SDCA,
they lower H by at least v times ``sum_i P_i(U_i)``, the Fenchel gaps of all samples at the nodes'
points. P_i is not negative and ``lambda_max(B_i)``-smooth, so sqrt P_i(x(c)) <= sqrt P_i(U_i) +
sqrt(lambda_max(B_i) / 2) |U_i - x(c)|; and sum_i P_i(x(c)) is a duality gap, at least D* - D(c).
Mixing lowers the second term by beta^2. The best ``e`` makes the two rates equal.

(The theorem published for CoLA, as we recall it, has a smaller rate, with (1 - beta)^2 / 36.)
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

import adfs
from adfs.plugins import Fact, Nodes, PerNode, PerSample, RoundMethod, Uses, positive


@dataclass
class ColaState:
    """The nodes' points and their dual coefficients."""

    theta: PerNode
    duals: PerSample


@adfs.register("cola", by_name=True)
class Cola(RoundMethod[ColaState]):
    """CoLA: passes over dual coefficients at every node, then gossip."""

    proven = True
    dual = "duals"
    gossips = True

    def __init__(self, nodes: Nodes, passes: float = 1.0, weights: str = "metropolis") -> None:
        super().__init__(nodes)
        problem = nodes.problem
        mixing = problem.topology.weights(weights)
        self.mix, beta = nodes.mixer(mixing), mixing.slem if self.gossips else 0.0
        self.scale = problem.n_nodes / problem.total_sigma
        self.local_steps = max(1, round(positive("passes", passes) * int(problem.sizes.max())))
        each = [1.0 + self.scale * problem.conditioning.smoothness(node)
                for node in nodes.numbers.tolist()]  # fmt: skip
        slowest = float(problem.network.facts(np.array([law.sum() for law in each])).max())
        self.sampler = nodes.sampler(np.concatenate([law / law.sum() for law in each]), "cola")
        self.uses = Uses(steps=self.local_steps, gossips=int(self.gossips), sums=1 - self.gossips)
        curvature = self.scale * float(problem.conditioning.batch_smoothness().max())
        gained = 1.0 - (1.0 - 1.0 / slowest) ** self.local_steps
        local = max(1.0 / slowest, gained / (1.0 + curvature))
        self.rho = common_rate(local, beta, curvature)
        self.facts = [
            Fact("H", self.local_steps, "local steps of each node in a round"),
            Fact("local", local, "v: share of the Fenchel gaps that the local steps gain"),
            Fact("k", curvature, "n / S times the largest lambda_max(B_i)"),
            Fact("beta", beta, "second largest modulus of the mixing matrix"),
        ]

    def start(self, theta: PerNode) -> ColaState:
        """From zero; else from the slopes at ``theta``."""
        duals = self.nodes.slopes(theta)
        if not theta.any():
            duals[self.problem.squared_norms > 0.0] = 0.0
        points = -self.scale * self.nodes.row_sums(duals)
        return ColaState(points if self.gossips else self._mean(points), duals)

    def round(self, state: ColaState, t: int, kind: int) -> None:
        """Gossip, then local steps."""
        state.theta = self.mix(state.theta)
        self._descend(state, t)

    def _descend(self, state: ColaState, t: int) -> None:
        places = self.sampler.draw(t, self.local_steps)
        strength = np.full(self.nodes.n, self.scale)
        self.nodes.coordinate_steps(state.theta, state.duals, places, strength)

    def _mean(self, points: PerNode) -> PerNode:
        return np.tile(self.nodes.mean(points), (self.nodes.n, 1))


@adfs.register("cocoa", by_name=True)
class Cocoa(Cola):
    """CoCoA+: passes over dual coefficients at every node, then the exact mean."""

    gossips = False

    def __init__(self, nodes: Nodes, passes: float = 1.0) -> None:
        super().__init__(nodes, passes)

    def round(self, state: ColaState, t: int, kind: int) -> None:
        """Local steps, then a sum over all nodes."""
        self._descend(state, t)
        state.theta = self._mean(state.theta)


def common_rate(local: float, beta: float, curvature: float) -> float:
    """The best rate of the theorem over ``e``."""

    def network(e: float) -> float:
        return (1.0 - beta**2) / (1.0 + beta**2 * (1.0 + 1.0 / e) * curvature)

    if beta == 0.0:
        return min(local, 1.0 - 1e-12)
    v = brentq(lambda v: local / (1.0 + np.exp(v)) - network(np.exp(v)), -100.0, 100.0)
    return min(float(network(np.exp(v))), 1.0 - 1e-12)

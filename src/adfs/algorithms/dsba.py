"""DSBA (Shen et al. 2018): EXTRA, with SAGA's gradient estimate taken at the point it leads to.

Mean form: with ``mbar = N / n`` node i holds ``F_i = (1/m_i) sum_j B_ij + lam_i/2 |.|^2``, where
``B_ij = (m_i / mbar) f_ij`` and ``lam_i = sigma_i / mbar``. ``W = I - Lap / lambda_max``,
``Wt = (I + W) / 2``, rows of ``z`` are the nodes' iterates, and ``phi_ij`` is a table of gradients
of mean ``phibar``. In round t every node draws j with probability ``p_ij``, boosts it by
``b_ij = 1 / (m_i p_ij)``, which keeps the estimate unbiased, and takes one proximal step:

    z_{t+1} + alpha (b_ij grad B_ij + lam)(z_{t+1}) = psi_t,
    psi_0 = W z_0 + alpha (b_ij phi_ij - phibar_0),
    psi_t = Wt (2 z_t - z_{t-1}) + alpha ((1 - p_{t-1}) delta_{t-1} + b_ij phi_ij + lam z_t),
    delta_t = b_ij (grad B_ij(z_{t+1}) - phi_ij),    phi_ij <- grad B_ij(z_{t+1}),

with ``p_{t-1}`` the probability of the last round's sample. The published rules draw uniformly;
``tuned`` has ``p_ij = (1 - beta) / m_i + beta L_ij / sum_j L_ij``.

Gradients are multiples of rows, so the table is a scalar per sample. `adfs.kernels.dsba` runs the
same recursion in its summed form. At n = 1 this is Point-SAGA, with its table of scalars.

Derivation, proof of the rate and the rules for alpha: docs/algorithms/dsba.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.point_saga import TableAlgorithm
from adfs.kernels import dsba as kernel
from adfs.kernels import point_saga
from adfs.kernels.memory import aligned_zeros
from adfs.kernels.sampling import build_aliases
from adfs.problem.finite_sum import Problem
from adfs.randomness import stream_keys
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost
from adfs.theory.description import Description, Fact, SelfDescribing

RAREST = 1e-9  # of a uniform draw: least probability of a sample; alias tables have 32 bits
LEAST_KEPT = 1e-100  # so that quotients by h are numbers
BLOCK_WORK = 1 << 24  # multiplications in a compiled call, about 20 ms


@dataclass(frozen=True)
class DsbaParameters(SelfDescribing):
    """The step of DSBA, its draws, and the rate it is proven to have, all in mean form."""

    rule: str
    largest: float  # the largest smoothness (m_i / mbar) L_ij
    mean: float  # Lbar, the largest mean of them over a node's samples: max_i sum_j L_ij / mbar
    ridge: float  # least lam_i = sigma_i / mbar
    largest_ridge: float
    n_samples: int  # of the largest shard
    gamma: float  # eigengap of the graph
    n_nodes: int

    @classmethod
    def of(cls, problem: Problem, rule: str) -> "DsbaParameters":
        size = mean_size(problem)
        ridge, share = problem.sigma / size, problem.sizes / size
        conditioning = problem.conditioning
        own = [share[i] * conditioning.smoothness(i).max() for i in problem.nodes.tolist()]
        largest = max(problem.network.gather(float(max(own))))
        return cls(
            rule, float(largest), float(conditioning.total_smoothness.max() / size),
            float(ridge.min()), float(ridge.max()), int(problem.sizes.max()),
            problem.topology.spectrum.gamma, problem.n_nodes,
        )  # fmt: skip

    @property
    def by_importance(self) -> bool:
        """The published rules draw uniformly."""
        return self.rule == "tuned"

    @property
    def smoothness(self) -> float:
        """``L`` of the step and of the table's rate: the mean one, or the largest."""
        return self.mean if self.by_importance else self.largest

    @property
    def alpha(self) -> float:
        if self.by_importance:
            return 2.0 / (self.mean + 4.0 * self.n_samples * self.ridge)
        return 1.0 / ((24.0 if self.rule == "theory" else 4.0) * self.largest)

    def rates(self, kept: float) -> tuple[float, float, float]:
        """Of iterate, network and table; the least is rho. ``kept`` is the h of the proof."""
        alpha, rough = self.alpha, self.boosted(kept) + 2.0 * self.largest_ridge
        s = 2.0 * alpha * self.ridge * (1.0 - (1.0 - kept) * self.largest_ridge / rough)
        table = (1.0 - alpha * self.smoothness / (2.0 * kept)) / self.n_samples
        if self.n_nodes == 1:
            return s / (1.0 + s), 1.0, table
        b = alpha * rough / (2.0 * (1.0 - kept)) if kept < 1.0 else math.inf
        return s / (1.0 + s), self.gamma / (2.0 * (1.0 + b)), table

    def boosted(self, kept: float) -> float:
        """``L~``, a bound on ``L_ij / (m_i p_ij)``: the smoothness of a sample over its draws."""
        beta = self.share_by_smoothness(kept)
        return self.largest / (1.0 - beta + (beta * self.largest / self.mean if beta else 0.0))

    def share_by_smoothness(self, kept: float) -> float:
        """``beta = alpha Lbar / (2 h)``: with it the table's rate is largest."""
        return min(self.alpha * self.mean / (2.0 * kept), 1.0) if self.by_importance else 0.0

    @property
    def kept(self) -> float:
        """h: as much as the network's rate, which falls with h, allows; the others rise.

        No less than leaves the table half of its rate.
        """
        if self.n_nodes == 1:
            return 1.0
        least = 0.5 * self.alpha * self.smoothness
        low, high = max(2.0 * least / (1.0 + least), LEAST_KEPT), 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            iterate, network, table = self.rates(middle)
            low, high = (middle, high) if network > min(iterate, table) else (low, middle)
        return low

    @property
    def beta(self) -> float:
        """Share of the draws that goes by smoothness; the others are uniform."""
        return min(self.share_by_smoothness(self.kept), 1.0 - RAREST)

    @property
    def rho(self) -> float:
        """``E T`` falls by that share per round (T: docs/algorithms/dsba.md)."""
        return min(self.rates(self.kept))

    def description(self) -> Description:
        step = {"theory": "1 / (24 L), the DSBA paper's theorem",
                "paper": "1 / (4 L), fine-tuned in the ADFS paper",
                "tuned": "2 / (Lbar + 4 m lam), within what is proven here"}[self.rule]  # fmt: skip
        iterate, network, table = self.rates(self.kept)
        letter = "Lbar" if self.by_importance else "L"
        facts = [
            Fact("L", self.largest, "largest (m_i / mbar) L_ij"),
            Fact("Lbar", self.mean, "largest mean of them at a node"),
            Fact("lam", self.ridge, "least sigma_i / mbar"),
            Fact("m", self.n_samples, "largest shard"),
            Fact("gamma", self.gamma, "eigengap of the graph"),
            Fact("alpha", self.alpha, step),
            Fact("beta", self.beta, "share of draws by L_ij; the others are uniform"),
            Fact("iterate", iterate, "about 2 alpha lam"),
            Fact("network", network, "gamma / (2 (1 + b))"),
            Fact("table", table, f"(1 - alpha {letter} / (2 h)) / m, h = {self.kept:.3g}"),
            Fact("rho", self.rho, "the least of the three"),
        ]
        title = f"DSBA parameters ({self.rule}) on {self.n_nodes} nodes, in mean form"
        return Description(title, facts)


def mean_size(problem: Problem) -> float:
    """``mbar = N / n``."""
    return problem.n_samples / problem.n_nodes


def relative_draws(problem: Problem, beta: float) -> Vector:
    """``m_i p_ij`` of the samples here: 1 if drawn uniformly, in part ``L_ij`` over its mean."""
    relative = np.ones(problem.n_rows)
    for node in problem.nodes.tolist():
        total = problem.conditioning.total_smoothness[node]
        if beta > 0.0 and total > 0.0:
            smoothness = problem.conditioning.smoothness(node)
            relative[problem.node_rows(node)] = (
                1.0 - beta + beta * (smoothness / total * len(smoothness))
            )
    return relative


class Dsba(TableAlgorithm[kernel.DsbaState]):
    """DSBA on a network: per round a proximal step and an exchange with all neighbours."""

    def __init__(self, problem: Problem, parameters: DsbaParameters, seed: int) -> None:
        d, n_messages = problem.n_features, 2 * problem.topology.n_edges
        price = base.Counts.of_vectors(d, n_prox=problem.n_nodes, n_comm=n_messages)
        super().__init__(problem, parameters, [price])
        largest = problem.topology.spectrum.lambda_max
        tables = np.zeros(problem.n_rows, np.int64)
        build_aliases(relative_draws(problem, parameters.beta), problem.offsets, tables)
        self.constants = kernel.DsbaConstants(
            loss=problem.loss.code,
            alpha=parameters.alpha,
            ridge=problem.own_sigma / mean_size(problem),
            share=(problem.sizes / mean_size(problem))[problem.nodes],
            half=0.5 / largest if largest > 0.0 else 0.0,
            links=problem.network.links,
            offsets=problem.offsets,
            keys=stream_keys(seed, "dsba", problem.nodes),
            tables=tables,
        )

    def init(self, theta: Vector | None = None) -> kernel.DsbaState:
        """All nodes at ``theta``, or zero, with the table of gradients there."""
        problem = self.problem
        n, d = len(problem.nodes), problem.n_features
        start = np.zeros(d) if theta is None else problem.vector(theta)
        lines, pairs = base.sample_lines(problem, point_saga), aligned_zeros(n, 2 * d)
        lines[:, point_saga.BOOST] = 1.0 / relative_draws(problem, self.parameters.beta)
        for own, node in enumerate(problem.nodes.tolist()):
            rows, total = problem.node_rows(node), np.zeros(d)
            point_saga.fill_table(
                problem.loss.code, problem.rows, lines, rows.start, rows.stop, start, total
            )  # fmt: skip
            pairs[own, 1::2] = self.parameters.alpha / mean_size(problem) * total  # alpha phibar_i
        z = np.tile(start, (problem.network.n_rows, 1))
        return kernel.DsbaState(lines, z, pairs, np.empty(d))

    def step(self, state: kernel.DsbaState, events: Events) -> kernel.DsbaState:
        n_rounds = len(events.which)
        kernel.run_rounds(events.start, n_rounds, self.problem.rows, state, self.constants)
        return state

    def output(self, state: kernel.DsbaState) -> Matrix:
        return state.z[: len(self.problem.nodes)].copy()

    def arrays(self, state: kernel.DsbaState) -> base.Arrays:
        nodes = {"z": state.z[: len(self.problem.nodes)], "pairs": state.pairs}
        return base.Arrays({"lines": state.lines[:, : point_saga.NORM2]}, nodes, {})


@base.register("dsba", smooth=True, rules=("theory", "paper", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """DSBA with its clock: a round takes one proximal step and one communication."""
    chosen, n = DsbaParameters.of(problem, setting.rule), problem.n_nodes
    work = (n + 2 * problem.topology.n_edges) * problem.n_features
    return base.method_in_rounds(
        Dsba(problem, chosen, setting.seed), setting, [Cost(np.ones(n), rounds=1)],
        block=min(1 << 14, max(16, BLOCK_WORK // work)), shortest=min(2_000, chosen.n_samples),
        work=n, proven=True,
    )  # fmt: skip

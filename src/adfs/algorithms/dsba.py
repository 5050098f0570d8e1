"""DSBA (Shen et al. 2018): EXTRA, with SAGA's gradient estimate taken at the point it leads to.

Mean form: with ``mbar = N / n`` node i holds ``F_i = (1/m_i) sum_j B_ij + lam_i/2 |.|^2``, where
``B_ij = (m_i / mbar) f_ij`` and ``lam_i = sigma_i / mbar``. ``W = I - Lap / lambda_max``,
``Wt = (I + W) / 2``, rows of ``z`` are the nodes' iterates, and ``phi_ij`` is a table of gradients
of mean ``phibar``. In round t every node draws j uniformly and takes one proximal step:

    z_{t+1} + alpha (grad B_ij + lam)(z_{t+1}) = psi_t,
    psi_0 = W z_0 + alpha (phi_ij - phibar_0),
    psi_t = Wt (2 z_t - z_{t-1}) + alpha ((1 - 1/m) delta_{t-1} + phi_ij + lam z_t),
    delta_t = grad B_ij(z_{t+1}) - phi_ij,    phi_ij <- grad B_ij(z_{t+1}).

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
from adfs.problem.finite_sum import Problem
from adfs.randomness import stream_keys
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost
from adfs.theory.description import Description, Fact, SelfDescribing

BLOCK_WORK = 1 << 24  # multiplications in a compiled call, about 20 ms


@dataclass(frozen=True)
class DsbaParameters(SelfDescribing):
    """The step of DSBA and the rate it is proven to have, all in mean form."""

    rule: str
    smoothness: float  # L, the largest (m_i / mbar) L_ij
    ridge: float  # least lam_i = sigma_i / mbar
    largest_ridge: float
    n_samples: int  # of the largest shard
    gamma: float  # eigengap of the graph
    n_nodes: int

    @classmethod
    def of(cls, problem: Problem, rule: str) -> "DsbaParameters":
        mean = mean_size(problem)
        ridge, share = problem.sigma / mean, problem.sizes / mean
        conditioning = problem.conditioning
        own = [share[i] * conditioning.smoothness(i).max() for i in problem.nodes.tolist()]
        largest = max(problem.network.gather(float(max(own))))
        return cls(
            rule, float(largest), float(ridge.min()), float(ridge.max()),
            int(problem.sizes.max()), problem.topology.spectrum.gamma, problem.n_nodes,
        )  # fmt: skip

    @property
    def alpha(self) -> float:
        if self.rule == "tuned":
            return 2.0 / (self.smoothness + 4.0 * self.n_samples * self.ridge)
        return 1.0 / ((24.0 if self.rule == "theory" else 4.0) * self.smoothness)

    def rates(self, kept: float) -> tuple[float, float, float]:
        """Of iterate, network and table; the least is rho. ``kept`` is the h of the proof."""
        alpha, rough = self.alpha, self.smoothness + 2.0 * self.largest_ridge
        s = 2.0 * alpha * self.ridge * (1.0 - (1.0 - kept) * self.largest_ridge / rough)
        table = (1.0 - alpha * self.smoothness / (2.0 * kept)) / self.n_samples
        if self.n_nodes == 1:
            return s / (1.0 + s), 1.0, table
        b = alpha * rough / (2.0 * (1.0 - kept)) if kept < 1.0 else math.inf
        return s / (1.0 + s), self.gamma / (2.0 * (1.0 + b)), table

    @property
    def kept(self) -> float:
        """h: as much as the network's rate, which falls with h, allows; the others rise."""
        low, high = 0.5 * self.alpha * self.smoothness, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            iterate, network, table = self.rates(middle)
            low, high = (middle, high) if network > min(iterate, table) else (low, middle)
        return low

    @property
    def rho(self) -> float:
        """``E T`` falls by that share per round (T: docs/algorithms/dsba.md)."""
        return min(self.rates(self.kept))

    def description(self) -> Description:
        step = {"theory": "1 / (24 L), the DSBA paper's theorem",
                "paper": "1 / (4 L), fine-tuned in the ADFS paper",
                "tuned": "2 / (L + 4 m lam), within what is proven here"}[self.rule]  # fmt: skip
        iterate, network, table = self.rates(self.kept)
        facts = [
            Fact("L", self.smoothness, "largest (m_i / mbar) L_ij"),
            Fact("lam", self.ridge, "least sigma_i / mbar"),
            Fact("m", self.n_samples, "largest shard"),
            Fact("gamma", self.gamma, "eigengap of the graph"),
            Fact("alpha", self.alpha, step),
            Fact("iterate", iterate, "about 2 alpha lam"),
            Fact("network", network, "gamma / (2 (1 + b))"),
            Fact("table", table, f"(1 - alpha L / (2 h)) / m, h = {self.kept:.3g}"),
            Fact("rho", self.rho, "the least of the three"),
        ]
        title = f"DSBA parameters ({self.rule}) on {self.n_nodes} nodes, in mean form"
        return Description(title, facts)


def mean_size(problem: Problem) -> float:
    """``mbar = N / n``."""
    return problem.n_samples / problem.n_nodes


class Dsba(TableAlgorithm[kernel.DsbaState]):
    """DSBA on a network: per round a proximal step and an exchange with all neighbours."""

    def __init__(self, problem: Problem, parameters: DsbaParameters, seed: int) -> None:
        d, n_messages = problem.n_features, 2 * problem.topology.n_edges
        price = base.Counts.of_vectors(d, n_prox=problem.n_nodes, n_comm=n_messages)
        super().__init__(problem, parameters, [price])
        largest = problem.topology.spectrum.lambda_max
        self.constants = kernel.DsbaConstants(
            loss=problem.loss.code,
            alpha=parameters.alpha,
            ridge=problem.own_sigma / mean_size(problem),
            share=(problem.sizes / mean_size(problem))[problem.nodes],
            half=0.5 / largest if largest > 0.0 else 0.0,
            links=problem.network.links,
            offsets=problem.offsets,
            keys=stream_keys(seed, "dsba", problem.nodes),
        )

    def init(self, theta: Vector | None = None) -> kernel.DsbaState:
        """All nodes at ``theta``, or zero, with the table of gradients there."""
        problem = self.problem
        n, d = len(problem.nodes), problem.n_features
        start = np.zeros(d) if theta is None else problem.vector(theta)
        lines, pairs = base.sample_lines(problem, point_saga), aligned_zeros(n, 2 * d)
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

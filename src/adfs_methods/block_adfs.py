"""ADFS in synchronous blocks: the form of the paper's journal version (arXiv 2005.10675).

A coin that all nodes share decides what a round is: with probability ``p_comm`` all edges
communicate, else every node takes a proximal step on one sample, drawn with ``p_ij = (1 - p_comm)
sqrt(1 + L_ij / sigma_i) / S_i``. In the letters of Algorithm 1, with ``y = (x + rho v) / (1 +
rho)`` and ``w = (1 - rho) v + rho y`` on all rows,

    edges:    D = -(rho / (sigma_A p_comm)) Lap Sigma^-1 y,  v' = w + D,  x' = y + (rho / p_comm) D
    samples:  the local update of Algorithm 1 at every node, with these p_ij.

It is generalized APCG with blocks of coordinates: virtual edges of different nodes share no row,
so each keeps its own smoothness M_ij, and all communication edges are one block, whose smoothness
is ``lambda_max(A_c^T Sigma^-1 A_c)`` and whose R is 1. So Corollary 1 holds with

    rho = sqrt(sigma_A) min(p_comm / sqrt(lambda_max(A_c^T Sigma^-1 A_c)), min p_ij / sqrt(M_ij)).

As in the core's ``adfs``, the sum ``x + v`` is kept and ``x - v`` shrinks by ``r = (1 - rho) / (1 +
rho)`` per round, so a sample is touched only when it is drawn.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import adfs
from adfs.plugins import (
    CoinRounds,
    Fact,
    Nodes,
    PerNode,
    PerSample,
    RoundMethod,
    Shared,
    Uses,
    axpy,
    dot,
    dual_prox,
    njit,
)  # fmt: skip

EDGE_MU2 = 0.5  # mu_kl^2 in `adfs.Parameters`
SCALES = np.geomspace(0.05, 20.0, 17)  # of every mu_ij^2
VISITS = 1.2  # times the rate of visits, at which runs forget old duals (docs/tuning.md)
MOST_NODES = 1500  # of whose graph all eigenvalues are computed
FADED = 200.0  # differences are multiplied out before they are smaller than exp(-FADED)


class BlockParameters(NamedTuple):
    """The scale of mu_ij^2 and what follows from it; ``time`` is that of a factor e, as seen."""

    time: float
    scale: float
    alpha: np.ndarray
    sigma_a: float
    p_comm: float
    rho: float

    @classmethod
    def of(cls, nodes: Nodes, scale: float, edge_smoothness: float) -> "BlockParameters":
        """The share of communications that is best at this scale.

        A run is as fast as edges allow, ``2 a p``, and samples, ``goal (1 - p)``: these are equal.
        """
        known, delays = nodes.problem.conditioning, nodes.setting.delays
        chosen = adfs.Parameters.choose(nodes.problem, "projector", mu_scale=scale)
        live = known.live_counts > 0
        shrink = np.sqrt(chosen.sigma_A / chosen.alpha[live])
        visits = float(np.min(1.0 / known.importance_sums[live]))
        b = float(np.min(shrink / known.importance_sums[live]))
        goal = min(2.0 * b, VISITS * visits)
        p, rho = 0.0, b
        if edge_smoothness > 0.0:
            a = math.sqrt(chosen.sigma_A / edge_smoothness)
            p = goal / (2.0 * a + goal)
            rho = min(p * a, (1.0 - p) * b)
        time = p * float(np.max(delays.tau)) + (1.0 - p) * float(np.max(delays.speed))
        return cls(
            time / ((1.0 - p) * goal), scale, chosen.alpha, chosen.sigma_A, p, min(rho, 1.0 - 1e-9)
        )


@dataclass
class BlockState:
    """``x + v`` and ``x - v`` of the centres, and of the coefficients of the samples."""

    sums: PerNode
    differences: PerNode  # as they were before round `since`
    duals: PerSample
    gaps: PerSample  # as they were before round `last`
    last: PerSample
    warm: PerSample  # where the sample's last proximal step ended
    since: Shared = 0
    t: Shared = 0


@adfs.register("block-adfs", by_name=True)
class BlockAdfs(RoundMethod[BlockState]):
    """Block ADFS: all edges communicate, or every node takes a proximal step."""

    proven = True
    seen = 0.5  # runs are seen to have twice the proven rate

    def __init__(self, nodes: Nodes, scale: float | None = None) -> None:
        super().__init__(nodes)
        problem, known = nodes.problem, nodes.problem.conditioning
        smoothness = edge_smoothness(nodes)
        scales = SCALES if scale is None else [scale]
        chosen = min(BlockParameters.of(nodes, float(each), smoothness) for each in scales)
        self.rho, self.p_comm, self.sigma_a = chosen.rho, chosen.p_comm, chosen.sigma_a
        sizes, weights = np.diff(problem.offsets), known.importances()
        totals = np.repeat(known.importance_sums[nodes.numbers], sizes)
        within = np.where(totals > 0.0, weights, 1.0) / np.where(totals > 0.0, totals, 1.0)
        self.push = np.zeros(len(weights))  # rho / p_ij
        np.divide(self.rho / (1.0 - self.p_comm), within, out=self.push, where=weights > 0.0)
        self.eta = (chosen.alpha * problem.loss.max_curvature / chosen.sigma_a)[nodes.numbers]
        self.log_r = math.log1p(-self.rho) - math.log1p(self.rho)
        self.sampler = nodes.sampler(within, "block-adfs")
        spectrum = problem.topology.spectrum
        self.mix, self.top = nodes.mixer("laplacian"), spectrum.lambda_min + spectrum.lambda_max
        self.source = CoinRounds(self.p_comm, nodes.setting.seed, "block-adfs/coin")
        self.uses = [Uses(steps=1), Uses(gossips=1)]
        self.facts = [
            Fact("p_comm", self.p_comm, "probability that a round is a communication"),
            Fact("scale", chosen.scale, "of mu_ij^2: least time for these costs"),
            Fact("sigma_A", chosen.sigma_a, "strong convexity of the dual, projector form"),
            Fact("lambda_max", smoothness, "smoothness of the dual along all edges"),
        ]

    def start(self, theta: PerNode) -> BlockState:
        """Zero; or a model's duals, with centres that share minus their sum."""
        n, problem = len(self.push), self.problem
        duals = warm = np.zeros(n)
        centres = np.zeros_like(theta)
        if theta.any():
            duals = self.nodes.slopes(theta)
            total = self.nodes.sum(self.nodes.row_sums(duals))
            centres = -self.nodes.sigma / problem.total_sigma * total
        return BlockState(
            2.0 * centres, np.zeros_like(theta), 2.0 * duals, np.zeros(n), np.zeros(n), warm.copy()
        )

    def round(self, state: BlockState, t: int, kind: int) -> None:
        """A block of all edges, or of one sample per node."""
        if kind == 1 or self.log_r * (t - state.since) < -FADED:
            state.differences *= math.exp(self.log_r * (t - state.since))
            state.since = t
        if kind == 0:
            self.nodes.asked["steps"] += 1
            local_updates(
                *self.problem.samples, self.problem.squared_norms, self.sampler.draw(t), self.push,
                self.eta, 1.0 / self.problem.loss.max_curvature, self.nodes.sigma, self.log_r, t,
                state.since, state.sums, state.differences, state.duals, state.gaps, state.last,
                state.warm,
            )  # fmt: skip
        else:
            state.differences *= math.exp(self.log_r)
            theta = 0.5 * (state.sums + state.differences) / self.nodes.sigma
            flow = EDGE_MU2 * 0.5 * self.top * (theta - self.mix(theta))
            push = self.rho / self.p_comm
            flow *= push / self.sigma_a
            state.sums -= (1.0 + push) * flow
            state.differences -= (push - 1.0) * flow
            state.since = t + 1
        state.t = t + 1

    def output(self, state: BlockState) -> PerNode:
        """``y / sigma``."""
        fade = math.exp(self.log_r * (state.t + 1 - state.since))
        return 0.5 * (state.sums + fade * state.differences) / self.nodes.sigma

    def all_duals(self, state: BlockState) -> PerSample:
        """The coefficients of ``y``."""
        fade = np.exp(self.log_r * (state.t + 1 - state.last))
        return np.asarray(0.5 * (state.duals + fade * state.gaps))

    def duals(self, state: BlockState, node: int) -> PerSample:
        """Those of a node."""
        return self.all_duals(state)[self.problem.node_rows(node)]


def edge_smoothness(nodes: Nodes) -> float:
    """``lambda_max(A_c^T Sigma^-1 A_c)``, or a bound where there are too many nodes."""
    graph, sigma = nodes.problem.topology, nodes.problem.sigma
    if graph.n_nodes > MOST_NODES or graph.n_nodes == 1 or (sigma == sigma[0]).all():
        return float(EDGE_MU2 * graph.spectrum.lambda_max / sigma.min())
    scaled = graph.laplacian().toarray() / np.sqrt(np.outer(sigma, sigma))
    return float(EDGE_MU2 * np.linalg.eigvalsh(scaled)[-1] * (1.0 + 1e-12))


@njit(cache=True, _nrt=False, nogil=True)  # type: ignore[no-untyped-call]
def local_updates(  # type: ignore[no-untyped-def]
    code, rows, labels, weights, norms, places, pushes, ratios, flatness, sigma, log_r, t, since,
    sums, differences, duals, gaps, last, warm,
):  # fmt: skip
    """One sample's proximal step at every node, in round ``t``."""
    fade = math.exp(log_r * (t + 1 - since))
    for node in range(places.shape[0]):
        row = places[node, 0]
        weight, norm, push = weights[row], norms[row], pushes[row]
        if push == 0.0:
            continue
        gap = gaps[row] * math.exp(log_r * (t + 1 - last[row]))
        y, w = 0.5 * (duals[row] + gap), 0.5 * (duals[row] - gap)
        along = dot(rows, row, sums[node]) + fade * dot(rows, row, differences[node])
        eta = ratios[node] * push * weight * norm
        u = norm * w + eta * (0.5 * along / sigma[node, 0] - y * flatness / weight)
        old = 0.5 * (duals[row] - gaps[row]) / weight
        c, warm[row] = dual_prox(code, labels[row], weight, norm, eta, u, warm[row], old)
        move = c - w
        duals[row] += (1.0 + push) * move
        gaps[row] = gap + (push - 1.0) * move
        last[row] = t + 1
        axpy(rows, row, -(1.0 + push) * move, sums[node])
        axpy(rows, row, (1.0 - push) * move / fade, differences[node])

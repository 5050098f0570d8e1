"""ESDACD: accelerated coordinate descent on the dual, one edge at a time (Hendrikx et al. 2019).

Generalized APCG (Appendix A, Algorithm 2, Corollary 1) with ``psi = 0`` on the dual of consensus.
Rows ``x, v, y`` of nodes sum to zero. The step of the sampled edge (k, l) is

    y = (x + rho v) / (1 + rho);    w = (1 - rho) v + rho y
    g = eta~_kl (grad f_k^*(y_k) - grad f_l^*(y_l)),    eta~_kl = rho mu_kl^2 / (sigma_A p_kl)
    v' = w - g (e_k - e_l);    x' = y + (rho R_kl / p_kl) (v' - w),

    sigma_A = lambda_min^+(mu^2 D_M^{-1/2} Lap D_M^{-1/2}),    M_i = sigma_i + lambda_max(B_i),
    M_kl = mu_kl^2 (1 / sigma_k + 1 / sigma_l),    rho = min_kl p_kl sqrt(sigma_A / (M_kl R_kl)).

That is the communication of ADFS with ``grad f_k^*(y_k)`` for ``y_k / sigma_k``; rows that are not
touched only mix, so the lazy form and the kernels are those of ADFS.

Before an exchange each end computes its dual gradient, which takes ``m`` by the paper's costs;
then they exchange it. A single node has no edge: its events are local, and its dual gradient at 0
is the answer.
The output is ``grad f_i^*(y_i)`` at every node, on a copy of what the nodes remember: n dual
gradients that a reading needs and a run does not. Before the first event it is the model started
from. Derivation, proof and rules: docs/algorithms/esdacd.md.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.dual_gradient import ROWS_AT_ONCE, DualGradients, dual_cost
from adfs.costs import Costs
from adfs.graphs.topology import Topology
from adfs.kernels import edge, event_loop
from adfs.kernels.dual_gradient import Memory
from adfs.kernels.memory import aligned_zeros
from adfs.problem.finite_sum import Problem
from adfs.schedule.clock import PairClock
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from adfs.schedule.sampling_law import Drawer
from adfs.theory.description import Description, Fact, SelfDescribing
from adfs.theory.parameters import LARGEST_RHO, edge_roots
from adfs.theory.sigma_a import EDGE_MU2, ROUNDING, SAFETY
from adfs.threads import one_blas_thread

SEEN = 0.18  # of theory's iterations: what runs take (0.16 to 0.21, benchmarks/plan.py)
DENSE_LIMIT = 1500  # nodes up to which sigma_A is exact; beyond, a bound serves


@dataclass(frozen=True, eq=False)
class PairParameters(SelfDescribing):
    """Probabilities and rate of ESDACD on one problem; also its sampling law."""

    rule: str
    topology: Topology
    kappa: float  # kappa_b = max_i M_i / sigma_i
    sigma_A: float
    roots: Vector  # sqrt(M_kl R_kl), one per edge
    p_edge: Vector
    counts: NDArray[np.int64]  # samples that a node's dual gradient uses
    work: Vector  # what it costs, in proximal steps

    @classmethod
    def choose(cls, problem: Problem, rule: str, costs: Costs) -> "PairParameters":
        """``theory``: even probabilities; ``tuned``: those of the largest rate."""
        smooth = problem.sigma + problem.conditioning.batch_smoothness()
        roots = edge_roots(problem.topology, problem.sigma)
        each = dual_cost(costs.of(problem), problem.n_nodes, problem.n_features)
        weights = roots if rule == "tuned" else np.ones(len(roots))
        return cls(
            rule, problem.topology, float(np.max(smooth / problem.sigma)),
            sigma_a(problem.topology, smooth), roots, weights / max(1e-300, weights.sum()),
            problem.conditioning.live_counts,
            problem.conditioning.live_counts * each,
        )  # fmt: skip

    @property
    def edges(self) -> NDArray[np.int32]:
        return self.topology.edges

    @property
    def p_node(self) -> Vector:
        """Zero: nodes do nothing alone, unless there is only one."""
        return np.full(self.topology.n_nodes, float(self.topology.n_edges == 0))

    def importance_of(self, node: int) -> Vector:
        return np.ones(int(self.counts[node]))

    @property
    def rho(self) -> float:
        """``min_kl p_kl sqrt(sigma_A / (M_kl R_kl))``."""
        limits = self.p_edge * math.sqrt(self.sigma_A) / self.roots
        return float(min(LARGEST_RHO, np.min(limits, initial=np.inf)))

    def make_clock(self, delays: Delays, kind: str) -> PairClock:
        return PairClock(self.edges, self.topology.n_nodes, self.work, delays, kind)

    def description(self) -> Description:
        least, most = ((f(self.p_edge) if len(self.p_edge) else math.nan) for f in (np.min, np.max))
        law = "even" if self.rule == "theory" else "proportional to sqrt(M_kl R_kl)"
        facts = [
            Fact("kappa_b", self.kappa, "batch condition number, max_i M_i / sigma_i"),
            Fact("gamma", self.topology.spectrum.gamma, "eigengap of the graph"),
            Fact("sigma_A", self.sigma_A, "strong convexity of the dual, lambda_min(A^T M^-1 A)"),
            Fact("p_min", least, f"least probability of an edge; {law}"),
            Fact("p_max", most, "largest probability of an edge"),
            Fact("rho", self.rho, "rate, min p_kl sqrt(sigma_A / (M_kl R_kl))"),
        ]
        return Description(f"ESDACD parameters ({self.rule}) on {self.topology.name}", facts)


def sigma_a(topology: Topology, smooth: Vector) -> float:
    """``lambda_min^+(A^T diag(M_i)^{-1} A)`` of the communication edges, never too large."""
    if topology.n_nodes == 1:
        return 1.0 / float(smooth[0])
    bound = EDGE_MU2 * topology.spectrum.lambda_min / float(np.max(smooth)) * SAFETY
    if topology.n_nodes > DENSE_LIMIT:
        return bound
    root = np.sqrt(smooth)
    with one_blas_thread():
        values = np.linalg.eigvalsh(topology.laplacian().toarray() / np.outer(root, root))
    slack = ROUNDING * topology.n_nodes * float(values[-1])
    return max(bound, EDGE_MU2 * (float(values[1]) * SAFETY - slack))


@dataclass
class EsdacdState:
    """State of a run: the next iteration, the rows of ``x`` and ``v``, the nodes' memory."""

    t: int
    centres: edge.Centres
    memory: Memory


class Esdacd(base.Algorithm[EsdacdState]):
    """Accelerated coordinate descent on the dual of one problem with one choice of parameters."""

    def __init__(self, problem: Problem, parameters: PairParameters) -> None:
        self.problem, self.parameters = problem, parameters
        self.dual_gradients = DualGradients(problem)
        rho, p_edge, n = parameters.rho, parameters.p_edge, len(problem.nodes)
        self.decay = edge.decay_table(rho)  # type: ignore[no-untyped-call]
        self.constants = edge.RunConstants(
            edges=problem.network.ends,
            edge_eta=rho * EDGE_MU2 / (parameters.sigma_A * p_edge),
            edge_push=rho * problem.topology.spectrum.resistances / p_edge,
            inverse_sigma=np.ones(n),  # messages are y itself
            eta_ratio=np.zeros(n),  # there are no samples' updates
            offsets=problem.offsets,
            loss=problem.loss.code,
            inverse_curvature=0.0,
        )
        self._ends = problem.network.ends.astype(np.int64)
        self._rows, self._thetas = np.zeros((2, 2, problem.n_features))

    def init(self, theta: Vector | None = None) -> EsdacdState:
        """``x_0 = v_0 = 0``, or the rows that are dual to a model."""
        n, d = len(self.problem.nodes), self.problem.n_features
        memory = self.dual_gradients.start(theta)
        pairs_of_rows = aligned_zeros(n, 2 * d)
        if theta is not None:
            pairs_of_rows[:, ::2] = 2.0 * self.dual_gradients.balanced(memory)
        centres = edge.Centres(pairs_of_rows, np.ones(n), np.zeros(n, np.int64))
        if len(self._ends):  # compile, if that has to be, before anything is timed
            trial = self._work(edge.Centres(*(array.copy() for array in centres)))
            edge.offer_ends(trial, 0, 0, self._rows)
            edge.accept_ends(trial, 0, 0, self._rows)
        return EsdacdState(0, centres, memory)

    def _work(self, centres: edge.Centres) -> edge.AdfsArithmetic:
        lines = np.empty((0, edge.LINE))  # there are no samples' updates
        return edge.AdfsArithmetic(lines, centres, self.constants, self.decay)

    def step(self, state: EsdacdState, events: Events) -> EsdacdState:
        with one_blas_thread():
            for k, which in enumerate(events.which.tolist()):
                if which < len(self._ends) and self._ends[which].max() >= 0:
                    self._exchange(state, events.start + k, which)
        state.t = events.stop
        return state

    def _exchange(self, state: EsdacdState, t: int, which: int) -> None:
        """The ends that are here compute their dual gradients, then both ends swap them."""
        ends, work = self._ends[which], self._work(state.centres)
        edge.offer_ends(work, t, which, self._rows)
        if ends.min() >= 0:
            self.dual_gradients.solve(state.memory, ends, self._rows, self._thetas)
        else:
            side = int(np.argmax(ends))
            own = slice(side, side + 1)
            self.dual_gradients.solve(state.memory, ends[own], self._rows[own], self._thetas[own])
            self._thetas[1 - side] = self.problem.network.exchange(which, self._thetas[side])
        edge.accept_ends(work, t, which, self._thetas)

    def nodes(self, state: EsdacdState) -> tuple[Matrix, Matrix]:
        """Rows of ``y_t`` and ``v_t``."""
        y, v = np.empty((2, len(self.problem.nodes), self.problem.n_features))
        event_loop.centres_at(state.t, state.centres, self.decay, y, v)
        return y, v

    def output(self, state: EsdacdState) -> Matrix:
        """``theta_i = grad f_i^*(y_i)``; before the first event, the model started from."""
        memory = Memory(*(array.copy() for array in state.memory))
        if state.t == 0:
            return np.asarray(memory.theta)
        y, _ = self.nodes(state)
        theta = np.empty_like(y)
        with one_blas_thread():
            self.dual_gradients.solve(memory, np.arange(len(y)), y, theta)
        return theta

    def arrays(self, state: EsdacdState) -> base.Arrays:
        nodes = {**state.centres._asdict(), **state.memory._asdict()}
        return base.Arrays({}, nodes, {"t": np.array([state.t])})

    def restore(self, state: EsdacdState, shared: base.Named) -> None:
        state.t = int(shared["t"][0])

    def counts(self, events: Events) -> base.Counts:
        """An exchange is a pass at both ends and two messages; a local event is a pass."""
        live, ends = self.problem.conditioning.live_counts, self.problem.topology.edges
        shared = events.which < len(ends)
        local = events.which[~shared] - len(ends)
        n_grad = int(live[ends[events.which[shared]]].sum() + live[local].sum())
        n_comm = 2 * int(np.count_nonzero(shared))
        return base.Counts.of_vectors(self.problem.n_features, n_grad=n_grad, n_comm=n_comm)


@base.register("esdacd", smooth=True, rules=("theory", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    chosen = PairParameters.choose(problem, setting.rule, setting.costs)
    source = Drawer(chosen, setting.seed, with_samples=False)
    clock = chosen.make_clock(setting.delays, setting.clock)
    return base.Method(
        Esdacd(problem, chosen), source, clock, chosen.rho, chosen,
        block=math.ceil(ROWS_AT_ONCE / (2 * int(chosen.counts.max()))), shortest=problem.n_nodes,
        work=2.0 * float(chosen.counts.mean()), proven=True,
        typical=base.share_of_theory(SEEN, chosen.rho),
    )  # fmt: skip

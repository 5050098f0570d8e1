"""MSDA and SSDA: accelerated gradient on the dual, Chebyshev gossip (Scaman et al. 2017, Alg. 2).

With a gossip matrix ``G`` of kernel ``1``, and rows ``x_i``, ``y_i`` of nodes that sum to zero,

    theta_i = grad f_i^*(x_i);   y' = x - eta G theta;   x' = y' + momentum (y' - y),

    L  = lambda_max  (Sigma^{-1/2} G Sigma^{-1/2}),
    mu = lambda_min^+(D_M^{-1/2} G D_M^{-1/2}),   D_M = diag(M_i),  M_i = sigma_i + lambda_max(B_i),
    eta = 1 / L,   momentum = (1 - rho) / (1 + rho),   rho = sqrt(mu / L).

``G = S^{1/2} P_K(S^{-1/2} Lap S^{-1/2}) S^{1/2}`` (`adfs.kernels.gossip`). Rule ``theory`` has the
text's bounds of ``L`` and ``mu`` and ``S = I``; ``tuned`` has ``L`` and ``mu`` themselves, by n x n
algebra, ``S = I`` or ``Sigma``, and the ``K`` of least predicted time. SSDA is ``K = 1``. An
iteration takes ``m + K tau``, one dual gradient counted as one pass. A single node has nothing to
agree on: ``x = 0``, and its first dual gradient is the answer.

Deviation: none in the iteration. The output is the ``theta`` of the last iteration, as in the text,
so that a reading costs nothing; before the first one it is the model started from.

Derivation, proof of the rate and the rules: docs/algorithms/msda.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.dual_gradient import ROWS_AT_ONCE, DualGradients, dual_cost
from adfs.graphs.topology import Topology
from adfs.kernels import gossip
from adfs.kernels.dual_gradient import Memory
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost, mean_time
from adfs.theory.description import Description, Fact, SelfDescribing
from adfs.theory.parameters import LARGEST_RHO
from adfs.theory.sigma_a import ROUNDING, SAFETY
from adfs.threads import one_blas_thread

DENSE_LIMIT = 1500  # nodes up to which all eigenvectors are taken; beyond, bounds serve
EIGENVALUES = 40_000_000  # n^3 times the numbers of rounds tried: about two seconds
NOTHING_LEFT = 1e-4  # of c: more rounds than that would gain nothing
START = 2.4  # iterations of a run before the error falls at its rate


@dataclass(frozen=True, eq=False)
class GossipParameters(SelfDescribing):
    """Gossip matrix, step and momentum of MSDA on one problem."""

    rule: str
    graph: str
    kappa: float  # condition number of the nodes' functions
    low: float  # the positive eigenvalues of S^{-1/2} Lap S^{-1/2} are between low and high
    high: float
    inverse_scale: Vector  # 1 / s_i, one per node
    rounds: int  # K, rounds of gossip per iteration
    smoothness: float  # L of the dual problem, or a bound
    convexity: float  # mu of the dual problem, or a bound
    time_per_efold: float  # predicted: idealized time in which the proven error shrinks by e

    @property
    def rho(self) -> float:
        """``sqrt(mu / L)``: the dual error falls by ``1 - rho`` per iteration."""
        return min(LARGEST_RHO, math.sqrt(self.convexity / self.smoothness))

    @property
    def eta(self) -> float:
        return 1.0 / self.smoothness

    @property
    def momentum(self) -> float:
        return (1.0 - self.rho) / (1.0 + self.rho)

    @property
    def gamma(self) -> float:
        """Inverse condition number of the gossip before the polynomial."""
        return self.low / self.high

    def description(self) -> Description:
        facts = [
            Fact("kappa", self.kappa, "condition number of the nodes' functions"),
            Fact("gamma", self.gamma, "least over largest eigenvalue of the gossip matrix"),
            Fact("K", self.rounds, "rounds of gossip per iteration"),
            Fact("L", self.smoothness, "smoothness of the dual, lambda_max(G / sigma)"),
            Fact("mu", self.convexity, "strong convexity of the dual, lambda_min(G / M)"),
            Fact("eta", self.eta, "step, 1 / L"),
            Fact("momentum", self.momentum, "(1 - rho) / (1 + rho)"),
            Fact("rho", self.rho, "rate, sqrt(mu / L)"),
            Fact("time", self.time_per_efold, "idealized, per factor e: (max m_i + K tau) / rho"),
        ]
        return Description(f"Dual acceleration with gossip ({self.rule}) on {self.graph}", facts)


def choose(
    problem: Problem, rule: str, rounds: int | None, pass_time: float, tau: float
) -> GossipParameters:
    """Parameters by ``rule``; ``rounds`` fixes K, which is the rule's otherwise.

    ``pass_time`` is the slowest node's pass, ``tau`` the slowest message.
    """
    sigma, graph = problem.sigma, problem.topology
    smooth = sigma + problem.conditioning.batch_smoothness()
    if problem.n_nodes == 1:
        kappa = float(smooth[0] / sigma[0])
        return GossipParameters(
            rule, graph.name, kappa, 1.0, 1.0, 1.0 / sigma, 0, 1.0, 1.0, pass_time
        )
    if rule == "theory" or problem.n_nodes > DENSE_LIMIT:
        return _bounded(rule, graph, sigma, smooth, rounds, pass_time, tau)
    options: list[GossipParameters] = []
    for scale in [np.ones(len(sigma))] + [sigma] * bool(np.ptp(sigma)):
        options += _Basis(graph, scale).options(sigma, smooth, rounds, pass_time, tau)
    return min(options, key=lambda option: option.time_per_efold)


def usual_share(kappa: float, m: float, spread: float, loss: str = "logistic") -> float:
    """Of theory's iterations after the first `START`, what runs take, within 1.5.

    Fitted by ``benchmarks/plan.py``. A run begins at the nodes' own optima, which are the more
    alike the more samples a node has for its condition number ``kappa``. Little of the error is
    where gossip is slowest; ``spread`` is least over largest eigenvalue of the gossip matrix. The
    squared loss has its largest curvature everywhere.
    """
    share = 0.2 * (kappa / m) ** 0.235 * spread**0.075
    return float(min(1.0, (1.45 if loss == "squared" else 1.0) * share))


def theory_rounds(graph: Topology) -> int:
    """``K = max(1, floor(1 / sqrt gamma))``."""
    return max(1, math.floor(1.0 / math.sqrt(graph.spectrum.gamma) + 1e-9))


def _bounded(
    rule: str, graph: Topology, sigma: Vector, smooth: Vector, rounds: int | None,
    pass_time: float, tau: float,
) -> GossipParameters:  # fmt: skip
    """``S = I`` and the text's bounds on ``L`` and ``mu``."""
    low, high = graph.spectrum.lambda_min, graph.spectrum.lambda_max
    best = theory_rounds(graph) if rule == "theory" else best_rounds(low, high, pass_time, tau)
    k = rounds or best
    alpha, beta = float(np.min(sigma)), float(np.max(smooth))
    least, most = gossip.interval(low, high, k)  # type: ignore[no-untyped-call]
    time = (pass_time + k * tau) / math.sqrt(least / most * alpha / beta)
    return GossipParameters(
        rule, graph.name, beta / alpha, low, high, np.ones(len(sigma)), k, most / alpha,
        least / beta, time,
    )  # fmt: skip


class _Basis:
    """Eigenvectors of ``S^{-1/2} Lap S^{-1/2}``, in which every ``P_K`` is diagonal."""

    def __init__(self, graph: Topology, scale: Vector) -> None:
        self.graph, self.root = graph, np.sqrt(scale)
        with one_blas_thread():
            matrix = graph.laplacian().toarray() / np.outer(self.root, self.root)
            self.values, self.vectors = np.linalg.eigh(matrix)
        self.low, self.high = float(self.values[1]), float(self.values[-1])

    def options(
        self, sigma: Vector, smooth: Vector, rounds: int | None, pass_time: float, tau: float
    ) -> Iterator[GossipParameters]:
        """Parameters with exact ``L`` and ``mu``, for each K worth trying."""
        kappa = float(np.max(smooth / sigma))
        for k in [rounds] if rounds else self._worth_trying(pass_time, tau):
            large, small = self.constants(sigma, smooth, k)
            time = (pass_time + k * tau) / math.sqrt(small / large)
            yield GossipParameters(
                "tuned", self.graph.name, kappa, self.low, self.high, 1.0 / self.root**2, k,
                large, small, time,
            )  # fmt: skip

    def _worth_trying(self, pass_time: float, tau: float) -> list[int]:
        """Numbers of rounds up to the bounds' best: all in small graphs, fewer in large ones.

        Exact constants asked for no more gossip than the bounds in every case tried (six graphs,
        two losses); that is not proven, and a larger K would only be missed, never wrong.
        """
        most = best_rounds(self.low, self.high, pass_time, tau)
        count = max(4, EIGENVALUES // self.graph.n_nodes**3)
        tried = np.arange(1, most + 1) if most <= count else np.geomspace(1.0, most, count).round()
        return sorted({theory_rounds(self.graph), *(int(k) for k in tried)})

    def constants(self, sigma: Vector, smooth: Vector, rounds: int) -> tuple[float, float]:
        """``L`` and ``mu`` of K rounds; rounding may only make them worse."""
        weights = gossip.chebyshev_weights(self.low, self.high, rounds)  # type: ignore[no-untyped-call]
        p = gossip.polynomial(weights, self.values)  # type: ignore[no-untyped-call]
        p[0] = 0.0
        half = self.root[:, None] * self.vectors
        with one_blas_thread():
            product = (half * p) @ half.T
            # Roots before products: the square of a sigma of 1e160 overflows.
            large = np.linalg.eigvalsh(product / np.outer(np.sqrt(sigma), np.sqrt(sigma)))
            small = np.linalg.eigvalsh(product / np.outer(np.sqrt(smooth), np.sqrt(smooth)))
        slack = ROUNDING * len(sigma)
        least, _ = gossip.interval(self.low, self.high, rounds)  # type: ignore[no-untyped-call]
        bound = least * float(np.min(self.root**2 / smooth))
        convexity = float(small[1]) * SAFETY - slack * float(small[-1])
        return float(large[-1]) / SAFETY, max(bound * SAFETY, convexity)


def best_rounds(low: float, high: float, pass_time: float, tau: float) -> int:
    """The K of least ``(pass_time + K tau) sqrt(lambda_max(P_K) / lambda_min(P_K))``.

    That root is ``(1 + c) / (1 - c)`` with ``c = c1^K``; rounds beyond ``c = 1e-4`` are not tried.
    """
    root = math.sqrt(low / high)
    decay = (1.0 - root) / (1.0 + root)
    if decay <= NOTHING_LEFT:
        return 1
    c = decay ** np.arange(1, 2 + math.ceil(math.log(NOTHING_LEFT) / math.log(decay)))
    times = (pass_time + np.arange(1, 1 + len(c)) * tau) * (1.0 + c) / (1.0 - c)
    return 1 + int(np.argmin(times))


@dataclass
class MsdaState:
    """State of a run: ``x_t``, ``y_t``, the last ``theta``, and what the nodes remember."""

    x: Matrix
    y: Matrix
    theta: Matrix
    memory: Memory


class Msda(base.RoundAlgorithm[MsdaState]):
    """Algorithm 2 of Scaman et al. on one problem with one choice of parameters."""

    def __init__(self, problem: Problem, parameters: GossipParameters) -> None:
        n, d = len(problem.nodes), problem.n_features
        n_messages = 2 * parameters.rounds * problem.topology.n_edges
        n_gradients = int(problem.conditioning.live_counts.sum())
        price = base.Counts.of_vectors(d, n_grad=n_gradients, n_comm=n_messages)
        super().__init__(problem, parameters, [price])
        self.dual_gradients = DualGradients(problem)
        self._weights = gossip.chebyshev_weights(parameters.low, parameters.high, parameters.rounds)  # type: ignore[no-untyped-call]
        self._inverse_scale = parameters.inverse_scale[problem.nodes]
        self._product, self._before = np.empty((2, n, d))
        self._message = np.empty((problem.network.n_rows, d))

    def init(self, theta: Vector | None = None) -> MsdaState:
        """``x_0 = y_0 = 0``, or the rows that are dual to a model."""
        memory = self.dual_gradients.start(theta)
        x = np.zeros_like(memory.theta)
        if theta is not None:
            x = self.dual_gradients.balanced(memory)
        self._gossip(x)  # compiles, if it has to, before anything is timed
        return MsdaState(x, x.copy(), memory.theta.copy(), memory)

    def step(self, state: MsdaState, events: Events) -> MsdaState:
        chosen, nodes = self.parameters, np.arange(len(state.x))
        eta, momentum = chosen.eta, chosen.momentum
        with one_blas_thread():
            for _ in range(len(events.which)):
                self.dual_gradients.solve(state.memory, nodes, state.x, state.theta)
                moved = state.x - eta * self._gossip(state.theta)
                state.x = moved + momentum * (moved - state.y)
                state.y = moved
        return state

    def _gossip(self, rows: Matrix) -> Matrix:
        """``G rows``, K rounds of messages."""
        gossip.chebyshev(
            self.problem.network.links, self._weights, self._inverse_scale, rows, self._product,
            self._before, self._message,
        )  # fmt: skip
        return self._product

    def output(self, state: MsdaState) -> Matrix:
        """``theta_i = grad f_i^*(x_i)`` of the last iteration."""
        return state.theta.copy()

    def arrays(self, state: MsdaState) -> base.Arrays:
        remembered = {f"memory_{name}": each for name, each in state.memory._asdict().items()}
        return base.Arrays({}, {"x": state.x, "y": state.y, "theta": state.theta, **remembered}, {})


def _prepare(
    problem: Problem, setting: base.MethodSetting, rounds: int | None = None
) -> base.Method:
    work = problem.conditioning.live_counts * dual_cost(
        setting.costs.of(problem), problem.n_nodes, problem.n_features
    )
    place = problem.topology.edges, problem.n_nodes, setting.delays
    pass_time, tau_time = (mean_time(each, *place) for each in (Cost(work), Cost(0.0 * work, 1)))
    chosen = choose(problem, setting.rule, rounds, pass_time, tau_time)
    return base.method_in_rounds(
        Msda(problem, chosen), setting, [Cost(work, chosen.rounds)], shortest=1,
        block=math.ceil(ROWS_AT_ONCE / problem.n_samples), work=problem.n_samples, proven=True,
        typical=_usual(problem, chosen),
    )  # fmt: skip


def _usual(problem: Problem, chosen: GossipParameters) -> Callable[[float], float]:
    """Iterations that runs take, by tolerance."""
    if problem.n_nodes == 1:
        return lambda tol: 1.0
    kappa, m = problem.conditioning.kappa_b(), problem.n_samples / problem.n_nodes
    least, most = gossip.interval(chosen.low, chosen.high, chosen.rounds)  # type: ignore[no-untyped-call]
    share = usual_share(kappa, m, least / most, problem.loss.name)
    later = base.share_of_theory(share, chosen.rho)
    return lambda tol: START + later(tol)


@base.register("msda", smooth=True, rules=("theory", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    return _prepare(problem, setting)


@base.register("ssda", smooth=True, rules=("theory", "tuned"))
def prepare_single(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """MSDA with one round of gossip per iteration."""
    return _prepare(problem, setting, rounds=1)

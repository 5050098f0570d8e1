"""Parameters of accelerated gradient on the dual with Chebyshev gossip (MSDA, SSDA).

`adfs.algorithms.msda` derives them; this module computes them.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adfs.graphs.topology import Topology
from adfs.kernels.gossip import chebyshev_weights, interval, polynomial
from adfs.theory.description import Description, Fact, SelfDescribing
from adfs.theory.parameters import LARGEST_RHO
from adfs.theory.sigma_a import ROUNDING, SAFETY
from adfs.threads import one_blas_thread

if TYPE_CHECKING:
    from adfs.problem.finite_sum import Problem

Vector = NDArray[np.float64]

DENSE_LIMIT = 1500  # nodes up to which all eigenvectors are taken; beyond, bounds serve
EIGENVALUES = 40_000_000  # n^3 times the numbers of rounds tried: about two seconds
NOTHING_LEFT = 1e-4  # of c: more rounds than that would gain nothing


@dataclass(frozen=True, eq=False)
class GossipParameters(SelfDescribing):
    """Gossip matrix, step and momentum of MSDA on one problem.

    Attributes
    ----------
    rule, graph : str
    kappa : float
        Condition number of the nodes' functions.
    low, high : float
        Between them lie the positive eigenvalues of ``S^{-1/2} Lap S^{-1/2}``.
    inverse_scale : array, shape (n_nodes,)
        ``1 / s_i``.
    rounds : int
        ``K``, rounds of gossip per iteration.
    smoothness, convexity : float
        ``L`` and ``mu`` of the dual problem, or bounds on them.
    time_per_efold : float
        Predicted idealized time in which the proven error shrinks by e.
    """

    rule: str
    graph: str
    kappa: float
    low: float
    high: float
    inverse_scale: Vector
    rounds: int
    smoothness: float
    convexity: float
    time_per_efold: float = math.nan

    @property
    def rho(self) -> float:
        """``sqrt(mu / L)``: the dual error falls by ``1 - rho`` per iteration."""
        return min(LARGEST_RHO, math.sqrt(self.convexity / self.smoothness))

    @property
    def eta(self) -> float:
        """Step ``1 / L``."""
        return 1.0 / self.smoothness

    @property
    def momentum(self) -> float:
        """``(1 - rho) / (1 + rho)``."""
        return (1.0 - self.rho) / (1.0 + self.rho)

    @property
    def gamma(self) -> float:
        """Inverse condition number of the gossip before the polynomial."""
        return self.low / self.high

    @property
    def weights(self) -> Vector:
        """Weights of the recursion, one row per round."""
        return np.asarray(chebyshev_weights(self.low, self.high, self.rounds))  # type: ignore[no-untyped-call]

    def description(self) -> Description:
        """Every number, and what it is."""
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
        title = f"Dual acceleration with gossip ({self.rule}) on {self.graph}"
        return Description(title, facts)


def choose(
    problem: "Problem", rule: str, rounds: int | None, pass_time: float, tau: float
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
    make = _theory if rule == "theory" else _tuned
    return make(graph, sigma, smooth, rounds, pass_time, tau)


def _theory(
    graph: Topology, sigma: Vector, smooth: Vector, rounds: int | None, pass_time: float, tau: float
) -> GossipParameters:
    """Scaman et al.: ``alpha``, ``beta`` and ``floor(1 / sqrt gamma)``."""
    k = rounds or theory_rounds(graph)
    return _bounded("theory", graph, sigma, smooth, k, pass_time + k * tau)


def theory_rounds(graph: Topology) -> int:
    """``K = max(1, floor(1 / sqrt gamma))``."""
    return max(1, math.floor(1.0 / math.sqrt(graph.spectrum.gamma) + 1e-9))


def _bounded(
    rule: str, graph: Topology, sigma: Vector, smooth: Vector, rounds: int, time: float
) -> GossipParameters:
    """``S = I`` and the text's bounds on ``L`` and ``mu``."""
    low, high = graph.spectrum.lambda_min, graph.spectrum.lambda_max
    alpha, beta = float(np.min(sigma)), float(np.max(smooth))
    least, most = interval(low, high, rounds)  # type: ignore[no-untyped-call]
    rho = math.sqrt(least / most * alpha / beta)
    return GossipParameters(
        rule, graph.name, beta / alpha, low, high, np.ones(len(sigma)), rounds,
        most / alpha, least / beta, time / rho,
    )  # fmt: skip


def _tuned(
    graph: Topology, sigma: Vector, smooth: Vector, rounds: int | None, pass_time: float, tau: float
) -> GossipParameters:
    """The scaling and the K of least predicted time, with exact ``L`` and ``mu`` where n allows."""
    if graph.n_nodes > DENSE_LIMIT:
        low, high = graph.spectrum.lambda_min, graph.spectrum.lambda_max
        k = rounds or best_rounds(low, high, pass_time, tau)
        return _bounded("tuned", graph, sigma, smooth, k, pass_time + k * tau)
    options = []
    for scale in [np.ones(len(sigma))] + [sigma] * bool(np.ptp(sigma)):
        basis = _Basis(graph, scale)
        for k in [rounds] if rounds else _worth_trying(graph, basis, pass_time, tau):
            options.append(_exact(graph, basis, sigma, smooth, k, pass_time + k * tau))
    return min(options, key=lambda option: option.time_per_efold)


def _exact(
    graph: Topology, basis: "_Basis", sigma: Vector, smooth: Vector, rounds: int, time: float
) -> GossipParameters:
    large, small = basis.constants(sigma, smooth, rounds)
    return GossipParameters(
        "tuned", graph.name, float(np.max(smooth / sigma)), basis.low, basis.high,
        1.0 / basis.root**2, rounds, large, small, time / math.sqrt(small / large),
    )  # fmt: skip


class _Basis:
    """Eigenvectors of ``S^{-1/2} Lap S^{-1/2}``, in which every ``P_K`` is diagonal."""

    def __init__(self, graph: Topology, scale: Vector) -> None:
        self.root = np.sqrt(scale)
        with one_blas_thread():
            matrix = graph.laplacian().toarray() / np.outer(self.root, self.root)
            self.values, self.vectors = np.linalg.eigh(matrix)
        self.low, self.high = float(self.values[1]), float(self.values[-1])

    def constants(self, sigma: Vector, smooth: Vector, rounds: int) -> tuple[float, float]:
        """``L`` and ``mu`` of K rounds; rounding may only make them worse."""
        weights = chebyshev_weights(self.low, self.high, rounds)  # type: ignore[no-untyped-call]
        p = polynomial(weights, self.values)  # type: ignore[no-untyped-call]
        p[0] = 0.0
        half = self.root[:, None] * self.vectors
        with one_blas_thread():
            product = (half * p) @ half.T
            # Roots before products: the square of a sigma of 1e160 overflows.
            large = np.linalg.eigvalsh(product / np.outer(np.sqrt(sigma), np.sqrt(sigma)))
            small = np.linalg.eigvalsh(product / np.outer(np.sqrt(smooth), np.sqrt(smooth)))
        slack = ROUNDING * len(sigma)
        least, _ = interval(self.low, self.high, rounds)  # type: ignore[no-untyped-call]
        bound = least * float(np.min(self.root**2 / smooth))
        convexity = float(small[1]) * SAFETY - slack * float(small[-1])
        return float(large[-1]) / SAFETY, max(bound * SAFETY, convexity)


def _worth_trying(graph: Topology, basis: _Basis, pass_time: float, tau: float) -> list[int]:
    """Numbers of rounds up to the bounds' best: all in small graphs, fewer in large ones.

    Exact constants asked for no more gossip than the bounds in every case tried (six graphs, two
    losses); that is not proven, and a larger K would only be missed, never wrong.
    """
    most = best_rounds(basis.low, basis.high, pass_time, tau)
    count = max(4, EIGENVALUES // graph.n_nodes**3)
    tried = np.arange(1, most + 1) if most <= count else np.geomspace(1.0, most, count).round()
    return sorted({theory_rounds(graph), *(int(k) for k in tried)})


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

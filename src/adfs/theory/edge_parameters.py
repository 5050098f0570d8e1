"""Parameters of accelerated coordinate descent over communication edges alone (ESDACD).

`adfs.algorithms.esdacd` derives them; this module computes them.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adfs.graphs.topology import Topology
from adfs.schedule.clock import PairClock
from adfs.theory.description import Description, Fact, SelfDescribing
from adfs.theory.parameters import LARGEST_RHO, edge_roots
from adfs.theory.sigma_a import EDGE_MU2, ROUNDING, SAFETY
from adfs.threads import one_blas_thread

if TYPE_CHECKING:
    from adfs.problem.finite_sum import Problem
    from adfs.schedule.delays import Delays

Vector = NDArray[np.float64]

DENSE_LIMIT = 1500  # nodes up to which sigma_A is exact; beyond, a bound serves


@dataclass(frozen=True, eq=False)
class PairParameters(SelfDescribing):
    """Probabilities and rate of ESDACD on one problem; also its sampling law.

    Attributes
    ----------
    rule : str
    topology : Topology
    offsets : array
        First sample of each node.
    kappa : float
        ``kappa_b = max_i M_i / sigma_i``.
    sigma_A : float
        Strong convexity of the dual.
    roots : array, shape (n_edges,)
        ``sqrt(M_kl R_kl)``.
    p_edge : array, shape (n_edges,)
    work : array, shape (n_nodes,)
        Samples that a node's dual gradient uses.
    """

    rule: str
    topology: Topology
    offsets: NDArray[np.int64]
    kappa: float
    sigma_A: float
    roots: Vector
    p_edge: Vector
    work: NDArray[np.int64]

    @classmethod
    def choose(cls, problem: "Problem", rule: str) -> "PairParameters":
        """``theory``: even probabilities; ``tuned``: those of the largest rate."""
        smooth = problem.sigma + problem.conditioning.batch_smoothness()
        roots = edge_roots(problem.topology, problem.sigma)
        weights = roots if rule == "tuned" else np.ones(len(roots))
        return cls(
            rule, problem.topology, problem.offsets, float(np.max(smooth / problem.sigma)),
            sigma_a(problem.topology, smooth), roots, weights / max(1e-300, weights.sum()),
            problem.conditioning.live_counts,
        )  # fmt: skip

    @property
    def edges(self) -> NDArray[np.int32]:
        """Communication edges."""
        return self.topology.edges

    @property
    def p_node(self) -> Vector:
        """Zero: nodes do nothing alone, unless there is only one."""
        return np.full(self.topology.n_nodes, float(self.topology.n_edges == 0))

    def importance_of(self, node: int) -> Vector:
        """Every sample counts once: a dual gradient uses them all."""
        return np.ones(int(self.offsets[node + 1] - self.offsets[node]))

    @property
    def rho(self) -> float:
        """``min_kl p_kl sqrt(sigma_A / (M_kl R_kl))``."""
        limits = self.p_edge * math.sqrt(self.sigma_A) / self.roots
        return float(min(LARGEST_RHO, np.min(limits, initial=np.inf)))

    @property
    def edge_eta(self) -> Vector:
        """``eta~_kl = rho mu_kl^2 / (sigma_A p_kl)``."""
        return self.rho * EDGE_MU2 / (self.sigma_A * self.p_edge)

    @property
    def edge_push(self) -> Vector:
        """``rho R_kl / p_kl``."""
        return self.rho * self.topology.spectrum.resistances / self.p_edge

    def make_clock(self, delays: "Delays", kind: str) -> PairClock:
        """The clock of their events."""
        return PairClock(self.edges, self.topology.n_nodes, self.work, delays, kind)

    def description(self) -> Description:
        """Every number, and what it is."""
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

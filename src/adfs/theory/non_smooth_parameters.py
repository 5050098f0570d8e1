"""The parameters of Algorithm 3 (NS-ADFS) as one frozen object that Theorem 4 covers.

A loss without smoothness has ``Sigma^{-1} = 0`` on its virtual nodes, so that

    M_ij = mu_ij^2 / sigma_i,    M_kl = mu_kl^2 (1 / sigma_k + 1 / sigma_l),
    S^2 >= max M R / p^2,        A_0 = 3 / (S^2 p_R^2),    p_R = min p / R,

and after ``t`` iterations the mean of the dual gap is at most ``C_0 / (2 A_t)``, where
``A_t >= t^2 / (4 S^2)`` and ``C_0 = |lambda*|^2 + 2 A_0 (F*(0) - F*)``
(constants as corrected in docs/deviations.md).
"""

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.problem.conditioning import DualBounds
from adfs.theory.description import BindingPlace, Description, PairwiseParameters, tightest
from adfs.theory.parameters import ROUNDING, check_probabilities, edge_roots
from adfs.theory.sigma_a import EDGE_MU2

if TYPE_CHECKING:
    from adfs.problem.finite_sum import Problem
    from adfs.schedule.delays import Delays

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NonSmoothParameters(PairwiseParameters):
    """Probabilities and steps of NS-ADFS on one problem and graph; also its sampling law.

    Samples of a node are drawn evenly and share one ``mu_ij^2``.

    Parameters
    ----------
    how : str
        The rule that chose them.
    topology : Topology
    reach : DualBounds
    mu2 : array, shape (n_nodes,)
        ``mu_ij^2`` of a node's virtual edges; communication edges have 1/2.
    p_edge, p_node : array
        Probability of each edge, and of a local update at each node.
    tau, clock
        The time model they were chosen for.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    >>> shards = adfs.partition(X, y, 4)
    >>> problem = adfs.Problem(shards, loss="hinge", topology=adfs.Topology.grid(2, 2))
    >>> parameters = adfs.NonSmoothParameters.choose(problem, how="paper")
    >>> round(parameters.p_comm, 4), round(parameters.start * parameters.smoothness)
    (0.2231, 7953)
    """

    gap_exponent: ClassVar[float] = -2.0  # Theorem 4: the dual gap falls as this power of t

    how: str
    topology: Topology
    reach: DualBounds
    mu2: Vector
    p_edge: Vector
    p_node: Vector
    tau: float = 1.0
    clock: str = "nonblocking"

    @classmethod
    def choose(
        cls,
        problem: "Problem",
        how: str = "tuned",
        tau: float = 5.0,
        clock: str = "nonblocking",
        delays: "Delays | None" = None,
        p_comm: float | None = None,
    ) -> "NonSmoothParameters":
        """Parameters by rule, ``paper`` or ``tuned``; ``p_comm`` overrides the rule's choice."""
        from adfs.theory.non_smooth_rules import choose

        return choose(problem, how, tau, clock, delays, p_comm)

    def __post_init__(self) -> None:
        for name in ("mu2", "p_edge", "p_node"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        check_probabilities(self.topology, self.p_edge, self.p_node, self.reach.live_counts)
        if self.mu2.shape != self.p_node.shape:
            raise ParameterError(f"mu2 has shape {self.mu2.shape}; give one number per node.")
        if not np.isfinite(self.mu2).all() or (self.mu2 <= 0).any():
            raise ParameterError(f"mu2={self.mu2.min():.3g} must be finite and > 0.")

    def belongs_to(self, problem: "Problem") -> bool:
        """Whether they were chosen for this very problem."""
        own = self.reach
        return own.squared_norms is problem.squared_norms and own.weights is problem.weights

    def summary(self) -> dict[str, Any]:
        """The numbers that a person asks for first; there is no proven rate per iteration."""
        return {"rho": None, "p_comm": self.p_comm, "tau": self.tau, "clock": self.clock}

    def numbers(self) -> Vector:
        """What a run's events and steps depend on, for fingerprints."""
        return np.concatenate([self.p_edge, self.p_node, self.edge_eta])

    @property
    def sigma(self) -> Vector:
        """Regularisation of each node."""
        return self.reach.sigma

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First sample of each node."""
        return self.reach.offsets

    def importance_of(self, node: int) -> Vector:
        """1 for a node's samples, 0 outside the augmented graph."""
        return (self.reach.squares(node) > 0.0).astype(np.float64)

    @functools.cached_property
    def p_sample(self) -> Vector:
        """Probability of each sample of a node; nan where there is none."""
        counts = self.reach.live_counts
        return np.where(counts > 0, self.p_node / np.maximum(counts, 1), np.nan)

    @functools.cached_property
    def edge_roots(self) -> Vector:
        """``sqrt(M_kl R_kl) / p_kl``, of which ``S`` is the largest."""
        return edge_roots(self.topology, self.sigma) / self.p_edge

    @functools.cached_property
    def node_roots(self) -> Vector:
        """``sqrt(M_ij) / p_ij`` of the virtual edges of each node; 0 without data."""
        roots = np.sqrt(self.mu2 / self.sigma) / self.p_sample
        return np.where(self.reach.live_counts > 0, roots, 0.0)

    @functools.cached_property
    def smoothness(self) -> float:
        """``S^2``."""
        largest = max(np.max(self.edge_roots, initial=0.0), np.max(self.node_roots))
        return float(largest**2) * (1.0 + ROUNDING)

    @functools.cached_property
    def p_least(self) -> float:
        """``p_R = min p / R`` over all edges of the augmented graph."""
        edges = self.p_edge / self.topology.spectrum.resistances
        return float(min(np.min(edges, initial=1.0), np.nanmin(self.p_sample)))

    @property
    def start(self) -> float:
        """``A_0 = 3 / (S^2 p_R^2)``: large enough for ``alpha_0 R <= p`` on every edge."""
        return 3.0 / (self.smoothness * self.p_least**2)

    @property
    def binding_place(self) -> BindingPlace:
        """Which edge or node sets ``S``."""
        return tightest(-self.edge_roots, -self.node_roots)

    @property
    def edge_eta(self) -> Vector:
        """``mu_kl^2 / p_kl``."""
        return EDGE_MU2 / self.p_edge

    @property
    def edge_push(self) -> Vector:
        """``R_kl / p_kl``."""
        return np.asarray(self.topology.spectrum.resistances / self.p_edge)

    def iterations_to(self, tol: float, first: float) -> float:
        """Iterations after which Theorem 4 bounds the dual gap by ``tol * first``.

        ``first`` is ``F(0)``, which the dual gap does not exceed at the start. Every dual is taken
        at its bound, ``|c_ij| = w_ij``, and the flow between nodes is left out: `tuned` gives it no
        larger part. To 1e-6 runs took 0.1 % to 144 % of it (docs/algorithms/ns-adfs.md).
        """
        samples = 2.0 * self.smoothness * float(np.sum(self.reach.totals / self.mu2))
        return math.sqrt((samples / first + 12.0 / self.p_least**2) / tol)

    def description(self) -> Description:
        """Every number with its formula, and what binds."""
        from adfs.theory.description import describe_non_smooth

        return describe_non_smooth(self)

    def __repr__(self) -> str:
        return (
            f"NonSmoothParameters({self.how} on {self.topology.name}: p_comm={self.p_comm:.4g}, "
            f"tau={self.tau:g}, {self.clock}; print() shows all)"
        )

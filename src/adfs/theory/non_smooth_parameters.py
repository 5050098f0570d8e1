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
from typing import ClassVar

import numpy as np

from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.losses import names
from adfs.problem.conditioning import DualBounds
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.theory.description import Vector, describe_non_smooth
from adfs.theory.parameters import ROUNDING, PairwiseParameters, edge_roots
from adfs.theory.rules import P_COMM_RANGE, RuleInput, TimeCurve, checked_input, gamma_tilde
from adfs.theory.sigma_a import EDGE_MU2
from adfs.threads import one_blas_thread

RULES = ("paper", "tuned")
SIGMA_RANGE = (1e-60, 1e60)
N_SHARES = 60  # values of p_comm that are compared
SLACK = 1.05  # the flow is a guess: of shares that are predicted this close, the largest is taken
N_DEMANDS = 32  # random demands on the network


@dataclass(frozen=True, eq=False, repr=False)
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
        problem: Problem,
        how: str = "tuned",
        tau: float = 5.0,
        clock: str = "nonblocking",
        delays: Delays | None = None,
        p_comm: float | None = None,
    ) -> "NonSmoothParameters":
        """Parameters by rule, ``paper`` or ``tuned``; ``p_comm`` overrides the rule's choice."""
        setting = checked_input(problem, tau, clock, delays, p_comm)
        _check(problem, how)
        if problem.n_nodes == 1:  # no edge, and iterates do not depend on mu_ij^2, so that is 1
            return _parameters(setting, how, np.ones(1), np.empty(0), np.ones(1))
        with one_blas_thread():
            return paper(setting, p_comm) if how == "paper" else tuned(setting, p_comm)

    def __post_init__(self) -> None:
        self._check_law(self.reach.live_counts, "mu2")
        self._check_positive("mu2")

    def belongs_to(self, problem: Problem) -> bool:
        """Whether they were chosen for this very problem."""
        own, names = self.reach, ("squared_norms", "weights", "sigma")
        return all(getattr(own, name) is getattr(problem, name) for name in names)

    @property
    def sigma(self) -> Vector:
        """Regularisation of each node."""
        return self.reach.sigma

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

    def limits(self) -> tuple[Vector, Vector]:
        return -self.edge_roots, -self.node_roots

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

    description = describe_non_smooth


def _check(problem: Problem, how: str) -> None:
    """Refuse a smooth loss, other rules, and sigmas of which squares of ``1 / sigma`` overflow."""
    if problem.loss.smooth:
        raise ParameterError(
            f"loss {problem.loss.name!r} is smooth, so its parameters are those of "
            "Parameters.choose, which have a linear rate; NonSmoothParameters are for the losses "
            f"{' and '.join(names(smooth=False))}."
        )
    if how not in RULES:
        raise ParameterError(
            f"parameters={how!r} is not a rule of 'ns-adfs'; choose one of {', '.join(RULES)}."
        )
    low, high = SIGMA_RANGE
    least, most = problem.dual_bounds.sigma.min(), problem.dual_bounds.sigma.max()
    if not (low <= least and most <= high):
        raise ParameterError(
            f"sigma {least if least < low else most:g} is outside [{low:g}, {high:g}], the range "
            "in which the steps of NS-ADFS can be computed; scale the features."
        )


def _parameters(
    setting: RuleInput, how: str, mu2: Vector, p_edge: Vector, p_node: Vector
) -> NonSmoothParameters:
    bounds = setting.problem.dual_bounds
    return NonSmoothParameters(
        how, setting.topology, bounds, mu2, p_edge, p_node, setting.tau, setting.clock
    )  # fmt: skip


def paper(setting: RuleInput, p_comm: float | None = None) -> NonSmoothParameters:
    """Appendix B.5: ``mu_ij^2 = lambda_min / (1 + m)``, m of the largest shard; even shares."""
    topology, counts = setting.topology, setting.problem.dual_bounds.live_counts
    m = int(counts.max())
    if p_comm is None:
        p_comm = min(0.5, 1.0 / (1.0 + np.sqrt(gamma_tilde(topology) * m**2 / (2.0 * (1.0 + m)))))
    mu2 = np.full(topology.n_nodes, EDGE_MU2 * topology.spectrum.lambda_min / (1.0 + m))
    p_edge = np.full(topology.n_edges, p_comm / topology.n_edges)
    return _parameters(setting, "paper", mu2, p_edge, (1.0 - p_comm) * counts / counts.sum())


def tuned(setting: RuleInput, p_comm: float | None = None) -> NonSmoothParameters:
    """Every edge of the augmented graph at its limit ``sqrt(M R) / p = S``; the best ``p_comm``.

    With ``p_ij`` even, ``mu_ij^2 = S^2 sigma_i p_ij^2``. Theorem 4's leading constant is then

        S^2 |lambda*|^2 = V / (1 - p_comm)^2 + C / p_comm^2,

    ``V = N^2 sum_ij c^2 |x|^2 / sigma_i``, ``C = (sum sqrt(M R))^2`` times the energy of the flow
    that the network must carry. Iterations grow as its root, and the clock gives the time of one.
    """
    if p_comm is None:
        ratio = flow_ratio(setting.problem, expected_energy(setting.problem))
        seconds = TimeCurve(lambda p: _at_limit(setting, p), setting)
        grid = np.geomspace(*P_COMM_RANGE, N_SHARES)
        times = np.array([seconds(p) * np.hypot(1.0 / (1.0 - p), ratio / p) for p in grid])
        p_comm = float(np.max(grid[times <= SLACK * times.min()]))
    return _at_limit(setting, p_comm)


def _at_limit(setting: RuleInput, p_comm: float) -> NonSmoothParameters:
    bounds = setting.problem.dual_bounds
    roots = edge_roots(setting.topology, bounds.sigma)
    p_sample = (1.0 - p_comm) / bounds.live_counts.sum()
    mu2 = (roots.sum() / p_comm) ** 2 * bounds.sigma * p_sample**2
    p_edge = p_comm * roots / roots.sum()
    return _parameters(setting, "tuned", mu2, p_edge, p_sample * bounds.live_counts)


def flow_ratio(problem: Problem, energy: float) -> float:
    """``sqrt(C / V)`` for a flow of that energy, with every dual at its bound."""
    bounds = problem.dual_bounds
    flow = edge_roots(problem.topology, bounds.sigma).sum() ** 2 * energy
    samples = bounds.live_counts.sum() ** 2 * float(np.sum(bounds.totals / bounds.sigma))
    return float(np.sqrt(flow / samples))


def expected_energy(problem: Problem) -> float:
    """Energy of the flow, as far as it can be guessed before a run.

    The demand is that of the duals that belong to the model 0, or of duals with random signs if
    that is larger: nodes that agree at 0 need not agree later.
    """
    flow, bounds = Flow(problem.topology), problem.dual_bounds
    given = sum(flow.energy(demand(sums, bounds.sigma)) for sums in problem.sums_at_zero())
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(bounds.totals), N_DEMANDS))
    asked = demand(np.sqrt(bounds.totals)[:, None] * signs, bounds.sigma)
    return max(given, flow.energy(asked) / N_DEMANDS)


def demand(sums: Vector, sigma: Vector) -> Vector:
    """What the network has to carry to each node, so that all hold the same model.

    Centre ``i`` is to hold ``-(sigma_i / sum sigma) sum c x`` and has ``-sum_j c_ij x_ij``, which
    is minus row ``i`` of ``sums``.
    """
    return sums - np.outer(sigma / np.sum(sigma), sums.sum(axis=0))


class Flow:
    """``sum |lambda_kl|^2`` of the least flow that meets a demand: ``demand . Lap^+ demand``.

    Columns of a demand sum to zero, so the Laplacian with its last node grounded gives potentials.
    """

    def __init__(self, topology: Topology) -> None:
        from scipy.sparse.linalg import splu

        self._grounded = splu((EDGE_MU2 * topology.laplacian()).tocsc()[:-1, :-1])

    def energy(self, demand: Vector) -> float:
        return float(np.sum(demand[:-1] * self._grounded.solve(demand[:-1])))

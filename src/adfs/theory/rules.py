"""The rules that choose parameters: paper, balanced, exact, projector and tuned.

``balanced`` is the paper's rule for high latency (Appendix E): ``tau p_comm = p_comp``.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs import checks
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.problem.conditioning import Conditioning, require_scaled
from adfs.problem.finite_sum import Problem
from adfs.schedule.clock import CLOCKS
from adfs.schedule.delays import Delays
from adfs.theory.description import Vector
from adfs.theory.parameters import Parameters, edge_roots
from adfs.theory.sigma_a import EDGE_MU2, root_bound, sigma_a
from adfs.threads import one_blas_thread

RULES = ("paper", "balanced", "exact", "projector", "tuned")
LEAST_SHARE = 1e-100  # of communications; below it, probabilities of edges leave the floats


class RuleInput(NamedTuple):
    """What every rule starts from, also those of NS-ADFS: a problem and the time model."""

    problem: Problem
    delays: Delays
    clock: str

    @property
    def topology(self) -> Topology:
        """Graph of the nodes."""
        return self.problem.topology

    @property
    def conditioning(self) -> Conditioning:
        """Smoothness of the samples."""
        return self.problem.conditioning

    @property
    def tau(self) -> float:
        """Mean time of a communication."""
        return float(np.mean(self.delays.tau))

    @property
    def importance_sums(self) -> Vector:
        """``S_i = sum_j sqrt(1 + L_ij / sigma_i)``."""
        return self.conditioning.importance_sums

    @property
    def has_data(self) -> NDArray[np.bool_]:
        """Nodes with at least one sample in the augmented graph."""
        return self.conditioning.live_counts > 0

    def parameters(
        self, how: str, masses: Vector, alpha: Vector, sigma_A: float, p_edge: Vector,
        p_node: Vector,
    ) -> Parameters:  # fmt: skip
        """With the largest ``rho`` that Theorem 1 allows."""
        return Parameters(
            how, self.topology, self.conditioning, masses, alpha, sigma_A, p_edge, p_node, None,  # type: ignore[arg-type]
            self.tau, self.clock,
        )  # fmt: skip


def checked_input(
    problem: Problem, tau: float, clock: str, delays: Delays | None, p_comm: float | None
) -> RuleInput:
    """The input of the rules, if it is one."""
    checks.choice("clock", clock, CLOCKS)
    if p_comm is not None and problem.n_nodes == 1 and p_comm != 0.0:
        raise ParameterError(f"p_comm={p_comm:g} must be 0 or left out: one node has no edge.")
    if p_comm is not None and problem.n_nodes > 1 and not LEAST_SHARE <= p_comm < 1.0:
        raise ParameterError(
            f"p_comm={p_comm:g} must be inside (0, 1), and not below {LEAST_SHARE:g}, on a graph "
            "with edges; leave it out to have it chosen."
        )
    require_scaled(problem)
    return RuleInput(problem, delays or Delays(tau=tau), clock)


def choose(
    problem: Problem, how: str, tau: float, clock: str, delays: Delays | None,
    p_comm: float | None, mu_scale: float | None, rho: float | None,
) -> Parameters:  # fmt: skip
    """See `Parameters.choose`."""
    if how not in RULES:
        raise ParameterError(f"parameters={how!r} is not a rule; choose one of {', '.join(RULES)}.")
    if mu_scale is not None and not 0 < mu_scale < np.inf:
        raise ParameterError(f"mu_scale={mu_scale:g} must be finite and > 0.")
    setting = checked_input(problem, tau, clock, delays, p_comm)
    with one_blas_thread():
        chosen = _by_rule(setting, how, p_comm, mu_scale)
    return chosen if rho is None else chosen.replace(rho=rho, how=how)


def _by_rule(
    setting: RuleInput, how: str, p_comm: float | None, mu_scale: float | None
) -> Parameters:
    if setting.topology.n_nodes == 1:
        return single_node(setting, how)
    if how == "tuned":
        from adfs.theory.tuning import tune

        return tune(setting, p_comm, mu_scale)
    if how == "balanced":
        share = _balanced_share(setting) if p_comm is None else p_comm
        return dataclasses.replace(paper(setting, share, mu_scale), how=how)
    if how == "paper":
        return paper(setting, p_comm, mu_scale)
    return exact(setting, how == "projector", p_comm, mu_scale)


def _balanced_share(setting: RuleInput) -> float:
    """``p_comm`` with which a node communicates and computes for the same time."""
    if setting.tau == 0.0:
        raise ParameterError(
            "parameters='balanced' gives communications and local updates the same time, so tau "
            "must be > 0; tau=0 is no time. Choose parameters tuned, or give p_comm."
        )
    return 1.0 / (1.0 + setting.tau)


def single_node(setting: RuleInput, how: str) -> Parameters:
    """n = 1: no edge, any alpha; ``sigma_A = alpha`` and ``rho = 1 / S_comp``."""
    conditioning = setting.conditioning
    alpha = 1.0 / (conditioning.sigma * conditioning.kappa)
    masses = conditioning.total_smoothness
    return setting.parameters(how, masses, alpha, float(alpha[0]), np.empty(0), np.ones(1))


def paper(
    setting: RuleInput, p_comm: float | None = None, mu_scale: float | None = None
) -> Parameters:
    """Theorem 3: uniform edges, the bound on ``sigma_A``, one ``S_comp`` for all nodes."""
    topology, conditioning = setting.topology, setting.conditioning
    alpha = alpha_of(setting, conditioning.kappa, mu_scale)
    masses, kappa_s = conditioning.total_smoothness, conditioning.kappa_s
    sums = setting.importance_sums
    if mu_scale is None:
        bound = _lambda_min(topology) / (2.0 * float(np.max(conditioning.sigma)) * kappa_s)
    else:  # the bound is proven for scale 1 only
        bound = _sigma_a(setting, masses, alpha)
    if p_comm is None:
        s_comp = float(sums.sum()) / topology.n_nodes
        p_comm = min(0.5, 1.0 / (1.0 + s_comp * np.sqrt(gamma_tilde(topology) / kappa_s)))
    p_edge = np.full(topology.n_edges, p_comm / topology.n_edges)
    p_node = (1.0 - p_comm) * sums / sums.sum()
    return setting.parameters("paper", masses, alpha, bound, p_edge, p_node)


def exact(
    setting: RuleInput, projector: bool = False, p_comm: float | None = None,
    mu_scale: float | None = None,
) -> Parameters:  # fmt: skip
    """Exact ``sigma_A``, edges by ``sqrt(M R)``, equal node rates, equal rates of both kinds."""
    conditioning = setting.conditioning
    masses = conditioning.batch_smoothness() if projector else conditioning.total_smoothness
    alpha = alpha_of(setting, 1.0 + masses / conditioning.sigma, mu_scale)
    shares = setting.has_data / np.count_nonzero(setting.has_data)
    candidate = Candidate(setting, masses, alpha, shares)
    if p_comm is None:
        p_comm = min(0.5, candidate.equalising())
    return candidate.parameters("projector" if projector else "exact", p_comm)


class Candidate:
    """Everything but ``p_comm``: edges by ``sqrt(M R)``, nodes by ``shares``.

    ``rough`` takes the closed bound on ``sigma_A`` instead of an eigenvalue: for searches.
    """

    def __init__(
        self, setting: RuleInput, masses: Vector, alpha: Vector, shares: Vector, rough: bool = False
    ) -> None:
        self.setting, self.masses, self.alpha, self.shares = setting, masses, alpha, shares
        self.sigma_A = _sigma_a(setting, masses, alpha, rough)
        roots = edge_roots(setting.topology, setting.conditioning.sigma)
        self.edge_shares = roots / roots.sum()
        self.edge_rate = float(np.sqrt(self.sigma_A) / roots.sum())
        visits = shares[setting.has_data] / setting.importance_sums[setting.has_data]
        self.visit_rate = float(np.min(visits))
        shrink = np.sqrt(self.sigma_A / alpha[setting.has_data])
        self.node_rate = float(np.min(visits * shrink))

    def equalising(self) -> float:
        """``p_comm`` at which communications and local updates allow the same ``rho``."""
        return self.node_rate / (self.node_rate + self.edge_rate)

    def rho(self, p_comm: float) -> float:
        """Largest ``rho`` at a given ``p_comm``."""
        return min(p_comm * self.edge_rate, (1.0 - p_comm) * self.node_rate)

    def parameters(self, how: str, p_comm: float) -> Parameters:
        """The full object."""
        p_edge, p_node = p_comm * self.edge_shares, (1.0 - p_comm) * self.shares
        return self.setting.parameters(
            how, self.masses, self.alpha, self.sigma_A, p_edge, p_node
        )  # fmt: skip


def gamma_tilde(topology: Topology) -> float:
    """``min lambda_min^+(L) n^2 / (mu^2 R E^2)`` of section 5."""
    scale = topology.n_nodes**2 / (EDGE_MU2 * topology.n_edges**2)
    return float(_lambda_min(topology) * scale / np.max(topology.spectrum.resistances))


def alpha_of(setting: RuleInput, kappa: Vector, mu_scale: float | None) -> Vector:
    """``alpha_i = c lambda_min^+(L) / (sigma_max kappa_i)``."""
    scale = 1.0 if mu_scale is None else mu_scale
    largest = float(np.max(setting.conditioning.sigma))
    return scale * _lambda_min(setting.topology) / (largest * kappa)


def _sigma_a(setting: RuleInput, masses: Vector, alpha: Vector, rough: bool = False) -> float:
    topology, conditioning = setting.topology, setting.conditioning
    if rough:
        least = float(np.min(alpha[setting.has_data]))
        return min(least, root_bound(topology, conditioning.sigma, masses, alpha))
    return sigma_a(topology, conditioning.sigma, masses, alpha, conditioning.live_counts)


def _lambda_min(topology: Topology) -> float:
    return EDGE_MU2 * topology.spectrum.lambda_min

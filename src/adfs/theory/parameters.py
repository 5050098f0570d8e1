"""The parameters of Algorithm 1 as one frozen object that cannot hold what Theorem 1 forbids."""

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.problem.conditioning import Conditioning
from adfs.problem.finite_sum import Problem
from adfs.schedule.clock import Clock
from adfs.schedule.delays import Delays
from adfs.theory.description import BindingPlace, SelfDescribing, Vector, describe
from adfs.theory.sigma_a import EDGE_MU2, root_bound, sigma_a
from adfs.threads import one_blas_thread

LARGEST_RHO = 1.0 - 1e-9  # rho = 1 would make an idle row's decay zero and its logarithm infinite
ROUNDING = 1e-9


class PairwiseParameters(SelfDescribing):
    """What the parameters of ADFS and NS-ADFS share; each is the sampling law of its events."""

    how: str
    topology: Topology
    p_edge: Vector
    p_node: Vector
    tau: float
    clock: str

    def _check_law(self, live_counts: NDArray[np.int64], *per_node: str) -> None:
        """Refuse what is no sampling law of the augmented graph, or would never visit a part of it.

        ``per_node`` are the names of further arrays with one number per node.
        """
        for name in ("p_edge", "p_node", *per_node):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        p_edge, p_node, graph = self.p_edge, self.p_node, self.topology
        sizes = (len(p_edge), len(p_node))
        if sizes != (graph.n_edges, graph.n_nodes):
            raise ParameterError(
                f"p_edge and p_node have {sizes} entries; one per edge, one per node."
            )
        both = np.concatenate([p_edge, p_node])
        if not np.isfinite(both).all() or (both < 0).any() or abs(both.sum() - 1.0) > 1e-9:
            raise ParameterError(
                f"Probabilities sum to {both.sum():.6g}, the least is {both.min():.3g}; "
                "they must be >= 0 and sum to 1."
            )
        if (p_edge <= 0).any() or ((p_node <= 0) & (live_counts > 0)).any():
            raise ParameterError(
                "Every edge, and every node with data, needs a positive probability; "
                f"p_comm={p_edge.sum():.3g}. Theorem 1 gives rho = 0 otherwise."
            )
        for name in per_node:
            shape = getattr(self, name).shape
            if shape != p_node.shape:
                raise ParameterError(f"{name} has shape {shape}; give one number per node.")

    def _check_positive(self, name: str) -> None:
        values: Vector = getattr(self, name)
        if not np.isfinite(values).all() or (values <= 0).any():
            raise ParameterError(f"{name}={values.min():.3g} must be finite and > 0.")

    @property
    def edges(self) -> NDArray[np.int32]:
        """Communication edges."""
        return self.topology.edges

    @property
    def p_comm(self) -> float:
        """Probability that an iteration is a communication."""
        return float(self.p_edge.sum())

    @property
    def edge_eta(self) -> Vector:
        """The step of an exchange on each edge."""
        raise NotImplementedError

    def limits(self) -> tuple[Vector, Vector]:
        """What each edge and each node allows; the least binds."""
        raise NotImplementedError

    @property
    def binding_place(self) -> BindingPlace:
        """Which edge or node limits the method; a node where both kinds are equal."""
        edges, nodes = self.limits()
        if np.min(edges, initial=np.inf) < np.min(nodes):
            return BindingPlace("edge", int(np.argmin(edges)))
        return BindingPlace("node", int(np.argmin(nodes)))

    @property
    def binding(self) -> str:
        """The same in words."""
        return self.binding_place.words(self.edges)

    def make_clock(self, delays: Delays, kind: str) -> Clock:
        """The clock of their events."""
        return Clock(self.edges, self.topology.n_nodes, delays, kind)

    def summary(self) -> dict[str, Any]:
        """The numbers that a person asks for first; ``rho`` only where such a rate is proven."""
        rho = getattr(self, "rho", None)
        return {"rho": rho, "p_comm": self.p_comm, "tau": self.tau, "clock": self.clock}

    def numbers(self) -> Vector:
        """What a run's events and steps depend on, for fingerprints."""
        return np.concatenate([self.p_edge, self.p_node, self.edge_eta])

    def __repr__(self) -> str:
        rate = f"rho={self.rho:.4g}, " if hasattr(self, "rho") else ""
        return (
            f"{type(self).__name__}({self.how} on {self.topology.name}: {rate}"
            f"p_comm={self.p_comm:.4g}, tau={self.tau:g}, {self.clock}; print() shows all)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Parameters(PairwiseParameters):
    """Probabilities, weights and rate of ADFS on one problem and graph.

    Virtual edges have ``mu_ij^2 = alpha_i L_ij`` and, within node ``i``, probability proportional
    to ``sqrt(1 + L_ij / sigma_i)``; their limit on ``rho`` then depends on the node alone.

    Parameters
    ----------
    how : str
        The rule that chose them.
    topology : Topology
    conditioning : Conditioning
        Smoothness of the samples.
    masses : array, shape (n_nodes,)
        What stands for ``sum_j L_ij`` in ``sigma_A``: that sum, or ``lambda_max(B_i)`` in the
        projector form.
    alpha, sigma_A, p_edge, p_node, rho
        As in the paper: ``p_edge`` one per communication edge, ``p_node`` the probability that an
        iteration is a local update at that node.
    tau, clock
        The time model they were chosen for.
    time_per_efold : float
        Predicted idealized time in which the proven error shrinks by e; nan if never simulated.
    gain : float
        How many times less that is than for the faster of the rules ``paper`` and ``exact``; nan
        if not known.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), topology=adfs.Topology.grid(2, 2))
    >>> parameters = adfs.Parameters.choose(problem, how="exact")
    >>> bool(0 < parameters.rho <= parameters.rho_limit)
    True
    """

    how: str
    topology: Topology
    conditioning: Conditioning
    masses: Vector
    alpha: Vector
    sigma_A: float
    p_edge: Vector
    p_node: Vector
    rho: float
    tau: float = 1.0
    clock: str = "nonblocking"
    time_per_efold: float = math.nan
    gain: float = math.nan

    @classmethod
    def choose(
        cls,
        problem: Problem,
        how: str = "tuned",
        tau: float = 5.0,
        clock: str = "nonblocking",
        delays: Delays | None = None,
        p_comm: float | None = None,
        mu_scale: float | None = None,
        rho: float | None = None,
    ) -> "Parameters":
        """Parameters by rule: ``paper``, ``balanced``, ``exact``, ``projector`` or ``tuned``.

        ``p_comm``, ``mu_scale`` (a factor on every ``mu_ij^2``) and ``rho`` override the rule.
        """
        from adfs.theory import rules

        if how not in rules.RULES:
            known = ", ".join(rules.RULES)
            raise ParameterError(f"parameters={how!r} is not a rule; choose one of {known}.")
        if mu_scale is not None and not 0 < mu_scale < np.inf:
            raise ParameterError(f"mu_scale={mu_scale:g} must be finite and > 0.")
        setting = rules.checked_input(problem, tau, clock, delays, p_comm)
        with one_blas_thread():
            chosen = rules.by_rule(setting, how, p_comm, mu_scale)
        return chosen if rho is None else chosen.replace(rho=rho, how=how)

    def replace(self, **changes: Any) -> "Parameters":
        """A copy with some fields changed, checked like any other.

        A change of ``alpha``, ``masses`` or ``p_*`` without ``sigma_A`` or ``rho`` recomputes
        these; what was predicted for the old numbers is forgotten.
        """
        fields, given = [field.name for field in dataclasses.fields(self)], set(changes)
        if unknown := given - set(fields):
            raise ParameterError(
                f"There is no parameter {min(unknown)!r}; choose among {', '.join(fields)}."
            )
        if given - {"how", "time_per_efold", "gain"}:
            changes = {"time_per_efold": math.nan, "gain": math.nan, **changes}
        if given & {"alpha", "masses"}:
            changes.setdefault("sigma_A", None)
        if given & {"alpha", "masses", "sigma_A", "p_edge", "p_node"}:
            changes.setdefault("rho", None)
        return dataclasses.replace(self, **changes)

    def __post_init__(self) -> None:
        self._check_law(self.conditioning.live_counts, "masses", "alpha")
        self._check_positive("alpha")
        self._check_masses()
        self._check_sigma_a()
        if self.rho is None:
            object.__setattr__(self, "rho", self.rho_limit)
        if not 0.0 < self.rho <= self.rho_limit * (1.0 + ROUNDING):
            raise ParameterError(
                f"rho={self.rho:.3g} is outside (0, {self.rho_limit:.3g}], the range allowed by "
                f"Theorem 1, equation (6); {self.binding} binds. Lower rho, or raise that "
                "probability."
            )

    def _check_masses(self) -> None:
        """A mass below ``lambda_max(B_i)`` would promise more strong convexity than there is."""
        low = 1.0 - ROUNDING
        if (self.masses >= self.conditioning.total_smoothness * low).all():
            return
        if not (self.masses >= self.conditioning.batch_smoothness() * low).all():
            raise ParameterError(
                f"masses={self.masses.min():.3g} is below the smoothness of a node's samples "
                "together; give at least conditioning.batch_smoothness()."
            )

    def _check_sigma_a(self) -> None:
        graph = (self.topology, self.sigma, self.masses, self.alpha)
        if self.sigma_A is None:
            object.__setattr__(self, "sigma_A", sigma_a(*graph, self.conditioning.live_counts))
        if self.topology.n_nodes > 1 and 0.0 < self.sigma_A <= root_bound(*graph):
            return  # the usual case of a search, at no eigenvalue's cost
        limit = sigma_a(*graph, self.conditioning.live_counts)
        if not 0.0 < self.sigma_A <= limit * (1.0 + 10.0 * ROUNDING):
            raise ParameterError(
                f"sigma_A={self.sigma_A:.3g} is outside (0, {limit:.3g}]: it may be at most the "
                "least positive eigenvalue of Theorem 1. Leave it out to have it computed."
            )

    def belongs_to(self, problem: Problem) -> bool:
        """Whether they were chosen for this very problem."""
        return self.conditioning is problem.conditioning

    def summary(self) -> dict[str, Any]:
        gain = self.gain if math.isfinite(self.gain) else None
        return super().summary() | {"gain": gain}

    def numbers(self) -> Vector:
        return np.append(super().numbers(), self.rho)

    @property
    def sigma(self) -> Vector:
        """Regularisation of each node."""
        return self.conditioning.sigma

    @property
    def p_comp(self) -> float:
        """Probability that an iteration is a local update."""
        return float(self.p_node.sum())

    def importance_of(self, node: int) -> Vector:
        """``sqrt(1 + L_ij / sigma_i)`` of a node's samples, 0 outside the augmented graph."""
        return self.conditioning.importance(node)

    def importances(self) -> tuple[Vector, NDArray[np.int64]]:
        """The same for all samples in this process, and how many each of its nodes has."""
        return self.conditioning.importances(), np.diff(self.conditioning.offsets)

    @property
    def importance_sums(self) -> Vector:
        """``S_i = sum_j sqrt(1 + L_ij / sigma_i)``."""
        return self.conditioning.importance_sums

    @property
    def visit_rate(self) -> float:
        """The least probability with which a sample of vanishing norm is drawn."""
        live = self.conditioning.live_counts > 0
        return float(np.min(self.p_node[live] / self.importance_sums[live]))

    @property
    def visits_bind(self) -> bool:
        """Whether runs are as fast as samples are visited, and not as fast as ``2 rho``."""
        return 2.0 * self.rho > self.visit_rate

    @functools.cached_property
    def edge_limits(self) -> Vector:
        """Largest ``rho`` that equation (6) allows for each communication edge."""
        roots = edge_roots(self.topology, self.sigma)
        return np.asarray(self.p_edge * np.sqrt(self.sigma_A) / roots)

    @functools.cached_property
    def node_limits(self) -> Vector:
        """Largest ``rho`` for the virtual edges of each node; infinite without data."""
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = self.p_node * np.sqrt(self.sigma_A / self.alpha) / self.importance_sums
        return np.where(self.conditioning.live_counts > 0, limits, np.inf)

    @property
    def rho_limit(self) -> float:
        """Largest ``rho`` allowed by Theorem 1."""
        least = min(np.min(self.edge_limits, initial=np.inf), np.min(self.node_limits))
        return float(min(least, LARGEST_RHO))

    def limits(self) -> tuple[Vector, Vector]:
        return self.edge_limits, self.node_limits

    @property
    def edge_eta(self) -> Vector:
        """``eta~_kl = rho mu_kl^2 / (sigma_A p_kl)``."""
        return self.rho * EDGE_MU2 / (self.sigma_A * self.p_edge)

    @property
    def edge_push(self) -> Vector:
        """``c_kl = rho R_kl / p_kl``."""
        return self.rho * self.topology.spectrum.resistances / self.p_edge

    @property
    def eta_ratio(self) -> Vector:
        """``eta~_ij / (c_ij w_ij |x_ij|^2)``, the same for all samples of a node."""
        return self.alpha * self.conditioning.max_curvature / self.sigma_A

    def sample_pushes(self) -> Vector:
        """``c_ij = rho / p_ij`` of the samples in this process; 0 outside the augmented graph."""
        weights, sizes = self.importances()
        nodes = np.repeat(self.conditioning.network.nodes, sizes)
        push, drawn = np.zeros(len(weights)), self.p_node > 0
        scale = np.zeros(len(drawn))
        np.divide(self.rho * self.importance_sums, self.p_node, out=scale, where=drawn)
        np.divide(scale[nodes], weights, out=push, where=(weights > 0) & drawn[nodes])
        return push

    description = describe


def edge_roots(topology: Topology, sigma: Vector) -> Vector:
    """``sqrt(M_kl R_kl)`` with ``M_kl = mu_kl^2 (1 / sigma_k + 1 / sigma_l)``."""
    ends = topology.edges
    if (sigma == sigma[0]).all():  # the same bits, without a look at every edge's ends
        smoothness = EDGE_MU2 * (1.0 / sigma[:1] + 1.0 / sigma[:1])
    else:
        smoothness = EDGE_MU2 * (1.0 / sigma[ends[:, 0]] + 1.0 / sigma[ends[:, 1]])
    return np.asarray(np.sqrt(smoothness * topology.spectrum.resistances))

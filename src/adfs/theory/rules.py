"""The rules that choose parameters: paper, balanced, exact, projector and tuned.

``balanced`` is the paper's rule for high latency (Appendix E): ``tau p_comm = p_comp``.

``tuned``, the default, takes the valid parameters that reach an accuracy first, waiting included.

**Rate.** Theorem 1 proves a factor ``1 - rho`` per iteration. What is measured (docs/tuning.md) is
``min(2 rho, beta v)``, where ``v`` is the least probability with which a sample of vanishing norm
is visited and ``beta`` was between 1 and 1.6 in what was measured: no method forgets a sample's
old dual before it visits it. A larger ``rho`` beyond that buys nothing, and the communications
spent on it cost time.

**Time.** The clock runs over a short schedule at a few values of ``p_comm``, with the same random
numbers for all.

**Choice.** Candidates differ in the scale ``c`` of ``mu_ij^2``, in ``p_comm`` around
the value that equalises the two rates, and in the nodes' shares (equal, in proportion to what each
needs, or fewer where a node is slow, with a smaller ``mu_ij^2`` there so that Theorem 1 allows
the same ``rho``); all use the projector form, whose ``sigma_A`` is never smaller. Taken is the one
whose time, relative to the better one of ``paper`` and ``exact``, is least for the worst ``beta``.
These two compete too, and at the typical ``beta`` the choice is never predicted slower than either.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs import checks
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.problem.conditioning import Conditioning, require_scaled
from adfs.problem.finite_sum import Problem
from adfs.schedule.clock import CLOCKS, Clock
from adfs.schedule.delays import Delays
from adfs.schedule.sampling_law import Drawer, SamplingLaw
from adfs.theory.description import Vector
from adfs.theory.parameters import Parameters, edge_roots
from adfs.theory.sigma_a import DENSE_LIMIT, EDGE_MU2, root_bound, sigma_a

RULES = ("paper", "balanced", "exact", "projector", "tuned")
LEAST_SHARE = 1e-100  # of communications; below it, probabilities of edges leave the floats
BETAS = np.array([1.0, 1.2, 1.45])
TYPICAL = 1  # the beta at which predictions are printed
SCALES = np.exp(np.linspace(np.log(0.02), np.log(30.0), 23))
P_COMM_FACTORS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
P_COMM_RANGE = (1e-5, 0.95)
KNOTS = np.geomspace(*P_COMM_RANGE, 10)
EVENTS_PER_NODE = 2_000
EVENTS_RANGE = (50_000, 1_000_000)
LARGE = 20_000  # nodes
LARGE_KNOTS = np.array([0.02, 0.1, 0.2, 0.4, 0.8])
LEAST_PER_NODE = 10  # events, so that the clock has left its start
FINALISTS = 4
SLOWNESS_POWERS = (0.3, 0.5)


class Law(NamedTuple):
    """Probabilities alone: the law of a schedule without samples."""

    edges: NDArray[np.int32]
    p_edge: Vector
    p_node: Vector

    def importance_of(self, node: int) -> Vector:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class RuleInput:
    """What every rule starts from, also those of NS-ADFS: a problem and the time model."""

    problem: Problem
    delays: Delays
    clock: str

    @property
    def topology(self) -> Topology:
        return self.problem.topology

    @property
    def conditioning(self) -> Conditioning:
        return self.problem.conditioning

    @property
    def tau(self) -> float:
        """Mean time of a communication."""
        return float(np.mean(self.delays.tau))

    @property
    def has_data(self) -> NDArray[np.bool_]:
        """Nodes with at least one sample in the augmented graph."""
        return self.conditioning.live_counts > 0

    @functools.cached_property
    def edge_shares(self) -> Vector:
        """Shares of the edges by ``sqrt(M R)``."""
        roots = edge_roots(self.topology, self.conditioning.sigma)
        return np.asarray(roots / roots.sum())

    @functools.cached_property
    def equal_shares(self) -> Vector:
        """Equal shares of the nodes with data."""
        return np.asarray(self.has_data / np.count_nonzero(self.has_data))

    @property
    def is_large(self) -> bool:
        """Whether a simulation for each candidate would take longer than all the rest."""
        return self.topology.n_nodes > LARGE

    @functools.cached_property
    def curve(self) -> "TimeCurve":
        """Times for equal shares, which stand for all shares in a large graph."""

        def law(p_comm: float) -> Law:
            p_node = (1.0 - p_comm) * self.equal_shares
            return Law(self.topology.edges, p_comm * self.edge_shares, p_node)

        return TimeCurve(law, self, LARGE_KNOTS)

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


def by_rule(
    setting: RuleInput, how: str, p_comm: float | None, mu_scale: float | None
) -> Parameters:
    """See `Parameters.choose`."""
    conditioning = setting.conditioning
    if setting.topology.n_nodes == 1:  # no edge, any alpha; sigma_A = alpha and rho = 1 / S_comp
        masses = conditioning.total_smoothness
        alpha = 1.0 / (conditioning.sigma * conditioning.kappa)
        return setting.parameters(how, masses, alpha, float(alpha[0]), np.empty(0), np.ones(1))
    if how == "tuned":
        return tune(setting, p_comm, mu_scale)
    if how == "balanced":
        if p_comm is None and setting.tau == 0.0:
            raise ParameterError(
                "parameters='balanced' gives communications and local updates the same time, so "
                "tau must be > 0; tau=0 is no time. Choose parameters tuned, or give p_comm."
            )
        share = 1.0 / (1.0 + setting.tau) if p_comm is None else p_comm
        return dataclasses.replace(paper(setting, share, mu_scale), how=how)
    if how == "paper":
        return paper(setting, p_comm, mu_scale)
    return exact(setting, how == "projector", p_comm, mu_scale)


def paper(
    setting: RuleInput, p_comm: float | None = None, mu_scale: float | None = None
) -> Parameters:
    """Theorem 3: uniform edges, the bound on ``sigma_A``, one ``S_comp`` for all nodes."""
    topology, conditioning = setting.topology, setting.conditioning
    alpha = alpha_of(setting, conditioning.kappa, mu_scale)
    masses, kappa_s = conditioning.total_smoothness, conditioning.kappa_s
    sums = conditioning.importance_sums
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
    candidate = Candidate(setting, masses, alpha, setting.equal_shares)
    if p_comm is None:
        p_comm = min(0.5, candidate.equalising())
    return candidate.parameters("projector" if projector else "exact", p_comm)


class Candidate:
    """All but ``p_comm``; ``rough`` takes the closed bound on ``sigma_A``, for searches."""

    def __init__(
        self, setting: RuleInput, masses: Vector, alpha: Vector, shares: Vector, rough: bool = False
    ) -> None:
        self.setting, self.masses, self.alpha, self.shares = setting, masses, alpha, shares
        self.sigma_A = _sigma_a(setting, masses, alpha, rough)
        roots = edge_roots(setting.topology, setting.conditioning.sigma)
        self.edge_rate = float(np.sqrt(self.sigma_A) / roots.sum())
        live, sums = setting.has_data, setting.conditioning.importance_sums
        visits = shares[live] / sums[live]
        self.visit_rate = float(np.min(visits))
        shrink = np.sqrt(self.sigma_A / alpha[live])
        self.node_rate = float(np.min(visits * shrink))

    def equalising(self) -> float:
        """``p_comm`` at which communications and local updates allow the same ``rho``."""
        return self.node_rate / (self.node_rate + self.edge_rate)

    def rho(self, p_comm: float) -> float:
        """Largest ``rho`` at a given ``p_comm``."""
        return min(p_comm * self.edge_rate, (1.0 - p_comm) * self.node_rate)

    def parameters(self, how: str, p_comm: float) -> Parameters:
        p_edge, p_node = p_comm * self.setting.edge_shares, (1.0 - p_comm) * self.shares
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


def tune(setting: RuleInput, p_comm: float | None, mu_scale: float | None) -> Parameters:
    baselines = [paper(setting), exact(setting)]
    reference = np.array([predicted_times(each, setting) for each in baselines])
    goal = reference.min(axis=0)
    entries = [
        entry
        for shares, tilt in _splits(setting)
        for entry in _entries(setting, shares, tilt, p_comm, mu_scale)
    ]
    entries.sort(key=lambda entry: float(np.max(entry[2] / goal)))
    finalists = []
    for found, share, _ in entries[:FINALISTS]:  # with its true sigma_A
        candidate = Candidate(setting, found.masses, found.alpha, found.shares)
        finalists.append(candidate.parameters("tuned", share))
    if p_comm is None and mu_scale is None:
        finalists += [*baselines, exact(setting, projector=True)]
    times = [predicted_times(each, setting) for each in finalists]
    best = _best(times, goal)
    return dataclasses.replace(
        finalists[best],
        how="tuned",
        time_per_efold=float(times[best][TYPICAL]),
        gain=float(goal[TYPICAL] / times[best][TYPICAL]),
    )


def _best(times: list[Vector], goal: Vector) -> int:
    """Least worst ratio to the goal, among those not slower than it at the typical beta."""
    ratios = np.array(times) / goal
    worst = np.max(ratios, axis=1)
    allowed = ratios[:, TYPICAL] <= 1.0
    return int(np.argmin(np.where(allowed, worst, np.inf) if allowed.any() else worst))


def predicted_times(parameters: Parameters, setting: RuleInput) -> Vector:
    """Idealized time per factor e of the error, for each beta."""
    visits = BETAS * parameters.visit_rate
    return time_per_event(parameters, setting) / np.minimum(2.0 * parameters.rho, visits)


def time_per_event(law: SamplingLaw, setting: RuleInput) -> float:
    """Idealized time of an iteration: simulated, or in a large graph read from one curve."""
    if setting.is_large:
        return setting.curve(float(np.sum(law.p_edge)))
    return simulated_time(law, setting)


def simulated_time(law: SamplingLaw, setting: RuleInput) -> float:
    """Idealized time of an iteration, from the clock over a short schedule without its start."""
    n = setting.topology.n_nodes
    n_events = int(np.clip(EVENTS_PER_NODE * n, *EVENTS_RANGE))
    n_events = max(n_events, LEAST_PER_NODE * n)
    drawer = Drawer(law, seed=0, with_samples=False)
    clock = Clock(setting.topology.edges, n, setting.delays, setting.clock)
    clock.advance(drawer.draw(0, n_events // 2))
    start = clock.time
    clock.advance(drawer.draw(n_events // 2, n_events))
    return (clock.time - start) / (n_events - n_events // 2)


def _splits(setting: RuleInput) -> Iterator[tuple[Vector, Vector]]:
    """Shares of updates (equal, by work, fewer where slow), and a factor of each ``alpha_i``."""
    equal = setting.equal_shares
    need = setting.conditioning.importance_sums * np.sqrt(_alpha(setting, 1.0))
    yield equal, np.ones(len(equal))
    yield need / need.sum(), np.ones(len(equal))
    speed = setting.delays.nominal(setting.topology.n_edges, len(equal))[-len(equal) :]
    if np.ptp(speed) > 0.0:
        for power in SLOWNESS_POWERS:
            tilt = (speed / speed.min()) ** -power
            yield equal * tilt / np.sum(equal * tilt), tilt


def _alpha(setting: RuleInput, scale: float) -> Vector:
    masses = setting.conditioning.batch_smoothness()
    return alpha_of(setting, 1.0 + masses / setting.conditioning.sigma, scale)


def _entries(
    setting: RuleInput, shares: Vector, tilt: Vector, p_comm: float | None, mu_scale: float | None
) -> Iterator[tuple[Candidate, float, Vector]]:
    """Candidates, each at some values of ``p_comm`` and with its predicted times for each beta."""
    masses = setting.conditioning.batch_smoothness()
    rough = setting.topology.n_nodes > DENSE_LIMIT  # an eigenvalue for each would cost too much
    candidates = [
        Candidate(setting, masses, _alpha(setting, float(scale)) * tilt, shares, rough)
        for scale in (SCALES if mu_scale is None else [mu_scale])
    ]
    seconds = setting.curve
    if not setting.is_large:
        seconds = TimeCurve(lambda p_comm: candidates[0].parameters("", p_comm), setting)
    for candidate in candidates:
        around = np.clip(np.multiply(P_COMM_FACTORS, candidate.equalising()), *P_COMM_RANGE)
        for value in around if p_comm is None else [p_comm]:
            visit = (1.0 - value) * candidate.visit_rate
            rate = np.minimum(2.0 * candidate.rho(value), BETAS * visit)
            yield candidate, float(value), seconds(value) / rate


class TimeCurve:
    """Time per event against ``p_comm``: simulated at a few values, interpolated between them."""

    def __init__(
        self, law: Callable[[float], SamplingLaw], setting: RuleInput, knots: Vector = KNOTS
    ) -> None:
        self.knots = knots
        times = [simulated_time(law(float(p)), setting) for p in self.knots]
        self.logs = np.log(times)

    def __call__(self, p_comm: float) -> float:
        return float(np.exp(np.interp(np.log(p_comm), np.log(self.knots), self.logs)))

"""The rules that choose parameters of NS-ADFS: paper and tuned."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs import checks
from adfs.errors import ParameterError
from adfs.graphs.topology import Topology
from adfs.losses import names
from adfs.problem.conditioning import DualBounds, require_scaled
from adfs.schedule.clock import CLOCKS
from adfs.schedule.delays import Delays
from adfs.theory.non_smooth_parameters import NonSmoothParameters
from adfs.theory.parameters import edge_roots
from adfs.theory.rules import check_p_comm, gamma_tilde
from adfs.theory.sigma_a import EDGE_MU2
from adfs.theory.tuning import P_COMM_RANGE, TimeCurve
from adfs.threads import one_blas_thread

if TYPE_CHECKING:
    from adfs.problem.finite_sum import Problem

Vector = NDArray[np.float64]

RULES = ("paper", "tuned")
SIGMA_RANGE = (1e-60, 1e60)
N_SHARES = 60  # values of p_comm that are compared
SLACK = 1.05  # the flow is a guess: of shares that are predicted this close, the largest is taken
N_DEMANDS = 32  # random demands on the network


class NonSmoothRuleInput(NamedTuple):
    """What every rule starts from."""

    topology: Topology
    reach: DualBounds
    delays: Delays
    clock: str

    @property
    def tau(self) -> float:
        """Mean time of a communication."""
        return float(np.mean(self.delays.tau))


def choose(
    problem: "Problem",
    how: str,
    tau: float,
    clock: str,
    delays: Delays | None,
    p_comm: float | None,
) -> NonSmoothParameters:
    """See `NonSmoothParameters.choose`."""
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
    checks.choice("clock", clock, CLOCKS)
    if p_comm is not None:
        check_p_comm(p_comm, problem.topology)
    require_scaled(problem)
    _check_range(problem.dual_bounds.sigma)
    setting = NonSmoothRuleInput(
        problem.topology, problem.dual_bounds, delays or Delays(tau=tau), clock
    )
    if problem.topology.n_nodes == 1:
        return single_node(setting, how)
    with one_blas_thread():
        return paper(setting, p_comm) if how == "paper" else tuned(setting, problem, p_comm)


def _check_range(sigma: Vector) -> None:
    """Squares of ``1 / sigma`` enter the step sizes."""
    low, high = SIGMA_RANGE
    if not (low <= sigma.min() and sigma.max() <= high):
        worst = sigma.min() if sigma.min() < low else sigma.max()
        raise ParameterError(
            f"sigma {worst:g} is outside [{low:g}, {high:g}], the range in which the steps of "
            "NS-ADFS can be computed; scale the features."
        )


def single_node(setting: NonSmoothRuleInput, how: str) -> NonSmoothParameters:
    """n = 1: no edge, and iterates do not depend on ``mu_ij^2``, so that is 1."""
    return NonSmoothParameters(
        how, setting.topology, setting.reach, np.ones(1), np.empty(0), np.ones(1),
        setting.tau, setting.clock,
    )  # fmt: skip


def paper(setting: NonSmoothRuleInput, p_comm: float | None = None) -> NonSmoothParameters:
    """Appendix B.5: ``mu_ij^2 = lambda_min / (1 + m)``, even probabilities of each kind.

    Where shards differ, ``m`` is the largest.
    """
    topology, counts = setting.topology, setting.reach.live_counts
    m = int(counts.max())
    if p_comm is None:
        p_comm = min(0.5, 1.0 / (1.0 + np.sqrt(gamma_tilde(topology) * m**2 / (2.0 * (1.0 + m)))))
    mu2 = np.full(topology.n_nodes, EDGE_MU2 * topology.spectrum.lambda_min / (1.0 + m))
    return NonSmoothParameters(
        "paper", topology, setting.reach, mu2,
        np.full(topology.n_edges, p_comm / topology.n_edges),
        (1.0 - p_comm) * counts / counts.sum(), setting.tau, setting.clock,
    )  # fmt: skip


def tuned(
    setting: NonSmoothRuleInput, problem: "Problem", p_comm: float | None = None
) -> NonSmoothParameters:
    """Every edge of the augmented graph at its limit ``sqrt(M R) / p = S``; the best ``p_comm``.

    With ``p_ij`` even, ``mu_ij^2 = S^2 sigma_i p_ij^2``. Theorem 4's leading constant is then

        S^2 |lambda*|^2 = V / (1 - p_comm)^2 + C / p_comm^2,

    ``V = N^2 sum_ij c^2 |x|^2 / sigma_i``, ``C = (sum sqrt(M R))^2`` times the energy of the flow
    that the network must carry. Iterations grow as its root, and the clock gives the time of one.
    """
    if p_comm is None:
        ratio = flow_ratio(setting, expected_energy(setting, problem))
        seconds = TimeCurve(lambda p: _at_limit(setting, p), setting)
        grid = np.geomspace(*P_COMM_RANGE, N_SHARES)
        times = np.array([seconds(p) * np.hypot(1.0 / (1.0 - p), ratio / p) for p in grid])
        p_comm = float(np.max(grid[times <= SLACK * times.min()]))
    return _at_limit(setting, p_comm)


def _at_limit(setting: NonSmoothRuleInput, p_comm: float) -> NonSmoothParameters:
    topology, reach = setting.topology, setting.reach
    roots = edge_roots(topology, reach.sigma)
    p_sample = (1.0 - p_comm) / reach.live_counts.sum()
    mu2 = (roots.sum() / p_comm) ** 2 * reach.sigma * p_sample**2
    return NonSmoothParameters(
        "tuned", topology, reach, mu2, p_comm * roots / roots.sum(), p_sample * reach.live_counts,
        setting.tau, setting.clock,
    )  # fmt: skip


def flow_ratio(setting: NonSmoothRuleInput, energy: float) -> float:
    """``sqrt(C / V)`` for a flow of that energy, with every dual at its bound."""
    reach = setting.reach
    flow = edge_roots(setting.topology, reach.sigma).sum() ** 2 * energy
    samples = reach.live_counts.sum() ** 2 * float(np.sum(reach.totals / reach.sigma))
    return float(np.sqrt(flow / samples))


def expected_energy(setting: NonSmoothRuleInput, problem: "Problem") -> float:
    """Energy of the flow, as far as it can be guessed before a run.

    The demand is that of the duals that belong to the model 0, or of duals with random signs if
    that is larger: nodes that agree at 0 need not agree later.
    """
    flow = Flow(setting.topology)
    given = sum(flow.energy(demand(sums, setting.reach.sigma)) for sums in problem.sums_at_zero())
    return max(given, _random_energy(flow, setting.reach))


def demand(sums: Vector, sigma: Vector) -> Vector:
    """What the network has to carry to each node, so that all hold the same model.

    Centre ``i`` is to hold ``-(sigma_i / sum sigma) sum c x`` and has ``-sum_j c_ij x_ij``, which
    is minus row ``i`` of ``sums``.
    """
    return sums - np.outer(sigma / np.sum(sigma), sums.sum(axis=0))


def _random_energy(flow: "Flow", reach: DualBounds) -> float:
    """Mean energy if every node asks for a sum of its samples with random signs."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(reach.totals), N_DEMANDS))
    return flow.energy(demand(np.sqrt(reach.totals)[:, None] * signs, reach.sigma)) / N_DEMANDS


class Flow:
    """``sum |lambda_kl|^2`` of the least flow that meets a demand: ``demand . Lap^+ demand``.

    Columns of a demand sum to zero, so the Laplacian with its last node grounded gives potentials.
    """

    def __init__(self, topology: Topology) -> None:
        from scipy.sparse.linalg import splu

        self._grounded = splu((EDGE_MU2 * topology.laplacian()).tocsc()[:-1, :-1])

    def energy(self, demand: Vector) -> float:
        """Summed over the columns of ``demand``."""
        return float(np.sum(demand[:-1] * self._grounded.solve(demand[:-1])))

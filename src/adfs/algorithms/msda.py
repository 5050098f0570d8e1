"""MSDA and SSDA: accelerated gradient on the dual, Chebyshev gossip (Scaman et al. 2017, Alg. 2).

Consensus is the constraint ``G^{1/2} Theta = 0`` for a gossip matrix ``G`` with kernel ``1``. The
dual problem is to minimise ``D(lambda) = sum_i f_i^*(x_i)`` with ``x = G^{1/2} lambda``, that is
over rows ``x_i`` that sum to zero, and ``grad D = G^{1/2} Theta``, ``theta_i = grad f_i^*(x_i)``.
Nesterov's method with constant momentum, multiplied by ``G^{1/2}``, needs no square root:

    theta_i = grad f_i^*(x_i);   y' = x - eta G theta;   x' = y' + momentum (y' - y).

``f_i^*`` has curvature between ``1 / M_i`` and ``1 / sigma_i``, where ``M_i = sigma_i +
lambda_max(B_i)``, so ``D`` is, on the range of ``G``,

    L-smooth,            L  = lambda_max  (Sigma^{-1/2} G Sigma^{-1/2}),
    mu-strongly convex,  mu = lambda_min^+(D_M^{-1/2} G D_M^{-1/2}),    D_M = diag(M_i);
    eta = 1 / L,   momentum = (1 - rho) / (1 + rho),   rho = sqrt(mu / L),

and ``D(y_t) - D* <= (1 - rho)^t [D(0) - D* + mu/2 |lambda*|^2]`` (Nesterov 2004, Theorem 2.2.3).
``f_i^*`` being ``1 / sigma_i``-smooth and ``sum_i <theta*, y_i - x_i*> = 0``, this bounds what we
are after: ``sum_i sigma_i |grad f_i^*(y_i) - theta*|^2 <= 2 (D(y_t) - D*)``.

The rules choose ``G = S^{1/2} P_K(S^{-1/2} Lap S^{-1/2}) S^{1/2}`` (`adfs.kernels.gossip`):

``theory``
    the text: ``S = I``, ``K = max(1, floor(1 / sqrt gamma))``, and the bounds
    ``L <= lambda_max(P_K) / alpha``, ``mu >= lambda_min(P_K) / beta``, ``alpha = min sigma_i``,
    ``beta = max M_i``. With ``P_K`` in ``(1 -+ c)^2 / (1 + c^2)`` these are its formulas
    ``eta = alpha (1 + c^2) / (1 + c)^2`` and ``momentum = ((1 + c) sqrt kappa - 1 + c) /
    ((1 + c) sqrt kappa + 1 - c)``, ``kappa = beta / alpha``.
``tuned``
    ``L`` and ``mu`` themselves, by n x n algebra; ``S = I`` or ``S = Sigma``, which has ``max_i M_i
    / sigma_i`` where the text has ``beta / alpha``; and the ``K`` of least predicted time ``(max_i
    m_i + K tau) / rho``: where a dual gradient takes much longer than a message, more gossip costs
    next to nothing.

SSDA is ``K = 1``. An iteration takes ``m + K tau``, one dual gradient counted as one pass.
A single node has nothing to agree on: ``x = 0``, and its first dual gradient is the answer.

Deviation: none in the iteration. The output is the ``theta`` of the last iteration, as in the text,
so that a reading costs nothing; before the first one it is the model started from.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import (
    Algorithm,
    Arrays,
    Counts,
    Matrix,
    Method,
    MethodSetting,
    Vector,
    method_in_rounds,
    register,
    require_smooth,
    rule_of,
)
from adfs.algorithms.dual_gradient import DualGradients
from adfs.kernels import gossip
from adfs.kernels.dual_gradient import Memory
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost
from adfs.theory.gossip_parameters import GossipParameters, choose
from adfs.threads import one_blas_thread

RULES = ("theory", "tuned")
ROWS_AT_ONCE = 5_000_000  # rows of dual gradients between two checks of limits: below a second


@dataclass
class MsdaState:
    """State of a run: ``x_t``, ``y_t``, the last ``theta``, and what the nodes remember."""

    x: Matrix
    y: Matrix
    theta: Matrix
    memory: Memory


class Msda(Algorithm[MsdaState]):
    """Algorithm 2 of Scaman et al. on one problem with one choice of parameters."""

    def __init__(self, problem: Problem, parameters: GossipParameters) -> None:
        self.problem, self.parameters = problem, parameters
        self.dual_gradients = DualGradients(problem)
        self._weights = parameters.weights
        n, d = len(problem.nodes), problem.n_features
        self._nodes: NDArray[np.int64] = np.arange(n)
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
        """Run the rounds, in place."""
        with one_blas_thread():
            for _ in range(len(events.which)):
                self._round(state)
        return state

    def _round(self, state: MsdaState) -> None:
        chosen = self.parameters
        self.dual_gradients.solve(state.memory, self._nodes, state.x, state.theta)
        moved = state.x - chosen.eta * self._gossip(state.theta)
        state.x = moved + chosen.momentum * (moved - state.y)
        state.y = moved

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

    def arrays(self, state: MsdaState) -> Arrays:
        """Rows of nodes, and what the nodes remember."""
        remembered = {f"memory_{name}": each for name, each in state.memory._asdict().items()}
        return Arrays({}, {"x": state.x, "y": state.y, "theta": state.theta, **remembered}, {})

    def counts(self, events: Events) -> Counts:
        """A round is every sample's gradient once, then K messages over each edge, both ways."""
        rounds = len(events.which)
        n_grad = rounds * int(self.problem.conditioning.live_counts.sum())
        n_comm = rounds * 2 * self.parameters.rounds * self.problem.topology.n_edges
        return Counts(n_grad=n_grad, n_comm=n_comm, bytes=8 * self.problem.n_features * n_comm)


@register("msda")
def prepare(problem: Problem, setting: MethodSetting) -> Method:
    """MSDA with its clock."""
    return _prepare("msda", problem, setting, None)


@register("ssda")
def prepare_single(problem: Problem, setting: MethodSetting) -> Method:
    """MSDA with one round of gossip per iteration."""
    return _prepare("ssda", problem, setting, 1)


def _prepare(name: str, problem: Problem, setting: MethodSetting, rounds: int | None) -> Method:
    require_smooth(name, problem)
    rule = rule_of(name, setting, RULES)
    work = problem.conditioning.live_counts.astype(np.float64)
    nominal = setting.delays.nominal(problem.topology.n_edges, problem.n_nodes)
    tau, speed = np.split(nominal, [problem.topology.n_edges])
    pass_time, tau_time = float(np.max(speed * work)), float(np.max(tau, initial=0.0))
    chosen = choose(problem, rule, rounds, pass_time, tau_time)
    return method_in_rounds(
        problem, setting, Msda(problem, chosen), chosen, Cost(work, chosen.rounds),
        block=math.ceil(ROWS_AT_ONCE / problem.n_samples), shortest=1, work=problem.n_samples,
        proven=True,
    )  # fmt: skip

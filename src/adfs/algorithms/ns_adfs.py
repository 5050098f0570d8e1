"""NS-ADFS, the paper's Algorithm 3: ADFS for losses that are not smooth, in its lazy form.

A communication moves two centres by ``-+ a (mu^2 / p) (y_k / sigma_k - y_l / sigma_l)``; a local
update takes one sample's proximal step on the plain conjugate and moves its centre by the opposite.
Rows that are not touched cost nothing (`adfs.kernels.non_smooth`).

With Poisson clocks in place of the shared schedule this is its continuized form, with ``A(t)`` a
function of time (docs/algorithms/continuized.md).

Deviations: the output is ``x_t / sigma``, for which ``sum_i sigma_i / 2 |theta_i - theta*|^2`` is
at most the dual gap, not ``v_t / sigma``. The certificate's dual point is ``v_t``: it is
feasible like ``x_t``, and an average like ``x_t`` remembers old coefficients for O(t) iterations
while a proximal step forgets them at once (docs/algorithms/ns-adfs.md has what both certify).
"""

import functools
import math
import sys
from dataclasses import dataclass

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.pairwise import Pairwise, dual_start, pairwise_method, parameters_of
from adfs.kernels import event_loop, non_smooth
from adfs.kernels.memory import aligned_zeros
from adfs.kernels.poisson import TICKS
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.theory.non_smooth_parameters import NonSmoothParameters

THEOREM = (
    "Theorem 4 bounds the mean of the dual gap by C / A_t with A_t ≥ t² / (4 S²): "
    "the exponent is −2 or better once t is large."
)
STRATIFIED = (
    "Theorem 4 is about samples drawn independently; no theorem covers stratified draws. For "
    "independent ones it bounds the mean of the dual gap by C / A_t with A_t ≥ t² / (4 S²). "
    + base.WITHOUT_THEOREM
)
USUAL_TOL = 1e-6  # to which the method's rho is the mean rate of Theorem 4


@dataclass
class NsAdfsState:
    """State of a run: ``A_t``, one line per sample, the rows of the centres."""

    growth: float
    lines: Matrix
    pairs: Matrix


class NsAdfs(Pairwise[NsAdfsState]):
    """Algorithm 3 on one problem with one choice of parameters, or its continuized form."""

    def __init__(
        self, problem: Problem, parameters: NonSmoothParameters, schedule: str = "shared"
    ) -> None:
        super().__init__(problem, parameters, schedule)
        self.constants = non_smooth.ConvexConstants(
            edges=problem.network.ends,
            edge_eta=parameters.edge_eta,
            edge_push=parameters.edge_push,
            inverse_sigma=1.0 / problem.own_sigma,
            offsets=problem.offsets,
            loss=problem.loss.code,
            smoothness=parameters.smoothness,
            first_root=math.sqrt(parameters.start),
            root_per_tick=0.5 / math.sqrt(parameters.smoothness) / TICKS,
        )

    def init(self, theta: Vector | None = None, duals: Vector | None = None) -> NsAdfsState:
        """``x_0 = v_0 = 0``; from a model, a dual point that belongs to it, or ``duals``."""
        problem, chosen, sizes = self.problem, self.parameters, np.diff(self.problem.offsets)
        lines = base.sample_lines(problem, non_smooth)
        pairs = aligned_zeros(len(problem.nodes), 2 * problem.n_features)
        lines[:, non_smooth.PUSH] = np.repeat(1.0 / chosen.p_sample[problem.nodes], sizes)
        mu2 = np.repeat(chosen.mu2[problem.nodes], sizes)
        lines[:, non_smooth.ETA] = lines[:, non_smooth.PUSH] * mu2
        if theta is not None:
            _, lines[:, non_smooth.VALUE], pairs[:, ::2] = dual_start(problem, theta, duals)
        return NsAdfsState(chosen.start, lines, pairs)

    def step(self, state: NsAdfsState, events: Events) -> NsAdfsState:
        state.growth = event_loop.run_events(
            self.queued(state), state.growth, self.ticks_of(events), events.which, events.sample,
            self.problem.rows, self._messages,
        )  # fmt: skip
        if self.continuized:
            _, state.growth = non_smooth.weights_at(events.stop * TICKS, self.constants)
        return state

    def nodes(self, state: NsAdfsState) -> tuple[Matrix, Matrix]:
        """Centre rows of ``x_t`` and ``v_t``."""
        v = state.pairs[:, ::2].copy()
        return v + state.pairs[:, 1::2] / state.growth, v

    def virtual(self, state: NsAdfsState) -> tuple[Vector, Vector]:
        """Coefficients of ``x_t`` and ``v_t`` at the virtual nodes, each on its own row."""
        v = state.lines[:, non_smooth.VALUE].copy()
        return v + state.lines[:, non_smooth.LAG] / state.growth, v

    def second_output(self, state: NsAdfsState) -> Matrix:
        """``v_t^(i) / sigma_i``, whose mean is the model built from the certificate's duals."""
        return self.nodes(state)[1] / self.problem.own_sigma[:, None]

    def duals(self, state: NsAdfsState, node: int) -> Vector:
        """Virtual coefficients of ``v_t``: the dual point of the certificate."""
        return state.lines[self.problem.node_rows(node), non_smooth.VALUE].copy()

    def all_duals(self, state: NsAdfsState) -> Vector:
        """Those of all samples here."""
        return state.lines[:, non_smooth.VALUE].copy()

    def arrays(self, state: NsAdfsState) -> base.Arrays:
        samples = {"lines": state.lines[:, : non_smooth.LAG + 1]}
        return base.Arrays(samples, {"pairs": state.pairs}, {"growth": np.array([state.growth])})

    def queued(self, state: NsAdfsState) -> non_smooth.NonSmoothArithmetic:
        return non_smooth.NonSmoothArithmetic(state.lines, state.pairs, self.constants)

    def pass_time(self, state: NsAdfsState, events: Events) -> tuple[Vector, Vector]:
        a, total = np.empty((2, len(events.which) + 1))
        if self.continuized:
            non_smooth.weights_of_ticks(events.ticks, self.constants, a, total)
            state.growth = non_smooth.weights_at(events.stop * TICKS, self.constants)[1]
        else:
            state.growth = non_smooth.weights_of_own(
                events.ticks, events.start, events.stop, state.growth, self.constants, a, total
            )  # fmt: skip
        return a, total


@base.register("ns-adfs", poisson=True, smooth=False, stratified=True)
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    chosen = parameters_of("ns-adfs", NonSmoothParameters, problem, setting)
    first = max(sys.float_info.min, problem.objective(np.zeros(problem.n_features)))
    needed = functools.partial(chosen.iterations_to, first=first)
    rho = math.log(1.0 / USUAL_TOL) / needed(USUAL_TOL)
    theorem = STRATIFIED if setting.schedule == "stratified" else THEOREM
    return pairwise_method(
        NsAdfs(problem, chosen, setting.schedule), setting, rho,
        shortest=max(2_000, problem.n_samples), theorem=theorem, needed=needed,
    )  # fmt: skip

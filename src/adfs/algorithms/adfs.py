"""ADFS, the paper's Algorithm 1, in its lazy form.

A communication on edge (k, l) moves the two centres by ``-+ eta~ (y_k / sigma_k - y_l / sigma_l)``;
a local update takes one sample's proximal step and moves its centre by the opposite of its virtual
node; every other row only mixes, which costs nothing until it is touched.

With Poisson clocks in place of the shared schedule this is the continuized form: the
same updates at the clocks' times, between which ``x' = rho (v - x)`` and ``v' = rho (x - v)``
(docs/algorithms/continuized.md).

Deviation: the output is ``y_t / sigma`` as in the paper's experiments, not ``v_t / sigma`` as in
the pseudo code.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.pairwise import Pairwise, dual_start, pairwise_method, parameters_of
from adfs.kernels import edge, event_loop
from adfs.kernels.memory import aligned_zeros
from adfs.kernels.poisson import TICKS
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.theory.parameters import Parameters

# Most times rho, and times the rate of visits, at which runs forget old duals (docs/tuning.md).
USUAL = {"shared": (2.0, 1.2), "poisson": (2.0, 1.2), "stratified": (3.0, 1.75)}
START = 2.0  # passes of a run with stratified draws before the error falls as expected
THEOREM = (
    "Theorem 1 bounds the mean of the error by C (1 − ρ)^t. A run may be faster: "
    "what is seen is mostly one to two and a half times the proven rate, unless samples that "
    "are visited rarely hold it up."
)
STRATIFIED = (
    "Theorem 1 is about samples drawn independently; no theorem covers stratified draws. ρ is the "
    "rate that it proves for independent ones with the same parameters. " + base.WITHOUT_THEOREM
)


@dataclass
class AdfsState:
    """State of a run: the next iteration (or tick), one line per sample, rows of the centres."""

    t: int
    lines: Matrix
    centres: edge.Centres


class Adfs(Pairwise[AdfsState]):
    """Algorithm 1 on one problem with one choice of parameters, or its continuized form."""

    def __init__(self, problem: Problem, parameters: Parameters, schedule: str = "shared") -> None:
        super().__init__(problem, parameters, schedule)
        self._ahead = int(not self.continuized)  # idle steps from the index of v to that of y
        # Powers of what an idle difference shrinks by, per iteration or per tick.
        table, rate = edge.decay_table, parameters.rho
        if self.continuized:
            table, rate = edge.power_table, -2.0 * parameters.rho / TICKS
        self.decay = table(rate)  # type: ignore[no-untyped-call]
        self.constants = edge.RunConstants(
            edges=problem.network.ends,
            edge_eta=parameters.edge_eta,
            edge_push=parameters.edge_push,
            inverse_sigma=1.0 / problem.own_sigma,
            eta_ratio=parameters.eta_ratio[problem.nodes],
            offsets=problem.offsets,
            loss=problem.loss.code,
            inverse_curvature=1.0 / problem.loss.max_curvature,
        )

    def init(self, theta: Vector | None = None, duals: Vector | None = None) -> AdfsState:
        """``x_0 = v_0 = 0``; from a model, its dual point ``c = w l'(x . theta)``, or ``duals``."""
        problem, n = self.problem, len(self.problem.nodes)
        lines, pairs = base.sample_lines(problem, edge), aligned_zeros(n, 2 * problem.n_features)
        lines[:, edge.PUSH] = self.parameters.sample_pushes()
        if theta is not None:
            lines[:, edge.WARM], c, centres = dual_start(problem, theta, duals)
            pairs[:, ::2] = 2.0 * centres
            lines[:, edge.SUM] = 2.0 * c
        return AdfsState(0, lines, edge.Centres(pairs, np.ones(n), np.zeros(n, np.int64)))

    def step(self, state: AdfsState, events: Events) -> AdfsState:
        event_loop.run_events(
            self.queued(state), events.start, self.ticks_of(events), events.which, events.sample,
            self.problem.rows, self._messages,
        )  # fmt: skip
        state.t = events.stop * TICKS if self.continuized else events.stop
        return state

    def nodes(self, state: AdfsState) -> tuple[Matrix, Matrix]:
        """Centre rows of ``y_t`` and ``v_t``; of ``x(t)`` and ``v(t)`` in the continuized form."""
        y, v = np.empty((2, len(self.problem.nodes), self.problem.n_features))
        t = state.t + 1 - self._ahead
        event_loop.centres_at(t, state.centres, self.decay, y, v, self._ahead)
        return y, v

    def virtual(self, state: AdfsState, rows: slice = slice(None)) -> tuple[Vector, Vector]:
        """Coefficients of ``y_t`` and ``v_t`` at the virtual nodes, each on its own row."""
        lines = state.lines[rows]
        y, v = np.empty((2, len(lines)))
        event_loop.virtual_at(state.t + 1 - self._ahead, lines, self.decay, y, v, self._ahead)
        return y, v

    def duals(self, state: AdfsState, node: int) -> Vector:
        """Virtual coefficients of ``y_t``: the dual point of the certificate."""
        return self.virtual(state, self.problem.node_rows(node))[0]

    def all_duals(self, state: AdfsState) -> Vector:
        """Those of all samples here."""
        return self.virtual(state)[0]

    def arrays(self, state: AdfsState) -> base.Arrays:
        samples = {"lines": state.lines[:, : edge.NORM2]}
        return base.Arrays(samples, state.centres._asdict(), {"t": np.array([state.t])})

    def queued(self, state: AdfsState) -> edge.AdfsArithmetic:
        return edge.AdfsArithmetic(state.lines, state.centres, self.constants, self.decay)

    def pass_time(self, state: AdfsState, events: Events) -> tuple[Vector, Vector]:
        state.t = events.stop * TICKS if self.continuized else events.stop
        return np.empty(1), np.empty(1)


def ease(problem: Problem) -> float:
    """How much faster than usual runs come to 1e-6; fitted by ``benchmarks/plan.py``.

    The first digits are easy where nodes have many samples for the condition number.
    """
    each = problem.conditioning.kappa_s * problem.n_nodes / problem.n_samples
    return float(np.clip(1.45 * each**-0.21, 0.85, 2.0))


def usual_events(problem: Problem, chosen: Parameters, schedule: str) -> Callable[[float], float]:
    """Events that runs take, by tolerance; with stratified draws the first passes come on top."""
    most, visits = USUAL[schedule]
    seen = min(most * chosen.rho, visits * chosen.visit_rate)
    if schedule != "stratified":
        return base.share_of_theory(1.0, seen)
    start = START * problem.n_samples / (1.0 - chosen.p_comm)
    later = base.share_of_theory(1.0 / ease(problem), seen)
    return lambda tol: start + later(tol)


@base.register("adfs", poisson=True, smooth=True, stratified=True)
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    chosen = parameters_of("adfs", Parameters, problem, setting)
    independent = setting.schedule != "stratified"
    return pairwise_method(
        Adfs(problem, chosen, setting.schedule), setting, chosen.rho, sharp=True,
        fastest=USUAL[setting.schedule][0], proven=independent,
        theorem=THEOREM if independent else STRATIFIED,
        typical=usual_events(problem, chosen, setting.schedule),
    )  # fmt: skip

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

from dataclasses import dataclass

import numpy as np

from adfs.algorithms.base import (
    Algorithm,
    Arrays,
    Counts,
    Matrix,
    Method,
    MethodSetting,
    Named,
    Vector,
    block_and_beat,
    exchange_counts,
    parameters_of,
    register,
    require_smooth,
    source_of,
    ticks_of,
)
from adfs.algorithms.dual_start import dual_start
from adfs.kernels import edge, event_loop
from adfs.kernels.memory import aligned_zeros
from adfs.kernels.poisson import TICKS
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.theory.parameters import Parameters

THEOREM = (
    "Theorem 1 bounds the mean of the error by C (1 − ρ)^t. A run may be faster: "
    "what is seen is mostly one to two and a half times the proven rate, unless samples that "
    "are visited rarely hold it up."
)


@dataclass
class AdfsState:
    """State of a run: the next iteration (or tick), one line per sample, rows of the centres."""

    t: int
    lines: Matrix
    centres: edge.Centres


class Adfs(Algorithm[AdfsState]):
    """Algorithm 1 on one problem with one choice of parameters, or its continuized form."""

    def __init__(self, problem: Problem, parameters: Parameters, schedule: str = "shared") -> None:
        require_smooth("adfs", problem)
        self.problem, self.parameters = problem, parameters
        self.continuized = schedule == "poisson"
        self.decay = _decay(parameters.rho, self.continuized)
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
        self._messages = np.empty((2, problem.n_features))

    def init(self, theta: Vector | None = None) -> AdfsState:
        """``x_0 = v_0 = 0``; from a model, its dual point ``c = w l'(x . theta)`` instead."""
        state = self._at_zero()
        if theta is not None:
            scores, duals, centres = dual_start(self.problem, theta)
            state.centres.pairs[:, ::2] = 2.0 * centres
            state.lines[:, edge.SUM] = 2.0 * duals
            state.lines[:, edge.WARM] = scores
        return state

    def _at_zero(self) -> AdfsState:
        problem = self.problem
        lines = aligned_zeros(problem.n_rows, edge.LINE)
        lines[:, edge.NORM2] = problem.squared_norms
        lines[:, edge.LABEL] = problem.labels
        lines[:, edge.WEIGHT] = problem.weights
        for node in problem.nodes.tolist():
            lines[problem.node_rows(node), edge.PUSH] = self.parameters.sample_push(node)
        n = len(problem.nodes)
        pairs = aligned_zeros(n, 2 * problem.n_features)
        centres = edge.Centres(pairs, np.ones(n), np.zeros(n, np.int64))
        return AdfsState(0, lines, centres)

    def step(self, state: AdfsState, events: Events) -> AdfsState:
        """Run the events, in place."""
        event_loop.run_events(
            self.queued(state), events.start, ticks_of(events, self.continuized), events.which,
            events.sample, self.problem.rows, self._messages,
        )  # fmt: skip
        state.t = events.stop * TICKS if self.continuized else events.stop
        return state

    def nodes(self, state: AdfsState) -> tuple[Matrix, Matrix]:
        """Centre rows of ``y_t`` and ``v_t``; of ``x(t)`` and ``v(t)`` in the continuized form."""
        shape = (len(self.problem.nodes), self.problem.n_features)
        y, v = np.empty(shape), np.empty(shape)
        t, ahead = self._moment(state)
        event_loop.centres_at(t, state.centres, self.decay, y, v, ahead)
        return y, v

    def _moment(self, state: AdfsState) -> tuple[int, int]:
        """The index of ``v``, and by how many idle steps ``y`` is ahead of it."""
        return (state.t + 1, 0) if self.continuized else (state.t, 1)

    def virtual(self, state: AdfsState) -> tuple[Vector, Vector]:
        """Coefficients of ``y_t`` and ``v_t`` at the virtual nodes, each on its own row."""
        return self._virtual(state, state.lines)

    def _virtual(self, state: AdfsState, lines: Matrix) -> tuple[Vector, Vector]:
        y, v = np.empty(len(lines)), np.empty(len(lines))
        t, ahead = self._moment(state)
        event_loop.virtual_at(t, lines, self.decay, y, v, ahead)
        return y, v

    def output(self, state: AdfsState) -> Matrix:
        """``theta_i = y_t^(i) / sigma_i``."""
        return self.nodes(state)[0] / self.problem.own_sigma[:, None]

    def duals(self, state: AdfsState, node: int) -> Vector:
        """Virtual coefficients of ``y_t``: the dual point of the certificate."""
        return self._virtual(state, state.lines[self.problem.node_rows(node)])[0]

    def arrays(self, state: AdfsState) -> Arrays:
        """The samples' changing columns, the centres, and the time."""
        pairs, scale, last = state.centres
        return Arrays(
            samples={"lines": state.lines[:, : edge.NORM2]},
            nodes={"pairs": pairs, "scale": scale, "last": last},
            shared={"t": np.array([state.t])},
        )

    def restore(self, state: AdfsState, shared: Named) -> None:
        """The time."""
        state.t = int(shared["t"][0])

    def queued(self, state: AdfsState) -> edge.AdfsArithmetic:
        """Its arithmetic for loops over events, of a block or of queues of nodes."""
        return edge.AdfsArithmetic(state.lines, state.centres, self.constants, self.decay)

    def pass_time(self, state: AdfsState, events: Events) -> tuple[Vector, Vector]:
        """Move the state's time to the end of a block of which only own events are executed."""
        state.t = events.stop * TICKS if self.continuized else events.stop
        return np.empty(1), np.empty(1)

    def counts(self, events: Events) -> Counts:
        """An exchange is two messages of d numbers."""
        return exchange_counts(events, len(self.constants.edges), self.problem.n_features)


def _decay(rho: float, continuized: bool) -> edge.Decay:
    """Powers of what an idle difference shrinks by, an iteration or a tick."""
    make, rate = (edge.power_table, -2.0 * rho / TICKS) if continuized else (edge.decay_table, rho)
    table: edge.Decay = make(rate)  # type: ignore[no-untyped-call]
    return table


@register("adfs", poisson=True)
def prepare(problem: Problem, setting: MethodSetting) -> Method:
    """Algorithm 1 with its schedule and its clock."""
    require_smooth("adfs", problem)
    chosen = parameters_of("adfs", Parameters, problem, setting)
    clock = chosen.make_clock(setting.delays, setting.clock)
    block, beat = block_and_beat(problem, chosen.p_comm)
    return Method(
        Adfs(problem, chosen, setting.schedule), source_of(chosen, setting, problem.network), clock,
        chosen.rho, chosen, block=block, beat=beat, sharp=True, proven=True,
        theorem=THEOREM,
    )  # fmt: skip

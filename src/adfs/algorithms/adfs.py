"""ADFS, the paper's Algorithm 1, in its lazy form (SPEC 2.2).

A communication on edge (k, l) moves the two centres by ``-+ eta~ (y_k / sigma_k - y_l / sigma_l)``;
a local update takes one sample's proximal step and moves its centre by the opposite of its virtual
node; every other row only mixes, which costs nothing until it is touched.

With Poisson clocks in place of the shared schedule this is the continuized form (SPEC 2.7): the
same updates at the clocks' times, between which ``x' = rho (v - x)`` and ``v' = rho (x - v)``
(docs/algorithms/continuized.md).

Deviation: the output is ``y_t / sigma`` as in the paper's experiments, not ``v_t / sigma`` as in
the pseudo code (trap T9).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import (
    Counts,
    Matrix,
    Method,
    Setting,
    Vector,
    block_of,
    exchange_counts,
    parameters_of,
    register,
    require_smooth,
    source_of,
    ticks_of,
)
from adfs.algorithms.dual_start import dual_start
from adfs.kernels import blocks, edge
from adfs.kernels.lazy import Decay, decay_table, power_table
from adfs.kernels.memory import aligned_zeros
from adfs.kernels.poisson import TICKS
from adfs.problems.finite_sum import Problem
from adfs.schedule.clock import Clock
from adfs.schedule.events import Events
from adfs.theory.parameters import Parameters


class Steps(Protocol):
    """What Algorithm 1 needs of `Parameters`; a rank has it for its own nodes only."""

    @property
    def rho(self) -> float: ...
    @property
    def edges(self) -> NDArray[np.int32]: ...
    @property
    def edge_eta(self) -> Vector: ...
    @property
    def edge_push(self) -> Vector: ...
    @property
    def eta_ratio(self) -> Vector: ...
    def sample_push(self, node: int) -> Vector: ...


@dataclass
class AdfsState:
    """Where a run stands: the next iteration (or the tick), a line a sample, the centres' rows."""

    t: int
    lines: Matrix
    centres: edge.Centres


class Adfs:
    """Algorithm 1 on one problem with one choice of parameters, or its continuized form."""

    def __init__(self, problem: Problem, parameters: Steps, schedule: str = "shared") -> None:
        require_smooth("adfs", problem)
        self.problem, self.parameters = problem, parameters
        self.continuized = schedule == "poisson"
        self.decay = _decay(parameters.rho, self.continuized)
        self.network = edge.Network(
            edges=parameters.edges,
            edge_eta=parameters.edge_eta,
            edge_push=parameters.edge_push,
            inverse_sigma=1.0 / problem.sigma,
            eta_ratio=parameters.eta_ratio,
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
        lines = aligned_zeros(problem.n_samples, edge.LINE)
        lines[:, edge.NORM2] = problem.squared_norms
        lines[:, edge.LABEL] = problem.labels
        lines[:, edge.WEIGHT] = problem.weights
        for node in range(problem.n_nodes):
            part = slice(problem.offsets[node], problem.offsets[node + 1])
            lines[part, edge.PUSH] = self.parameters.sample_push(node)
        n = problem.n_nodes
        pairs = aligned_zeros(n, 2 * problem.n_features)
        centres = edge.Centres(pairs, np.ones(n), np.zeros(n, np.int64))
        return AdfsState(0, lines, centres)

    def step(self, state: AdfsState, events: Events) -> AdfsState:
        """Run the events, in place."""
        blocks.run_events(
            events.start, ticks_of(events, self.continuized), events.which, events.sample,
            self.problem.rows, state.lines, state.centres, self.network, self.decay,
            self._messages,
        )  # fmt: skip
        state.t = events.stop * TICKS if self.continuized else events.stop
        return state

    def nodes(self, state: AdfsState) -> tuple[Matrix, Matrix]:
        """Centre rows of ``y_t`` and ``v_t``; of ``x(t)`` and ``v(t)`` in the continuized form."""
        shape = (self.problem.n_nodes, self.problem.n_features)
        y, v = np.empty(shape), np.empty(shape)
        t, ahead = self._moment(state)
        blocks.centres_at(t, state.centres, self.decay, y, v, ahead)
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
        blocks.virtual_at(t, lines, self.decay, y, v, ahead)
        return y, v

    def output(self, state: AdfsState) -> Matrix:
        """``theta_i = y_t^(i) / sigma_i``."""
        return self.nodes(state)[0] / self.problem.sigma[:, None]

    def duals(self, state: AdfsState, node: int) -> Vector:
        """Virtual coefficients of ``y_t``: the dual point of the certificate."""
        first, last = self.problem.offsets[node], self.problem.offsets[node + 1]
        return self._virtual(state, state.lines[first:last])[0]

    def counts(self, events: Events) -> Counts:
        """An exchange is two messages of d numbers."""
        return exchange_counts(events, len(self.network.edges), self.problem.n_features)


def _decay(rho: float, continuized: bool) -> Decay:
    """Powers of what an idle difference shrinks by, an iteration or a tick."""
    table: Decay = power_table(-2.0 * rho / TICKS) if continuized else decay_table(rho)  # type: ignore[no-untyped-call]
    return table


@register("adfs", poisson=True)
def prepare(problem: Problem, setting: Setting) -> Method:
    """Algorithm 1 with its schedule and its clock."""
    require_smooth("adfs", problem)
    chosen = parameters_of("adfs", Parameters, problem, setting)
    clock = Clock(chosen.edges, problem.n_nodes, setting.delays, setting.clock)
    return Method(
        Adfs(problem, chosen, setting.schedule), source_of(chosen, setting), clock, chosen.rho,
        chosen, block=block_of(problem, chosen.p_comm), sharp=True,
    )  # fmt: skip

"""Point-SAGA (Defazio 2016) on one machine that holds all samples, with a table of scalars.

In mean form ``F / N = (1/N) sum_k f_k + (mu/2) |.|^2`` with ``f_k = w_k l(x_k .)``, convex and
``L``-smooth (``L = max L_k``), and ``mu = sum_i sigma_i / N``. A round draws ``k`` uniformly and,
with a table ``phi_k = c_k x_k`` of gradients and its mean ``phibar``, does

    z = x + gamma (phi_k - phibar),    x+ = prox_{gamma (f_k + mu/2 |.|^2)}(z),
    phi_k <- grad f_k(x+),             phibar moves along,

with the published step, ``(L + mu) gamma^2 + (1 - 1/N) gamma = 1 / (N mu)``. With
``a = 1 + gamma mu`` an energy is multiplied per round, in expectation, by at most

    theta = max( a^-2, 1 - (1/N) 2 a / (2 a + gamma L) ).

Deviation: the published table holds ``grad (f_k + mu/2 |.|^2)``, N vectors; here the ridge stays
inside the prox and the table holds ``grad f_k``, N scalars. Proof: docs/algorithms/point-saga.md.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, S, Vector
from adfs.kernels import point_saga as kernel
from adfs.kernels.memory import aligned_zeros
from adfs.problem.finite_sum import Problem
from adfs.randomness import stream_key
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost, RoundClock, Rounds
from adfs.theory.description import Description, Fact, SelfDescribing


@dataclass(frozen=True)
class PointSagaParameters(SelfDescribing):
    """The step of Point-SAGA and the rate it is proven to have."""

    n_samples: int  # N, of all nodes together
    smoothness: float  # L, the largest L_ij
    ridge: float  # mu = sum_i sigma_i / N

    @property
    def gamma(self) -> float:
        """Step: positive root of ``(L + mu) gamma^2 + (1 - 1/N) gamma - 1 / (N mu)``."""
        n, smoothness, mu = self.n_samples, self.smoothness + self.ridge, self.ridge
        root = math.sqrt((n - 1) ** 2 + 4.0 * n * smoothness / mu)
        return 2.0 / (mu * (root + (n - 1)))  # the published difference, without cancellation

    @property
    def rho(self) -> float:
        """``1 - theta``: the mean energy falls by that share per round."""
        a = 1.0 + self.gamma * self.ridge
        table = 2.0 * a / (2.0 * a + self.gamma * self.smoothness) / self.n_samples
        return min(1.0 - a**-2, table)

    def description(self) -> Description:
        published = 1.0 - 1.0 / (1.0 + self.ridge * self.gamma)
        facts = [
            Fact("L", self.smoothness, "largest smoothness of a sample's loss"),
            Fact("mu", self.ridge, "sum of sigma_i / N"),
            Fact("gamma", self.gamma, "root of (L+mu) g^2 + (1-1/N) g = 1/(N mu)"),
            Fact("rho", self.rho, "min(1 - a^-2, 2a / (2a + gamma L) / N), a = 1 + gamma mu"),
            Fact("published", published, "1 - 1 / (1 + mu gamma), never more than rho"),
        ]
        title = f"Point-SAGA parameters on one machine with {self.n_samples} samples"
        return Description(title, facts)


@dataclass
class PointSagaState:
    """The table, a line per sample; ``x = s u + r phibar`` as the kernel keeps it."""

    lines: Matrix
    pairs: Matrix  # (1, 2 d): u and phibar interleaved
    scales: Vector  # s and r


class TableAlgorithm(base.RoundAlgorithm[S]):
    """A method with a table of gradients, one scalar per sample in the ``lines`` of its state.

    The pass over the data that fills the table before round 0 is counted nowhere, as set-up.
    """

    def duals(self, state: Any, node: int) -> Vector:
        """The table's ``c = w l'`` of a node's samples."""
        return self.all_duals(state, self.problem.node_rows(node))

    def all_duals(self, state: Any, rows: slice = slice(None)) -> Vector:
        """Those of all samples here, or of some rows."""
        lines = state.lines[rows]
        return np.asarray(lines[:, kernel.WEIGHT] * lines[:, kernel.SLOPE])


class PointSaga(TableAlgorithm[PointSagaState]):
    """Point-SAGA on one machine; every node is given its iterate."""

    def __init__(self, problem: Problem, parameters: PointSagaParameters, seed: int) -> None:
        super().__init__(problem, parameters, [base.Counts(n_prox=1)])
        self.constants = kernel.PointSagaConstants(
            problem.loss.code, parameters.gamma, parameters.ridge, stream_key(seed, "point-saga")
        )

    def init(self, theta: Vector | None = None) -> PointSagaState:
        """``x_0 = theta``, or zero, and the table of gradients there."""
        problem = self.problem
        start = np.zeros(problem.n_features) if theta is None else problem.vector(theta)
        lines, total = base.sample_lines(problem, kernel), np.zeros(problem.n_features)
        kernel.fill_table(
            problem.loss.code, problem.rows, lines, 0, problem.n_samples, start, total
        )  # fmt: skip
        pairs = aligned_zeros(1, 2 * problem.n_features)
        pairs[0, ::2] = start
        pairs[0, 1::2] = total / problem.n_samples
        return PointSagaState(lines, pairs, np.array([1.0, 0.0]))

    def step(self, state: PointSagaState, events: Events) -> PointSagaState:
        kernel.run_rounds(
            events.start, len(events.which), self.problem.rows, state.lines, state.pairs,
            state.scales, self.constants,
        )  # fmt: skip
        return state

    def output(self, state: PointSagaState) -> Matrix:
        s, r = state.scales
        x = s * state.pairs[0, ::2] + r * state.pairs[0, 1::2]
        return np.tile(x, (self.problem.n_nodes, 1))

    def arrays(self, state: PointSagaState) -> base.Arrays:
        shared = {"pairs": state.pairs, "scales": state.scales}
        return base.Arrays({"lines": state.lines[:, : kernel.NORM2]}, {}, shared)


@base.register("point-saga", one_process=True, smooth=True, rules=("theory", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """Point-SAGA with its clock, which is that of one machine, as fast as the fastest node."""
    largest = max(problem.conditioning.smoothness(node).max() for node in range(problem.n_nodes))
    n = problem.n_samples
    chosen = PointSagaParameters(n, float(largest), problem.total_sigma / n)
    fastest = float(np.min(setting.delays.speed))
    alone = dataclasses.replace(setting.delays, tau=0.0, speed=fastest)
    clock = RoundClock([Cost(np.ones(1))], np.empty((0, 2), np.int32), 1, alone)
    return base.Method(
        PointSaga(problem, chosen, setting.seed), Rounds([0]), clock, chosen.rho, chosen,
        shortest=min(2_000, n), proven=True,
    )  # fmt: skip

"""Point-SAGA (Defazio 2016) on one machine that holds all samples, with a table of scalars.

In mean form ``F / N = (1/N) sum_k f_k + (mu/2) |.|^2`` with ``f_k = w_k l(x_k .)``, convex and
``L_k``-smooth, and ``mu = sum_i sigma_i / N``. A round draws ``k`` with probability ``p_k``, boosts
it by ``b_k = 1 / (N p_k)`` and, with a table ``phi_k = c_k x_k`` of gradients of mean ``phibar``,

    z = x + gamma (b_k phi_k - phibar),    x+ = prox_{gamma (b_k f_k + mu/2 |.|^2)}(z),
    phi_k <- grad f_k(x+),                 phibar moves along.

With ``a = 1 + gamma mu`` an energy is multiplied per round, in expectation, by at most

    theta = max( a^-2, 1 - min_k p_k 2 a / (2 a + gamma b_k L_k) ).

``theory`` is the published method: uniform draws, and ``(L + mu) gamma^2 + (1 - 1/N) gamma =
1 / (N mu)`` with ``L = max L_k``. ``tuned`` draws so that the least over k is largest, and puts
``sqrt(L)`` times the mean of ``sqrt(L_k)`` in the place of ``L`` in the equation of the step.

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
from adfs.schedule.sampling_law import alias_table
from adfs.theory.description import Description, Fact, SelfDescribing

NEWTON_STEPS = 100  # the rate's square root doubles at each until it is near


@dataclass(frozen=True)
class PointSagaParameters(SelfDescribing):
    """The step of Point-SAGA, its draws, and the rate it is proven to have."""

    rule: str
    n_samples: int  # N, of all nodes together
    largest: float  # L, the largest smoothness L_k
    smoothness: float  # in the place of L in the equation of the step
    ridge: float  # mu = sum_i sigma_i / N
    table: float  # rate of the table's slowest sample

    @classmethod
    def of(cls, rule: str, smoothness: Vector, ridge: float) -> "PointSagaParameters":
        """From the smoothness ``L_k`` of all samples."""
        largest = float(smoothness.max())
        plain = cls(rule, len(smoothness), largest, largest, ridge, 0.0)
        if rule == "theory":
            return dataclasses.replace(plain, table=plain.uniform_rate / plain.n_samples)
        middle = math.sqrt(largest) * float(np.sqrt(smoothness).mean())
        chosen = dataclasses.replace(plain, smoothness=middle)
        return dataclasses.replace(chosen, table=chosen.best_rate(smoothness) / chosen.n_samples)

    @property
    def gamma(self) -> float:
        """Step: positive root of ``(L + mu) gamma^2 + (1 - 1/N) gamma - 1 / (N mu)``."""
        n, smoothness, mu = self.n_samples, self.smoothness + self.ridge, self.ridge
        root = math.sqrt((n - 1) ** 2 + 4.0 * n * smoothness / mu)
        return 2.0 / (mu * (root + (n - 1)))  # the published difference, without cancellation

    @property
    def a(self) -> float:
        return 1.0 + self.gamma * self.ridge

    @property
    def uniform_rate(self) -> float:
        """The table's rate times N with uniform draws."""
        return 2.0 * self.a / (2.0 * self.a + self.gamma * self.largest)

    def best_rate(self, smoothness: Vector) -> float:
        """The table's rate times N if all samples have it: draws of mean 1, by Newton's method.

        The mean is concave in the rate, so the steps come from below and never pass the root.
        """
        rate = self.uniform_rate
        for _ in range(NEWTON_STEPS):
            root = np.sqrt(rate * (rate + 2.0 * self.gamma / self.a * smoothness))
            slope = 0.5 + 0.5 * float(np.mean((rate + self.gamma / self.a * smoothness) / root))
            step = (1.0 - 0.5 * rate - 0.5 * float(root.mean())) / slope
            rate += step
            if step <= 1e-14 * rate:
                break
        return rate

    def relative_draws(self, smoothness: Vector) -> Vector:
        """``N p_k``: 1 if uniform, else what gives every sample the same rate."""
        if self.rule == "theory":
            return np.ones(len(smoothness))
        rate = self.n_samples * self.table
        root = np.sqrt(rate * (rate + 2.0 * self.gamma / self.a * smoothness))
        return np.asarray(0.5 * (rate + root))

    @property
    def rho(self) -> float:
        """``1 - theta``: the mean energy falls by that share per round."""
        return min(1.0 - self.a**-2, self.table)

    def description(self) -> Description:
        published = 1.0 - 1.0 / (1.0 + self.ridge * self.gamma)
        uniform = self.rule == "theory"
        facts = [
            Fact("L", self.largest, "largest smoothness of a sample's loss"),
            Fact("L^", self.smoothness, "L" if uniform else "sqrt(L) times the mean of sqrt(L_k)"),
            Fact("mu", self.ridge, "sum of sigma_i / N"),
            Fact("gamma", self.gamma, "root of (L^ + mu) g^2 + (1 - 1/N) g = 1 / (N mu)"),
            Fact("iterate", 1.0 - self.a**-2, "1 - a^-2, a = 1 + gamma mu"),
            Fact("table", self.table, "2a p_k / (2a + gamma L_k / (N p_k)), least over k"),
            Fact("rho", self.rho, "the lesser of the two"),
        ]
        if uniform:
            facts += [Fact("published", published, "1 - 1 / (1 + mu gamma), never more than rho")]
        title = f"Point-SAGA parameters ({self.rule}) on one machine with {self.n_samples} samples"
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
        self._relative = parameters.relative_draws(all_smoothness(problem))
        self.constants = kernel.PointSagaConstants(
            problem.loss.code, parameters.gamma, parameters.ridge, stream_key(seed, "point-saga"),
            alias_table(self._relative),
        )  # fmt: skip

    def init(self, theta: Vector | None = None) -> PointSagaState:
        """``x_0 = theta``, or zero, and the table of gradients there."""
        problem = self.problem
        start = np.zeros(problem.n_features) if theta is None else problem.vector(theta)
        lines, total = base.sample_lines(problem, kernel), np.zeros(problem.n_features)
        lines[:, kernel.BOOST] = 1.0 / self._relative
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


def all_smoothness(problem: Problem) -> Vector:
    """``L_k`` of all samples, node after node."""
    own = [problem.conditioning.smoothness(node) for node in range(problem.n_nodes)]
    return np.concatenate(own)


@base.register("point-saga", one_process=True, smooth=True, rules=("theory", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """Point-SAGA with its clock, which is that of one machine, as fast as the fastest node."""
    n = problem.n_samples
    chosen = PointSagaParameters.of(
        setting.rule, all_smoothness(problem), problem.total_sigma / n
    )  # fmt: skip
    alone = base.on_one_machine(setting.delays)
    clock = RoundClock([Cost(np.ones(1))], np.empty((0, 2), np.int32), 1, alone)
    return base.Method(
        PointSaga(problem, chosen, setting.seed), Rounds([0]), clock, chosen.rho, chosen,
        shortest=min(2_000, n), proven=True,
    )  # fmt: skip

"""Katyusha (Allen-Zhu, 2017), mini-batch version over an all-reduce (Appendix E), and L-Katyusha.

An epoch takes the full gradient at the snapshot ``w``, then ``mm`` inner rounds

    x = tau1 z + tau2 w + (1 - tau1 - tau2) y,   g = grad f(w) + estimated difference at x,
    z+ = (z - alpha g) / (1 + alpha lam),        y = x + tau1 (z+ - z),

and moves the snapshot to ``sum_k theta^k y_k / sum_k theta^k``. Each round ends with an all-reduce
of one vector, which takes the graph's diameter in communication rounds. Kinds of rounds: 0 is an
inner round, 1 a snapshot.

L-Katyusha is Katyusha without the loop (Kovalev, Horvath, Richtarik, 2019; Qian, Qu, Richtarik):
the same round, but a coin of probability ``p`` decides in each round whether the snapshot moves to
``y``; there is no average. Kinds of rounds: 0 is an inner round, 1 a snapshot and then an inner
round. The first round always takes the snapshot.

The constants of both follow from one inequality. ``V`` bounds the variance:
``E|g - grad f(x)|^2 <= 2 V (f(w) - f(x) - <grad f(x), w - x>)``. Errors fall by ``1 - rho`` per
round if

    alpha tau1 (L_f + V / tau2) <= 1,  1 + alpha lam >= 1 / (1 - rho),  tau1 >= rho + tau2 Q(rho),

where ``Q``, the surplus, is what the age of the snapshot costs.

Deviations: ``theta`` of well conditioned problems (`loop_rate`), and the newest ``y`` as
L-Katyusha's snapshot. All with their proofs: docs/algorithms/katyusha.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.kernels import katyusha
from adfs.kernels.sampling import THRESHOLD_ONE
from adfs.problem.finite_sum import Problem
from adfs.randomness import stream_keys
from adfs.schedule.events import Events
from adfs.schedule.rounds import CoinRounds, Cost, Rounds, mean_time
from adfs.schedule.sampling_law import alias_table
from adfs.theory.description import Description, Fact, SelfDescribing

Surplus = Callable[[Vector, Vector], Vector]  # Q of rho and the rounds between snapshots
GRID = 80  # values tried of the batch and of the rounds between snapshots
KNOTS = 10  # batches whose rounds are timed under a random law
BISECTIONS = 100
SEEN = 0.52  # of theory's iterations: what runs take (0.39 to 0.76, benchmarks/plan.py)
FASTEST = 0.999  # no rho beyond: 1 / (1 - rho) must stay a number
LARGEST_POWER = 300.0  # exp of it squared is still a number
LEAST_BOUND = 1e-100  # of V and L_f, so that no product of theirs rounds to 0
BLOCK_GRADIENTS = 1 << 21  # sample gradients in one compiled call: some tenths of a second


class MeanForm:
    """``P = (1 / N) sum_ij f_ij + lam / 2 |.|^2`` over the ``N`` live samples, and its clock."""

    def __init__(self, problem: Problem, setting: base.MethodSetting) -> None:
        self.problem, self.setting, self.diameter = problem, setting, problem.topology.diameter
        self.counts = problem.conditioning.live_counts
        self.n_samples = int(self.counts.sum())
        self.lam = problem.total_sigma / self.n_samples
        self.smoothness = problem.conditioning.whole_smoothness() / self.n_samples  # L_f
        self.most = max(1, self.n_samples // self.total_batch(1))  # the largest b with B <= N
        self._costs = setting.costs.of(problem)

    def variance(self, batch: Any) -> Any:
        """``V = max_i S_i / (N b)``, for one batch or an array of them."""
        return float(self.problem.conditioning.total_smoothness.max()) / (self.n_samples * batch)

    def total_batch(self, batch: int) -> int:
        """``B = n b``; nodes without a live sample draw none."""
        return batch * int(np.count_nonzero(self.counts))

    def paper_batch(self) -> int:
        """``b = 1 + Delta tau`` (Appendix E): as much time computing as communicating."""
        return min(self.most, 1 + round(self.diameter * self.setting.tau))

    def costs(self, batch: int, snapshot_moves: bool) -> list[Cost]:
        """An inner round, and a snapshot with or without an inner round after it."""
        inner = np.where(self.counts > 0, float(batch), 0.0) * self._costs.sampled_gradient
        both = self.counts * self._costs.gradient + inner * snapshot_moves
        return [Cost(inner, self.diameter), Cost(both, self.diameter * (1 + snapshot_moves))]

    def prices(self, batch: int, snapshot_moves: bool) -> list[base.Counts]:
        """Gradients and messages of these rounds; an all-reduce takes 2 (n - 1) messages."""
        n_comm, d = 2 * (self.problem.n_nodes - 1), self.problem.n_features
        inner, both = self.total_batch(batch), self.n_samples
        if snapshot_moves:
            both += inner
        return [
            base.Counts.of_vectors(d, 0, inner, n_comm),
            base.Counts.of_vectors(d, 0, both, n_comm * (1 + snapshot_moves)),
        ]

    def time_per_efold(self, batch: Any, every: Any, rho: Any) -> Any:
        """Idealized time of a factor e, at ``rho`` per round and a snapshot ``every`` so many."""
        inner = np.interp(batch, *self._inner_times)
        return (self._snapshot_time + every * inner) / (-every * np.log1p(-rho))

    def _mean_time(self, cost: Cost) -> float:
        topology = self.problem.topology
        return mean_time(cost, topology.edges, topology.n_nodes, self.setting.delays)

    @functools.cached_property
    def _inner_times(self) -> tuple[Vector, Vector]:
        """Some batches and the times of their rounds, which are linear in between.

        Exactly so where delays are constant; else the slowest of all nodes and messages takes
        longer than the mean one, the more so in short rounds.
        """
        count = 2 if self.setting.delays.law == "constant" else KNOTS
        batches = np.unique(np.geomspace(1.0, self.most, count).round())
        times = [self._mean_time(self.costs(int(batch), False)[0]) for batch in batches]
        return batches, np.array(times)

    @functools.cached_property
    def _snapshot_time(self) -> float:
        return self._mean_time(self.costs(1, False)[1])

    def loop_theory(self) -> KatyushaParameters:
        """Allen-Zhu's constants at the paper's batch ``b = 1 + Delta tau``.

        ``mm = ceil(N / B)``, or ``2 N`` with the original constants where ``B = 1``.
        """
        batch = self.paper_batch()
        variance, lam, smoothness = self.variance(batch), self.lam, self.smoothness
        total = self.total_batch(batch)
        if total == 1:
            every, tau2, bound = 2 * self.n_samples, 0.5, variance
            tau1 = min(math.sqrt(every * lam / (3.0 * variance)), 0.5)
        else:
            every, tau2 = -(-self.n_samples // total), min(variance / (2.0 * smoothness), 0.5)
            if smoothness <= variance * every:
                tau1 = min(math.sqrt(8.0 * every * lam / (3.0 * variance)), 1.0) * tau2
                bound = variance / (2.0 * tau2)
            else:
                tau1 = min(math.sqrt(2.0 * lam / (3.0 * smoothness)), 0.5 / every)
                bound = smoothness
        alpha = 1.0 / (3.0 * tau1 * bound)
        rho = loop_rate(tau1, tau2, 1.0 + alpha * lam, every)
        return self._plan("katyusha", "theory", batch, every, Coupling(tau1, tau2, alpha, rho))

    def coin_theory(self) -> KatyushaParameters:
        """The constants of the authors' code at the paper's batch; ``p = B / N``."""
        batch = self.paper_batch()
        variance, lam, smoothness = self.variance(batch), self.lam, self.smoothness
        p = min(1.0, self.total_batch(batch) / self.n_samples)
        larger = max(smoothness, variance)
        tau2 = variance / (2.0 * larger)
        if smoothness <= variance / p:
            tau1 = min(1.0, math.sqrt(lam / (variance * p))) * tau2
        else:
            tau1 = min(math.sqrt(lam / smoothness), 0.5 * p)
        alpha = 1.0 / (tau1 * (smoothness + 2.0 * larger))
        rho = coin_rate(tau1, tau2, 1.0 + alpha * lam, p)
        return self._plan("l-katyusha", "theory", batch, 1.0 / p, Coupling(tau1, tau2, alpha, rho))

    def tuned(self, name: str, surplus: Surplus) -> KatyushaParameters:
        """Batch, rounds between snapshots and constants of the least proven time per factor e."""
        batches = np.unique(np.geomspace(1.0, self.most, GRID).round())[:, None]
        longest = 10.0 * (self.n_samples + np.sqrt(self.smoothness / self.lam))
        every = np.unique(np.geomspace(1.0, longest, GRID).round())[None, :]
        found = fastest(self.lam, self.smoothness, self.variance(batches), every, surplus)
        best = np.argmin(self.time_per_efold(batches, every, found.rho))
        row, column = np.unravel_index(best, found.rho.shape)
        constants = Coupling(*(values[row, column] for values in found))
        return self._plan(name, "tuned", int(batches[row, 0]), float(every[0, column]), constants)

    def _plan(
        self, name: str, rule: str, batch: int, every: float, constants: Coupling
    ) -> KatyushaParameters:
        tau1, tau2, alpha, rho = (float(value) for value in constants)
        return KatyushaParameters(
            name, rule, batch, self.total_batch(batch), every, self.lam, self.smoothness,
            self.variance(batch), tau1, tau2, alpha, theta=1.0 / (1.0 - rho),
            time_per_efold=float(self.time_per_efold(batch, every, rho)),
        )  # fmt: skip


@dataclass(frozen=True)
class KatyushaParameters(SelfDescribing):
    """Everything chosen for a run of Katyusha or L-Katyusha; ``str`` explains each number."""

    name: str
    rule: str
    batch: int
    total_batch: int
    every: float
    lam: float
    smoothness: float
    variance: float
    tau1: float
    tau2: float
    alpha: float
    theta: float
    time_per_efold: float

    @property
    def p(self) -> float:
        """Probability of a snapshot, of L-Katyusha."""
        return 1.0 / self.every

    def description(self) -> Description:
        facts = [
            Fact("b", self.batch, "samples per node and round; theory 1 + diameter * tau"),
            Fact("B", self.total_batch, "samples per round: b times the nodes that have any"),
            Fact("every", self.every, "inner rounds between snapshots: mm, or 1 / p"),
            Fact("lam", self.lam, "sum sigma / N: strong convexity of the mean"),
            Fact("L_f", self.smoothness, "lambda_max(sum B_i) / N: smoothness of the mean"),
            Fact("V", self.variance, "max_i sum_j L_ij / (N b): variance of a batch"),
            Fact("tau1", self.tau1, "weight of z"),
            Fact("tau2", self.tau2, "weight of the snapshot"),
            Fact("alpha", self.alpha, "step of z: alpha tau1 (L_f + V / tau2) <= 1"),
            Fact("theta", self.theta, "errors fall by it each round; at most 1 + alpha lam"),
            Fact("time", self.time_per_efold, "idealized, per factor e"),
        ]
        return Description(f"{self.name} parameters ({self.rule})", facts, width=6)


class Coupling(NamedTuple):
    """``tau1``, ``tau2``, ``alpha`` and the rate ``rho`` of a round: numbers, or arrays alike."""

    tau1: Any
    tau2: Any
    alpha: Any
    rho: Any


def loop_surplus(rho: Vector, every: Vector) -> Vector:
    """``Q = (1 - rho)^(1 - every) - 1``: a snapshot every so many rounds (Katyusha)."""
    return np.expm1(np.minimum(-(every - 1.0) * np.log1p(-rho), LARGEST_POWER))


def coin_surplus(rho: Vector, every: Vector) -> Vector:
    """``Q = rho (1 - p) / (p - rho)``: a snapshot with probability ``p`` (L-Katyusha)."""
    p = 1.0 / every
    room = np.where(rho < p, p - rho, math.exp(-LARGEST_POWER))
    return rho * (1.0 - p) / room + np.where(rho < p, 0.0, math.exp(LARGEST_POWER))


def fastest(
    lam: float, smoothness: float, variance: Vector, every: Vector, surplus: Surplus
) -> Coupling:
    """The constants of the largest proven ``rho``, for arrays of ``V`` and of snapshot rates.

    With both conditions tight, ``rho`` is proven if ``tau2`` exists with

        rho / (1 - rho) * (rho + tau2 Q) (L_f + V / tau2) <= lam,  tau1 + tau2 <= 1.

    The left side is least at ``tau2^2 = rho V / (L_f Q)`` and grows with ``rho``: bisection.
    """

    def tightest(rho: Vector) -> tuple[Vector, Vector]:
        """``tau1`` and ``tau2`` with ``tau1 = rho + tau2 Q`` and ``tau1 + tau2 <= 1``."""
        q = surplus(rho, every)
        best = np.sqrt(rho * variance / (smoothness * np.maximum(q, math.exp(-LARGEST_POWER))))
        tau2 = np.minimum(best, (1.0 - rho) / (1.0 + q))
        return rho + tau2 * q, tau2

    smoothness, variance = max(smoothness, LEAST_BOUND), np.maximum(variance, LEAST_BOUND)
    shape = np.broadcast_shapes(np.shape(variance), np.shape(every))
    low, high = np.zeros(shape), np.full(shape, FASTEST)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        tau1, tau2 = tightest(middle)
        proven = middle / (1.0 - middle) * tau1 * (smoothness + variance / tau2) <= lam
        low, high = np.where(proven, middle, low), np.where(proven, high, middle)
    tau1, tau2 = tightest(low)
    return Coupling(tau1, tau2, 1.0 / (tau1 * (smoothness + variance / tau2)), low)


def loop_rate(tau1: float, tau2: float, growth: float, length: int) -> float:
    """``rho = 1 - 1 / theta`` of given constants, snapshots every ``length`` rounds.

    ``theta`` is the largest number up to ``growth = 1 + alpha lam`` with
    ``tau2 theta^length + tau3 theta <= 1``: an epoch then divides the errors by ``theta^length``.
    """
    tau3 = 1.0 - tau1 - tau2

    def excess(log_theta: float) -> float:
        power = min(length * log_theta, LARGEST_POWER)
        return tau2 * math.expm1(power) + tau3 * math.expm1(log_theta) - tau1

    low, high = 0.0, math.log(growth)
    if excess(high) <= 0.0:
        return min(FASTEST, 1.0 - 1.0 / growth)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) <= 0.0 else (low, middle)
    return min(FASTEST, -math.expm1(-low))


def coin_rate(tau1: float, tau2: float, growth: float, p: float) -> float:
    """``rho`` of given constants, snapshots with probability ``p``.

    ``tau1 = rho + tau2 rho (1 - p) / (p - rho)`` is a quadratic equation; ``growth`` limits it.
    """
    half = 0.5 * (tau1 + tau2 * (1.0 - p) + p)
    root = tau1 * p / (half + math.sqrt(max(0.0, half * half - tau1 * p)))
    return min(FASTEST, root, 1.0 - 1.0 / growth)


def make_batches(problem: Problem, batch: int, seed: int, stream: str) -> katyusha.Batches:
    """Alias tables of ``L_ij / S_i``, one counter stream per node, and ``1 / (N b p_ij)``."""
    conditioning, network = problem.conditioning, problem.network
    live, n_samples = conditioning.live_counts > 0, int(conditioning.live_counts.sum())
    tables, factors = np.zeros(problem.n_rows, np.int64), np.zeros(problem.n_rows)
    for node in problem.nodes[live[problem.nodes]].tolist():
        smoothness, rows = conditioning.smoothness(node), problem.node_rows(node)
        tables[rows] = alias_table(smoothness)
        total = float(smoothness.sum())
        least = total / (len(smoothness) * THRESHOLD_ONE)  # alias tables draw nothing more rarely
        np.divide(
            total / (n_samples * batch), np.maximum(smoothness, least), out=factors[rows],
            where=smoothness > 0.0,
        )  # fmt: skip
    return katyusha.Batches(
        sizes=np.where(live[problem.nodes], batch, 0),
        keys=stream_keys(seed, stream, problem.nodes),
        tables=tables,
        offsets=problem.offsets,
        factors=factors,
        drawn=np.zeros(batch, np.int64),
        links=network.links,
        stack=np.empty((network.n_levels, problem.n_features)),
    )


class MiniBatch(base.RoundAlgorithm[katyusha.Vectors]):
    """Katyusha or L-Katyusha by its loop ``run``.

    The state is the vectors that all nodes hold. The output is ``y``: a round bounds ``P(y+) - P*``
    by what the theorem lets fall.
    """

    def __init__(
        self, problem: Problem, plan: KatyushaParameters, seed: int,
        prices: Sequence[base.Counts], run: Callable[..., None],
    ) -> None:  # fmt: skip
        super().__init__(problem, plan, prices)
        self.batches, self._run = make_batches(problem, plan.batch, seed, plan.name), run
        shrink = 1.0 / (1.0 + plan.alpha * plan.lam)
        self.steps = katyusha.Steps(plan.tau1, plan.tau2, plan.alpha, shrink, 1.0 / plan.theta)
        share = 1.0 / int(problem.conditioning.live_counts.sum())
        self._samples = katyusha.AllSamples(
            problem.loss.code, problem.labels, problem.weights, share
        )  # fmt: skip

    def init(self, theta: Vector | None = None) -> katyusha.Vectors:
        """All vectors at zero, or at a model; the first round takes the snapshot."""
        d = self.problem.n_features
        x, y, z, w = (np.full(d, 0.0 if theta is None else theta) for _ in range(4))
        gradient, estimate, average = (np.zeros(d) for _ in range(3))
        slopes = np.zeros(self.problem.n_rows)
        return katyusha.Vectors(x, y, z, w, gradient, slopes, estimate, average, np.zeros(1))

    def step(self, state: katyusha.Vectors, events: Events) -> katyusha.Vectors:
        samples, rows = self._samples, self.problem.rows
        self._run(events.start, events.which, rows, samples, self.batches, self.steps, state)
        return state

    def output(self, state: katyusha.Vectors) -> Matrix:
        return np.tile(state.y, (len(self.problem.nodes), 1))

    def arrays(self, state: katyusha.Vectors) -> base.Arrays:
        shared = state._asdict()
        return base.Arrays({"slopes": shared.pop("slopes")}, {}, shared)


def _method(
    mean: MeanForm, plan: KatyushaParameters, source: base.Source, rho: float,
    run: Callable[..., None], snapshot_moves: bool = False,
) -> base.Method:  # fmt: skip
    """The method with these parameters; evaluations cost a pass, so one comes after each pass."""
    kinds = plan.batch, snapshot_moves
    gradients = plan.total_batch + mean.n_samples / plan.every
    return base.method_in_rounds(
        MiniBatch(mean.problem, plan, mean.setting.seed, mean.prices(*kinds), run),
        mean.setting, mean.costs(*kinds), source, rho,
        block=max(1, round(BLOCK_GRADIENTS / gradients)),
        shortest=max(1, round(mean.n_samples / gradients)), work=gradients, proven=True,
        typical=base.share_of_theory(SEEN, rho),
    )  # fmt: skip


@base.register("katyusha", smooth=True, rules=("theory", "tuned"))
def prepare(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """Katyusha with its epochs and its clock.

    Examples
    --------
    >>> problem = Problem([(np.eye(2), [1, 0])])  # one node: no all-reduce, one sample per round
    >>> method = prepare(problem, base.MethodSetting(rule="theory"))
    >>> method.source.draw(0, 7).which
    array([1, 0, 0, 0, 0, 1, 0], dtype=int32)
    """
    mean = MeanForm(problem, setting)
    theory = setting.rule == "theory"
    plan = mean.loop_theory() if theory else mean.tuned("katyusha", loop_surplus)
    length = round(plan.every)
    source = Rounds([katyusha.SNAPSHOT] + length * [katyusha.INNER])
    # An epoch of length + 1 events divides the errors by theta^length.
    rho = -math.expm1(-math.log(plan.theta) * length / (length + 1.0))
    return _method(mean, plan, source, rho, katyusha.run_katyusha)


class Refreshes(CoinRounds):
    """Coins that begin with a snapshot: without one there is nothing to compare gradients with."""

    def draw(self, start: int, stop: int) -> Events:
        events = super().draw(start, stop)
        if start == 0 < stop:
            events.which[0] = katyusha.SNAPSHOT
        return events


@base.register("l-katyusha", smooth=True, rules=("theory", "tuned"))
def prepare_loopless(problem: Problem, setting: base.MethodSetting) -> base.Method:
    mean = MeanForm(problem, setting)
    theory = setting.rule == "theory"
    plan = mean.coin_theory() if theory else mean.tuned("l-katyusha", coin_surplus)
    source, rho = Refreshes(plan.p, setting.seed, plan.name), 1.0 - 1.0 / plan.theta
    return _method(mean, plan, source, rho, katyusha.run_l_katyusha, snapshot_moves=True)

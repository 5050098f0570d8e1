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

Deviations: ``theta`` of well conditioned problems (`katyusha_parameters.loop_rate`), and the newest
``y`` as L-Katyusha's snapshot. Both with their proofs: docs/algorithms/katyusha.md.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.katyusha_parameters import (
    KatyushaParameters,
    MeanForm,
    coin_surplus,
    loop_surplus,
)
from adfs.kernels import katyusha
from adfs.kernels.sampling import THRESHOLD_ONE
from adfs.problem.finite_sum import Problem
from adfs.randomness import stream_keys
from adfs.schedule.events import Events
from adfs.schedule.rounds import CoinRounds, Cost, Rounds
from adfs.schedule.sampling_law import alias_table

BLOCK_GRADIENTS = 1 << 21  # sample gradients in one compiled call: some tenths of a second


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
        weights = total / (n_samples * batch) / np.maximum(smoothness, least)
        factors[rows] = np.where(smoothness > 0.0, weights, 0.0)
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
    """Katyusha or L-Katyusha by its loop ``run``; costs as the clock has them.

    The state is the vectors that all nodes hold. The output is ``y``: a round bounds ``P(y+) - P*``
    by what the theorem lets fall.
    """

    def __init__(
        self, problem: Problem, plan: KatyushaParameters, seed: int, costs: Sequence[Cost],
        run: Callable[..., None],
    ) -> None:  # fmt: skip
        prices = []
        for cost in costs:  # each all-reduce takes ``diameter`` rounds and 2 (n - 1) messages
            n_sums = cost.rounds // max(1, problem.topology.diameter)
            n_grad, n_comm = int(cost.work.sum()), 2 * (problem.n_nodes - 1) * n_sums
            prices.append(base.Counts.of_vectors(problem.n_features, 0, n_grad, n_comm))
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
        with np.errstate(over="ignore"):  # hashing wraps around 2^64
            self._run(
                events.start, events.which, self.problem.rows, self._samples, self.batches,
                self.steps, state,
            )  # fmt: skip
        return state

    def output(self, state: katyusha.Vectors) -> Matrix:
        """``y``, the same at all nodes."""
        return np.tile(state.y, (len(self.problem.nodes), 1))

    def arrays(self, state: katyusha.Vectors) -> base.Arrays:
        """Each node's slopes at the snapshot, and the vectors that all nodes hold."""
        shared = state._asdict()
        return base.Arrays({"slopes": shared.pop("slopes")}, {}, shared)


def _method(
    mean: MeanForm, plan: KatyushaParameters, source: base.Source, rho: float,
    run: Callable[..., None], snapshot_moves: bool = False,
) -> base.Method:  # fmt: skip
    """The method with these parameters; evaluations cost a pass, so one comes after each pass."""
    costs = mean.costs(plan.batch, snapshot_moves)
    gradients = plan.total_batch + mean.n_samples / plan.every
    return base.method_in_rounds(
        MiniBatch(mean.problem, plan, mean.setting.seed, costs, run), mean.setting, costs,
        source, rho, block=max(1, round(BLOCK_GRADIENTS / gradients)),
        shortest=max(1, round(mean.n_samples / gradients)), work=gradients, proven=True,
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
        """Rounds ``start`` to ``stop``."""
        events = super().draw(start, stop)
        if start == 0 < stop:
            events.which[0] = katyusha.SNAPSHOT
        return events


@base.register("l-katyusha", smooth=True, rules=("theory", "tuned"))
def prepare_loopless(problem: Problem, setting: base.MethodSetting) -> base.Method:
    """L-Katyusha with its coins and its clock."""
    mean = MeanForm(problem, setting)
    theory = setting.rule == "theory"
    plan = mean.coin_theory() if theory else mean.tuned("l-katyusha", coin_surplus)
    source, rho = Refreshes(plan.p, setting.seed, plan.name), 1.0 - 1.0 / plan.theta
    return _method(mean, plan, source, rho, katyusha.run_l_katyusha, snapshot_moves=True)

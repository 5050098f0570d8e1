"""Katyusha (Allen-Zhu, 2017), mini-batch version over an all-reduce (Appendix E).

An epoch takes the full gradient at the snapshot ``w``, then ``mm`` inner rounds

    x = tau1 z + tau2 w + (1 - tau1 - tau2) y,   g = grad f(w) + estimated difference at x,
    z+ = (z - alpha g) / (1 + alpha lam),        y = x + tau1 (z+ - z),

and moves the snapshot to ``sum_k theta^k y_k / sum_k theta^k``. Each round ends with an all-reduce
of one vector, which takes the graph's diameter in communication rounds. Kinds of rounds: 0 is an
inner round, 1 a snapshot.

Deviation: ``theta`` is ``1 + alpha lam`` unless the problem is so well conditioned that the proof
needs less (`coupling.loop_rate`); with Allen-Zhu's constants that is where ``tau1`` is capped.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adfs.algorithms import katyusha_parameters
from adfs.algorithms.base import (
    Algorithm,
    Arrays,
    Counts,
    Matrix,
    Method,
    MethodSetting,
    Source,
    Vector,
    register,
    require_smooth,
    rule_of,
)
from adfs.algorithms.katyusha_parameters import KatyushaParameters, MeanForm
from adfs.kernels import katyusha
from adfs.kernels.sampling import THRESHOLD_ONE
from adfs.problem.finite_sum import Problem
from adfs.randomness import stream_keys
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost, RoundClock, Rounds
from adfs.schedule.sampling_law import alias_table

BLOCK_GRADIENTS = 1 << 21  # sample gradients in one compiled call: some tenths of a second


def make_batches(problem: Problem, batch: int, seed: int, stream: str) -> katyusha.Batches:
    """Alias tables of ``L_ij / S_i``, one counter stream a node, and ``1 / (N b p_ij)``."""
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


@dataclass
class KatyushaState:
    """State of a run: the vectors that all nodes hold."""

    vectors: katyusha.Vectors


class MiniBatch(Algorithm[KatyushaState]):
    """Katyusha or L-Katyusha by its loop ``run``; costs as the clock has them.

    The output is ``y``: a round bounds ``P(y+) - P*`` by what the theorem lets fall.

    Examples
    --------
    >>> from adfs.algorithms.base import MethodSetting
    >>> from adfs.algorithms.katyusha import prepare
    >>> problem = Problem([(np.eye(2), [1, 0]), (np.eye(2), [0, 1])])
    >>> method = prepare(problem, MethodSetting(rule="theory"))
    >>> events = method.source.draw(0, 2)  # a snapshot, then an inner round
    >>> method.algorithm.counts(events)
    Counts(n_prox=0, n_grad=8, n_comm=4, bytes=64)
    """

    def __init__(
        self,
        problem: Problem,
        steps: katyusha.Steps,
        batches: katyusha.Batches,
        costs: list[Cost],
        run: Callable[..., None],
    ) -> None:
        self.problem, self.steps, self.batches, self.costs = problem, steps, batches, costs
        share = 1.0 / int(problem.conditioning.live_counts.sum())
        self._samples = katyusha.AllSamples(
            problem.loss.code, problem.labels, problem.weights, share
        )  # fmt: skip
        self._run = run

    def init(self, theta: Vector | None = None) -> KatyushaState:
        """All vectors at zero, or at a model; the first round takes the snapshot."""
        d = self.problem.n_features
        x, y, z, w = (np.full(d, 0.0 if theta is None else theta) for _ in range(4))
        gradient, estimate, average = (np.zeros(d) for _ in range(3))
        slopes = np.zeros(self.problem.n_rows)
        vectors = katyusha.Vectors(
            x, y, z, w, gradient, slopes, estimate, average, mass=np.zeros(1)
        )  # fmt: skip
        return KatyushaState(vectors)

    def step(self, state: KatyushaState, events: Events) -> KatyushaState:
        """Run the rounds, in place."""
        with np.errstate(over="ignore"):  # hashing wraps around 2^64
            self._run(
                events.start, events.which, self.problem.rows, self._samples, self.batches,
                self.steps, state.vectors,
            )  # fmt: skip
        return state

    def output(self, state: KatyushaState) -> Matrix:
        """``y``, the same at all nodes."""
        return np.tile(state.vectors.y, (len(self.problem.nodes), 1))

    def arrays(self, state: KatyushaState) -> Arrays:
        """Each node's slopes at the snapshot, and the vectors that all nodes hold."""
        shared = state.vectors._asdict()
        return Arrays({"slopes": shared.pop("slopes")}, {}, shared)

    def counts(self, events: Events) -> Counts:
        """Sample gradients, and ``2 (n - 1)`` messages of d numbers for each all-reduce."""
        n, d = self.problem.n_nodes, self.problem.n_features
        rounds = np.bincount(events.which, minlength=len(self.costs))
        reductions = [cost.rounds // max(1, self.problem.topology.diameter) for cost in self.costs]
        messages = 2 * (n - 1) * int(rounds @ reductions)
        gradients = int(rounds @ [int(cost.work.sum()) for cost in self.costs])
        return Counts(n_grad=gradients, n_comm=messages, bytes=8 * d * messages)


def prepare_method(
    mean: MeanForm,
    plan: KatyushaParameters,
    source: Source,
    rho: float,
    run: Callable[..., None],
    snapshot_moves: bool,
) -> Method:
    """The method with these parameters; evaluations cost a pass, so one comes after each pass."""
    problem, setting = mean.problem, mean.setting
    costs = mean.costs(plan.batch, snapshot_moves)
    batches = make_batches(problem, plan.batch, setting.seed, plan.name)
    steps = katyusha.Steps(
        plan.tau1, plan.tau2, plan.alpha, 1.0 / plan.growth, 1.0 / plan.theta
    )  # fmt: skip
    gradients = plan.total_batch + mean.n_samples / plan.every
    return Method(
        MiniBatch(problem, steps, batches, costs, run),
        source,
        RoundClock(costs, problem.topology.edges, problem.n_nodes, setting.delays),
        rho,
        plan,
        block=max(1, round(BLOCK_GRADIENTS / gradients)),
        shortest=max(1, round(mean.n_samples / gradients)),
        work=gradients,
        proven=True,
    )


NAME = "katyusha"
RULES = ("theory", "tuned")


@register(NAME)
def prepare(problem: Problem, setting: MethodSetting) -> Method:
    """Katyusha with its epochs and its clock.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem([(np.eye(2), [1, 0])])  # one node: no all-reduce, one sample per round
    >>> method = prepare(problem, MethodSetting(rule="theory"))
    >>> method.source.draw(0, 7).which
    array([1, 0, 0, 0, 0, 1, 0], dtype=int32)
    >>> print(method.parameters)
    katyusha parameters (theory)
      b      1            samples per node and round; theory 1 + diameter * tau
      B      1            samples per round: b times the nodes that have any
      every  4            inner rounds between snapshots: mm, or 1 / p
      lam    0.5          sum sigma / N: strong convexity of the mean
      L_f    0.125        lambda_max(sum B_i) / N: smoothness of the mean
      V      0.25         max_i sum_j L_ij / (N b): variance of a batch
      tau1   0.5          weight of z
      tau2   0.5          weight of the snapshot
      alpha  2.66667      step of z: alpha tau1 (L_f + V / tau2) <= 1
      theta  1.18921      errors fall by it each round; at most 1 + alpha lam
      time   8.65617      idealized, per factor e
    """
    require_smooth(NAME, problem)
    mean = MeanForm(problem, setting)
    plan = theory(mean) if rule_of(NAME, setting, RULES) == "theory" else tuned(mean)
    length = round(plan.every)
    source = Rounds([katyusha.SNAPSHOT] + length * [katyusha.INNER])
    # An epoch of length + 1 events divides the errors by theta^length.
    rho = -math.expm1(-math.log(plan.theta) * length / (length + 1.0))
    return prepare_method(mean, plan, source, rho, katyusha.run_katyusha, snapshot_moves=False)


def theory(mean: MeanForm) -> KatyushaParameters:
    """Allen-Zhu's constants at the paper's batch ``b = 1 + Delta tau``.

    ``mm = ceil(N / B)``, or ``2 N`` with the original constants where ``B = 1``.
    """
    batch = mean.paper_batch()
    variance, lam, smoothness = mean.variance(batch), mean.lam, mean.smoothness
    total = mean.total_batch(batch)
    if total == 1:
        every, tau2, bound = 2 * mean.n_samples, 0.5, variance
        tau1 = min(math.sqrt(every * lam / (3.0 * variance)), 0.5)
    else:
        every, tau2 = -(-mean.n_samples // total), min(variance / (2.0 * smoothness), 0.5)
        if smoothness <= variance * every:
            tau1 = min(math.sqrt(8.0 * every * lam / (3.0 * variance)), 1.0) * tau2
            bound = variance / (2.0 * tau2)
        else:
            tau1 = min(math.sqrt(2.0 * lam / (3.0 * smoothness)), 0.5 / every)
            bound = smoothness
    alpha = 1.0 / (3.0 * tau1 * bound)
    rho = katyusha_parameters.loop_rate(tau1, tau2, 1.0 + alpha * lam, every)
    return mean.plan(
        NAME, "theory", batch, every, katyusha_parameters.Coupling(tau1, tau2, alpha, rho)
    )


def tuned(mean: MeanForm) -> KatyushaParameters:
    """The best batch, length of an epoch and constants that theory allows."""
    return mean.tuned(NAME, katyusha_parameters.loop_surplus)

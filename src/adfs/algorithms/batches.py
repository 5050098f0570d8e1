"""What Katyusha and L-Katyusha share: how nodes draw their batches, and how a run moves."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adfs.algorithms.base import (
    Arrays,
    Counts,
    Matrix,
    Method,
    Named,
    Source,
    Vector,
    copy_into,
)
from adfs.algorithms.mean_form import MeanForm, Plan
from adfs.kernels import minibatch
from adfs.kernels.sampling import THRESHOLD_ONE
from adfs.problems.finite_sum import Problem
from adfs.randomness import stream_keys
from adfs.schedule.events import Events
from adfs.schedule.law import alias_table
from adfs.schedule.rounds import Cost, RoundClock

BLOCK_GRADIENTS = 1 << 21  # sample gradients in one compiled call: some tenths of a second


def make_batches(problem: Problem, batch: int, seed: int, stream: str) -> minibatch.Batches:
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
    return minibatch.Batches(
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
class State:
    """Where a run stands: the vectors that all nodes hold."""

    vectors: minibatch.Vectors


class MiniBatch:
    """Katyusha or L-Katyusha by its loop ``run``; costs as the clock has them.

    The output is ``y``: a round bounds ``P(y+) - P*`` by what the theorem lets fall.

    Examples
    --------
    >>> from adfs.algorithms.base import Setting
    >>> from adfs.algorithms.katyusha import prepare
    >>> problem = Problem([(np.eye(2), [1, 0]), (np.eye(2), [0, 1])])
    >>> method = prepare(problem, Setting(rule="theory"))
    >>> events = method.source.draw(0, 2)  # a snapshot, then an inner round
    >>> method.algorithm.counts(events)
    Counts(n_prox=0, n_grad=8, n_comm=4, bytes=64)
    """

    def __init__(
        self,
        problem: Problem,
        steps: minibatch.Steps,
        batches: minibatch.Batches,
        costs: list[Cost],
        run: Callable[..., None],
    ) -> None:
        self.problem, self.steps, self.batches, self.costs = problem, steps, batches, costs
        share = 1.0 / int(problem.conditioning.live_counts.sum())
        self._samples = minibatch.Samples(
            problem.loss.code, problem.labels, problem.weights, share
        )  # fmt: skip
        self._run = run

    def init(self, theta: Vector | None = None) -> State:
        """All vectors at zero, or at a model; the first round takes the snapshot."""
        d = self.problem.n_features
        x, y, z, w = (np.full(d, 0.0 if theta is None else theta) for _ in range(4))
        gradient, estimate, average = (np.zeros(d) for _ in range(3))
        slopes = np.zeros(self.problem.n_rows)
        vectors = minibatch.Vectors(
            x, y, z, w, gradient, slopes, estimate, average, mass=np.zeros(1)
        )  # fmt: skip
        return State(vectors)

    def step(self, state: State, events: Events) -> State:
        """Run the rounds, in place."""
        with np.errstate(over="ignore"):  # hashing wraps around 2^64
            self._run(
                events.start, events.which, self.problem.rows, self._samples, self.batches,
                self.steps, state.vectors,
            )  # fmt: skip
        return state

    def output(self, state: State) -> Matrix:
        """``y``, the same at all nodes."""
        return np.tile(state.vectors.y, (len(self.problem.nodes), 1))

    def duals(self, state: State, node: int) -> None:
        """None: primal methods have no dual point of their own."""

    def arrays(self, state: State) -> Arrays:
        """Each node's slopes at the snapshot, and the vectors that all nodes hold."""
        shared = state.vectors._asdict()
        return Arrays({"slopes": shared.pop("slopes")}, {}, shared)

    def restore(self, state: State, shared: Named) -> None:
        """The vectors that all nodes hold."""
        copy_into(self.arrays(state).shared, shared)

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
    plan: Plan,
    source: Source,
    rho: float,
    run: Callable[..., None],
    snapshot_moves: bool,
) -> Method:
    """A plan made ready to run; a look costs about a pass over the data, so it waits for one."""
    problem, setting = mean.problem, mean.setting
    costs = mean.costs(plan.batch, snapshot_moves)
    batches = make_batches(problem, plan.batch, setting.seed, plan.name)
    steps = minibatch.Steps(
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

"""What ADFS and NS-ADFS share: a line per sample, rows of the centres, exchanges of one vector."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms import base
from adfs.algorithms.base import Matrix, S, Vector
from adfs.errors import ParameterError
from adfs.kernels.loss_functions import LOGISTIC
from adfs.network import Network
from adfs.problem.certificate import dual_point
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import NO_TICKS, Events
from adfs.schedule.poisson import PoissonSource
from adfs.schedule.sampling_law import Drawer, SamplingLaw
from adfs.schedule.stratified import StratifiedDrawer

NUMBERS_PER_BLOCK = 1 << 25
BLOCKS_PER_BEAT = 8
CLOCKS_PER_EVENT = 4  # at most, of Poisson clocks
FARTHEST = 1e-15  # from the ends of its domain, a dual whose prediction is remembered


class Pairwise(base.Algorithm[S]):
    """A lazy pairwise algorithm, or its continuized form with the schedule ``poisson``.

    With ``stratified`` it is the same as with ``shared``: only other samples come up.

    Its nodes need not execute events in the order of the schedule: on several ranks a node goes on
    with its own events while another waits for a message. ``init`` takes duals beside a model.
    """

    starts_from_duals = True

    def __init__(self, problem: Problem, parameters: Any, schedule: str) -> None:
        self.problem, self.parameters = problem, parameters
        self.continuized = schedule == "poisson"
        self._messages = np.empty((2, problem.n_features))

    def ticks_of(self, events: Events) -> NDArray[np.int64]:
        """Times of a block as kernels take them: none in the shared form."""
        if self.continuized == (events.ticks is None):
            raise ParameterError(
                "An algorithm was made for one schedule and given events of the other; draw them "
                "from a Drawer for schedule='shared', from a PoissonSource for schedule='poisson'."
            )
        return NO_TICKS if events.ticks is None else events.ticks

    def nodes(self, state: S) -> tuple[Matrix, Matrix]:
        """Centre rows of the two sequences of the method; the first one is the output's."""
        raise NotImplementedError

    def queued(self, state: S) -> Any:
        """Its arithmetic on this state: an `AdfsArithmetic` or a `NonSmoothArithmetic`."""
        raise NotImplementedError

    def pass_time(self, state: S, events: Events) -> tuple[Vector, Vector]:
        """Move the state's time to the end of a block of which only own events are executed.

        Returns Algorithm 3's ``a`` and ``A`` at these events, with one more to spare.
        """
        raise NotImplementedError

    def output(self, state: S) -> Matrix:
        """The centre rows, divided by ``sigma_i``."""
        return self.nodes(state)[0] / self.problem.own_sigma[:, None]

    def restore(self, state: S, shared: base.Named) -> None:
        """The number beside the state's arrays: the time, or ``A_t``."""
        for name in self.arrays(state).shared:
            setattr(state, name, shared[name].item())

    def counts(self, events: Events) -> base.Counts:
        n_exchanges = int(np.count_nonzero(events.which < self.problem.topology.n_edges))
        return exchange_counts(len(events.which), n_exchanges, self.problem.n_features)


def exchange_counts(n_events: int, n_exchanges: int, n_features: int) -> base.Counts:
    """Costs of so many events: an exchange is two messages of d numbers, any other one prox."""
    n_updates = n_events - n_exchanges
    return base.Counts.of_vectors(n_features, n_prox=n_updates, n_comm=2 * n_exchanges)


def dual_start(
    problem: Problem, theta: Vector, duals: Vector | None
) -> tuple[Vector, Vector, Matrix]:
    """Predictions of a model, duals ``c = w l'(x . theta)``, and the centres that go with them.

    Given duals take the place of those, clipped to the domain of the conjugate losses; then the
    predictions are those to which the duals belong, since a proximal step remembers both.

    The centres share ``-sum c x``, so that all rows of the augmented graph sum to zero; shared in
    proportion to ``sigma_i`` they agree: every node starts at the same model.
    """
    point = dual_point(problem, theta, duals)
    shares = problem.own_sigma / problem.total_sigma
    total = problem.network.sum_rows(point.sums, problem.n_features)
    scores = point.scores if duals is None else _scores_of(problem, point.duals)
    return scores, point.duals, -np.outer(shares, total)


def _scores_of(problem: Problem, duals: Vector) -> Vector:
    """Predictions ``s`` with ``w l'(s) = c`` for the logistic loss; other steps remember none."""
    if problem.loss.code != LOGISTIC:
        return np.zeros(len(duals))
    weights, signs = np.where(problem.weights > 0.0, problem.weights, 1.0), problem.labels
    p = np.clip(-signs * duals / weights, FARTHEST, 1.0 - FARTHEST)
    return np.asarray(signs * (np.log1p(-p) - np.log(p)))


def parameters_of(name: str, kind: Any, problem: Problem, setting: base.MethodSetting) -> Any:
    """What the setting's rule chooses, or the parameters that were given in its place."""
    rule = setting.rule
    if isinstance(rule, str):
        return kind.choose(problem, rule, setting.tau, setting.clock, setting.delays)
    if not isinstance(rule, kind):
        raise ParameterError(
            f"parameters={type(rule).__name__} is not for {name!r}; choose a rule such as tuned, "
            f"or {kind.__name__}.choose(problem, ...)."
        )
    if not rule.belongs_to(problem):
        raise ParameterError("These parameters were chosen for another problem; choose again.")
    return rule


def source_of(
    law: SamplingLaw, setting: base.MethodSetting, network: Network | None = None
) -> base.Source:
    """Where the setting's schedule draws events of the law from: those of the nodes here."""
    if setting.schedule == "poisson":
        nodes = None if network is None or network.is_whole else network.nodes
        return PoissonSource(law, setting.seed, nodes)
    if setting.schedule == "stratified":
        return StratifiedDrawer(law, setting.seed, network)
    return Drawer(law, setting.seed, network)


def timing_of(law: SamplingLaw, setting: base.MethodSetting) -> base.Source:
    """The setting's events of all nodes, without samples: plans read times from them."""
    if setting.schedule == "poisson":
        return PoissonSource(law, setting.seed, with_samples=False)
    return Drawer(law, setting.seed, with_samples=False)


def pairwise_method(
    algorithm: Pairwise[Any], setting: base.MethodSetting, rho: float, **facts: Any
) -> base.Method:
    """The method; a compiled call, and what is between two checks, take a fraction of a second."""
    problem, chosen = algorithm.problem, algorithm.parameters
    numbers = base.numbers_per_event(problem.numbers_per_row, problem.n_features, chosen.p_comm)
    events = NUMBERS_PER_BLOCK / (1.0 + numbers)
    block = int(np.clip(events, 4, base.Method.block))
    if setting.schedule == "poisson":  # a block looks at every clock once
        n_clocks = problem.topology.n_edges + problem.n_nodes
        block = max(block, n_clocks // CLOCKS_PER_EVENT)
    beat = block * int(np.clip(events / block, 1, BLOCKS_PER_BEAT))
    source = source_of(chosen, setting, problem.network)
    clock = chosen.make_clock(setting.delays, setting.clock)
    timing = timing_of(chosen, setting)
    return base.Method(
        algorithm, source, clock, rho, chosen, block=block, beat=beat, timing=timing, **facts
    )  # fmt: skip

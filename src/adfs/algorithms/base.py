"""What an algorithm is, what it needs to run, and the names under which they are found."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from adfs import checks
from adfs.costs import PAPER, Costs
from adfs.errors import ParameterError
from adfs.kernels.memory import aligned_zeros
from adfs.losses import names
from adfs.problem.conditioning import require_scaled
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from adfs.schedule.rounds import Cost, RoundClock, Rounds

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
S = TypeVar("S")


class Counts(NamedTuple):
    """What a block of events cost: proximal steps, sample gradients, messages and their bytes."""

    n_prox: int = 0
    n_grad: int = 0
    n_comm: int = 0
    bytes: int = 0

    @classmethod
    def of_vectors(
        cls, n_features: int, n_prox: int = 0, n_grad: int = 0, n_comm: int = 0
    ) -> "Counts":
        """Counts where every message is a vector of d numbers."""
        return cls(n_prox, n_grad, n_comm, 8 * n_features * n_comm)

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))


Named = dict[str, NDArray[Any]]


class Arrays(NamedTuple):
    """The arrays that make up a state, by name: what a checkpoint holds.

    ``samples`` have one row per sample and ``nodes`` one per node of this process: views of the
    state, into which a checkpoint is written back. ``shared`` are the same in every process, and
    are taken back by the algorithm's ``restore``.
    """

    samples: Named
    nodes: Named
    shared: Named


def arrays_of(algorithm: Any, state: Any) -> Arrays:
    """The arrays of a state; none where a plug-in does not name them."""
    found: Arrays = algorithm.arrays(state) if hasattr(algorithm, "arrays") else Arrays({}, {}, {})
    return found


def executed(algorithm: Any, state: Any, events: Events) -> Events:
    """The block just taken with the kinds of rounds that it came to be, for clocks and counts.

    They are those of the source, unless the algorithm chooses them on its way and says so.
    """
    found: Events = algorithm.executed(state, events) if hasattr(algorithm, "executed") else events
    return found


def copy_into(views: Named, stored: Named) -> None:
    for name, view in views.items():
        view[...] = stored[name]


class WarmStart(NamedTuple):
    """A model to start from and, where they are known, duals of the samples in this process."""

    theta: Vector
    duals: Vector | None = None


def first_state(algorithm: Any, start: WarmStart | None) -> Any:
    """State before the first event; duals are for algorithms that say ``starts_from_duals``."""
    if start is None:
        return algorithm.init(None)
    if start.duals is None or not getattr(algorithm, "starts_from_duals", False):
        return algorithm.init(start.theta)
    return algorithm.init(start.theta, start.duals)


def all_duals(algorithm: Any, state: Any, problem: Problem) -> Vector | None:
    """A copy of the duals of all samples here, in one call where an algorithm allows it."""
    if hasattr(algorithm, "all_duals"):
        every: Vector = algorithm.all_duals(state)
        return every
    found = [algorithm.duals(state, node) for node in problem.nodes.tolist()]
    return None if found[0] is None else np.concatenate(found, dtype=np.float64)


class Algorithm(Protocol[S]):
    """What an algorithm is. It owns no loop, clock, log or socket.

    It computes at the nodes of this process and learns about others through ``problem.network``
    alone. A move consumes a block of the schedule; cutting the schedule elsewhere never changes a
    bit. An algorithm with a second model, which may have the smaller certificate, has a
    method ``second_output`` beside ``output``; one that is for very many nodes has ``all_duals``
    beside ``duals``. One that chooses the kinds of its rounds on its way has a method
    ``executed(state, events)``: the block of its last ``step`` with these kinds; its source draws
    the kinds that are expected.
    """

    def init(self, theta: Vector | None = None) -> S:
        """State before the first event, from zero or from a model."""

    def step(self, state: S, events: Events) -> S:
        """State after the events; may reuse the memory of the state it is given, as ours do."""

    def output(self, state: S) -> Matrix:
        """``theta``, one row per node of this process, caught up on a copy."""

    def duals(self, state: S, node: int) -> Vector | None:
        """Dual coefficients of the samples of a node of this process; None if there are none."""
        return None

    def arrays(self, state: S) -> Arrays:
        """What a checkpoint of the state holds."""
        return Arrays({}, {}, {})

    def restore(self, state: S, shared: Named) -> None:
        """Take up the shared arrays of a checkpoint, once its other arrays are in place."""
        copy_into(self.arrays(state).shared, shared)

    def counts(self, events: Events) -> Counts:
        """What the events cost."""


class RoundAlgorithm(Algorithm[S]):
    """An algorithm in rounds; ``prices`` are the costs of a round, one per kind of round."""

    def __init__(self, problem: Problem, parameters: Any, prices: Sequence[Counts]) -> None:
        self.problem, self.parameters, self.prices = problem, parameters, prices

    def counts(self, events: Events) -> Counts:
        rounds = np.bincount(events.which, minlength=len(self.prices))
        return Counts(*(rounds @ np.array(self.prices)).tolist())


def sample_lines(problem: Problem, columns: Any) -> Matrix:
    """One line per sample with its constants in the ``columns`` of a kernel, zeros elsewhere."""
    lines = aligned_zeros(problem.n_rows, 8)
    lines[:, columns.NORM2] = problem.squared_norms
    lines[:, columns.LABEL] = problem.labels
    lines[:, columns.WEIGHT] = problem.weights
    return lines


class Source(Protocol):
    """Where events come from: all events between any two positions, the same each time."""

    def draw(self, start: int, stop: int) -> Events: ...


class Timekeeper(Protocol):
    """What executing events takes in idealized time; ``arrays``: views per node, and shared."""

    @property
    def time(self) -> float: ...
    def advance(self, events: Events) -> None: ...
    def copy(self) -> "Timekeeper": ...
    def arrays(self) -> tuple[Named, Named]: ...


class MethodSetting(NamedTuple):
    """Settings of a method: the rule for its parameters, the time model, seed and schedule.

    ``costs`` are what elementary steps take: a method asks ``costs.of(problem)``.
    """

    rule: Any = "tuned"  # a rule's name, or the parameters themselves
    tau: float = 5.0
    clock: str = "nonblocking"
    delays: Delays = Delays(tau=5.0)
    seed: int = 0
    schedule: str = "shared"  # "poisson": the continuized form; "stratified": samples in epochs
    costs: Costs = PAPER

    def for_method(self, name: str) -> "MethodSetting":
        """The schedule ``auto`` is ``stratified`` where the method has it, else ``shared``."""
        if self.schedule != "auto":
            return self
        has_it = name in _WITH_SCHEDULE["stratified"]
        return self._replace(schedule="stratified" if has_it else "shared")


@dataclass(frozen=True)
class Method:
    """An algorithm ready to run on a problem, with its schedule and its clock.

    Attributes
    ----------
    rho : float
        The rate that a run is planned with: the error falls by ``1 - rho`` per iteration.
    sharp : bool
        Whether what is seen lies between once and ``fastest`` times that rate; otherwise it is
        only a bound.
    parameters : object
        What the algorithm was made with; ``str(parameters)`` explains every number, and
        ``parameters.description()``, where there is one, does so for reports.
    block : int
        Most positions (about as many events) in one compiled call.
    beat : int or None
        Positions between two checks of limits and signals; None for ``block``.
    shortest : int
        Fewest positions between two evaluations that the runner places by itself.
    work : float
        Sample steps of all nodes in one position, in the mean: how often a run is saved.
    proven : bool
        Whether a theorem proves the rate ``1 - rho`` per iteration; otherwise ``rho`` is a guess
        that sets the default iteration limit.
    theorem : str
        What is proven, in a sentence for reports; empty for the usual one.
    needed : callable or None
        Iterations in which theory brings the relative gap from 1 to a ``tol``, where that is not at
        a rate ``1 - rho``.
    typical : callable or None
        Iterations in which runs usually bring the relative gap from 1 to a ``tol``, where they need
        fewer than theory says: measured by ``benchmarks/plan.py``, for plans only.
    fastest : float
        Most times ``rho`` that runs are seen to have, where that is ``sharp``.
    timing : Source or None
        Events of all nodes, without samples, from which plans read the time; None for ``source``.
        On ranks ``source`` may draw the events of some nodes only.
    """

    algorithm: Algorithm[Any]
    source: Source
    clock: Timekeeper
    rho: float
    parameters: Any
    block: int = 1 << 14
    shortest: int = 2_000
    sharp: bool = False
    work: float = 1.0
    proven: bool = False
    beat: int | None = None
    theorem: str = ""
    needed: Callable[[float], float] | None = None
    typical: Callable[[float], float] | None = None
    fastest: float = 2.0
    timing: Source | None = None


def method_in_rounds(
    algorithm: RoundAlgorithm[Any], setting: MethodSetting, costs: Sequence[Cost],
    source: Source | None = None, rho: float | None = None, **facts: Any,
) -> Method:  # fmt: skip
    """A method whose kinds of rounds take ``costs``; ``facts`` are further attributes of `Method`.

    By default all rounds are of kind 0, and ``rho`` is that of the parameters.
    """
    problem, chosen = algorithm.problem, algorithm.parameters
    clock = RoundClock(costs, problem.topology.edges, problem.n_nodes, setting.delays)
    rho = chosen.rho if rho is None else rho
    return Method(algorithm, source or Rounds([0]), clock, rho, chosen, **facts)


def on_one_machine(delays: Delays) -> Delays:
    """Those of a machine without a network, as fast as the fastest node."""
    return dataclasses.replace(delays, tau=0.0, speed=float(np.min(delays.speed)))


def share_of_theory(share: float, rho: float) -> Callable[[float], float]:
    """A `Method.typical`: so much of the iterations that the rate ``1 - rho`` needs."""
    if rho <= 0.0:
        return lambda tol: math.inf
    per_iteration = -math.log1p(-min(rho, 0.99))  # factors e
    return lambda tol: share * math.log(1.0 / min(tol, 0.5)) / per_iteration


def numbers_per_event(row: float, n_features: int, p_comm: float) -> float:
    """Numbers read and written in the mean, of a sample's row or of two centres."""
    return (1.0 - p_comm) * row + p_comm * 4.0 * n_features


Factory = Callable[[Problem, MethodSetting], Method]
F = TypeVar("F")
REGISTRY: dict[str, Factory] = {}
CHOSEN = ("auto", "best")  # in the place of a name: adfs or ns-adfs, or what the plan recommends
WITHOUT_THEOREM = (
    "The certified gap does not depend on how samples are drawn; schedule shared has the theorem."
)
SCHEDULES = ("shared", "poisson", "stratified")
_WITH_SCHEDULE: dict[str, set[str]] = {"poisson": set(), "stratified": set()}  # of algorithms
ONE_MACHINE: set[str] = set()  # algorithms for one machine, without a network
BY_NAME: set[str] = set()  # algorithms that are planned and compiled only where they are named


def usual_names() -> list[str]:
    """Registered names, without those that are planned only where they are named."""
    return sorted(set(REGISTRY) - BY_NAME)


def register(
    name: str, poisson: bool = False, one_process: bool = False, smooth: bool | None = None,
    rules: tuple[str, ...] = (), stratified: bool = False, by_name: bool = False,
) -> Callable[[F], F]:  # fmt: skip
    """Decorator of a factory, or of a `RoundMethod`: make its method known under ``name``.

    A factory takes a problem and a `MethodSetting`, and returns a `Method`. Only one with
    ``poisson`` or ``stratified`` is asked for the schedule of that name; one with ``one_process``
    is for one machine and never asked for a problem on several ranks. With ``smooth`` and ``rules``
    it is asked only for losses that are smooth, or are not, and for these rules. A `RoundMethod`
    is for smooth losses and knows its rules, and whether it is for one machine. With ``by_name``
    plans leave it out unless it is named.
    """

    def add(made: F) -> F:
        factory: Any = getattr(made, "prepare", made)
        wanted = True if smooth is None and factory is not made else smooth

        @functools.wraps(factory)
        def checked(problem: Problem, setting: MethodSetting) -> Method:
            setting = setting.for_method(name)
            require_schedule(name, setting.schedule)
            require_engine(name, problem.network.size)
            require_scaled(problem)
            if wanted is not None:
                (require_smooth if wanted else require_non_smooth)(name, problem)
            if rules:
                rule_of(name, setting, rules)
            found: Method = factory(problem, setting)
            return found

        if name in CHOSEN:
            raise ParameterError(f"{name!r} is no name for an algorithm: {name} chooses one.")
        for schedule, has_it in (("poisson", poisson), ("stratified", stratified)):
            _note(_WITH_SCHEDULE[schedule], name, has_it)
        _note(ONE_MACHINE, name, one_process or getattr(made, "one_machine", False))
        _note(BY_NAME, name, by_name)
        REGISTRY[name] = checked
        return made if factory is not made else cast(F, checked)

    return add


def _note(names: set[str], name: str, belongs: bool) -> None:
    (names.add if belongs else names.discard)(name)


def require_schedule(name: str, schedule: str) -> None:
    checks.choice("schedule", schedule, ("auto", *SCHEDULES))
    if schedule not in ("auto", "shared") and name not in _WITH_SCHEDULE[schedule]:
        raise ParameterError(
            f"Algorithm {name!r} has no schedule {schedule!r}; choose schedule shared, or one of "
            f"the algorithms {', '.join(sorted(_WITH_SCHEDULE[schedule]))}."
        )


def require_engine(name: str, n_ranks: int) -> None:
    if n_ranks > 1 and name in ONE_MACHINE:
        raise ParameterError(
            f"Algorithm {name!r} is for one machine, without a network, and there are {n_ranks} "
            "ranks; choose engine local, or another algorithm."
        )


def get_algorithm(name: str) -> Factory:
    if name not in REGISTRY:
        raise ParameterError(
            f"algorithm={name!r} is not known{near_names(name)}; choose {', '.join(CHOSEN)} or "
            f"one of {known_names()}."
        )
    return REGISTRY[name]


def near_names(name: str) -> str:
    """The registered name that a mistyped one may stand for, in brackets."""
    near = checks.nearest(str(name), REGISTRY)
    return f" (nearest: {near})" if near else ""


def known_names() -> str:
    """The usual names, and where the others are: all of them are too many for a sentence."""
    more = ", or another name of adfs.algorithms()" if BY_NAME else ""
    return f"{', '.join(usual_names())}{more}"


def rule_of(name: str, setting: MethodSetting, rules: tuple[str, ...]) -> str:
    """The setting's rule, if it is one that the algorithm ``name`` has."""
    if isinstance(setting.rule, str) and setting.rule in rules:
        return setting.rule
    given = repr(setting.rule) if isinstance(setting.rule, str) else type(setting.rule).__name__
    raise ParameterError(
        f"parameters={given} is not a rule of {name!r}; choose one of {', '.join(rules)}."
    )


def require_smooth(name: str, problem: Problem) -> None:
    """Refuse a loss that the algorithm ``name`` cannot handle."""
    if not problem.loss.smooth:
        raise ParameterError(
            f"Algorithm {name!r} needs a smooth loss and {problem.loss.name!r} is not; choose "
            f"algorithm ns-adfs, or one of the losses {', '.join(names(smooth=True))}."
        )


def require_non_smooth(name: str, problem: Problem) -> None:
    """Refuse a loss for which the algorithm ``name`` would waste what is known."""
    if problem.loss.smooth:
        raise ParameterError(
            f"Algorithm {name!r} is for the losses {', '.join(names(smooth=False))} and "
            f"{problem.loss.name!r} is smooth; choose algorithm adfs, whose rate is linear."
        )

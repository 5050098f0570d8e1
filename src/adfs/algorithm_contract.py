"""What a method promises to its runs, tested: `check_algorithm`.

Each check runs the method on small problems of logistic loss: four nodes with unequal shards,
weights and regularisation. Later checks run only where the earlier ones find nothing, since one
fault has many consequences.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import (
    ONE_MACHINE,
    Counts,
    Method,
    MethodSetting,
    RoundAlgorithm,
    all_duals,
    arrays_of,
    copy_into,
    executed,
    get_algorithm,
)
from adfs.algorithms.round_method import RoundMethod, kinds_of, rule_text
from adfs.errors import AdfsError, ContractError, ParameterError
from adfs.graphs.topology import Topology
from adfs.network import Network
from adfs.problem.certificate import certify
from adfs.problem.finite_sum import Problem
from adfs.schedule.delays import Delays
from adfs.simulated_ranks import ThreadNetwork, on_ranks

Faults = Iterator[str]

SIZES, N_FEATURES = (6, 3, 5, 9), 3
SIGMA = (0.5, 1.0, 0.7, 0.4)
STRETCH = np.array([1.0, 0.3, 0.05])  # of the columns, for a condition number that is large
LESS = 0.1  # regularisation, for the same
MOST_EVENTS = 300_000  # of a run to the optimum
HARD_EVENTS = 30_000  # of a run where the condition number is large
SUBLINEAR_EVENTS = 3_000  # of a run without a linear rate, which only has to come closer
SOON = 8  # events after a checkpoint; after many, a method that converges has forgotten it
PATIENCE = 20.0  # seconds that simulated ranks wait for each other
ROUNDING = 1e-20  # of squared errors, relative to the first one
LEEWAY = 1e6  # of a squared error over the theorem's: what constants may be


class ContractTrial(NamedTuple):
    """A method's name and its rule, to be tried."""

    name: str
    rule: Any
    shards: Sequence[Any]
    loss: str
    sigma: Sequence[float] = SIGMA
    most_events: int = MOST_EVENTS

    @property
    def setting(self) -> MethodSetting:
        return MethodSetting(rule=self.rule, tau=2.0, delays=Delays(tau=2.0), seed=3)

    def problem(self, is_sparse: bool = False, network: Network | None = None) -> Problem:
        network = network or Network(Topology.grid(2, 2))
        own = [self.shards[node] for node in network.nodes.tolist()]
        own = [(sp.csr_matrix(X) if is_sparse else X, *rest) for X, *rest in own]
        return Problem(own, self.loss, np.array(self.sigma), network=network)

    def method(self, problem: Problem | None = None) -> Method:
        return get_algorithm(self.name)(problem or self.problem(), self.setting)


def check_algorithm(algorithm: str, parameters: Any = "tuned") -> None:
    """Test what a method promises; raise one error that lists all faults.

    Models of the promised shape; the same bits however its schedule is cut, whatever is read
    between, from the same seed, after a checkpoint, and on ranks; declared costs that are those
    asked for; dense and sparse rows alike; the certified optimum, at the rate that it calls proven;
    a sentence for losses that it does not take.

    Parameters
    ----------
    algorithm : str
        A registered name.
    parameters : str or dict
        The rule and options to check it with, as for `adfs.solve`.

    Raises
    ------
    AdfsError
        With one line per fault; they are its attribute ``faults`` too.

    Examples
    --------
    >>> check_algorithm("lbfgs")
    """
    trial = ContractTrial(algorithm, rule_text(parameters), _shards(), "logistic")
    get_algorithm(algorithm)
    for stage in STAGES:
        faults = [fault for check in stage for fault in _caught(check, trial)]
        if faults:
            rules = "a rule" if len(faults) == 1 else f"{len(faults)} rules"
            lines = "".join(f"\n- {fault}" for fault in faults)
            raise ContractError(f"Algorithm {algorithm!r} breaks {rules}:{lines}")


def _shards() -> list[Any]:
    generator = np.random.default_rng(0)
    return [
        (
            generator.standard_normal((size, N_FEATURES)) * (generator.random((size, 1)) + 0.2),
            np.where(np.arange(size) % 2, 1.0, -1.0), generator.random(size) + 0.5,
        )
        for size in SIZES
    ]  # fmt: skip


def _caught(check: Callable[[ContractTrial], Faults], trial: ContractTrial) -> Faults:
    """The faults of a check; an exception is one."""
    try:
        yield from check(trial)
    except Exception as error:
        words = " ".join(str(error).split())
        what = (check.__doc__ or "").split(".")[0].strip()
        yield f"it raises {type(error).__name__}: {words} ({what})"


def _advance(method: Method, state: Any, cuts: Sequence[int]) -> Any:
    for first, last in itertools.pairwise(cuts):
        state = method.algorithm.step(state, method.source.draw(first, last))
    return state


def _run(method: Method, cuts: Sequence[int]) -> Any:
    return _advance(method, method.algorithm.init(), cuts)


def _length(method: Method) -> int:
    """Events of a short run, in which every kind of round occurs."""
    return 40 if method.block < 64 else 300


def _has_a_rate(trial: ContractTrial) -> Faults:
    """It is prepared."""
    method = trial.method()
    if not (math.isfinite(method.rho) and 0.0 <= method.rho < 1.0):
        yield (
            f"rho must be in [0, 1), but is {method.rho}; it is the rate per iteration, 0 where "
            "there is no linear one."
        )
    if not method.block >= 1 or not method.shortest >= 1:
        yield "block and shortest must be at least 1 event."
    if "object at 0x" in str(method.parameters):
        yield "parameters must explain themselves; give them a __str__, or facts."


def _has_models(trial: ContractTrial) -> Faults:
    """Its models."""
    method = trial.method()
    for state in (method.algorithm.init(), _run(method, [0, _length(method)])):
        theta = method.algorithm.output(state)
        if theta.shape != (len(SIZES), N_FEATURES) or theta.dtype != np.float64:
            yield (
                f"output must have shape (nodes, features) = ({len(SIZES)}, {N_FEATURES}) and type "
                f"float64, but has {theta.shape} and {theta.dtype}."
            )
        elif not np.isfinite(theta).all():
            yield f"output must be finite, but is not after {_length(method)} events."


def _does_not_depend_on_cuts(trial: ContractTrial) -> Faults:
    """Other cuts of its schedule."""
    method, problem = trial.method(), trial.problem()
    n = _length(method)
    for cuts in ([*range(n), n], [0, n // 3, n // 2, n], [0, 1, 2, SOON]):
        whole = _see(method, problem, _run(method, [0, cuts[-1]]))
        if _see(method, problem, _run(method, cuts)) != whole:
            yield (
                f"the result of {cuts[-1]} events must not depend on how they are cut, but "
                f"does with {len(cuts) - 1} blocks; keep everything that changes in the state."
            )
            return


def _is_not_changed_by_reading(trial: ContractTrial) -> Faults:
    """What is read between."""
    method, problem = trial.method(), trial.problem()
    n = _length(method)
    silent = _see(method, problem, _run(method, [0, n]))
    state = method.algorithm.init()
    kept = []
    for first in range(0, n, 8):
        theta = method.algorithm.output(state)
        kept.append((theta, theta.copy()))
        state = method.algorithm.step(state, method.source.draw(first, min(n, first + 8)))
    if _see(method, problem, state) != silent:
        yield "output must change nothing, but a run with readings ends elsewhere; copy the state."
    if not all(np.array_equal(theta, copied) for theta, copied in kept):
        yield "what output returned must not change later; return a copy."


def _has_independent_runs(trial: ContractTrial) -> Faults:
    """Two runs of one object."""
    method, problem = trial.method(), trial.problem()
    n = _length(method)
    alone = _see(method, problem, _run(method, [0, n]))
    states = [method.algorithm.init(), method.algorithm.init()]
    for first in range(0, n, 10):
        events = method.source.draw(first, min(n, first + 10))
        states = [method.algorithm.step(state, events) for state in states]
    if any(_see(method, problem, state) != alone for state in states):
        yield (
            "two runs of one object must not disturb each other, but do; what a round changes "
            "belongs to the state, not to self."
        )
    again = trial.method()
    if _see(again, problem, _run(again, [0, n])) != alone:
        yield "the same seed must give the same bits; draw from nodes.sampler, or from the seed."


def _declares_its_costs(trial: ContractTrial) -> Faults:
    """Its costs."""
    method = trial.method()
    algorithm, n = method.algorithm, _length(method)
    total, asked_before = Counts(), None
    state = algorithm.init()
    for t in range(n):
        asked_before = dict(algorithm.nodes.asked) if isinstance(algorithm, RoundMethod) else None
        events = method.source.draw(t, t + 1)
        state = algorithm.step(state, events)
        events = executed(algorithm, state, events)
        counts = algorithm.counts(events)
        total = total.plus(counts)
        if counts.n_prox + counts.n_grad + counts.n_comm <= 0 or min(counts) < 0:
            yield f"an event is never free, but event {t} counts {counts}."
            return
        if asked_before is not None:
            faults = list(_differences(algorithm, asked_before, int(events.which[0]), t))
            yield from faults
            if faults:
                return
    events = method.source.draw(0, n)
    if not hasattr(algorithm, "executed") and algorithm.counts(events) != total:
        yield "counts must add up over blocks, but do not."
    clock = method.clock.copy()
    clock.advance(events)
    if not clock.time > 0.0:
        yield "time must pass, but the clock stands still; declare what a round uses."


def _differences(algorithm: Any, before: dict[str, int], kind: int, t: int) -> Faults:
    """Where a round asks for something else than its `Uses` declare."""
    uses = algorithm.uses
    declared = uses if hasattr(uses, "_fields") else uses[kind]
    for name in declared._fields[:-1]:
        found = algorithm.nodes.asked[name] - before.get(name, 0)
        if found != getattr(declared, name):
            yield (
                f"a round of kind {kind} declares {name}={getattr(declared, name)}, but round {t} "
                f"asks for {found}; declare what it asks for."
            )
            return


def _takes_sparse_rows(trial: ContractTrial) -> Faults:
    """Sparse rows."""
    outputs = []
    for is_sparse in (False, True):
        method = trial.method(trial.problem(is_sparse))
        outputs.append(method.algorithm.output(_run(method, [0, _length(method)])))
    distance = float(np.max(np.abs(outputs[0] - outputs[1])))
    if not distance <= 1e-9 * (1.0 + float(np.max(np.abs(outputs[0])))):
        yield (
            f"dense and sparse rows must give the same model, but it differs by {distance:.3g} "
            f"after {_length(method)} events."
        )


def _goes_on_from_a_checkpoint(trial: ContractTrial) -> Faults:
    """A checkpoint."""
    method, problem = trial.method(), trial.problem()
    n = _length(method)
    for stop in (1, n // 2):
        end = stop + SOON
        stored = arrays_of(method.algorithm, _run(method, [0, stop]))
        if not any(stored):
            return
        copies = [{name: np.array(array) for name, array in part.items()} for part in stored]
        other = trial.method()
        algorithm, state = other.algorithm, other.algorithm.init()
        views = arrays_of(other.algorithm, state)
        try:
            copy_into(views.samples, copies[0])
            copy_into(views.nodes, copies[1])
            other.algorithm.restore(state, copies[2])
        except (KeyError, ValueError) as error:
            yield f"a checkpoint must be taken back by a new state, but: {error}."
            return
        whole = _see(method, problem, _run(method, [0, stop, end]))
        if _see(other, problem, _advance(other, state, [stop, end])) != whole:
            unkept = _unkept_fields(state) if isinstance(algorithm, RoundMethod) else []
            way_out = (
                f"declare {', '.join(unkept)} in the state's dataclass as PerNode, PerSample or "
                "Shared."
                if unkept
                else "arrays has to name everything that a round reads, and no two fields may be "
                "one array at the start."
            )
            yield (
                f"a run that goes on from a checkpoint after {stop} events must have the same "
                f"bits {SOON} events later, but does not; {way_out}"
            )
            return


def _unkept_fields(state: Any) -> list[str]:
    """Attributes of a round method's state that no checkpoint has."""
    return [name for name in vars(state) if name not in kinds_of(type(state)) and name != "kinds"]


def _has_the_same_bits_on_ranks(trial: ContractTrial) -> Faults:
    """Two ranks."""
    whole = trial.method()
    if trial.name in ONE_MACHINE or not isinstance(whole.algorithm, RoundAlgorithm):
        return
    n = 30
    expected = whole.algorithm.output(_run(whole, [0, n]))
    mapping = np.array([0, 1, 1, 0])

    def run(peers: Any) -> np.ndarray:
        network = ThreadNetwork(peers, Topology.grid(2, 2), mapping)
        method = trial.method(trial.problem(network=network))
        return method.algorithm.output(_run(method, [0, n]))

    outcomes, _ = on_ranks(2, run, PATIENCE)
    for rank, found in enumerate(outcomes):
        if isinstance(found, Exception):
            yield (
                f"it must run on ranks, but rank {rank} raises {type(found).__name__}: {found}; "
                "attributes per row or per node here have the rows of this process only."
            )
            return
        if found.tobytes() != expected[mapping == rank].tobytes():
            yield (
                "ranks must give the bits of one process, but do not; learn about other nodes "
                "through gossip and sums only, and draw by the numbers of nodes."
            )
            return


def _finds_the_optimum(trial: ContractTrial) -> Faults:
    """The way to the optimum."""
    problem = trial.problem()
    method, best = trial.method(problem), problem.optimum()
    enough = 60.0 if method.proven else 200.0
    n = SUBLINEAR_EVENTS
    if method.rho > 0.0:
        n = min(trial.most_events, math.ceil(enough / -math.log1p(-method.rho)))
    state = method.algorithm.init()
    first = _squared_error(method, state, best.theta)
    state = _advance(method, state, [0, n])
    theta, last = method.algorithm.output(state), _squared_error(method, state, best.theta)
    mean = problem.sigma @ theta / problem.total_sigma
    gap = certify(problem, mean, all_duals(method.algorithm, state, problem)).duality_gap
    if not math.isfinite(last) or not last < first:
        yield (
            f"it must come closer to the optimum, but after {n:,} events its squared distance is "
            f"{last:.3g} times {first:.3g}, that of the start; the fixed point must be the "
            "minimiser of the sum of all nodes, with their weights and sigma."
        )
        return
    bound = first * max(ROUNDING, LEEWAY * math.exp(n * math.log1p(-method.rho)))
    if method.proven and method.rho > 0.0 and not last <= bound:
        yield (
            f"rho={method.rho:.3g} is called proven, so after {n:,} events the squared error must "
            f"be about {bound:.3g}, but is {last:.3g} (certified gap {gap:.3g}); state the rate of "
            "the theorem, or proven = False."
        )


def _keeps_its_rate(trial: ContractTrial) -> Faults:
    """A large condition number."""
    hard = trial._replace(
        shards=[(X * STRETCH, *rest) for X, *rest in trial.shards],
        sigma=[LESS * each for each in trial.sigma],
        most_events=HARD_EVENTS,
    )
    method = hard.method()
    if method.proven and method.rho > 0.0:
        for fault in _finds_the_optimum(hard):
            yield f"on a problem with a larger condition number {fault}"


def _squared_error(method: Method, state: Any, best: Any) -> float:
    return float(np.sum((method.algorithm.output(state) - best) ** 2))


def _refuses_other_losses(trial: ContractTrial) -> Faults:
    """A loss that is not smooth."""
    problem = ContractTrial(trial.name, trial.rule, trial.shards, "hinge").problem()
    try:
        method = get_algorithm(trial.name)(problem, trial.setting)
    except ParameterError:
        return
    except AdfsError as error:
        yield f"a loss that it does not take must be refused with a ParameterError, but: {error}"
        return
    if not np.isfinite(method.algorithm.output(_run(method, [0, 20]))).all():
        yield "it takes the hinge loss but its models are not finite; register it with smooth=True."


def _see(method: Method, problem: Problem, state: Any) -> bytes:
    """Everything an observer sees of a state."""
    duals = all_duals(method.algorithm, state, problem)
    theta: bytes = method.algorithm.output(state).tobytes()
    return theta + (b"" if duals is None else duals.tobytes())


STAGES: tuple[tuple[Callable[[ContractTrial], Faults], ...], ...] = (
    (_has_a_rate,),
    (_has_models,),
    (
        _does_not_depend_on_cuts, _is_not_changed_by_reading, _has_independent_runs,
        _declares_its_costs, _takes_sparse_rows, _goes_on_from_a_checkpoint,
    ),
    (_has_the_same_bits_on_ranks, _finds_the_optimum, _refuses_other_losses),
    (_keeps_its_rate,),
)  # fmt: skip

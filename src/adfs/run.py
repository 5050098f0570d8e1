"""One run of one method on a problem's network, and its result."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.agreement import agree, attempt, require_same
from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import Method, MethodSetting, WarmStart, get_algorithm
from adfs.checks import whole
from adfs.costs import PAPER, Costs
from adfs.display import html_table
from adfs.engine.checkpointer import Checkpoints, open_checkpoints
from adfs.engine.evaluation import Evaluator, evaluation_steps
from adfs.engine.execution import Execution, account
from adfs.engine.forecast import forecast, warn_if_long
from adfs.engine.interrupts import Interrupts
from adfs.engine.loop import Loop, Outcome
from adfs.engine.run_controller import (
    Callback,
    EvaluationPolicy,
    RunController,
    choose_policy,
    watch_draws,
)
from adfs.engine.steppers import DIFFERENT_BITS, make_stepper
from adfs.engine.stopping import Stopping
from adfs.engine.trace import Trace
from adfs.errors import DataError, ParameterError
from adfs.problem.certificate import certified_text, dual_point, load_kernels, relative
from adfs.problem.finite_sum import Problem


class Choice(NamedTuple):
    """How ``algorithm="best"`` chose: the reason, what pilots took, and each method's time."""

    reason: str
    pilot_time: float
    tried: tuple[tuple[str, float], ...]

    @property
    def idealized_time(self) -> float:
        """Of the pilots and of all methods that were tried."""
        return self.pilot_time + sum(time for _, time in self.tried)


@dataclass(frozen=True)
class Result:
    """The result of a run. ``duality_gap`` is absolute, ``objective`` is ``F(theta)``.

    ``objective_at_zero`` is that of the model 0.

    ``rule`` chose the ``parameters``, whose ``str`` explains them; ``rho`` is the rate per
    iteration that the run was planned with, and ``proven`` says whether a theorem promises it;
    ``theorem`` is a sentence about what is proven, or empty.
    ``tau``, ``clock`` and ``costs`` are its time model, ``schedule`` is the form in which events
    were drawn.
    ``independent_from`` is the event from which on a stratified schedule drew samples
    independently, because the gap did not fall as predicted; None where it did.
    ``resumed`` is the position of the checkpoint from which it continued, if it did.

    ``duals`` has one number per row of the problem: the dual point of the certificate, or that of
    ``theta`` for algorithms without duals. ``solve(..., warm_start=result)`` starts from it.

    ``choice`` says why ``algorithm="best"`` took this method; the trace is that of the last one.

    With ``engine="mpi"`` the result is the same on every rank, but for ``thetas``: all nodes' on
    rank 0, a rank's own elsewhere; and ``duals``, those of a rank's own rows. ``execution`` says
    where this rank's seconds went.
    """

    theta: NDArray[np.float64]
    thetas: NDArray[np.float64]
    status: str
    objective: float
    duality_gap: float
    parameters: Any
    trace: Trace
    algorithm: str
    rule: str
    rho: float
    tau: float
    clock: str
    seed: int
    setup_time: float
    signal: int | None = None
    schedule: str = "shared"
    resumed: int | None = None
    proven: bool = False
    theorem: str = ""
    execution: Execution | None = None
    objective_at_zero: float = math.nan
    duals: NDArray[np.float64] | None = None
    choice: Choice | None = None
    independent_from: int | None = None
    costs: Costs = PAPER

    @property
    def relative_gap(self) -> float:
        """``duality_gap / |objective|``, what ``tol`` was compared with; nan where F overflowed."""
        return relative(self.duality_gap, self.objective)

    @property
    def gap_text(self) -> str:
        """The relative gap as text: a number, or "to rounding" below that of ``F(0)``."""
        return certified_text(self.relative_gap, self.duality_gap, self.objective_at_zero)

    @property
    def proven_rate(self) -> float | None:
        """The rate per iteration that a theorem promises, or None where there is none."""
        return self.rho if self.proven and 0.0 < self.rho < 1.0 else None

    @property
    def iterations(self) -> int:
        """Events executed."""
        return int(self.trace.last()["iteration"] or 0)

    @property
    def idealized_time(self) -> float:
        """The time at which the last node finished, in units of one proximal step."""
        return float(self.trace.last()["idealized_time"] or 0.0)

    @property
    def wall_time(self) -> float:
        """Seconds in the loop, without set-up and evaluation."""
        return float(self.trace.last()["wall_time"] or 0.0)

    def plot(self, ax: Any = None, tol: float | None = None) -> Any:
        """Draw how the run converged, beside the proven rate if any; the matplotlib axes."""
        return self.trace.plot(ax, self.proven_rate, tol)

    def to_frame(self) -> Any:
        """The trace as a pandas DataFrame."""
        return self.trace.to_frame()

    def _repr_html_(self) -> str:
        rows = [
            ("algorithm", self.algorithm),
            ("objective", f"{self.objective:.10g}"),
            ("relative duality gap", self.gap_text),
            ("iterations", f"{self.iterations:,}"),
            ("idealized time", f"{self.idealized_time:,.6g}"),
            ("seconds in the loop", f"{self.wall_time:.3g}"),
        ]
        return html_table(rows, f"Result: {self.status}")

    def __repr__(self) -> str:
        return (
            f"Result({self.status}, objective={self.objective:.10g}, "
            f"relative gap={self.gap_text}, {self.iterations} iterations, "
            f"idealized time={self.idealized_time:.6g})"
        )


class RunOptions(NamedTuple):
    """Options of a run beside its method and its limits; only ``warm_start`` changes its bits.

    ``keep_spans`` records when a rank did what, ``gather_thetas`` brings all nodes' models to rank
    0, ``evaluate`` replaces the certificate of the problem as the evaluation, and ``watcher`` is
    called several times per second, on the ranks that have one.
    """

    warm_start: ArrayLike | Result | None = None
    evaluate_every: int | str | Callable[[Method], EvaluationPolicy] | None = None
    callbacks: tuple[Callback, ...] = ()
    checkpoints: Checkpoints | None = None
    timeout: float = 60.0
    keep_spans: bool = False
    gather_thetas: bool = True
    evaluate: Evaluator = evaluation_steps
    watcher: Callback | None = None


def run(
    problem: Problem,
    algorithm: str,
    setting: MethodSetting,
    stopping: Stopping,
    options: RunOptions,
    interrupts: Interrupts,
) -> Result:
    """Minimise ``F`` on the problem's network; all ranks call it with the same arguments."""
    started, network = time.perf_counter(), problem.network
    peers = network.peers
    peers.timeout = None  # one rank may have more rows than another
    name = automatic(problem) if algorithm == "auto" else algorithm
    setting = setting.for_method(name)
    if not network.is_whole:
        require_same(peers, _shared_by_ranks(name, setting, stopping, options))
    start, method = _prepare(problem, name, setting, options)
    ahead = forecast(problem, method, stopping.tol)
    warn_if_long(problem, ahead, stopping)
    policy, display = choose_policy(method, stopping.tol, options.evaluate_every, ahead.is_long)
    draws = watch_draws(method)
    controller = RunController(
        stopping, policy, ahead.rho, ahead.ceiling, options.callbacks, display, options.watcher,
        draws=draws,
    )  # fmt: skip
    network.keep_waits = options.keep_spans
    stepper = attempt(peers, lambda: make_stepper(problem, method, setting, start))
    stepper.warm_up()
    load_kernels(problem)
    resumed, seconds, wanted = None, 0.0, options.checkpoints
    with open_checkpoints(wanted, problem, name, setting, start, method) as checkpointer:
        if checkpointer is not None:
            stepper.keeps_tally = True
            if checkpointer.wanted.resume:
                resumed, seconds = checkpointer.resume(stepper, controller)
        loop = Loop(
            problem, method, stepper, controller, interrupts, checkpointer, options.evaluate,
            options.keep_spans, seconds,
        )  # fmt: skip
        peers.gather("ready")  # compiling and reading have no timeout
        peers.timeout = options.timeout
        network.waited, network.bytes_sent = 0.0, 0
        setup_time = time.perf_counter() - started
        status, outcome = loop.run()
    reading = outcome.reading
    switched = None if draws is None else draws.switched(outcome.spent.position)
    signal_number = interrupts.received if network.is_whole else loop.heartbeat.signal or None
    return Result(
        theta=reading.theta,
        thetas=network.collect(reading.thetas) if options.gather_thetas else reading.thetas,
        status=status,
        objective=reading.objective,
        duality_gap=reading.duality_gap,
        parameters=method.parameters,
        trace=controller.trace,
        algorithm=name,
        rule=setting.rule if isinstance(setting.rule, str) else setting.rule.how,
        rho=method.rho,
        tau=float(setting.tau),
        clock=setting.clock,
        seed=setting.seed,
        setup_time=setup_time,
        signal=signal_number,
        schedule=setting.schedule,
        resumed=resumed,
        proven=method.proven,
        theorem=_about(method, switched),
        execution=account(network, loop.spans, stepper.carrier),
        objective_at_zero=reading.objective_at_zero,
        duals=_duals_of(problem, outcome),
        independent_from=switched,
        costs=setting.costs,
    )


def _about(method: Method, switched: int | None) -> str:
    """What is proven, and how a run with stratified draws ended."""
    if switched is None:
        return method.theorem
    return (
        f"{method.theorem} From event {switched:,} on samples were drawn independently, because "
        "the gap did not fall as predicted."
    )


def _duals_of(problem: Problem, outcome: Outcome) -> NDArray[np.float64]:
    """One number per row here: those of the certificate, or those that belong to the model."""
    if outcome.duals is None:
        return dual_point(problem, outcome.reading.theta).duals
    return outcome.duals


def _shared_by_ranks(
    name: str, setting: MethodSetting, stopping: Stopping, options: RunOptions
) -> dict[str, Any]:
    """What shapes a run or its messages, by the names of the arguments of `solve`."""
    rule, warm, kept = setting.rule, options.warm_start, options.checkpoints
    model = warm.theta if isinstance(warm, Result) else warm
    values = {"algorithm": name, **setting._asdict(), **vars(stopping), **options._asdict()}
    for each in ("rule", "delays", "callbacks", "evaluate", "watcher"):
        del values[each]
    return values | {
        "parameters": rule.numbers() if hasattr(rule, "numbers") else rule,
        **{f"delays.{each}": value for each, value in vars(setting.delays).items()},
        "checkpoints": "None" if kept is None else "given",
        "checkpoints.every": kept and kept.every,
        "checkpoints.resume": kept and kept.resume,
        "warm_start": None if warm is None else np.asarray(model, np.float64),
        "warm_start.duals": "None" if getattr(warm, "duals", None) is None else "given",
    }


def _prepare(
    problem: Problem, name: str, setting: MethodSetting, options: RunOptions
) -> tuple[WarmStart | None, Method]:
    """Where to start from and the method, the same on all ranks."""
    peers, warm, every = problem.network.peers, options.warm_start, options.evaluate_every
    if every not in (None, "curve") and not callable(every):
        hint = "or give 'curve' or None"
        attempt(peers, lambda: whole("evaluate_every", every, least=1, hint=hint))
    method = attempt(peers, lambda: get_algorithm(name)(problem, setting))
    start = None if warm is None else attempt(peers, lambda: _start_from(problem, warm))
    found = peers.gather([method.rho, str(method.parameters)])
    if any(each != found[0] for each in found):  # ranks that round differently
        agree(peers, ParameterError(DIFFERENT_BITS))
    return start, method


def _start_from(problem: Problem, given: ArrayLike | Result) -> WarmStart:
    if not isinstance(given, Result):
        return WarmStart(problem.vector(given))
    if given.duals is not None and len(given.duals) != problem.n_rows:
        raise DataError(
            f"warm_start is the result of a problem with {len(given.duals)} rows here, but this "
            f"problem has {problem.n_rows}; give its theta to start from the model alone."
        )
    return WarmStart(problem.vector(given.theta), given.duals)


def automatic(problem: Problem) -> str:
    """The algorithm that ``auto`` stands for."""
    return "adfs" if problem.loss.smooth else "ns-adfs"

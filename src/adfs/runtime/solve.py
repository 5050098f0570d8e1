"""`solve`: from a problem to a certified model."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.agreement import require_same
from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import Method, Setting, get_algorithm, numbers_per_event
from adfs.errors import ParameterError
from adfs.problems.certificates import load_kernels
from adfs.problems.finite_sum import Problem
from adfs.runtime.checkpointer import Checkpointer, Checkpoints, open_checkpoints
from adfs.runtime.course import Callback, Course
from adfs.runtime.evaluation import Evaluate, reading_steps
from adfs.runtime.execution import Execution, account
from adfs.runtime.heartbeat import Heartbeat, beat_of
from adfs.runtime.loop import Loop
from adfs.runtime.pace import Cautious, Every, Looks, Pace, ToTolerance
from adfs.runtime.progress import terminal_progress
from adfs.runtime.signals import Interrupts
from adfs.runtime.spans import Spans
from adfs.runtime.stepping import DIFFERENT_BITS, Stepper, make_stepper
from adfs.runtime.stopping import Stopping
from adfs.runtime.trace import Trace
from adfs.schedule.delays import Delays
from adfs.theory.non_smooth import NonSmoothParameters
from adfs.theory.parameters import Parameters


@dataclass(frozen=True)
class Result:
    """What a run gives back. ``duality_gap`` is absolute, ``objective`` is ``F(theta)``.

    ``rule`` chose the ``parameters``, whose ``str`` explains them; ``rho`` is the rate per
    iteration that the run was planned with, and ``proven`` says whether a theorem promises it;
    ``theorem`` is a sentence about what is proven, or empty.
    ``tau`` and ``clock`` are the time model it was given, ``schedule`` is the form in which events
    were drawn. ``resumed`` is the position of the checkpoint from which it went on, if it did.

    With ``engine="mpi"`` the result is the same on every rank, but for ``thetas``: all nodes' on
    rank 0, a rank's own elsewhere. ``execution`` says where this rank's seconds went.
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

    @property
    def relative_gap(self) -> float:
        """``duality_gap / max(1, |objective|)``, what ``tol`` was compared with."""
        return self.duality_gap / max(1.0, abs(self.objective))

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
        """When the last node finished, in units of one proximal step."""
        return float(self.trace.last()["idealized_time"] or 0.0)

    @property
    def wall_time(self) -> float:
        """Seconds in the loop, without set-up and evaluation."""
        return float(self.trace.last()["wall_time"] or 0.0)

    def __repr__(self) -> str:
        return (
            f"Result({self.status}, objective={self.objective:.10g}, "
            f"relative gap={self.relative_gap:.2g}, {self.iterations} iterations, "
            f"idealized time={self.idealized_time:.6g})"
        )


def solve(
    problem: Problem,
    algorithm: str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    tau: float = 5.0,
    clock: str = "nonblocking",
    parameters: str | Parameters | NonSmoothParameters = "tuned",
    seed: int = 0,
    callback: Callback | None = None,
    delays: Delays | None = None,
    warm_start: ArrayLike | None = None,
    evaluate_every: int | Literal["curve"] | None = None,
    clock_limit: float | None = None,
    progress: bool | None = None,
    signals: tuple[signal.Signals, ...] = (signal.SIGINT,),
    schedule: str = "shared",
    checkpoints: Checkpoints | None = None,
    timeout: float = 60.0,
) -> Result:
    """Minimise the problem's ``F`` to a relative duality gap of ``tol``.

    Parameters
    ----------
    problem : Problem
    algorithm : str
        ``auto`` takes ``adfs``, or ``ns-adfs`` where the loss is not smooth; `adfs.algorithms`
        lists the names.
    tol : float
        Stop when ``gap / max(1, |F|) <= tol``.
    max_iter : int, optional
        Most events, or units of time under the Poisson schedule, which hold about one event each;
        by default well beyond what theory needs for ``tol``.
    time_limit : float, optional
        Seconds in the loop.
    tau, clock, delays
        The time model: one communication in units of one proximal step, ``nonblocking`` or
        ``rendezvous``; ``delays`` where they are not constant.
    parameters : str, Parameters or NonSmoothParameters
        ``tuned``, or a rule that the algorithm has, or for ``adfs`` and ``ns-adfs`` the parameters
        themselves.
    seed : int
        The same seed gives the same bits.
    callback : callable, optional
        Called with a `Progress` after each evaluation.
    warm_start : array of shape (d,), optional
        A model to start from.
    evaluate_every : int or "curve", optional
        Events between evaluations, which cost a good part of a pass each; by default as few
        evaluations as the stop needs. ``curve`` adds some ten that are only recorded: the model
        stays the same.
    clock_limit : float, optional
        Most idealized time; reaching it is the status ``time_limit``.
    progress : bool, optional
        A progress line on stderr; by default only if that is a terminal.
    schedule : {"shared", "poisson"}
        ``poisson``, for ``adfs`` and ``ns-adfs``: every edge and every node has its own clock, so
        that no node needs to know the others' events (docs/algorithms/continuized.md).
    checkpoints : Checkpoints, optional
        Where and how often to keep the run, and whether to go on from there.
    timeout : float
        With ``engine="mpi"``: seconds without a sign of another rank after which the job ends. It
        has to be longer than a pass over a rank's rows.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.1)
    >>> result = adfs.solve(problem, tol=1e-8)
    >>> result.status, result.relative_gap < 1e-8
    ('converged', True)
    """
    network = problem.network
    network.timeout = None  # ranks may come late

    def checked() -> tuple[Setting, Stopping]:
        constant = Delays(tau=tau)  # refuses what is no time
        setting = Setting(parameters, tau, clock, delays or constant, seed, schedule)
        return setting, Stopping(tol, max_iter, time_limit, clock_limit)

    setting, stopping = network.attempt(checked)
    alone = network.is_whole
    with (
        Interrupts(signals) as interrupts,
        terminal_progress(progress if alone else False, stopping) as show,
    ):
        callbacks = tuple(each for each in (callback, show) if each is not None)
        return run(
            problem, algorithm, setting, stopping,
            Options(warm_start, evaluate_every, callbacks, checkpoints, timeout), interrupts,
        )  # fmt: skip


class Options(NamedTuple):
    """What a run is told beside its method and its limits; only ``warm_start`` changes its bits.

    ``keep_spans`` records when a rank did what, ``gather_thetas`` brings all nodes' models to rank
    0, ``evaluate`` says what models are worth where that is not the certificate of the problem.
    """

    warm_start: ArrayLike | None = None
    evaluate_every: int | str | Callable[[Method], Pace] | None = None
    callbacks: tuple[Callback, ...] = ()
    checkpoints: Checkpoints | None = None
    timeout: float = 60.0
    keep_spans: bool = False
    gather_thetas: bool = True
    evaluate: Evaluate = reading_steps


def run(
    problem: Problem,
    algorithm: str,
    setting: Setting,
    stopping: Stopping,
    options: Options,
    interrupts: Interrupts,
) -> Result:
    """Minimise ``F`` on the problem's network; with ranks, all of them call it alike."""
    started, network = time.perf_counter(), problem.network
    network.timeout = None  # one rank may have more rows to look at than another
    name = automatic(problem) if algorithm == "auto" else algorithm
    if not network.is_whole:
        require_same(network, _shared_by_ranks(name, setting, stopping, options))
    start, method = _prepare(problem, name, setting, options)
    pace, looks = pace_of(method, stopping.tol, options.evaluate_every)
    course = Course(stopping, pace, method.rho, options.callbacks, looks)
    network.keep_waits = options.keep_spans
    stepper = network.attempt(lambda: make_stepper(problem, method, setting, start))
    stepper.warm_up()
    load_kernels(problem)
    checkpointer, resumed, seconds = None, None, 0.0
    if options.checkpoints is not None:
        checkpointer = open_checkpoints(options.checkpoints, problem, name, setting, start, method)
        stepper.keeps_tally = True
    try:
        if checkpointer is not None and options.checkpoints and options.checkpoints.resume:
            resumed, seconds = _resume(options.checkpoints, checkpointer, stepper, course)
        spans = Spans(options.keep_spans, network.clock)
        heartbeat = Heartbeat(network, _beat(problem, method))
        loop = Loop(
            problem, stepper, course, heartbeat, checkpointer, spans, seconds, options.evaluate
        )  # fmt: skip
        network.gather("ready")  # compiling and reading take as long as they take
        network.timeout = options.timeout
        setup_time = time.perf_counter() - started
        status, reading = loop.go(interrupts)
    finally:
        if checkpointer is not None:
            checkpointer.store.unlock()
    signal_number = interrupts.received if network.is_whole else heartbeat.signal or None
    return Result(
        theta=reading.theta,
        thetas=_thetas(problem, reading.thetas, options),
        status=status,
        objective=reading.objective,
        duality_gap=reading.duality_gap,
        parameters=method.parameters,
        trace=course.trace,
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
        theorem=method.theorem,
        execution=account(network, spans, stepper.seconds, stepper.waits, resumed),
    )


def _shared_by_ranks(
    name: str, setting: Setting, stopping: Stopping, options: Options
) -> dict[str, Any]:
    """What shapes a run or its messages, by the names of the arguments of `solve`."""
    rule, warm, kept = setting.rule, options.warm_start, options.checkpoints
    return {
        "algorithm": name,
        "parameters": rule.numbers() if hasattr(rule, "numbers") else rule,
        "tau": setting.tau, "clock": setting.clock, "seed": setting.seed,
        "schedule": setting.schedule,
        **{f"delays.{each}": value for each, value in vars(setting.delays).items()},
        **vars(stopping),
        "evaluate_every": options.evaluate_every,
        "checkpoints": "None" if kept is None else "given",
        "checkpoints.every": kept and kept.every,
        "checkpoints.resume": kept and kept.resume,
        "timeout": options.timeout,
        "warm_start": None if warm is None else np.asarray(warm, np.float64),
        "keep_spans": options.keep_spans, "gather_thetas": options.gather_thetas,
    }  # fmt: skip


def _prepare(
    problem: Problem, name: str, setting: Setting, options: Options
) -> tuple[NDArray[np.float64] | None, Method]:
    """The model to start from and the method, made alike on all ranks."""
    network, warm = problem.network, options.warm_start
    network.attempt(lambda: _check_interval(options.evaluate_every))
    method = network.attempt(lambda: get_algorithm(name)(problem, setting))
    start = None if warm is None else network.attempt(lambda: problem.vector(warm))
    told = network.gather([method.rho, str(method.parameters)])
    network.attempt(lambda: _require_equal(told))
    return start, method


def _require_equal(told: list[Any]) -> None:
    """Ranks that round differently would follow different schedules."""
    if any(each != told[0] for each in told):
        raise ParameterError(DIFFERENT_BITS)


def _resume(
    wanted: Checkpoints, checkpointer: Checkpointer, stepper: Stepper, course: Course
) -> tuple[int | None, float]:
    """Where the run goes on from, and the seconds of its former lives; said once."""
    network = checkpointer.problem.network
    resumed, seconds = checkpointer.resume(stepper, course)
    told = network.gather([[str(path), why] for path, why in checkpointer.store.skipped])
    if network.rank == 0:
        skipped = dict.fromkeys((path, why) for each in told for path, why in each)
        wanted.announce(resumed, list(skipped))
    return resumed, seconds


def _beat(problem: Problem, method: Method) -> int:
    """Positions between two looks at limits and signals."""
    network = problem.network
    if network.is_whole or not hasattr(method.algorithm, "queued"):
        return method.beat or method.block
    numbers = numbers_per_event(
        problem.numbers_per_row, problem.n_features, method.parameters.p_comm
    )
    return beat_of(network.size, numbers)


def _thetas(problem: Problem, own: NDArray[np.float64], options: Options) -> NDArray[np.float64]:
    """All nodes' models on rank 0, if they are wanted: n d numbers."""
    return problem.network.collect(own) if options.gather_thetas else own


def automatic(problem: Problem) -> str:
    """The algorithm that ``auto`` stands for."""
    return "adfs" if problem.loss.smooth else "ns-adfs"


def _check_interval(evaluate_every: Any) -> None:
    if evaluate_every is None or evaluate_every == "curve" or callable(evaluate_every):
        return
    if isinstance(evaluate_every, str) or not (evaluate_every >= 1 and evaluate_every % 1 == 0):
        raise ParameterError(
            f"evaluate_every={evaluate_every} must be a whole number of events >= 1, 'curve' or "
            "None."
        )


def pace_of(method: Method, tol: float, evaluate_every: Any) -> tuple[Pace, Looks]:
    """When to read a run that is to end at ``tol``, and what else to read of it for a curve."""
    looks = Looks(method.shortest if evaluate_every == "curve" else None)
    if callable(evaluate_every):
        return evaluate_every(method), looks
    if evaluate_every is not None and evaluate_every != "curve":
        return Every(int(evaluate_every)), looks
    if method.sharp:
        return ToTolerance(method.rho, tol, method.shortest), looks
    return Cautious(tol, method.shortest), looks

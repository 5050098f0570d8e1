"""`solve`: from a problem to a certified model."""

import signal
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import Setting, get_algorithm
from adfs.checkpoints.store import Store
from adfs.errors import ParameterError
from adfs.problems.finite_sum import Problem
from adfs.runtime.course import Callback
from adfs.runtime.keeping import Checkpoints, identity_of, require_keepable, require_new
from adfs.runtime.pace import Cautious, Every, Looks, Pace, ToTolerance
from adfs.runtime.progress import terminal_progress
from adfs.runtime.runner import Run
from adfs.runtime.signals import Interrupts
from adfs.runtime.stopping import Stopping
from adfs.runtime.trace import Trace
from adfs.schedule.delays import Delays
from adfs.theory.non_smooth import NonSmoothParameters
from adfs.theory.parameters import Parameters


@dataclass(frozen=True)
class Result:
    """What a run gives back. ``duality_gap`` is absolute, ``objective`` is ``F(theta)``.

    ``rule`` chose the ``parameters``, whose ``str`` explains them; ``rho`` is the rate an iteration
    that the run was planned with, ``tau`` and ``clock`` are the time model it was told, and
    ``schedule`` is the form in which events were drawn. ``resumed`` is the position of the
    checkpoint from which it went on, if it did.
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

    @property
    def relative_gap(self) -> float:
        """``duality_gap / max(1, |objective|)``, what ``tol`` was compared with."""
        return self.duality_gap / max(1.0, abs(self.objective))

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

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.1)
    >>> result = adfs.solve(problem, tol=1e-8)
    >>> result.status, result.relative_gap < 1e-8
    ('converged', True)
    """
    started = time.perf_counter()
    stopping = Stopping(tol, max_iter, time_limit, clock_limit)
    _check_interval(evaluate_every)
    name = automatic(problem) if algorithm == "auto" else algorithm
    setting = Setting(parameters, tau, clock, delays or Delays(tau=tau), seed, schedule)
    if delays is not None:
        Delays(tau=tau)  # refuses what is no time
    method = get_algorithm(name)(problem, setting)
    start = None if warm_start is None else problem.vector(warm_start)
    pace = pace_of(method.sharp, method.rho, method.shortest, tol, evaluate_every)
    run = Run(
        problem, method, stopping, pace, start, looks=looks_of(evaluate_every, method.shortest)
    )
    resumed = None
    if checkpoints is not None:
        resumed = _keep(run, name, setting, start, checkpoints)
    setup_time = time.perf_counter() - started
    with Interrupts(signals) as interrupts, terminal_progress(progress, stopping) as show:
        run.course.callbacks = tuple(each for each in (callback, show) if each is not None)
        status, reading = run.go(interrupts)
    return Result(
        reading.theta, reading.thetas, status, reading.objective, reading.duality_gap,
        method.parameters, run.trace, name, _rule(parameters), method.rho, float(tau), clock, seed,
        setup_time, interrupts.received, schedule, resumed,
    )  # fmt: skip


def _keep(
    run: Run, name: str, setting: Setting, start: NDArray[np.float64] | None, wanted: Checkpoints
) -> int | None:
    """Give the run a keeper; where it goes on from, if it is to and can."""
    from adfs.runtime.local_keeper import LocalKeeper

    problem = run.problem
    require_keepable(name)
    nodes = np.arange(problem.n_nodes)
    identity = identity_of(problem, nodes, problem.sigma, name, setting, start)
    store = Store(wanted.folder, identity)
    store.open()
    keeper = LocalKeeper(store, problem, wanted.interval(problem.n_samples), wanted.complain)
    run.keeper = keeper
    if not wanted.resume:
        require_new(store, nodes)
        return None
    resumed = keeper.resume(run)
    wanted.announce(resumed, store.skipped)
    return resumed


def automatic(problem: Problem) -> str:
    """The algorithm that ``auto`` stands for."""
    return "adfs" if problem.loss.smooth else "ns-adfs"


def _rule(parameters: str | Parameters | NonSmoothParameters) -> str:
    return parameters if isinstance(parameters, str) else parameters.how


def _check_interval(evaluate_every: int | str | None) -> None:
    if evaluate_every is None or evaluate_every == "curve":
        return
    if isinstance(evaluate_every, str) or not (evaluate_every >= 1 and evaluate_every % 1 == 0):
        raise ParameterError(
            f"evaluate_every={evaluate_every} must be a whole number of events >= 1, 'curve' or "
            "None."
        )


def pace_of(
    sharp: bool, rho: float, shortest: int, tol: float, evaluate_every: int | str | None
) -> Pace:
    """When to read a run that is to end at ``tol``; see `Method` for the first three."""
    if evaluate_every is not None and evaluate_every != "curve":
        return Every(int(evaluate_every))
    return ToTolerance(rho, tol, shortest) if sharp else Cautious(tol, shortest)


def looks_of(evaluate_every: int | str | None, shortest: int) -> Looks:
    """What else to read of it, for a curve."""
    return Looks(shortest if evaluate_every == "curve" else None)

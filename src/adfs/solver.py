"""`solve`: from a problem to a certified model, by a named method, `auto` or `best`."""

import signal
from collections.abc import Mapping
from typing import Any, Literal

from numpy.typing import ArrayLike

from adfs.agreement import attempt
from adfs.algorithms.base import CHOSEN, MethodSetting
from adfs.algorithms.round_method import rule_text
from adfs.costs import Costs, agreed_costs
from adfs.engine.checkpointer import Checkpoints
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import run_display
from adfs.engine.run_controller import Callback
from adfs.engine.stopping import Stopping
from adfs.plan.best import run_best
from adfs.problem.finite_sum import Problem
from adfs.run import Result, RunOptions, run
from adfs.schedule.delays import Delays
from adfs.theory.non_smooth_parameters import NonSmoothParameters
from adfs.theory.parameters import Parameters


def solve(
    problem: Problem,
    algorithm: str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    tau: float = 5.0,
    clock: str = "nonblocking",
    parameters: str | Mapping[str, Any] | Parameters | NonSmoothParameters = "tuned",
    seed: int = 0,
    callback: Callback | None = None,
    delays: Delays | None = None,
    warm_start: ArrayLike | Result | None = None,
    evaluate_every: int | Literal["curve"] | None = None,
    clock_limit: float | None = None,
    progress: bool | None = None,
    signals: tuple[signal.Signals, ...] = (signal.SIGINT,),
    schedule: str = "auto",
    checkpoints: Checkpoints | None = None,
    timeout: float = 60.0,
    costs: str | Costs = "paper",
) -> Result:
    """Minimise the problem's ``F`` to a relative duality gap of ``tol``.

    Parameters
    ----------
    problem : Problem
    algorithm : str
        ``auto`` takes ``adfs``, or ``ns-adfs`` where the loss is not smooth; ``best`` takes what
        `adfs.plan` recommends; `adfs.algorithms` lists the names.
    tol : float
        Stop when ``gap <= tol |F|``.
    max_iter : int, optional
        Most events, or units of time under the Poisson schedule, which hold about one event each;
        by default well beyond what theory needs for ``tol``, but at most 1,000,000 passes over the
        data, or 100,000 where theory needs more than 10,000,000. There is a `LongRunWarning`
        before a run that is very long by theory.
    time_limit : float, optional
        Seconds in the loop.
    tau, clock, delays
        The time model: one communication in units of one proximal step, ``nonblocking`` or
        ``rendezvous``; ``delays`` where they are not constant.
    parameters : str, dict, Parameters or NonSmoothParameters
        ``tuned``, or another rule of the algorithm; for ``adfs`` and ``ns-adfs`` also the
        parameters themselves, for methods with options also those: ``{"step": 0.1}``, or
        ``"sampled,step=0.1"`` with a rule.
    seed : int
        The same seed gives the same bits.
    callback : callable, optional
        Called with a `Progress` after each evaluation.
    warm_start : array of shape (d,) or Result, optional
        A model to start from; or the result of a problem with the same rows, whose labels, weights
        and ``sigma`` may differ. ``adfs`` and ``ns-adfs`` then start from its ``duals``, which a
        model alone does not determine where the loss has a kink.
    evaluate_every : int or "curve", optional
        Events between evaluations, each of which costs a large part of a pass; by default as few
        evaluations as stopping needs. ``curve`` adds some ten that are only recorded: the model
        stays the same.
    clock_limit : float, optional
        Most idealized time; reaching it is the status ``time_limit``.
    progress : bool, optional
        Progress on stderr; by default only if that is a terminal. True gives a bar in a notebook
        (if ipywidgets is installed), and elsewhere a line every ten seconds, on ranks by rank 0.
    schedule : {"auto", "shared", "poisson", "stratified"}
        For ``adfs`` and ``ns-adfs``. ``shared`` is that of the paper, to which its theorems apply.
        ``stratified``: a node's samples come in epochs instead of independently, which is mostly
        faster. No theorem covers it; the certified gap does not depend on it, and a run whose gap
        falls too slowly goes on with independent draws (docs/algorithms/stratified.md). ``auto`` is
        ``stratified`` where ``algorithm`` is ``auto`` or ``best``, and ``shared`` where it names a
        method. ``poisson``: every edge and every node has its own clock, so that no node needs the
        others' events (docs/algorithms/continuized.md).
    checkpoints : Checkpoints, optional
        Where and how often to save the run, and whether to continue from there.
    timeout : float
        With ``engine="mpi"``: seconds without a sign of another rank after which the job ends. It
        has to be longer than a pass over a rank's rows.
    costs : {"paper", "measured"} or Costs
        What elementary steps take in idealized time. ``paper``: a sample's gradient costs as much
        as its proximal step; ``measured``: what they take on this machine, measured once and
        stored (docs/time-model.md).

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
    network.peers.timeout = None  # ranks may be late

    def checked() -> tuple[MethodSetting, Stopping]:
        constant = Delays(tau=tau)  # checks tau
        setting = MethodSetting(
            rule_text(parameters), tau, clock, delays or constant, seed, schedule
        )
        return setting, Stopping(tol, max_iter, time_limit, clock_limit)

    setting, stopping = attempt(network.peers, checked)
    setting = setting._replace(costs=agreed_costs(network.peers, costs))
    wanted = progress if network.rank == 0 else False
    with (
        Interrupts(signals) as interrupts,
        run_display(wanted, has_bars=network.is_whole) as watcher,
    ):
        options = RunOptions(
            warm_start, evaluate_every, () if callback is None else (callback,), checkpoints,
            timeout, watcher=watcher,
        )  # fmt: skip
        return run_named(problem, algorithm, setting, stopping, options, interrupts)


def run_named(
    problem: Problem,
    algorithm: str,
    setting: MethodSetting,
    stopping: Stopping,
    options: RunOptions,
    interrupts: Interrupts,
) -> Result:
    """A run of a method, of ``auto``, or of ``best``; all ranks call it with the same arguments.

    A method that is named has the paper's schedule unless another one is asked for.
    """
    if setting.schedule == "auto" and algorithm not in CHOSEN:
        setting = setting._replace(schedule="shared")
    method = run_best if algorithm == "best" else run
    return method(problem, algorithm, setting, stopping, options, interrupts)

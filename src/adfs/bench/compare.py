"""`compare`: many algorithms and seeds on one problem, against its certified optimum."""

import os
import signal
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from adfs.algorithms.base import Setting
from adfs.bench import curves
from adfs.bench.comparison import Comparison, RunRecord, refusal
from adfs.bench.contenders import Contender, choose_contenders, left_out
from adfs.bench.folder import RunFolder
from adfs.bench.identity import FORMAT, describe_delays, describe_machine, describe_problem
from adfs.bench.progress import terminal_board
from adfs.bench.runs import Callback, Job, Work
from adfs.errors import ParameterError
from adfs.problems.finite_sum import Problem
from adfs.problems.optimum import Optimum
from adfs.runtime.signals import Interrupts
from adfs.runtime.stopping import Stopping
from adfs.schedule.clock import CLOCKS
from adfs.schedule.delays import Delays
from adfs.threads import one_blas_thread


class UnsavedWarning(UserWarning):
    """Results could not be written; they exist in memory."""


def compare(
    problem: Problem,
    algorithms: Sequence[str] | None = None,
    tol: float = 1e-6,
    tau: float = 5.0,
    clock: str = "nonblocking",
    delays: Delays | None = None,
    seed: int = 0,
    seeds: int = 1,
    clock_limit: float | None = None,
    time_limit: float | None = None,
    max_iter: int | None = None,
    jobs: int = 1,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    callback: Callback | None = None,
    signals: tuple[signal.Signals, ...] = (signal.SIGINT,),
    axis: str = "idealized_time",
    command: str = "",
    interrupts: Interrupts | None = None,
) -> Comparison:
    """Run algorithms on one problem until each is within ``tol`` of the certified optimum.

    Parameters
    ----------
    problem : Problem
    algorithms : sequence of str, optional
        Names such as ``adfs``, with a rule for the parameters as in ``dsba:theory`` (``tuned`` by
        default); if None, all registered ones that take the problem, and ``Comparison.left_out``
        names the others.
    tol : float
        Stop a run when the mean over nodes of ``F(theta_i) - F*``, over ``max(1, |F*|)``, falls
        to this.
    tau, clock, delays
        The time model, as for `adfs.solve`.
    seed, seeds : int
        The first seed, and how many.
    clock_limit : float, optional
        Most idealized time of a run. By default, if ``adfs`` is among the algorithms, 5 times
        what its first run needs for ``tol`` (it runs first); otherwise none.
    time_limit, max_iter : optional
        Most seconds in the loop and most events of a run.
    jobs : int
        Runs at a time, in threads. Results are the same bits, but runs that share a machine slow
        each other down: only ``jobs=1`` gives clean wall times.
    folder : path, optional
        Keep results here, and take finished runs from here instead of computing them again.
    progress : bool, optional
        Progress on stderr; by default only if that is a terminal.
    callback : callable, optional
        Called with a `RunProgress` after each evaluation, in the run's thread.
    signals : tuple of signals
        Those that end the comparison early, keeping what is finished; a second one ends it now.
    axis : str
        Axis of the folder's pictures.
    command : str
        The command line, for the folder's config.
    interrupts : Interrupts, optional
        One that is already active, instead of a new one for ``signals``: a signal that it noted
        before lets no run start.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(80, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    >>> comparison = adfs.compare(problem, ["adfs", "adfs:exact"], tol=1e-8)
    >>> [record.status for record in comparison.records]
    ['converged', 'converged']
    """
    _require_one_process(problem)
    stopping = Stopping(
        float(tol), max_iter, _float(time_limit), _float(clock_limit), "suboptimality"
    )
    contenders = choose_contenders(algorithms, problem.loss.name, problem.n_features)
    curves.check_axis(axis)
    first = _whole("seed", seed, 0)
    all_seeds = range(first, first + _whole("seeds", seeds, 1))
    setting = _setting(problem, tau, clock, delays)
    config = {
        **_config(problem, contenders, setting, stopping, list(all_seeds)),
        "jobs": _whole("jobs", jobs, 1),
        "axis": axis,
        "command": command,
    }
    with one_blas_thread():
        store = None if folder is None else RunFolder(folder, config)
        optimum = problem.optimum()  # outside of Interrupts: there is nothing to keep yet
        _check_tol(tol, optimum)
        if store is not None:
            store.open(config)
        runs = [(contender, seed) for seed in all_seeds for contender in contenders]
        listening = Interrupts(signals) if interrupts is None else nullcontext(interrupts)
        with listening as heard, terminal_board(progress, len(runs), jobs) as board:
            work = Work(problem, setting, config, store, heard, board, callback)
            records, stopping = work.all(runs, stopping, jobs)
    absent = (
        left_out(contenders, problem.loss.name, problem.n_features) if algorithms is None else {}
    )
    return _conclude(config, optimum, records, stopping, work, axis, absent)


def _require_one_process(problem: Problem) -> None:
    if not problem.network.is_whole:
        raise ParameterError(
            "compare measures against the optimum, which is computed from all rows in one process, "
            f"and this problem is on {problem.network.size} ranks; run `adfs compare DATA --engine "
            "mpi` under mpiexec, call adfs.solve for each algorithm, or make the problem with "
            "engine='local'."
        )


def _conclude(
    config: dict[str, Any], optimum: Optimum, records: dict[Job, RunRecord], stopping: Stopping,
    work: "Work", axis: str, absent: dict[str, str],
) -> Comparison:  # fmt: skip
    """Put records in the order asked for, and write what belongs to all of them together."""
    order = [each["label"] for each in config["algorithms"]]
    n_runs = len(order) * len(config["seeds"])
    cut = len(records) < n_runs or any(r.status == "interrupted" for r in records.values())
    comparison = Comparison(
        config,
        optimum.objective,
        optimum.duality_gap,
        sorted(records.values(), key=lambda record: (order.index(record.label), record.seed)),
        interrupted=cut,
        clock_limit=stopping.clock_limit,
        signal=work.interrupts.received if cut else None,
        left_out=absent,
    )
    failures = list(work.failures)
    if work.store is not None and records:  # what an earlier comparison left stays otherwise
        failures += work.store.finish(comparison, axis)
    for failure in failures:
        warnings.warn(failure, UnsavedWarning, stacklevel=3)
    return replace(comparison, failures=tuple(failures))


def _config(
    problem: Problem, contenders: list[Contender], setting: Setting, stopping: Stopping,
    seeds: list[int],
) -> dict[str, Any]:  # fmt: skip
    """Everything needed to do it again."""
    return {
        "format": FORMAT,
        "problem": describe_problem(problem),
        "tau": setting.tau,
        "clock": setting.clock,
        "delays": describe_delays(setting.delays),
        "algorithms": [{"label": each.label, **each._asdict()} for each in contenders],
        "seeds": seeds,
        "tol": stopping.tol,
        "clock_limit": stopping.clock_limit,
        "time_limit": stopping.time_limit,
        "max_iter": stopping.max_iter,
        **describe_machine(),
    }


def _setting(problem: Problem, tau: float, clock: str, delays: Delays | None) -> Setting:
    """The time model, checked against the network."""
    usual = Delays(tau=tau)  # refuses what is no time
    if clock not in CLOCKS:
        raise ParameterError(f"clock={clock!r} is unknown; choose one of {', '.join(CLOCKS)}.")
    (delays or usual).nominal(problem.topology.n_edges, problem.n_nodes)
    return Setting(tau=float(tau), clock=clock, delays=delays or usual)


def _check_tol(tol: float, optimum: Optimum) -> None:
    reason = refusal(tol, optimum.duality_gap / max(1.0, abs(optimum.objective)))
    if reason is not None:
        raise ParameterError(f"tol={tol:g} is too small: {reason}")


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _whole(name: str, value: int, least: int) -> int:
    if not (value >= least and value % 1 == 0):
        raise ParameterError(f"{name}={value} must be a whole number >= {least}.")
    return int(value)

"""`compare`: many algorithms and seeds on one problem, against its certified optimum.

The optimum needs all rows in one process. `time_runs` compares on ranks: there a run ends at a
relative duality gap, which ranks compute together.
"""

import math
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from adfs.algorithms.base import Method, MethodSetting
from adfs.checks import choice, whole
from adfs.costs import Costs
from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import RunBars, RunLines, RunProgress, named, run_display
from adfs.engine.run_controller import HALF_A_DECADE, EvenCurve, Progress
from adfs.engine.stopping import Stopping
from adfs.errors import DataError, ParameterError
from adfs.problem.certificate import objective_at_zero, relative
from adfs.problem.finite_sum import Problem
from adfs.run import RunOptions, run
from adfs.schedule.clock import CLOCKS
from adfs.schedule.delays import Delays
from adfs.study.comparison import AXES, Comparison, Curve, RunRecord, refusal
from adfs.study.contenders import CLOCK_LIMIT_FACTOR, REFERENCE, Job, choose_contenders, left_out
from adfs.study.run_folder import RunFolder, describe, run_identity
from adfs.threads import one_blas_thread

WAIT = 0.1  # seconds between looks at runs in threads
Callback = Callable[[RunProgress], Any]
# Of a run on ranks: values of its result, and of the last row of its trace.
FACTS = (
    "algorithm", "rule", "status", "wall_time", "setup_time", "iterations", "idealized_time",
    "n_prox", "n_grad", "n_comm", "bytes", "objective", "duality_gap", "relative_gap", "signal",
    "objective_at_zero",
)  # fmt: skip
COUNTS = ("n_prox", "n_grad", "n_comm", "bytes")


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
    costs: str | Costs = "paper",
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
        Stop a run when the mean over nodes of ``F(theta_i) - F*``, over ``|F*|``, falls to this.
    tau, clock, delays
        The time model, as for `adfs.solve`.
    seed, seeds : int
        The first seed, and how many.
    clock_limit : float, optional
        Largest idealized time of a run. By default, if ``adfs`` is among the algorithms, 5 times
        what its first run needs for ``tol`` (it runs first); otherwise none.
    time_limit, max_iter : optional
        Largest number of seconds in the loop, and of events of a run.
    jobs : int
        Runs at a time, in threads. Results are the same bits, but runs that share a machine slow
        each other down: only ``jobs=1`` gives clean wall times.
    folder : path, optional
        Keep results here, and take finished runs from here instead of computing them again.
    progress : bool, optional
        Progress on stderr; by default only if that is a terminal. True gives bars in a notebook
        (if ipywidgets is installed), and elsewhere a line every ten seconds.
    callback : callable, optional
        Called with a `RunProgress` after each evaluation, in the run's thread.
    signals : tuple of signals
        Those that end the comparison early, keeping what is finished; a second one ends it now.
    axis : str
        Axis of the folder's pictures.
    command : str
        The command line, for the folder's config.
    interrupts : Interrupts, optional
        One that is already active, instead of a new one for ``signals``. If it received a signal
        before, no run starts.
    costs : {"paper", "measured"} or Costs
        What elementary steps take, as for `adfs.solve`.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(80, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=0.5)
    >>> comparison = adfs.compare(problem, ["adfs", "adfs:exact"], tol=1e-8)
    >>> [record.status for record in comparison.records]
    ['converged', 'converged']
    """
    if not problem.network.is_whole:
        raise ParameterError(
            "compare measures against the optimum, which is computed from all rows in one process, "
            f"and this problem is on {problem.network.size} ranks; run `adfs compare DATA --engine "
            "mpi` under mpiexec, call adfs.solve for each algorithm, or make the problem with "
            "engine='local'."
        )
    time_limit, clock_limit = (None if t is None else float(t) for t in (time_limit, clock_limit))
    stopping = Stopping(float(tol), max_iter, time_limit, clock_limit, "suboptimality")
    kind = (problem.loss.name, problem.n_features)
    contenders = choose_contenders(algorithms, *kind)
    order = [contender.label for contender in contenders]
    first = whole("seed", seed)
    all_seeds = range(first, first + whole("seeds", seeds, 1))
    usual = Delays(tau=tau)  # refuses a tau that is no time
    setting = MethodSetting(
        tau=float(tau), clock=choice("clock", clock, CLOCKS), delays=delays or usual,
        costs=Costs.read(costs),
    )  # fmt: skip
    setting.delays.nominal(problem.topology.n_edges, problem.n_nodes)  # refuses too many or few
    config = {
        **describe(problem, setting, contenders, list(all_seeds), stopping),
        "jobs": whole("jobs", jobs, 1),
        "axis": choice("axis", axis, AXES),
        "command": command,
    }
    with one_blas_thread():
        store = None if folder is None else RunFolder(folder, config)
        optimum = problem.optimum()  # outside of Interrupts: there is nothing to keep yet
        if not math.isfinite(optimum.objective):
            raise DataError(
                f"The optimum of F is {optimum.objective:g}, beyond double precision; scale the "
                "targets or the weights."
            )
        if (reason := refusal(tol, relative(optimum.duality_gap, optimum.objective))) is not None:
            raise ParameterError(f"tol={tol:g} is too small: {reason}")
        if store is not None:
            store.open(config)
        pending = [(contender, seed) for seed in all_seeds for contender in contenders]
        active = Interrupts(signals) if interrupts is None else nullcontext(interrupts)
        with active as received, run_display(progress, len(pending)) as display:
            runs = Runs(problem, setting, config, store, received, display, callback)
            records, stopping = runs.all(pending, stopping)
    cut = len(records) < len(pending) or any(r.status == "interrupted" for r in records.values())
    comparison = Comparison(
        config,
        optimum.objective,
        optimum.duality_gap,
        sorted(records.values(), key=lambda run: (order.index(run.label), run.seed)),
        interrupted=cut,
        clock_limit=stopping.clock_limit,
        signal=received.received if cut else None,
        left_out=left_out(contenders, *kind) if algorithms is None else {},
        objective_at_zero=objective_at_zero(problem),
    )
    if store is None:
        return comparison
    if records:  # what an earlier comparison left stays otherwise
        store.finish(comparison, axis)
    for failure in store.failures:
        warnings.warn(failure, UnsavedWarning, stacklevel=2)
    return replace(comparison, failures=tuple(store.failures))


@dataclass
class Runs:
    """Loads the runs of one comparison from its folder, or computes them, and keeps them there."""

    problem: Problem
    setting: MethodSetting
    config: dict[str, Any]
    store: RunFolder | None
    interrupts: Interrupts
    display: RunBars | RunLines | None
    callback: Callback | None

    def all(self, pending: list[Job], stopping: Stopping) -> tuple[dict[Job, RunRecord], Stopping]:
        """Records of all runs that started, and the limits in force.

        Without a clock limit, the first run of the reference sets it for all others.
        """
        first = next((job for job in pending if job[0].algorithm == REFERENCE), None)
        found: dict[Job, RunRecord | None] = {}
        if first is not None and stopping.clock_limit is None:
            record = found[first] = self.one(first, stopping)
            if record is not None:
                curve = Curve.of(record.trace, "idealized_time", self.problem.n_samples)
                if needed := curve.first_reach(stopping.tol):
                    stopping = replace(stopping, clock_limit=CLOCK_LIMIT_FACTOR * needed)
        found |= self._in_threads([job for job in pending if job not in found], stopping)
        return {job: record for job, record in found.items() if record is not None}, stopping

    def _in_threads(self, pending: list[Job], stopping: Stopping) -> dict[Job, RunRecord | None]:
        """Compute ``jobs`` at a time; kernels release Python's lock, so threads are enough."""
        if self.config["jobs"] == 1:  # in this thread, where a debugger and a profiler see them
            return {job: self.one(job, stopping) for job in pending}
        with ThreadPoolExecutor(self.config["jobs"]) as pool:
            futures = {job: pool.submit(self.one, job, stopping) for job in pending}
            waiting = set(futures.values())
            try:
                while waiting:  # Python handles a signal only when this thread wakes
                    done, waiting = wait(waiting, WAIT, FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:  # of a run, or a second signal
                # Runs in progress end at their next evaluation, and no other one starts.
                self.interrupts.received = self.interrupts.received or signal.SIGTERM
                raise
            return {job: future.result() for job, future in futures.items()}

    def one(self, job: Job, stopping: Stopping) -> RunRecord | None:
        """The run from the folder, or computed now; None after a signal."""
        contender, seed = job
        identity = run_identity(self.config, job, stopping)
        record = None if self.store is None else self.store.load(contender.label, identity)
        if record is None and self.interrupts.received is None:
            record = self._compute(job, stopping)
            if self.store is not None:
                self.store.save(record, identity)
        if self.display is not None:
            self.display.finish((contender.label, seed))
        return record

    def _compute(self, job: Job, stopping: Stopping) -> RunRecord:
        contender, seed = job

        def evaluate_every(method: Method) -> EvenCurve:
            # The method's events, or fewer where it would converge before the first evaluation:
            # half of what theory needs for half a decade; runs are up to twice as fast as that.
            events = float(method.shortest)
            if method.rho > 0.0:
                events = min(events, HALF_A_DECADE / (2.0 * method.rho))
            return EvenCurve(max(1, int(events)), stopping.clock_limit)

        setting = self.setting._replace(rule=contender.rule, seed=seed)
        evaluated, watcher = (
            named(call, contender.label, seed) for call in (self.callback, self.display)
        )
        callbacks = () if evaluated is None else (evaluated,)
        options = RunOptions(evaluate_every=evaluate_every, callbacks=callbacks, watcher=watcher)
        result = run(self.problem, contender.algorithm, setting, stopping, options, self.interrupts)
        return RunRecord(
            contender.label, *contender, seed, result.status, result.trace,
            str(result.parameters), result.setup_time, self.config["jobs"],
            proven_rate=result.proven_rate,
        )  # fmt: skip


def time_runs(
    problem: Problem,
    pending: Sequence[Job],
    setting: MethodSetting,
    stopping: Stopping,
    timeout: float,
    interrupts: Interrupts,
    callback: Callable[[Progress], Any],
    watcher: Callback | None = None,
) -> list[dict[str, Any]]:
    """Run one after another; a signal ends the one in progress, and no other one starts.

    With ranks, all of them call it together. The values of a run are the same on every rank:
    ``wall_time`` are seconds in the loop, without evaluations; ``setup_time`` those before it, on
    the rank that took longest.
    """
    runs: list[dict[str, Any]] = []
    for contender, seed in pending:
        if runs and runs[-1]["status"] == "interrupted":
            break
        options = RunOptions(
            callbacks=(callback,), timeout=timeout, gather_thetas=False,
            watcher=named(watcher, contender.label, seed),
        )  # fmt: skip
        own = setting._replace(rule=contender.rule, seed=seed)
        result = run(problem, contender.algorithm, own, stopping, options, interrupts)
        last = result.trace.last()
        values = {
            name: int(last[name] or 0) if name in COUNTS else getattr(result, name)
            for name in FACTS
        }
        values["setup_time"] = max(problem.network.gather(result.setup_time))
        runs.append({"label": contender.label, **values})
    return runs

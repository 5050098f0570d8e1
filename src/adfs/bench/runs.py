"""The runs of a comparison: taken from the folder or computed, one after another or in threads."""

import signal
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from adfs.algorithms.base import Method, Setting
from adfs.bench import curves
from adfs.bench.comparison import RunRecord
from adfs.bench.contenders import PATIENCE, REFERENCE, Contender
from adfs.bench.folder import FINISHED, RunFolder, unwritten
from adfs.bench.identity import run_identity
from adfs.bench.progress import Board, RunProgress
from adfs.problems.finite_sum import Problem
from adfs.runtime.course import Progress
from adfs.runtime.pace import HALF_A_DECADE, EvenCurve
from adfs.runtime.signals import Interrupts
from adfs.runtime.solve import Options, run
from adfs.runtime.stopping import Stopping

NAP = 0.1  # seconds
Job = tuple[Contender, int]  # and its seed
Callback = Callable[[RunProgress], Any]


@dataclass
class Work:
    """The runs of one comparison, and what they share."""

    problem: Problem
    setting: Setting
    config: dict[str, Any]
    store: RunFolder | None
    interrupts: Interrupts
    board: Board
    callback: Callback | None
    failures: list[str] = field(default_factory=list)

    def all(
        self, runs: list[Job], stopping: Stopping, jobs: int
    ) -> tuple[dict[Job, RunRecord], Stopping]:
        """Records of all runs that started, and the limits in force."""
        first = next((run for run in runs if run[0].algorithm == REFERENCE), None)
        found: dict[Job, RunRecord | None] = {}
        if first is not None and stopping.clock_limit is None:
            record = found[first] = self.one(first, stopping)
            stopping = replace(stopping, clock_limit=self._patience(record, stopping))
        rest = [run for run in runs if run not in found]
        found.update(self._together(rest, stopping, jobs))
        return {run: record for run, record in found.items() if record is not None}, stopping

    def _patience(self, record: RunRecord | None, stopping: Stopping) -> float | None:
        """Several times the clock that the reference needed; None if it did not arrive."""
        if record is None:
            return None
        curve = curves.curve(record.trace, "idealized_time", self.problem.n_samples)
        needed = curves.first_reach(curve, stopping.tol)
        return PATIENCE * needed if needed else None

    def _together(
        self, runs: list[Job], stopping: Stopping, jobs: int
    ) -> dict[Job, RunRecord | None]:
        """The runs, ``jobs`` at a time; kernels leave Python's lock, so threads are enough."""
        if jobs == 1:  # in this thread, where a debugger and a profiler see them
            return {run: self.one(run, stopping) for run in runs}
        with ThreadPoolExecutor(jobs) as pool:
            futures = {run: pool.submit(self.one, run, stopping) for run in runs}
            try:
                self._wait(list(futures.values()))
            except BaseException:  # a second signal
                self._give_up()
                raise
            return {run: future.result() for run, future in futures.items()}

    def _wait(self, futures: list[Future[RunRecord | None]]) -> None:
        """Until all are done or one has failed.

        A signal that strikes another thread is only heard when this one wakes: it sleeps briefly.
        """
        waiting = set(futures)
        while waiting:
            done, waiting = wait(futures, NAP, FIRST_EXCEPTION)
            if any(each.exception() for each in done):
                self._give_up()
                return

    def _give_up(self) -> None:
        """Let the runs in progress leave at their next look, and no other one start."""
        if self.interrupts.received is None:
            self.interrupts.received = signal.SIGTERM

    def one(self, run: Job, stopping: Stopping) -> RunRecord | None:
        """The run as it was kept, or computed now; None if it is too late to start it."""
        contender, seed = run
        identity = run_identity(self.config, contender, seed, stopping)
        record = None if self.store is None else self.store.load(contender.label, identity)
        if record is None and self.interrupts.received is None:
            record = self._compute(contender, seed, stopping)
            self._keep(record, identity)
        self.board.finish((contender.label, seed))
        return record

    def _compute(self, contender: Contender, seed: int, stopping: Stopping) -> RunRecord:
        label = contender.label

        def look(progress: Progress) -> None:
            told = RunProgress(**vars(progress), label=label, seed=seed)
            self.board.look(told, stopping)
            if self.callback is not None:
                self.callback(told)

        self.board.start((label, seed))
        setting = self.setting._replace(rule=contender.rule, seed=seed)
        pace = lambda method: EvenCurve(_shortest(method), stopping.clock_limit)  # noqa: E731
        result = run(
            self.problem, contender.algorithm, setting, stopping,
            Options(evaluate_every=pace, callbacks=(look,)), self.interrupts,
        )  # fmt: skip
        return RunRecord(
            label, contender.algorithm, contender.rule, seed, result.status, result.trace,
            str(result.parameters), result.setup_time, self.config["jobs"],
            proven_rate=result.proven_rate,
        )  # fmt: skip

    def _keep(self, record: RunRecord, identity: dict[str, Any]) -> None:
        """Save a finished run; a full disk must not cost the result, which is still in memory."""
        if self.store is None or record.status not in FINISHED:
            return
        try:
            self.store.save(record, identity)
        except OSError as error:
            self.failures.append(unwritten(self.store.place(record.label, identity), error))


def _shortest(method: Method) -> int:
    """Fewest events between looks: the method's, or fewer where it would be over before the first.

    Half of what theory needs for half a decade, since runs are up to twice as fast as that.
    """
    return max(1, min(method.shortest, int(HALF_A_DECADE / (2.0 * method.rho))))

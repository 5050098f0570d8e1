"""Progress of a comparison on a terminal: one bar per run in progress, one for all runs."""

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adfs.engine.progress import is_drawn, live_bars, rate, seconds_left
from adfs.engine.run_controller import Progress
from adfs.engine.stopping import Stopping

Key = tuple[str, int]  # label and seed


@dataclass
class RunProgress(Progress):
    """The argument of a callback after each evaluation, with the run that was evaluated."""

    label: str = ""
    seed: int = 0


def share_done(progress: Progress, first: float, stopping: Stopping) -> float:
    """How much of a run is over, in [0, 1]: by its error, or by the limit that is nearest."""
    error = progress.reading.suboptimality
    shares = [0.0]
    if error is not None and math.isfinite(error) and first > stopping.tol:
        fallen = math.log(first / max(error, stopping.tol))
        shares.append(fallen / math.log(first / stopping.tol))
    used_of_limits = (
        (progress.idealized_time, stopping.clock_limit),
        (progress.wall_time, stopping.time_limit),
        (progress.iteration, stopping.max_iter),
    )
    shares += [used / limit for used, limit in used_of_limits if limit]
    return min(1.0, max(shares))


@dataclass
class ActiveRun:
    """A run in progress: its bar, when and with which error it started, and its share done."""

    bar: Any
    started: float
    first_error: float
    share: float = 0.0


class RunsDisplay:
    """Draws the runs of a comparison on the bars of `live_bars`; several threads may call it."""

    def __init__(self, bars: Any, n_runs: int) -> None:
        self._bars, self._n_runs, self._n_done, self._n_reused = bars, n_runs, 0, 0
        self._active: dict[Key, ActiveRun] = {}
        self._lock, self._started = threading.Lock(), time.monotonic()
        self._total = bars.add_task("runs", total=n_runs, text="", ends=math.inf)

    def evaluated(self, progress: RunProgress, stopping: Stopping) -> None:
        """A run was evaluated; its bar appears at the first time."""
        key, error = (progress.label, progress.seed), progress.reading.suboptimality or 0.0
        with self._lock:
            if key not in self._active:
                name = f"{progress.label}, seed {progress.seed}"
                bar = self._bars.add_task(name, total=1.0, text="", ends=math.inf)
                self._active[key] = ActiveRun(bar, time.monotonic(), error)
            run = self._active[key]
            # Never back: an error may rise again.
            run.share = max(run.share, share_done(progress, run.first_error, stopping))
            text = f"suboptimality {error:.1e}  {rate(progress)}"
            self._bars.update(run.bar, completed=run.share, text=text)
            self._update_total()

    def finish(self, key: Key) -> None:
        """A run is over, or was in the folder already."""
        with self._lock:
            self._n_done += 1
            if key in self._active:
                self._bars.remove_task(self._active.pop(key).bar)
            else:
                self._n_reused += 1
            self._update_total()

    def seconds_left(self, now: float) -> float:
        """Until all runs are over; infinite while a run in progress tells nothing."""
        runs = self._active.values()
        # Runs from the folder took no time, so they do not count.
        done = self._n_done - self._n_reused + sum(run.share for run in runs)
        share = done / max(1, self._n_runs - self._n_reused)
        # The run with most to do may take longer than the mean says.
        each = (seconds_left(now - run.started, run.share) for run in runs)
        return max(seconds_left(now - self._started, share), *each, 0.0)

    def _update_total(self) -> None:
        now, text = time.monotonic(), f"{self._n_done} of {self._n_runs}"
        ends = now + self.seconds_left(now)
        self._bars.update(self._total, completed=self._n_done, text=text, ends=ends)


@contextlib.contextmanager
def runs_display(wanted: bool | None, n_runs: int) -> Iterator[RunsDisplay | None]:
    """A display on stderr if that is a terminal (or if wanted), else None."""
    if not is_drawn(wanted):
        yield None
        return
    with live_bars() as bars:
        yield RunsDisplay(bars, n_runs)

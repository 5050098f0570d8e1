"""Progress of a comparison for people: every run in progress, and the time remaining."""

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adfs.runtime.course import Progress
from adfs.runtime.progress import about, is_drawn, live_bars, rate
from adfs.runtime.stopping import Stopping

Key = tuple[str, int]  # label and seed


@dataclass
class RunProgress(Progress):
    """What a callback is told after each evaluation, and of which run."""

    label: str = ""
    seed: int = 0


def share_done(progress: Progress, first: float, stopping: Stopping) -> float:
    """How much of a run is over, in [0, 1]: by its error, or by the limit that is nearest."""
    error = progress.reading.suboptimality
    shares = [0.0]
    if error is not None and math.isfinite(error) and first > stopping.tol:
        fallen = math.log(first / max(error, stopping.tol))
        shares.append(fallen / math.log(first / stopping.tol))
    for used, limit in (
        (progress.idealized_time, stopping.clock_limit),
        (progress.wall_time, stopping.time_limit),
        (float(progress.iteration), stopping.max_iter),
    ):
        if limit:
            shares.append(used / limit)
    return min(1.0, max(shares))


class Forecast:
    """Seconds until all runs are over, from how long runs took and how far the others are."""

    def __init__(self, n_runs: int, jobs: int) -> None:
        self.n_left, self.jobs = n_runs, jobs
        self._spans: list[float] = []
        self._shares: dict[Key, tuple[float, float]] = {}  # when it started, and its share done

    def start(self, key: Key, now: float) -> None:
        """A run begins."""
        self._shares[key] = (now, 0.0)

    def update(self, key: Key, share: float) -> None:
        """A run has come this far; never back, since an error may rise again."""
        started, before = self._shares[key]
        self._shares[key] = (started, max(share, before))

    def finish(self, key: Key, now: float) -> None:
        """A run is over; one that never started took no time and says nothing about others."""
        self.n_left -= 1
        if key in self._shares:
            self._spans.append(now - self._shares.pop(key)[0])

    def seconds(self, now: float) -> float:
        """Seconds left, infinite while nothing is known."""
        active = [_left(now - started, share) for started, share in self._shares.values()]
        waiting = self.n_left - len(active)
        spans = self._spans + [
            now - started + left
            for (started, _), left in zip(self._shares.values(), active, strict=True)
            if math.isfinite(left)
        ]
        if not spans or not all(map(math.isfinite, active)):
            return math.inf
        typical = sum(spans) / len(spans)
        work = sum(active) + waiting * typical
        return max([work / self.jobs, *active])


def _left(elapsed: float, share: float) -> float:
    return elapsed * (1.0 - share) / share if share > 0 else math.inf


class Board:
    """Where runs report; silent unless it was given bars to draw."""

    def __init__(self, n_runs: int, jobs: int, bars: Any = None) -> None:
        self._n_runs, self._n_done, self._bars = n_runs, 0, bars
        self._forecast = Forecast(n_runs, jobs)
        self._first: dict[Key, float] = {}
        self._tasks: dict[Key, Any] = {}
        self._lock = threading.Lock()  # runs report from several threads
        self._total = bars and bars.add_task("runs", total=n_runs, text="", ends=math.inf)

    def start(self, key: Key) -> None:
        """A run begins."""
        if self._bars is None:
            return
        with self._lock:
            self._forecast.start(key, time.monotonic())
            name = f"{key[0]}, seed {key[1]}"
            self._tasks[key] = self._bars.add_task(name, total=1.0, text="...", ends=math.inf)

    def look(self, progress: RunProgress, stopping: Stopping) -> None:
        """A run was evaluated."""
        if self._bars is None:
            return
        key, error = (progress.label, progress.seed), progress.reading.suboptimality or 0.0
        with self._lock:
            share = share_done(progress, self._first.setdefault(key, error), stopping)
            self._forecast.update(key, share)
            text = f"suboptimality {error:.1e}  {rate(progress)}"
            self._bars.update(self._tasks[key], completed=share, text=text)
            self._show_total()

    def finish(self, key: Key) -> None:
        """A run is over, or was there already."""
        if self._bars is None:
            return
        with self._lock:
            self._n_done += 1
            self._forecast.finish(key, time.monotonic())
            if key in self._tasks:
                self._bars.remove_task(self._tasks.pop(key))
            self._show_total()

    def _show_total(self) -> None:
        left = about(self._forecast.seconds(time.monotonic()))
        text = f"{self._n_done} of {self._n_runs}{left and ', '}{left}"
        self._bars.update(self._total, completed=self._n_done, text=text)


@contextlib.contextmanager
def terminal_board(wanted: bool | None, n_runs: int, jobs: int) -> Iterator[Board]:
    """A board that draws on stderr if that is a terminal (or if wanted), else a silent one."""
    if not is_drawn(wanted):
        yield Board(n_runs, jobs)
        return
    with live_bars() as bars:
        yield Board(n_runs, jobs, bars)

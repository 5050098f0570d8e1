"""Progress of runs, between evaluations too: bars on a terminal or in a notebook, else plain lines.

A display is the ``watcher`` of one run or of several, which may call it from several threads.
"""

import contextlib
import importlib.util
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from adfs.engine.run_controller import Callback, Progress

SMALLEST = 1e-300
SECONDS_BETWEEN_LINES = 10.0

Key = tuple[str, int]  # label and seed


@dataclass
class RunProgress(Progress):
    """The `Progress` of one run of several."""

    label: str = ""
    seed: int = 0


def named(call: Callable[[RunProgress], Any] | None, label: str, seed: int) -> Callback | None:
    """Calls with the `RunProgress` of this run."""
    if call is None:
        return None
    return lambda progress: call(RunProgress(**vars(progress), label=label, seed=seed))


class Estimate(NamedTuple):
    """What a run needs: ``total`` events by a ``basis``, of which ``share`` are done."""

    share: float = 0.0  # in [0, 1]; 0 while the total is unknown
    total: float = math.inf
    basis: str = ""
    seconds: float = math.inf  # until then


class Remaining:
    """Estimates the events that a run needs for ``tol``, or until a limit that comes first.

    Theory predicts them until two evaluations give a slope of the logarithm of the error. Slope and
    speed are those of the second half of the iterations: a run may start flat, or fall fast and
    then slow down.
    """

    def __init__(self) -> None:
        self._past: list[tuple[int, float, float]] = []  # iteration, wall time, log of the error
        self._reading: Any = None
        self._per_clock = math.inf  # events per unit of idealized time

    def update(self, progress: Progress) -> Estimate:
        """The estimate now, with ``progress.reading`` if it is new."""
        iteration, now, limits = progress.iteration, progress.wall_time, progress.stopping
        error = limits.error(progress.reading)
        if progress.reading is not self._reading and math.isfinite(error):
            self._reading = progress.reading
            self._past.append((iteration, now, math.log(max(error, SMALLEST))))
            if progress.idealized_time > 0.0:
                self._per_clock = iteration / progress.idealized_time
        if error <= progress.tol:
            return Estimate(1.0, iteration, "measured", 0.0)
        start, then, measured = self._slope(math.log(progress.tol))
        speed = (iteration - start) / (now - then) if now > then else 0.0
        totals = {"theory": progress.predicted} if measured is None else {"measured": measured}
        totals = {basis: total for basis, total in totals.items() if total > iteration}
        if limits.max_iter is not None:
            totals["max_iter"] = limits.max_iter
        if limits.time_limit is not None and speed > 0.0:
            totals["time limit"] = iteration + speed * max(0.0, limits.time_limit - now)
        if limits.clock_limit is not None:
            totals["clock limit"] = limits.clock_limit * self._per_clock
        basis = min(totals, key=lambda each: totals[each], default="")
        total = max(iteration, totals.get(basis, math.inf))
        if not 0 < total < math.inf:
            return Estimate()
        seconds = (total - iteration) / speed if speed > 0.0 else math.inf
        return Estimate(iteration / total, total, basis, seconds)

    def _slope(self, goal: float) -> tuple[int, float, float | None]:
        """Iteration and time in the middle, and the iterations until the log error is ``goal``."""
        if not self._past:
            return 0, 0.0, None
        (first, *_), (iteration, _, height) = self._past[0], self._past[-1]
        middle = (first + iteration) / 2.0
        start, then, before = next(each for each in reversed(self._past) if each[0] <= middle)
        if not before > height:
            return start, then, None
        return start, then, iteration + (height - goal) / (before - height) * (iteration - start)


def rate(progress: Progress) -> str:
    """Events per second so far; empty while no time has passed."""
    if not progress.wall_time > 0:
        return ""
    value = progress.iteration / progress.wall_time
    return f"{value / 1e6:.2f} M events/s" if value >= 1e4 else f"{value:,.0f} events/s"


def about(seconds: float) -> str:
    """The time left as text; empty where it is unknown or negative.

    Examples
    --------
    >>> about(12.3), about(600), about(float("inf"))
    ('about 12 s left', 'about 10 min left', '')
    """
    if not 0 <= seconds < 1e9:
        return ""
    for unit, length in (("s", 1.0), ("min", 60.0)):
        if seconds < 120.0 * length:
            return f"about {seconds / length:.0f} {unit} left"
    return f"about {seconds / 3600.0:.0f} h left"


def seconds_left(elapsed: float, share: float) -> float:
    """Seconds until all is done if the rest takes as long per share; infinite at share 0."""
    return elapsed * (1.0 - share) / share if share > 0 else math.inf


def events_done(progress: Progress, estimate: Estimate) -> str:
    """Events so far, and what share they are of how many, by which basis."""
    done, total = (
        f"{count / 1e6:,.2f} M" if count >= 1e6 else f"{count:,.0f}"
        for count in (progress.iteration, estimate.total)
    )
    if not estimate.total < math.inf:
        return f"{done} events"
    return f"{done} of {total} events ({estimate.basis}), {100 * estimate.share:.0f} %"


def error_reached(progress: Progress) -> str:
    """The error that falls to ``tol``, as last evaluated."""
    reading, limits = progress.reading, progress.stopping
    text, name = reading.gap_text, "gap"
    if limits.measure == "suboptimality" and reading.suboptimality is not None:
        text, name = f"{reading.suboptimality:.2g}", "suboptimality"
    return f"{name} {text} (tol {progress.tol:g})"


def key_of(progress: Progress) -> Key:
    return getattr(progress, "label", ""), getattr(progress, "seed", 0)


def is_drawn(wanted: bool | None) -> bool:
    """Whether to draw bars: by default on a terminal with cursor codes, if wanted in a notebook."""
    if wanted is False or sys.stderr is None:
        return False
    if sys.stderr.isatty():
        return os.environ.get("TERM") != "dumb"
    return bool(wanted) and is_notebook()


def is_notebook() -> bool:
    """Whether rich can draw in a notebook here, for which it needs ipywidgets."""
    from rich.console import Console

    return Console().is_jupyter and importlib.util.find_spec("ipywidgets") is not None


def live_bars() -> Any:
    """Bars on stderr with a text each, which count down to the time ``ends`` between updates.

    Labels are text, not markup: a bracket in one must not change the display.
    """
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.table import Column
    from rich.text import Text

    class Left(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(about(task.fields["ends"] - time.monotonic()))

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(bar_width=10),
        TextColumn("{task.fields[text]}", markup=False), TimeElapsedColumn(),
        Left(Column(no_wrap=True)),
    )  # fmt: skip
    redirected = getattr(sys.stdout, "isatty", bool)()  # else callbacks' prints leave their file
    return Bars(*columns, console=Console(stderr=True), transient=True, redirect_stdout=redirected)


class RunBars:
    """Draws one bar per run in progress on `live_bars`, and one for all if ``n_runs`` is given."""

    def __init__(self, bars: Any, n_runs: int | None = None) -> None:
        self._bars, self._n_runs, self._n_done, self._n_reused = bars, n_runs, 0, 0
        self._active: dict[Key, tuple[Any, Remaining, Estimate]] = {}  # bar, and what is left
        self._lock, self._started = threading.Lock(), time.monotonic()
        name = "adfs" if n_runs is None else "runs"
        self._first = bars.add_task(name, total=n_runs, text="setting up", ends=math.inf)

    def __call__(self, progress: Progress) -> None:
        with self._lock:
            key = key_of(progress)
            bar, remaining, _ = self._active.get(key) or (self._add(*key), Remaining(), None)
            found = remaining.update(progress)
            self._active[key] = bar, remaining, found
            text = f"{events_done(progress, found)}\n{rate(progress)}  {error_reached(progress)}"
            ends = time.monotonic() + found.seconds
            self._bars.update(bar, completed=found.share, text=text, ends=ends)
            self._update_total()

    def _add(self, label: str, seed: int) -> Any:
        """The bar of a run whose set-up is over: its time counts from here."""
        if self._n_runs is not None:
            return self._bars.add_task(f"{label}, seed {seed}", total=1.0, text="", ends=math.inf)
        self._bars.reset(self._first, total=1.0)
        return self._first

    def finish(self, key: Key) -> None:
        """A run is over, or was in the folder already."""
        with self._lock:
            self._n_done += 1
            if key in self._active:
                self._bars.remove_task(self._active.pop(key)[0])
            else:
                self._n_reused += 1
            self._update_total()

    def seconds_left(self, now: float) -> float:
        """Until all runs are over; infinite while a run in progress tells nothing."""
        runs = [found for *_, found in self._active.values()]
        # Runs from the folder took no time, so they do not count.
        done = self._n_done - self._n_reused + sum(run.share for run in runs)
        share = done / max(1, (self._n_runs or 1) - self._n_reused)
        # The run with most to do may take longer than the mean says.
        each = (run.seconds for run in runs)
        return max(seconds_left(now - self._started, share), *each, 0.0)

    def _update_total(self) -> None:
        if self._n_runs is not None:
            now, text = time.monotonic(), f"{self._n_done} of {self._n_runs}"
            ends = now + self.seconds_left(now)
            self._bars.update(self._first, completed=self._n_done, text=text, ends=ends)


class LineTimer:
    """Allows a line every ten seconds, the first one ten seconds after the first question."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        now = time.monotonic()
        with self._lock:
            if self._last is None:
                self._last = now
            if now - self._last < SECONDS_BETWEEN_LINES:
                return False
            self._last = now
        return True


def print_line(text: str) -> None:
    """A line on stderr; nothing where that is closed, or cannot show it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)


class RunLines:
    """Prints a line about a run from time to time, where no line can be overwritten."""

    def __init__(self) -> None:
        self._timer = LineTimer()
        self._runs: dict[Key, Remaining] = {}

    def __call__(self, progress: Progress) -> None:
        label, seed = key = key_of(progress)
        found = self._runs.setdefault(key, Remaining()).update(progress)
        if not self._timer.is_due():
            return
        number = list(self._runs).index(key) + 1
        start = f"run {number}, {label}, seed {seed}: " if label else ""
        left = about(found.seconds)
        parts = (
            f"{start}{progress.wall_time:.0f} s: {events_done(progress, found)}", rate(progress),
            error_reached(progress), left and left + (" of this run" if label else ""),
        )  # fmt: skip
        print_line(", ".join(part for part in parts if part))

    def finish(self, key: Key) -> None:
        """A run is over."""


class ShareLines:
    """Prints a line about the share of some work from time to time."""

    def __init__(self, name: str) -> None:
        self._name, self._started, self._timer = name, time.monotonic(), LineTimer()

    def __call__(self, share: float) -> None:
        left = about(seconds_left(time.monotonic() - self._started, share))
        if self._timer.is_due():
            print_line(f"{self._name}: {100 * share:.0f} % done{left and ', '}{left}")


@contextlib.contextmanager
def run_display(
    wanted: bool | None, n_runs: int | None = None, has_bars: bool = True
) -> Iterator[RunBars | RunLines | None]:
    """What shows one run, or ``n_runs``: bars where they can be drawn, else lines if wanted."""
    if has_bars and is_drawn(wanted):
        with live_bars() as bars:
            yield RunBars(bars, n_runs)
    else:
        yield RunLines() if wanted else None

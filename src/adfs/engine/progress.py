"""Progress on a terminal: rate, gap and time remaining."""

import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from adfs.engine.run_controller import Callback, Progress
from adfs.engine.stopping import Stopping

SMALLEST = 1e-300


@contextlib.contextmanager
def terminal_progress(
    wanted: bool | None, stopping: Stopping | None = None
) -> Iterator[Callback | None]:
    """A callback that draws a progress line, or None where there is no terminal."""
    if not is_drawn(wanted):
        yield None
        return
    with live_bars() as bars:
        task = bars.add_task("adfs", total=1.0, text="", ends=math.inf)
        estimate = Remaining(stopping)

        def show(progress: Progress) -> None:
            done, seconds = estimate.update(progress, progress.reading.relative_gap)
            text = f"gap {progress.reading.gap_text}  {rate(progress)}"
            bars.update(task, completed=done, text=text, ends=time.monotonic() + seconds)

        yield show


def is_drawn(wanted: bool | None) -> bool:
    """Whether to draw on stderr: as ``wanted``, by default only on a terminal with cursor codes."""
    if wanted is not None:
        return wanted
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def live_bars() -> Any:
    """Bars on stderr with a text each, which count down to the time ``ends`` between updates.

    Labels are text, not markup: a bracket in one must not change the display.
    """
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Left(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(about(task.fields["ends"] - time.monotonic()))

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(bar_width=20),
        TextColumn("{task.fields[text]}", markup=False), TimeElapsedColumn(), Left(),
    )  # fmt: skip
    return Bars(*columns, console=Console(stderr=True), transient=True)


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


class Remaining:
    """How much is done and left, from the slope of the logarithm of the error by iterations.

    The slope and the rate are those of the second half of the iterations: a run may start flat, or
    fall fast and then slow down. A limit that is reached sooner counts instead.
    """

    def __init__(self, stopping: Stopping | None = None) -> None:
        self._past: list[tuple[int, float, float]] = []  # iteration, wall time, log of the error
        limits = stopping or Stopping()
        self._max_iter = math.inf if limits.max_iter is None else limits.max_iter
        self._time_limit = math.inf if limits.time_limit is None else limits.time_limit

    def update(self, progress: Progress, error: float) -> tuple[float, float]:
        """Share done in [0, 1], and seconds left (infinite while unknown)."""
        if not math.isfinite(error):
            return 0.0, math.inf
        iteration, now = progress.iteration, progress.wall_time
        height, goal = math.log(max(error, SMALLEST)), math.log(progress.tol)
        self._past.append((iteration, now, height))
        if height <= goal:
            return 1.0, 0.0
        first_iteration, _, first_height = self._past[0]
        done = max(0.0, (first_height - height) / (first_height - goal))
        middle = (first_iteration + iteration) / 2.0
        start, then, before = next(each for each in reversed(self._past) if each[0] <= middle)
        if not (iteration > start and now > then):
            return done, math.inf
        iterations, fallen = iteration - start, before - height
        to_goal = (height - goal) / fallen * iterations if fallen > 0 else math.inf
        by_iterations = min(to_goal, self._max_iter - iteration) * (now - then) / iterations
        return done, max(0.0, min(by_iterations, self._time_limit - now))

"""A progress line for people: rate, gap and time remaining; on a terminal only."""

import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from adfs.runtime.course import Callback, Progress
from adfs.runtime.stopping import Stopping

SMALLEST = 1e-300


@contextlib.contextmanager
def terminal_progress(
    wanted: bool | None, stopping: Stopping | None = None
) -> Iterator[Callback | None]:
    """Callback that draws the line, or None where there is no terminal to draw on."""
    if not is_drawn(wanted):
        yield None
        return
    with live_bars() as bars:
        task = bars.add_task("adfs", total=1.0, text="", ends=math.inf)
        estimate = Remaining(stopping)

        def show(progress: Progress) -> None:
            done, seconds = estimate.update(progress, progress.reading.relative_gap)
            text = f"gap {progress.reading.relative_gap:.1e}  {rate(progress)}"
            bars.update(task, completed=done, text=text, ends=time.monotonic() + seconds)

        yield show


def is_drawn(wanted: bool | None) -> bool:
    """Whether to draw on stderr: as wanted, else where lines can be drawn again."""
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
    """Events a second so far; nothing before there is a second to speak of."""
    if not progress.wall_time > 0:
        return ""
    value = progress.iteration / progress.wall_time
    return f"{value / 1e6:.2f} M events/s" if value >= 1e4 else f"{value:,.0f} events/s"


def about(seconds: float) -> str:
    """The time left in words; nothing where it is not known, or was wrong.

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


class Look(NamedTuple):
    """What an estimate keeps of an evaluation."""

    iteration: int
    wall_time: float
    error: float  # its logarithm


class Remaining:
    """How much is done and left, from the slope of the logarithm of the error by iterations.

    The slope and the rate are those of the latter half of the iterations: a run may start flat, or
    fall fast and then slow down. A limit that comes sooner counts instead.
    """

    def __init__(self, stopping: Stopping | None = None) -> None:
        self._looks: list[Look] = []
        self._max_iter = math.inf
        self._time_limit = math.inf
        if stopping is not None:
            self._max_iter = math.inf if stopping.max_iter is None else stopping.max_iter
            self._time_limit = math.inf if stopping.time_limit is None else stopping.time_limit

    def update(self, progress: Progress, error: float) -> tuple[float, float]:
        """Share done in [0, 1], and seconds left (infinite while not known)."""
        if not math.isfinite(error):
            return 0.0, math.inf
        now = Look(progress.iteration, progress.wall_time, math.log(max(error, SMALLEST)))
        self._looks.append(now)
        first, goal = self._looks[0], math.log(progress.tol)
        if now.error <= goal:
            return 1.0, 0.0
        done = max(0.0, (first.error - now.error) / (first.error - goal))
        return done, self._seconds(now, goal)

    def _seconds(self, now: Look, goal: float) -> float:
        """Seconds until the error or a limit ends the run."""
        first = self._looks[0]
        middle = (first.iteration + now.iteration) / 2.0
        start = next(look for look in reversed(self._looks) if look.iteration <= middle)
        iterations, seconds = now.iteration - start.iteration, now.wall_time - start.wall_time
        if not (iterations > 0 and seconds > 0):
            return math.inf
        fallen = start.error - now.error
        to_goal = (now.error - goal) / fallen * iterations if fallen > 0 else math.inf
        to_limit = self._max_iter - now.iteration
        by_iterations = min(to_goal, to_limit) * seconds / iterations
        return max(0.0, min(by_iterations, self._time_limit - now.wall_time))

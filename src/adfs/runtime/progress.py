"""A progress line for people: rate, gap and time remaining; on a terminal only."""

import contextlib
import math
import sys
from collections.abc import Iterator

from adfs.runtime.course import Callback, Progress


@contextlib.contextmanager
def terminal_progress(wanted: bool | None) -> Iterator[Callback | None]:
    """Callback that draws the line, or None where there is no terminal to draw on."""
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"),
               TimeElapsedColumn())  # fmt: skip
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("adfs", total=1.0, text="")
        estimate = Remaining()

        def show(progress: Progress) -> None:
            done, seconds = estimate.update(progress)
            rate = progress.iteration / progress.wall_time if progress.wall_time > 0 else 0.0
            left = f"{seconds:.0f} s left" if math.isfinite(seconds) else "..."
            text = f"gap {progress.reading.relative_gap:.1e}  {rate / 1e6:.2f} M events/s  {left}"
            bars.update(task, completed=done, text=text)

        yield show


class Remaining:
    """How much is done and left, from the slope of the logarithm of the gap."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def update(self, progress: Progress) -> tuple[float, float]:
        """Share done in [0, 1], and seconds left (infinite while not known)."""
        gap = max(progress.reading.relative_gap, 1e-300)
        if self._first is None:
            self._first = (progress.wall_time, math.log(gap))
        start, first = self._first
        goal, now = math.log(progress.tol), math.log(gap)
        if first <= goal or now <= goal:
            return 1.0, 0.0
        done = (first - now) / (first - goal)
        if done <= 0.0:
            return 0.0, math.inf
        return done, (progress.wall_time - start) * (1.0 - done) / done

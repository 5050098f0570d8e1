"""Progress where no line can be overwritten: a plain line on stderr from time to time.

On a terminal the runs draw their own progress (`adfs.engine.progress`).
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adfs.cli import output

if TYPE_CHECKING:
    from adfs.engine.progress import Remaining
    from adfs.engine.run_controller import Progress
    from adfs.engine.stopping import Stopping
    from adfs.study.comparison_progress import RunProgress

SECONDS_BETWEEN_LINES, SHARE_BETWEEN_LINES = 10.0, 0.1


def are_lines_wanted(args: argparse.Namespace) -> bool:
    return not args.quiet and not output.is_live(sys.stderr)


def each_evaluation(
    args: argparse.Namespace, stopping: "Stopping", has_lines: bool
) -> Callable[[Any], None]:
    """A callback that sends a dropped signal once more, and then may print a line."""
    lines = ProgressLines(stopping) if has_lines else None

    def evaluated(progress: Any) -> None:
        args.leaving.repeat()
        if lines is not None:
            lines(progress)

    return evaluated


class LineTimer:
    """Allows a line if there was none for a while; the interval grows with the running time.

    Time counts from the first question, after set-up: compiling alone prints no line.
    """

    def __init__(self) -> None:
        self._started: float | None = None
        self._last = 0.0
        self._lock = threading.Lock()  # runs report from several threads

    def is_due(self) -> bool:
        now = time.monotonic()
        with self._lock:
            if self._started is None:
                self._started = self._last = now
            interval = max(SECONDS_BETWEEN_LINES, SHARE_BETWEEN_LINES * (now - self._started))
            if now - self._last < interval:
                return False
            self._last = now
        return True


class ProgressLines:
    """Lines about the run of `adfs train`, or about the runs of `adfs compare`."""

    def __init__(self, stopping: "Stopping | None" = None) -> None:
        self._timer, self._stopping = LineTimer(), stopping
        self._remaining: dict[str, Remaining] = {}  # by the name of a run

    def __call__(self, progress: "Progress | RunProgress") -> None:
        from adfs.engine.progress import Remaining, about, rate

        reading, label = progress.reading, getattr(progress, "label", None)
        error = None if label is None else reading.suboptimality
        if error is None:
            error, measured = reading.relative_gap, f"relative gap {reading.gap_text}"
        else:
            measured = f"suboptimality {error:.2g}"
        run = "" if label is None else f"{label}, seed {getattr(progress, 'seed', 0)}"
        remaining = self._remaining.setdefault(run, Remaining(self._stopping))
        left = about(remaining.update(progress, error)[1])
        if not self._timer.is_due():
            return
        spent = f"{progress.wall_time:.0f} s"
        start = f"run {len(self._remaining)}, {run}: {spent}, " if run else f"{spent}: "
        parts = [
            f"{start}{measured} after {progress.iteration:,} events",
            rate(progress),
            left and left + (" of this run" if run else ""),
        ]
        output.note(", ".join(part for part in parts if part))


class ShareLines:
    """Lines about the share of a reproduction that is done."""

    def __init__(self, name: str) -> None:
        self._name, self._started, self._timer = name, time.monotonic(), LineTimer()

    def __call__(self, share: float) -> None:
        from adfs.engine.progress import about, seconds_left

        left = about(seconds_left(time.monotonic() - self._started, share))
        if self._timer.is_due():
            output.note(f"{self._name}: {100 * share:.0f} % done{left and ', '}{left}")

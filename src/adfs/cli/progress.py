"""Progress where no line can be drawn again: a plain line on stderr now and then.

On a terminal the runs draw for themselves (`adfs.runtime.progress`).
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adfs.cli import output, terminal

if TYPE_CHECKING:
    from adfs.bench.progress import RunProgress
    from adfs.runtime.course import Progress
    from adfs.runtime.progress import Remaining
    from adfs.runtime.stopping import Stopping

SECONDS_BETWEEN_LINES, SHARE_BETWEEN_LINES = 10.0, 0.1


def are_lines_wanted(args: argparse.Namespace) -> bool:
    """Whether progress is told by plain lines."""
    return not args.quiet and not terminal.is_live(sys.stderr)


def both(first: Callable[[Any], Any], second: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """Tell both, in this order."""

    def tell(progress: Any) -> None:
        first(progress)
        if second is not None:
            second(progress)

    return tell


class Patience:
    """Lets a line pass if none did for a while, which grows with the time since the start.

    The start is the first question, after set-up: compiling alone is no reason for a line.
    """

    def __init__(self) -> None:
        self._started = self._told = 0.0
        self._asked = False
        self._lock = threading.Lock()  # runs report from several threads

    def is_over(self) -> bool:
        """Whether to say something now."""
        now = time.monotonic()
        with self._lock:
            if not self._asked:
                self._asked, self._started, self._told = True, now, now
            wanted = max(SECONDS_BETWEEN_LINES, SHARE_BETWEEN_LINES * (now - self._started))
            if now - self._told < wanted:
                return False
            self._told = now
        return True


class Lines:
    """Says where a run of `adfs train` is."""

    def __init__(self, stopping: "Stopping") -> None:
        from adfs.runtime.progress import Remaining

        self._patience, self._remaining = Patience(), Remaining(stopping)

    def __call__(self, progress: "Progress") -> None:
        """Look at every evaluation, speak at a few."""
        gap = progress.reading.relative_gap
        _, seconds = self._remaining.update(progress, gap)
        if self._patience.is_over():
            output.note(_line(f"{progress.wall_time:.0f} s: relative gap", gap, progress, seconds))


class RunLines:
    """Says where the runs of `adfs compare` are."""

    def __init__(self, stopping: "Stopping | None" = None) -> None:
        self._patience, self._stopping = Patience(), stopping
        self._remaining: dict[tuple[str, int], Remaining] = {}

    def __call__(self, progress: "RunProgress") -> None:
        """Look at every evaluation, speak at a few."""
        from adfs.runtime.progress import Remaining

        error, measure = progress.reading.suboptimality, "suboptimality"
        if error is None:
            error, measure = progress.reading.relative_gap, "relative gap"
        key = (progress.label, progress.seed)
        remaining = self._remaining.setdefault(key, Remaining(self._stopping))
        _, seconds = remaining.update(progress, error)
        if self._patience.is_over():
            name = f"run {len(self._remaining)}, {progress.label}, seed {progress.seed}"
            start = f"{name}: {progress.wall_time:.0f} s, {measure}"
            output.note(_line(start, error, progress, seconds, " of this run"))


def _line(start: str, error: float, progress: Any, seconds: float, whose: str = "") -> str:
    from adfs.runtime.progress import about, rate

    left = about(seconds)
    words = [f"{start} {error:.2g} after {progress.iteration:,} events", rate(progress)]
    return ", ".join(word for word in [*words, left and left + whose] if word)


class ShareLines:
    """Says which share of a reproduction is done."""

    def __init__(self, name: str) -> None:
        self._name, self._started, self._patience = name, time.monotonic(), Patience()

    def __call__(self, share: float) -> None:
        """Look at every share, speak of a few."""
        from adfs.reproduce.progress import seconds_left
        from adfs.runtime.progress import about

        left = about(seconds_left(time.monotonic() - self._started, share))
        if self._patience.is_over():
            output.note(f"{self._name}: {100 * share:.0f} % done{left and ', '}{left}")

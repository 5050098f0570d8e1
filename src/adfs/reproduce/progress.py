"""A progress line for people, with the time remaining; it appears when there is progress."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from adfs.runtime.progress import is_drawn, live_bars


@contextlib.contextmanager
def terminal_progress(name: str, quiet: bool) -> Iterator[Callable[[float], object]]:
    """Function that is told the share done and draws it; silent where stderr is no terminal.

    Nothing is drawn before the first call: a reproduction may have a display of its own.
    """
    with contextlib.ExitStack() as stack:
        line: list[tuple[Any, Any]] = []
        started = time.monotonic()

        def show(share: float) -> None:
            if quiet or not is_drawn(None):
                return
            if not line:
                bars = stack.enter_context(live_bars())
                line.append((bars, bars.add_task(name, total=1.0, text="", ends=math.inf)))
            bars, task = line[0]
            ends = time.monotonic() + seconds_left(time.monotonic() - started, share)
            bars.update(task, completed=share, text=f"{100 * share:.0f} %", ends=ends)

        yield show


def seconds_left(elapsed: float, share: float) -> float:
    """Seconds that the rest takes at the pace so far; infinite before there is any."""
    return elapsed * (1.0 - share) / share if share > 0 else math.inf

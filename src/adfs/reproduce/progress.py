"""A progress line for people, with the time remaining; it appears when there is progress."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def terminal_progress(name: str, quiet: bool) -> Iterator[Callable[[float], object]]:
    """Function that is told the share done and draws it; silent where stderr is no terminal.

    Nothing is drawn before the first call: a reproduction may have a display of its own.
    """
    with contextlib.ExitStack() as stack:
        line: list[tuple[Any, Any]] = []

        def show(share: float) -> None:
            if quiet or not sys.stderr.isatty():
                return
            if not line:
                bars = stack.enter_context(_bars())
                line.append((bars, bars.add_task(name, total=1.0)))
            bars, task = line[0]
            bars.update(task, completed=share)

        yield show


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
        TextColumn("left:"), TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip

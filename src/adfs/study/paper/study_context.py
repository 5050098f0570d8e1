"""How a study of the paper is run: its size, its threads, its folder, its progress, its signals."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from adfs.engine.interrupts import Interrupts
from adfs.engine.progress import is_drawn, live_bars, seconds_left
from adfs.problem.finite_sum import Problem
from adfs.study.compare import Callback, compare
from adfs.study.comparison import Comparison
from adfs.threads import one_blas_thread

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True)
class StudyContext:
    """The argument of every study.

    Attributes
    ----------
    quick : bool
        The same at a size that ends within a minute.
    jobs : int
        Threads; kernels hold no lock, so two threads use two cores.
    folder : Path, optional
        Where finished runs are kept, and loaded from.
    interrupts : Interrupts
        Checked between pieces of work.
    progress : callable
        Called with the share done, in [0, 1].
    quiet : bool
        No bars on a terminal.
    callback : callable, optional
        Called with a `RunProgress` after each evaluation of a comparison's run.
    name : str
        Of the bar on a terminal.
    """

    quick: bool = False
    jobs: int = 2
    folder: Path | None = None
    interrupts: Interrupts = field(default_factory=Interrupts)
    progress: Callable[[float], object] = lambda share: None
    quiet: bool = False
    callback: Callback | None = None
    name: str = "study"

    @property
    def interrupted(self) -> bool:
        """Whether to end with what is finished."""
        return self.interrupts.received is not None

    @property
    def _bars_wanted(self) -> bool | None:
        return False if self.quiet else None

    def map(
        self, work: Callable[[Item], Found | None], items: Sequence[Item], costs: Sequence[float]
    ) -> list[Found]:
        """Results of ``work`` in the order of ``items``, without those that a signal prevented.

        ``costs`` are what the items cost in any unit, for the time remaining. After a signal, work
        in progress returns None and no other item is begun.
        """
        total, done, lock = sum(costs), 0.0, Lock()

        def one(item: Item, cost: float) -> Found | None:
            nonlocal done
            if self.interrupted:
                return None
            found = work(item)
            with lock:
                done += cost
                self.progress(done / total)
                draw(done / total)
            return found

        with (
            one_blas_thread(),
            share_bar(self.name, self._bars_wanted) as draw,
            ThreadPoolExecutor(self.jobs) as pool,
        ):
            results = list(pool.map(one, items, costs))
        return [result for result in results if result is not None]

    def compare(
        self, problem: Problem, algorithms: Sequence[str], label: str, **options: Any
    ) -> Comparison:
        """`adfs.compare` with these threads, signals and folder (there under ``runs/label``).

        After a signal, as while samples were loaded, no run starts: the comparison has only the
        runs that the folder had, and is marked as interrupted.
        """
        return compare(
            problem, algorithms, jobs=self.jobs, progress=self._bars_wanted,
            folder=None if self.folder is None else self.folder / "runs" / label,
            interrupts=self.interrupts, callback=self.callback, **options,
        )  # fmt: skip


@contextlib.contextmanager
def share_bar(name: str, wanted: bool | None) -> Iterator[Callable[[float], object]]:
    """A function that draws the share done as a bar; nothing where stderr is no terminal."""
    if not is_drawn(wanted):
        yield lambda share: None
        return
    started = time.monotonic()
    with live_bars() as bars:
        task = bars.add_task(name, total=1.0, text="", ends=math.inf)

        def draw(share: float) -> None:
            now = time.monotonic()
            ends = now + seconds_left(now - started, share)
            bars.update(task, completed=share, text=f"{100 * share:.0f} %", ends=ends)

        yield draw

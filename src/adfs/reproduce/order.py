"""How a reproduction is done: its size, its threads, where runs are kept, when it ends early."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from adfs.bench.compare import compare
from adfs.bench.comparison import Comparison
from adfs.bench.runs import Callback
from adfs.problems.finite_sum import Problem
from adfs.runtime.signals import Interrupts
from adfs.threads import one_blas_thread

Item = TypeVar("Item")
Found = TypeVar("Found")


def _say_nothing(share: float) -> None:
    """No progress line."""


@dataclass(frozen=True)
class Order:
    """What every reproduction is told.

    Attributes
    ----------
    quick : bool
        The same at a size that ends within a minute.
    jobs : int
        Threads; kernels hold no lock, so two threads use two cores.
    folder : Path, optional
        Where finished runs may be kept and taken up again.
    interrupts : Interrupts
        Looked at between pieces of work.
    progress : callable
        Told the share done, in [0, 1].
    quiet : bool
        For parts that have a progress line of their own.
    look : callable, optional
        Told a `RunProgress` after each evaluation of a comparison's run.
    """

    quick: bool = False
    jobs: int = 2
    folder: Path | None = None
    interrupts: Interrupts = field(default_factory=Interrupts)
    progress: Callable[[float], object] = _say_nothing
    quiet: bool = False
    look: Callback | None = None

    @property
    def interrupted(self) -> bool:
        """Whether to end with what is finished."""
        return self.interrupts.received is not None

    def map(
        self, work: Callable[[Item], Found | None], items: Sequence[Item], costs: Sequence[float]
    ) -> list[Found]:
        """Results of ``work`` in the order of ``items``, without those that a signal prevented.

        ``costs`` are what the items cost in any unit, for the time remaining. Work that sees a
        signal returns None; items not begun are not begun any more.
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
            return found

        with one_blas_thread(), ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(one, *pair) for pair in zip(items, costs, strict=True)]
            results = [future.result() for future in futures]
        return [result for result in results if result is not None]

    def compare(
        self, problem: Problem, algorithms: Sequence[str], label: str, **options: Any
    ) -> Comparison:
        """`adfs.compare` with the order's threads, folder and interrupts.

        Runs are kept under ``label`` in the order's folder, if there is one, and taken from there.
        A signal noted before, as while samples were loaded, lets no run start: the comparison then
        has no records but kept ones, and says that it was interrupted.
        """
        return compare(
            problem, algorithms, jobs=self.jobs, progress=False if self.quiet else None,
            folder=None if self.folder is None else self.folder / "runs" / label,
            interrupts=self.interrupts, callback=self.look, **options,
        )  # fmt: skip

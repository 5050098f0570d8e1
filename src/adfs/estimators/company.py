"""Who fits one model together: this process alone, or all ranks that mpiexec started.

A fit goes in steps that every rank takes, each with its own rows. What may fail on one rank is done
through `Company.each`, so that all ranks raise the same sentence and none waits for another.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from adfs.errors import ParameterError
from adfs.estimators.options import choice
from adfs.graphs.topology import Topology
from adfs.launch.peers import KINDS, LEAVING, Alone, Peers

T = TypeVar("T")

ENGINES = ("local", "mpi")
RAISABLE: dict[str, type[Exception]] = KINDS | {
    kind.__name__: kind for kind in (ValueError, TypeError, MemoryError, OSError, RuntimeError)
}


class Company:
    """All that take part in a fit; alone, everything is done at once and as it is.

    Examples
    --------
    >>> Company(Alone()).each(lambda: 6 * 7)
    42
    """

    def __init__(self, peers: Peers) -> None:
        self.peers = peers

    @property
    def alone(self) -> bool:
        """Whether this process has all rows."""
        return self.peers.size == 1

    def each(self, work: Callable[[], T]) -> T:
        """The result of local work, once it is known to have succeeded on every rank.

        Otherwise all ranks raise the error of the lowest rank that has one, with the rank's number
        before it unless all ranks say the same.
        """
        if self.alone:
            return work()
        result, error = None, None
        try:
            result = work()
        except Exception as failure:
            error = failure
        told = self._gather(None if error is None else [_kind(error), str(error)])
        failed = [rank for rank, each in enumerate(told) if each is not None]
        if failed:
            raise _agreed(told, failed[0]) from error
        return result  # type: ignore[return-value]

    def require_same(self, what: str, way_out: str, **values: Any) -> None:
        """Refuse values that are not the same on every rank."""
        if self.alone:
            return
        told = self._gather({name: _in_words(value) for name, value in values.items()})
        self.each(lambda: _compare(told, what, way_out))

    def some(self, own: bool) -> bool:
        """Whether it is so on any rank."""
        return own if self.alone else any(self._gather(own))

    def _gather(self, item: Any) -> list[Any]:
        """What every rank gave; one that ends its program meanwhile also ends the job."""
        told = self.peers.gather(item)
        if LEAVING in told:
            error = ParameterError(
                f"Rank {told.index(LEAVING)} has ended: there is no fit with it."
            )
            error.agreed = True  # type: ignore[attr-defined]
            raise error
        return told


@contextlib.contextmanager
def company_of(estimator: Any) -> Iterator[Company]:
    """Those with whom an estimator's ``engine`` fits; one rank is as good as none."""
    if choice("engine", estimator.engine, ENGINES) == "local":
        yield Company(Alone())
        return
    from adfs.distributed.session import session

    with session() as world:
        yield Company(Alone() if world.size == 1 else world)


def _agreed(told: list[Any], speaker: int) -> Exception:
    """The error that all ranks raise."""
    kind, text = told[speaker]
    if any(each != told[speaker] for each in told):
        text = f"rank {speaker}: {text}"
    error = RAISABLE[kind](text)
    error.agreed = True  # type: ignore[attr-defined]
    return error


def _kind(error: Exception) -> str:
    """The nearest of its types that can be made from a sentence."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((name for name in names if name in RAISABLE), "RuntimeError")


def _compare(told: list[dict[str, str]], what: str, way_out: str) -> None:
    for rank, each in enumerate(told):
        for name, value in each.items():
            if value != told[0][name]:
                raise ParameterError(
                    f"{what}: {name}={told[0][name]} on rank 0 and {name}={value} on rank {rank}; "
                    f"{way_out}"
                )


def _in_words(value: Any) -> str:
    """The same words for the same value on any rank."""
    if isinstance(value, Topology):
        return f"{value.name} ({_digest(value.edges)})"
    if isinstance(value, np.random.RandomState):
        return "RandomState"  # all take rank 0's draw
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} ({_digest(value)})"
    if isinstance(value, Mapping):
        return repr(dict(sorted(value.items(), key=repr)))
    value = value.item() if isinstance(value, np.generic) else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{float(value)!r}" if is_number else repr(value)


def _digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:8]

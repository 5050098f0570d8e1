"""The other ranks, as set-up sees them: small values told by all to all, and one voice for errors.

Set-up goes in steps. A step is local work that may fail, then an agreement in which every rank
takes part whatever happened to it; so no rank waits for one that has given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar

from adfs.errors import AdfsError, CheckpointError, DataError, GraphError, ParameterError

T = TypeVar("T")

FAILURES = (AdfsError, CheckpointError, OSError, MemoryError)
LEAVING = "leaves"  # what a rank says that will not come again
KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (DataError, GraphError, ParameterError, AdfsError, CheckpointError)
}


class Peers(Protocol):
    """All ranks of a job, this one among them.

    ``gather`` takes plain values that JSON knows, or a one-dimensional NumPy array whose length
    may differ from rank to rank, and returns what every rank gave, in the order of the ranks. All
    ranks call it in the same sequence.
    """

    rank: int
    size: int

    def gather(self, item: Any) -> list[Any]:
        """What every rank gave, rank 0 first."""
        ...


class Alone:
    """The peers of a process that has none.

    Examples
    --------
    >>> Alone().gather("hello")
    ['hello']
    """

    rank = 0
    size = 1

    def gather(self, item: Any) -> list[Any]:
        """A list of the one item."""
        return [item]


def agree(peers: Peers, error: Exception | None) -> None:
    """Raise on every rank if any rank has an error; only one of them is to print it.

    The error with the smallest ``order`` is raised (an attribute that says how early the local
    engine would have met it, 0 where missing), that of the lowest rank among equals. On all ranks
    but the one that met it, ``spoken_by_another`` is true.

    Parameters
    ----------
    peers : Peers
    error : Exception or None
        An `AdfsError`, `CheckpointError`, ``OSError`` or ``MemoryError`` of this rank.

    Examples
    --------
    >>> agree(Alone(), None)
    >>> agree(Alone(), DataError("part-3.txt is empty; add a row."))
    Traceback (most recent call last):
        ...
    adfs.errors.DataError: part-3.txt is empty; add a row.
    """
    told = peers.gather(None if error is None else _told(error))
    failed = [(told[rank]["order"], rank) for rank in range(peers.size) if told[rank] is not None]
    if not failed:
        return
    speaker = min(failed)[1]
    if speaker == peers.rank and error is not None:
        error.agreed = True  # type: ignore[attr-defined]
        raise error
    raise _heard(told[speaker])


def refuse_together(peers: Peers, error: Exception) -> NoReturn:
    """Raise an error that every rank has found from the same facts; rank 0 is to print it."""
    error.agreed = True  # type: ignore[attr-defined]
    error.spoken_by_another = peers.rank > 0  # type: ignore[attr-defined]
    raise error


def gather_from_all(peers: Peers, item: Any) -> list[Any]:
    """What every rank gave; refused where a rank ends its program meanwhile."""
    told = peers.gather(item)
    gone = [rank for rank, each in enumerate(told) if isinstance(each, str) and each == LEAVING]
    if gone:
        error = ParameterError(f"Rank {gone[0]} has ended: there is no fit with it.")
        error.agreed = True  # type: ignore[attr-defined]
        raise error
    return told


def attempt(peers: Peers, work: Callable[[], T]) -> T:
    """The result of some local work, once it is known to have succeeded on every rank.

    Examples
    --------
    >>> attempt(Alone(), lambda: 6 * 7)
    42
    """
    result, error = None, None
    try:
        result = work()
    except FAILURES as failure:
        error = failure
    agree(peers, error)
    return result  # type: ignore[return-value]


def _told(error: Exception) -> dict[str, Any]:
    """An error as plain values."""
    kinds = (kind.__name__ for kind in type(error).__mro__)
    told: dict[str, Any] = {
        "kind": next((name for name in kinds if name in KINDS), None),
        "text": str(error),
        "order": int(getattr(error, "order", 0)),
    }
    if isinstance(error, OSError):
        told["system"] = [error.errno, error.strerror, _text(error.filename)]
    return told


def _heard(told: dict[str, Any]) -> Exception:
    """The error that another rank met, and will print."""
    if told["kind"] is not None:
        error: Exception = KINDS[told["kind"]](told["text"])
    elif "system" in told:
        error = OSError(*told["system"])
    else:
        error = MemoryError(told["text"])
    error.spoken_by_another = True  # type: ignore[attr-defined]
    return error


def _text(filename: Any) -> str | None:
    return None if filename is None else str(filename)

"""The other ranks, as set-up sees them: small values told by all to all, and one voice for errors.

Set-up goes in steps. A step is local work that may fail, then an agreement in which every rank
takes part whatever happened to it; so no rank waits for one that has given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar

from adfs.errors import (
    FAILURES,
    AdfsError,
    AllRanksRaise,
    CheckpointError,
    DataError,
    GraphError,
    ParameterError,
)

T = TypeVar("T")

LEAVING = "leaves"  # what a rank says that will not come again
KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        DataError, GraphError, ParameterError, AdfsError, CheckpointError, ValueError, TypeError,
        MemoryError, OSError, RuntimeError,
    )
}  # fmt: skip


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


def agree(peers: Peers, error: Exception | None, name_rank: bool = False) -> None:
    """Raise on every rank if any rank has an error; only one of them is to print it.

    The error with the smallest ``order`` is raised, that of the lowest rank among equals; on the
    other ranks one of the same kind and text. Its cause is `AllRanksRaise`.

    Parameters
    ----------
    peers : Peers
    error : Exception or None
        Of this rank.
    name_rank : bool
        Put the number of the rank before the text, unless all ranks say the same.

    Examples
    --------
    >>> agree(Alone(), None)
    >>> agree(Alone(), DataError("part-3.txt is empty; add a row."))
    Traceback (most recent call last):
        ...
    adfs.errors.DataError: part-3.txt is empty; add a row.
    """
    if peers.size == 1:
        if error is not None:
            raise error
        return
    told = gather_from_all(peers, None if error is None else _told(error))
    failed = [(told[rank]["order"], rank) for rank in range(peers.size) if told[rank] is not None]
    if not failed:
        return
    speaker = min(failed)[1]
    cause = AllRanksRaise(speaker, speaker == peers.rank)
    if name_rank and any(each != told[speaker] for each in told):
        raise _heard(
            {**told[speaker], "text": f"rank {speaker}: {told[speaker]['text']}"}
        ) from cause
    raise (error if speaker == peers.rank and error else _heard(told[speaker])) from cause


def refuse_together(peers: Peers, error: Exception) -> NoReturn:
    """Raise an error that every rank has found from the same facts; rank 0 is to print it."""
    raise error from AllRanksRaise(0, peers.rank == 0)


def gather_from_all(peers: Peers, item: Any) -> list[Any]:
    """What every rank gave; refused where a rank ends its program meanwhile."""
    told = peers.gather(item)
    gone = [rank for rank, each in enumerate(told) if isinstance(each, str) and each == LEAVING]
    if gone:
        error = ParameterError(f"Rank {gone[0]} has ended: there is no fit with it.")
        raise error from AllRanksRaise(gone[0], True)
    return told


def attempt(
    peers: Peers,
    work: Callable[[], T],
    catching: tuple[type[Exception], ...] = FAILURES,
    name_rank: bool = False,
) -> T:
    """The result of some local work, once it is known to have succeeded on every rank.

    Of a process alone errors stay as they are.

    Examples
    --------
    >>> attempt(Alone(), lambda: 6 * 7)
    42
    """
    result, error = None, None
    try:
        result = work()
    except catching as failure:
        error = failure
    agree(peers, error, name_rank)
    return result  # type: ignore[return-value]


def _told(error: Exception) -> dict[str, Any]:
    """An error as plain values: the nearest of its types that can be made from a text."""
    kinds = (kind.__name__ for kind in type(error).__mro__)
    told: dict[str, Any] = {
        "kind": next((name for name in kinds if name in KINDS), "RuntimeError"),
        "text": str(error),
        "order": int(getattr(error, "order", 0)),
    }
    if isinstance(error, OSError):
        told["system"] = [error.errno, error.strerror, _text(error.filename)]
    return told


def _heard(told: dict[str, Any]) -> Exception:
    """The error that another rank met."""
    if told["kind"] == "OSError" and told["text"].startswith("[Errno"):
        return OSError(*told["system"])
    return KINDS[told["kind"]](told["text"])


def _text(filename: Any) -> str | None:
    return None if filename is None else str(filename)

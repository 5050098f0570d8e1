"""The processes that fit one model together: this one alone, or all ranks that mpiexec started.

A fit consists of steps that every rank takes, each with its own rows. Work that may fail on one
rank runs through `FitGroup.each`: then all ranks raise the same error, and none waits for another.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.agreement import Alone, Peers, attempt, require_same
from adfs.checks import choice
from adfs.errors import DataError
from adfs.network import ENGINES

T = TypeVar("T")

KINDS = {"i": "numbers", "u": "numbers", "f": "numbers", "b": "numbers", "U": "words", "S": "bytes"}


class FitGroup:
    """All processes that take part in a fit.

    Examples
    --------
    >>> FitGroup(Alone()).each(lambda: 6 * 7)
    42
    """

    def __init__(self, peers: Peers) -> None:
        self.peers = peers

    @property
    def alone(self) -> bool:
        """Whether this process has all rows."""
        return self.peers.size == 1

    def each(self, work: Callable[[], T]) -> T:
        """The result of local work, once it has succeeded on every rank.

        Otherwise all ranks raise the error of the lowest rank that has one, with the rank's number
        before it unless all ranks have the same error.
        """
        return attempt(self.peers, work, (Exception,), name_rank=True)

    def require_same(self, what: str, way_out: str, **values: Any) -> None:
        """Refuse values that are not the same on every rank."""
        require_same(self.peers, values, way_out, what)


@contextlib.contextmanager
def fit_group(engine: Any) -> Iterator[FitGroup]:
    """The processes with which an estimator's ``engine`` fits."""
    if choice("engine", engine, ENGINES) == "local":
        yield FitGroup(Alone())
        return
    from adfs.mpi.communicator import session

    with session() as world:
        yield FitGroup(Alone() if world.size == 1 else world)


def union(
    ranks: FitGroup, own: NDArray[Any], what: str
) -> tuple[NDArray[Any], list[NDArray[np.int64]]]:
    """All different values of all ranks in order, and where each rank's are among them.

    ``own`` are those of this rank, in order. If words are objects on some rank, as Pandas has them,
    the result holds objects.
    """
    plain = ranks.each(lambda: as_plain(own, what))
    received = ranks.peers.gather([plain, own.dtype.hasobject])
    parts = [part for part, _ in received]
    ranks.each(lambda: _require_one_kind(parts, what))
    every = np.unique(np.concatenate([part for part in parts if len(part)] or parts))
    places = [np.searchsorted(every, part.astype(every.dtype)) for part in parts]
    return every.astype(object) if any(objects for _, objects in received) else every, places


def as_plain(values: NDArray[Any], what: str) -> NDArray[Any]:
    """The same values as numbers or words."""
    plain = np.array(values.tolist()) if values.dtype.hasobject else values
    if plain.dtype.kind not in KINDS:
        raise DataError(
            f"{what} of type {type(values.tolist()[0]).__name__} cannot be sent to other ranks; "
            "use numbers or words."
        )
    return plain


def _require_one_kind(parts: list[NDArray[Any]], what: str) -> None:
    """Refuse numbers and words together: NumPy would turn the numbers into words."""
    first = next((rank for rank, part in enumerate(parts) if len(part)), 0)
    for rank, part in enumerate(parts):
        mine, theirs = KINDS[parts[first].dtype.kind], KINDS[part.dtype.kind]
        if len(part) and mine != theirs:
            raise DataError(
                f"{what} are {mine} on rank {first} but {theirs} on rank {rank}; use one kind."
            )


def as_one_array(rows: Any, names: Any, ranks: FitGroup) -> Any:
    """This rank's rows as they would be in one array of all ranks' rows.

    CSR on one rank is CSR on all; float64 on one rank is float64 on all. ``names`` are those of the
    columns, None where they have none.
    """
    ranks.require_same(
        "All ranks need the same columns of X",
        "give them in the same order (pad with zeros).",
        n_features=rows.shape[1],
        feature_names=None if names is None else [str(name) for name in names],
    )
    received = ranks.peers.gather([issparse(rows), rows.dtype.str])
    if any(sparse for sparse, _ in received) and not issparse(rows):
        rows = csr_matrix(rows)
    return rows.astype(np.result_type(*[dtype for _, dtype in received]), copy=False)

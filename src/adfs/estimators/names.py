"""Labels and names of nodes, told between ranks: numbers or words, never pickled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.errors import DataError
from adfs.estimators.company import Company

KINDS = {"i": "numbers", "u": "numbers", "f": "numbers", "b": "numbers", "U": "words", "S": "bytes"}


def union(
    company: Company, own: NDArray[Any], what: str
) -> tuple[NDArray[Any], list[NDArray[np.int64]]]:
    """All different values of all ranks in order, and where each rank's are among them.

    ``own`` are those of this rank, in order. Words that come as objects on some rank, as Pandas has
    them, are objects in the end.
    """
    plain = company.each(lambda: as_plain(own, what))
    told = company.peers.gather([plain, own.dtype.hasobject])
    parts = [part for part, _ in told]
    company.each(lambda: _require_one_kind(parts, what))
    every = np.unique(np.concatenate([part for part in parts if len(part)] or parts))
    places = [np.searchsorted(every, part.astype(every.dtype)) for part in parts]
    return every.astype(object) if any(objects for _, objects in told) else every, places


def as_plain(values: NDArray[Any], what: str) -> NDArray[Any]:
    """The same values as numbers or words."""
    plain = np.array(values.tolist()) if values.dtype.hasobject else values
    if plain.dtype.kind not in KINDS:
        raise DataError(
            f"{what} of type {type(values.tolist()[0]).__name__} cannot be told to other ranks; "
            "use numbers or words."
        )
    return plain


def _require_one_kind(parts: list[NDArray[Any]], what: str) -> None:
    """NumPy would turn numbers into words without a question."""
    first = next((rank for rank, part in enumerate(parts) if len(part)), 0)
    for rank, part in enumerate(parts):
        mine, theirs = KINDS[parts[first].dtype.kind], KINDS[part.dtype.kind]
        if len(part) and mine != theirs:
            raise DataError(
                f"{what} are {mine} on rank {first} but {theirs} on rank {rank}; use one kind."
            )

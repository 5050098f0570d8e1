"""Lays a rank's rows into one array, node by node, while the pieces of a file pass by.

The shards are then consecutive views of that array, which `join_shards` joins without a copy, as
it does for the shards that `partition` makes.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs.problems.libsvm import Matrix, csr_of
from adfs.problems.line_faults import LARGEST_INDEX
from adfs.problems.partition import Shard, row_view

Numbers = NDArray[np.int64]


class Layout(NamedTuple):
    """How rows are kept: as an array or in CSR, how wide, in which type of number."""

    dense: bool
    width: int
    dtype: Any = np.float64


class Dealt:
    """The rows of a file that a rank's nodes get, and the slots they take, node by node.

    Parameters
    ----------
    parts : list of integer arrays
        The row numbers of each node, in the order in which the node lists them. A row may belong
        to several nodes.

    Examples
    --------
    >>> dealt = Dealt([np.array([0, 4]), np.array([1, 4])])
    >>> slots, places = dealt.within(3, 6)  # row 4 is the second of three
    >>> slots.tolist(), places.tolist()
    ([1, 3], [1, 1])
    """

    def __init__(self, parts: list[Numbers]) -> None:
        rows = np.concatenate(parts)
        self.cuts = [0, *itertools.accumulate(len(part) for part in parts)]
        self.order: Numbers = np.argsort(rows, kind="stable")
        self.ascending: Numbers = rows[self.order]

    def __len__(self) -> int:
        return len(self.order)

    def within(self, first: int, last: int) -> tuple[Numbers, Numbers]:
        """Slots that take a row from ``first`` to ``last``, and the rows' places after ``first``.

        The places ascend.
        """
        start, stop = np.searchsorted(self.ascending, [first, last])
        return self.order[start:stop], self.ascending[start:stop] - first

    def shards(self, X: Matrix, y: NDArray[np.float64]) -> list[Shard]:
        """Each node's rows, views of all of them."""
        return [Shard(row_view(X, a, b), y[a:b]) for a, b in itertools.pairwise(self.cuts)]


class Piece(NamedTuple):
    """Some rows, which belong into some slots."""

    X: Matrix
    slots: Numbers


class DenseSlots:
    """An array with a row for each slot."""

    def __init__(self, n_slots: int, layout: Layout) -> None:
        self.X = np.zeros((n_slots, layout.width), dtype=layout.dtype)

    def put(self, piece: Piece) -> None:
        """Copy rows into their slots; columns that a piece does not have stay zero."""
        X = piece.X if isinstance(piece.X, np.ndarray) else piece.X.toarray()
        self.X[_run(piece.slots), : X.shape[1]] = X

    def put_columns(self, first: int, piece: Piece) -> None:
        """Copy some columns of rows into their slots."""
        X = piece.X
        self.X[_run(piece.slots), first : first + X.shape[1]] = X

    def finish(self) -> Matrix:
        """The array."""
        return self.X


class CsrSlots:
    """A CSR matrix whose rows' sizes are known before their content."""

    def __init__(self, sizes: Numbers, layout: Layout) -> None:
        self.indptr: Numbers = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.data = np.empty(self.indptr[-1], dtype=layout.dtype)
        index_type = np.int32 if layout.width <= LARGEST_INDEX else np.int64
        self.indices = np.empty(self.indptr[-1], dtype=index_type)
        self.shape = (len(sizes), layout.width)

    def put(self, piece: Piece) -> None:
        """Copy rows into their slots; an array leaves its zeros behind."""
        X: Any = piece.X if issparse(piece.X) else csr_matrix(piece.X)
        first = self.indptr[piece.slots]
        if isinstance(_run(piece.slots), slice) and len(first):
            places: Any = slice(first[0], first[0] + X.nnz)
        else:
            places = np.repeat(first - X.indptr[:-1], np.diff(X.indptr)) + np.arange(X.nnz)
        self.data[places], self.indices[places] = X.data, X.indices

    def finish(self) -> Matrix:
        """The matrix."""
        return csr_of(self.data, self.indices, self.indptr, self.shape)


def lay_out(pieces: list[Piece], n_slots: int, layout: Layout) -> Matrix:
    """All pieces in one matrix; they are emptied on the way to save memory."""
    if len(pieces) == 1 and _is_laid(pieces[0], n_slots, layout):
        return pieces.pop().X
    if not layout.dense:
        for number, piece in enumerate(pieces):
            if not issparse(piece.X):
                pieces[number] = piece._replace(X=csr_matrix(piece.X))
        sizes = np.zeros(n_slots, dtype=np.int64)
        for X, slots in pieces:
            sizes[slots] = np.diff(X.indptr)  # type: ignore[union-attr]
    target = DenseSlots(n_slots, layout) if layout.dense else CsrSlots(sizes, layout)
    while pieces:
        target.put(pieces.pop())
    return target.finish()


def _is_laid(piece: Piece, n_slots: int, layout: Layout) -> bool:
    """Whether a piece is all rows in their order and layout already."""
    in_order = len(piece.slots) == n_slots and isinstance(_run(piece.slots), slice)
    kind = Layout(not issparse(piece.X), piece.X.shape[1], piece.X.dtype)
    return in_order and kind == layout


def _run(slots: Numbers) -> Any:
    """Consecutive slots as a slice, which is copied faster and without a list of places."""
    if len(slots) and slots[-1] - slots[0] + 1 == len(slots) and (np.diff(slots) == 1).all():
        return slice(slots[0], slots[-1] + 1)
    return slots

"""How a file of samples is read: whole, or only some rows of it.

A format is a class below `Reader`, listed in `adfs.data.files.READERS`. It gives
pieces; the functions here make one matrix of them, with one rule for its layout.
"""

from __future__ import annotations

import hashlib
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from adfs import checks
from adfs.agreement import Peers, agree
from adfs.data.columns import Columns, Survey
from adfs.data.matrices import LARGEST_INDEX, Matrix, Numbers, Samples, csr_of
from adfs.errors import DataError

END_BYTES = 1 << 16


class Piece(NamedTuple):
    """Some rows, their labels if the file has any, and their positions among those asked for."""

    X: Matrix
    y: NDArray[Any] | None
    positions: Numbers


class Selection(NamedTuple):
    """What of a file is read: how many columns, or which columns of a table by name.

    Attributes
    ----------
    n_features : int or None
        Number of columns, where it is known beforehand.
    target, features : str, tuple of str or None
        Column of the labels, and those of the features; None is all others.
    categorical : tuple of str
        Columns whose values are names even if they look like numbers.
    columns : Columns or None
        How columns become features, where a model knows it; the target may then be missing.
    all_columns : bool
        All columns of a table, without a target, whatever they hold.
    """

    n_features: int | None = None
    target: str | None = None
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    columns: Columns | None = None
    all_columns: bool = False


class Reader(Protocol):
    """One file, opened by all ranks together, of which each reads some rows.

    All errors are `DataError`. The constructor takes the ranks, the path, and what of it is read.
    In a table (CSV, Parquet) all rows of all files decide how a column becomes features: the files
    are surveyed first, and ``columns`` is set before rows are read.

    Attributes
    ----------
    n_features : int or None
        Number of columns; None where the widest row decides.
    labels : array of shape (n_samples,) or None
        All labels, where they are known without reading the rows.
    columns : Columns or None
        How the columns of a table become features; None if their columns have no names.
    """

    labels: NDArray[Any] | None = None
    columns: Columns | None = None

    @property
    def n_features(self) -> int | None: ...

    def __init__(self, peers: Peers, path: Path, selection: Selection) -> None: ...

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether a file is of this format."""
        ...

    def survey(self, rank: int, size: int) -> Survey | None:
        """What a part of the rows holds, after `count` if ``size > 1``; None if it is no table."""
        return None

    def count(self) -> int:
        """Rows of the file; all ranks call it, before they read some rows."""
        ...

    def read(self, rows: Numbers | None = None, keep: bool = True) -> Iterator[Piece]:
        """Rows in any order, some maybe twice; None is all of them, checked and in their order.

        Without ``keep`` the caller drops each piece, so they should be small.
        """
        ...


class Layout(NamedTuple):
    """How rows are stored: as an array or in CSR, with how many columns, of which type."""

    dense: bool
    width: int
    dtype: Any


class Facts(NamedTuple):
    """What the layout of all rows depends on, measured for some of them.

    ``n_filled`` counts the entries that are not zero, or are stored.
    """

    n_rows: int
    n_filled: int
    width: int
    dtype: str

    @classmethod
    def of(cls, X: Matrix, n_features: int | None) -> Facts:
        """Facts about some rows of a file with so many columns, if that is known."""
        n_filled = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz
        return cls(X.shape[0], int(n_filled), n_features or X.shape[1], X.dtype.str)


def common_layout(facts: Iterable[Facts]) -> Layout:
    """One layout for all rows, by the number of zeros in them.

    Examples
    --------
    >>> common_layout([Facts(2, 5, 3, "<f8"), Facts(1, 0, 4, "<f8")])
    Layout(dense=False, width=4, dtype=dtype('float64'))
    """
    n_rows, n_filled, widths, dtypes = zip(*facts, strict=True)
    dense = is_full(sum(n_filled), sum(n_rows), max(widths))
    return Layout(dense, max(widths), np.result_type(*map(np.dtype, dtypes)))


def is_full(n_filled: int, n_rows: int, width: int) -> bool:
    """Whether rows are stored as an array: at least half of their entries are not zero."""
    return 2 * int(n_filled) >= n_rows * width


def dense_if_full(X: csr_matrix[Any]) -> Matrix:
    """``X`` as an array or as it is, whichever takes less memory."""
    return X.toarray() if is_full(X.nnz, *X.shape) else X


def read_all(reader: Reader) -> tuple[Matrix, NDArray[Any] | None]:
    """All rows of a file in one process, and their labels if it has any."""
    pieces = list(reader.read())
    y = join_labels(pieces)
    layout = common_layout(Facts.of(X, reader.n_features) for X, _, _ in pieces)
    return lay_out(pieces, layout), y


def join_labels(pieces: list[Piece]) -> NDArray[Any] | None:
    """The labels of all pieces at their positions; None if the file has none."""
    parts = [y for _, y, _ in pieces if y is not None]
    if not parts:
        return None
    labels = np.concatenate(parts)
    labels[np.concatenate([positions for _, _, positions in pieces])] = np.concatenate(parts)
    return labels


def lay_out(pieces: list[Piece], layout: Layout) -> Matrix:
    """All pieces in one matrix. The list is emptied on the way, to save memory."""
    X, _, positions = pieces[0]
    as_stored = layout == Layout(not issparse(X), X.shape[1], np.dtype(X.dtype))
    if len(pieces) == 1 and as_stored and isinstance(_as_slice(positions), slice):
        return pieces.pop().X
    n_rows = sum(len(positions) for _, _, positions in pieces)
    if layout.dense:
        dense = np.zeros((n_rows, layout.width), dtype=layout.dtype)
        while pieces:
            X, _, positions = pieces.pop()
            rows = X if isinstance(X, np.ndarray) else X.toarray()
            dense[_as_slice(positions), : rows.shape[1]] = rows
        return dense
    sizes = np.zeros(n_rows + 1, dtype=np.int64)
    for number, (X, _, positions) in enumerate(pieces):
        part = csr_matrix(X) if isinstance(X, np.ndarray) else X
        pieces[number] = Piece(part, None, positions)
        sizes[positions + 1] = np.diff(part.indptr)
    indptr = np.cumsum(sizes)
    data = np.empty(indptr[-1], dtype=layout.dtype)
    indices = np.empty(indptr[-1], np.int32 if layout.width <= LARGEST_INDEX else np.int64)
    while pieces:
        part, _, positions = pieces.pop()
        assert not isinstance(part, np.ndarray)
        first = indptr[positions]
        if isinstance(_as_slice(positions), slice):
            places: Any = slice(first[0], first[0] + part.nnz)
        else:
            places = np.repeat(first - part.indptr[:-1], np.diff(part.indptr))
            places += np.arange(part.nnz)
        data[places], indices[places] = part.data, part.indices
    return csr_of(data, indices, indptr, (n_rows, layout.width))


def _as_slice(positions: Numbers) -> Any:
    """Consecutive positions as a slice, which is copied faster and needs no list of places."""
    if len(positions) and (np.diff(positions) == 1).all():
        return slice(positions[0], positions[-1] + 1)
    return positions


def check_n_features(n_features: int | None) -> int | None:
    """A number of columns, if one is given: a whole number that an index can reach."""
    if n_features is None:
        return None
    way_out = "leave it out to take the largest index of the data"
    return checks.whole("n_features", n_features, 1, LARGEST_INDEX, way_out)


def require_unnamed(peers: Peers, path: Path, kind: str, selection: Selection) -> None:
    """Refuse names of columns for a file whose columns have none."""
    named = {
        "--target": selection.target,
        "--features": selection.features,
        "--categorical": selection.categorical,
    }
    if flag := next((flag for flag, given in named.items() if given), None):
        error = DataError(
            f"{flag} names columns of a table, but {path} is a {kind} file, whose columns have no "
            "names; leave it out, or pass a .csv, .tsv or .parquet file."
        )
        agree(peers, error)


def require_labels(X: Matrix, y: NDArray[Any] | None, source: object) -> Samples:
    """Rows with labels, which only prediction does without."""
    if y is None:
        raise DataError(f"{source} must hold the labels y, but has none; save X and y.")
    return Samples(X, y)


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Every error while ``path`` is read, as one sentence."""
    try:
        yield
    except EOFError as error:
        raise DataError(
            f"{path} must be a whole compressed file, but ends too early; fetch it again."
        ) from error
    except (OSError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} cannot be read: {reason}; check the file.") from error


def digest_of(text: bytes) -> int:
    """A number that differs where the text differs."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)


def digest_of_ends(path: Path) -> int:
    """The same of a file's first and last bytes, which every rank can read in little time.

    The end of a .npz, .gz or .bz2 file holds checksums of all of it.
    """
    with path.open("rb") as file:
        head = file.read(END_BYTES)
        file.seek(max(0, file.seek(0, 2) - END_BYTES))
        return digest_of(head + file.read(END_BYTES))


def different_content(path: Path, first: int, second: int) -> DataError:
    """The error about a file whose content differs between two ranks, or between two readings."""
    if first == second:
        return DataError(f"{path} must not change while it is read, but it did; start again.")
    return DataError(
        f"{path} must be the same file on every rank, but its content on rank {second} is not "
        f"that on rank {first}; copy it again, or use one file per node ({{node}})."
    )

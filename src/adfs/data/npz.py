"""Reads and writes .npz files: arrays ``X`` and ``y``, or the parts of a CSR matrix; no pickles."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from adfs.agreement import Peers, attempt
from adfs.archives import Archive
from adfs.data import libsvm
from adfs.data.matrices import (
    MOST_COLUMNS,
    Facts,
    Matrix,
    Numbers,
    Piece,
    Vector,
    as_matrix,
    as_vector,
    check_kind,
    csr_of,
    index_fault,
    indptr_fault,
    widen,
)
from adfs.errors import DataError, shortened

ZIP_MAGIC = b"PK"
CSR_KEYS = ("X_data", "X_indices", "X_indptr", "X_shape")
LONGEST_LIST = 80  # letters of the names in an archive, in a message
MOST_ROWS = np.iinfo(np.int64).max


def save_npz(path: str | os.PathLike[str], X: Any, y: Any) -> None:
    """Write samples as `load_data` reads them: arrays ``X`` and ``y``, or CSR parts ``X_...``."""
    X = _checked_rows(X, path)
    y = as_vector(y, X.shape[0], f"{os.fspath(path)}: y")
    if isinstance(X, np.ndarray):
        arrays: dict[str, Any] = {"X": X}
    else:
        parts = (X.data, X.indices, X.indptr, np.array(X.shape))
        arrays = dict(zip(CSR_KEYS, parts, strict=True))
    try:
        with open(path, "wb") as file:
            np.savez(file, y=y, **arrays)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}; choose another.") from error


def is_npz(path: Path) -> bool:
    """Whether the suffix, or else the content, is that of a .npz file."""
    if path.suffix.lower() == ".npz":
        return True
    if not path.is_file():
        return False
    with libsvm.read_errors(path), path.open("rb") as file:
        return file.read(2) == ZIP_MAGIC


def read_npz(path: Path, n_features: int | None) -> tuple[Matrix, Vector | None]:
    """Rows and labels of a .npz file; the labels are None where it holds none."""
    stored = _StoredRows(path, Archive.read)
    width = _full_width(stored.shape[1], n_features, path)
    return widen(_checked_rows(stored.everything(), path), width), stored.labels


class NpzReader:
    """One .npz file, dense or CSR, read by several ranks; see `adfs.data.files.Reader`.

    The arrays stay on disk unless they are compressed; their checksums are compared on every rank.
    """

    n_features: int | None
    labels: Vector | None
    dense: bool | None

    def __init__(self, peers: Peers, path: Path, n_features: int | None) -> None:
        self.path = path
        self.stored = attempt(peers, lambda: _StoredRows(path, Archive.map))
        self.n_samples, width = self.stored.shape
        self.dense = self.stored.indptr is None
        self.labels = self.y = attempt(peers, lambda: require_labels(self.stored.labels, path))
        self.n_features = self.width = attempt(peers, lambda: _full_width(width, n_features, path))

    def read(self, rows: Numbers) -> tuple[list[Piece], Vector]:
        """Some rows in any order, checked, float32 or float64."""
        X = widen(_checked_rows(self.stored.take(rows), self.path), self.width)
        return [Piece(X, np.arange(len(rows)))], self.y[rows]

    def survey(self, first: int, last: int) -> tuple[Facts, Vector]:
        """Check the rows of a range, some at a time; facts about them, and their labels."""
        for block in self.stored.blocks(np.arange(first, last)):
            _checked_rows(self.stored.take(block), self.path)
        facts = Facts(last - first, 0, self.width, self.stored.dtype.str, self.dense)
        return facts, self.y[first:last]


class _StoredRows:
    """The arrays of a .npz file that fit together; rows are not checked yet.

    ``data`` is the array X, or the values of a CSR matrix where ``indptr`` is not None.
    """

    def __init__(self, path: Path, load: Callable[[Archive, str], NDArray[Any]]) -> None:
        self.path, archive = path, Archive(path)
        self.indptr: Numbers | None = None
        if _holds_csr(list(archive.members), path):
            self.data, self.indices = (load(archive, key) for key in CSR_KEYS[:2])
            indptr, shape = (archive.read(key) for key in CSR_KEYS[2:])
            with _valid_csr(path):
                self.shape = _csr_shape(self.data, self.indices, indptr, shape)
            self.indptr = indptr.astype(np.int64, copy=False)
        else:
            self.data = load(archive, "X")
            self.shape = self.data.shape  # type: ignore[assignment]
        check_kind(self.shape, self.data.dtype, f"{path}: X")
        single = self.data.dtype == np.float32
        self.dtype = np.dtype(np.float32 if single else np.float64)  # of the rows, once checked
        self.labels: Vector | None = None
        if "y" in archive.members:
            self.labels = as_vector(archive.read("y"), self.shape[0], f"{path}: y")

    def everything(self) -> Any:
        """All rows."""
        if self.indptr is None:
            return self.data
        with _valid_csr(self.path):
            _raise(index_fault(self.indices[: self.indptr[-1]], self.shape[1]))
            return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)

    def take(self, rows: Numbers) -> Any:
        """A copy of some rows in any order."""
        if self.indptr is None:
            return self.data[rows]
        sizes = self.indptr[rows + 1] - self.indptr[rows]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        data, indices = np.empty(bounds[-1], self.dtype), np.empty(bounds[-1], self.indices.dtype)
        first = 0
        for block in self.blocks(rows):
            last = first + len(block)
            part = slice(bounds[first], bounds[last])
            places = np.repeat(self.indptr[block] - bounds[first:last], sizes[first:last])
            places += np.arange(part.start, part.stop)
            data[part], indices[part] = self.data[places], self.indices[places]
            first = last
        with _valid_csr(self.path):
            _raise(index_fault(indices, self.shape[1]))
            return csr_matrix((data, indices, bounds), shape=(len(rows), self.shape[1]))

    def blocks(self, rows: Numbers) -> Iterator[Numbers]:
        """``rows`` in parts that take little memory; a CSR row has its mean size."""
        per_row = self.data.nbytes // self.shape[0] + 1
        step = max(1, libsvm.BLOCK_BYTES // per_row)
        yield from (rows[first : first + step] for first in range(0, len(rows), step))


def require_labels(labels: Vector | None, source: object) -> Vector:
    """Labels, which only prediction does without."""
    if labels is None:
        raise DataError(f"{source} must hold the labels y, but has none; save X and y.")
    return labels


def _checked_rows(source: Any, path: str | os.PathLike[str]) -> Matrix:
    """Finite floats, C-contiguous or CSR with sorted int32 indices."""
    X = as_matrix(source, f"{os.fspath(path)}: X", merge=False)
    return X if isinstance(X, np.ndarray) else csr_of(X.data, X.indices, X.indptr, X.shape)


def _holds_csr(names: list[str], path: Path) -> bool:
    """Whether the rows are in CSR parts, or else in ``X``."""
    if "X" in names:
        return False
    if all(key in names for key in CSR_KEYS):
        return True
    raise DataError(
        f"{path} must hold X, or {', '.join(CSR_KEYS)}, but holds "
        f"{shortened(', '.join(names), LONGEST_LIST) or 'nothing'}; save it again, for example "
        "with save_npz."
    )


def _full_width(width: int, n_features: int | None, path: Path) -> int:
    """The number of columns asked for, else that of the file."""
    if n_features is not None and width > n_features:
        raise DataError(
            f"{path} must have at most n_features={n_features} features, but has {width}; "
            "raise it or check the file."
        )
    return n_features or width


@contextmanager
def _valid_csr(path: Path) -> Iterator[None]:
    """Every error that keeps four arrays from being a CSR matrix, as one sentence."""
    try:
        yield
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise DataError(
            f"{path} must hold a valid CSR matrix, but: {error}; save it again."
        ) from error


def _csr_shape(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any]
) -> tuple[int, int]:
    """Rows and columns of four arrays that fit; of the first two it uses shape and type only."""
    if not all(part.dtype.kind in "iu" for part in (indices, indptr, shape)):
        raise TypeError("indices, indptr and shape are not whole numbers")
    n_samples, n_features = shape.tolist()
    if not (0 <= n_samples <= MOST_ROWS and 0 <= n_features <= MOST_COLUMNS):
        raise ValueError(f"no matrix has {n_samples} rows and {n_features} columns")
    (n_values,), (n_indices,) = data.shape, indices.shape
    _raise(indptr_fault(indptr, n_samples, min(n_values, n_indices)))
    return n_samples, n_features


def _raise(fault: str | None) -> None:
    if fault is not None:
        raise ValueError(fault)

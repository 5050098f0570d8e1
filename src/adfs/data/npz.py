"""Reads and writes .npz files: arrays ``X`` and ``y``, or the parts of a CSR matrix; no pickles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from adfs.agreement import Peers, attempt
from adfs.archives import Archive
from adfs.data import text_lines
from adfs.data.matrices import (
    MOST_COLUMNS,
    Matrix,
    Numbers,
    Vector,
    as_matrix,
    as_vector,
    check_kind,
    csr_of,
    index_fault,
    indptr_fault,
)
from adfs.data.reader import Piece, Reader, Selection, read_errors, require_unnamed
from adfs.errors import DataError, shortened

ZIP_MAGIC = b"PK"
CSR_KEYS = ("X_data", "X_indices", "X_indptr", "X_shape")
LONGEST_LIST = 80  # letters of the names in an archive, in a message
MOST_ROWS = np.iinfo(np.int64).max


def save_npz(path: str | os.PathLike[str], X: Any, y: Any) -> None:
    """Write samples as `load_data` reads them: arrays ``X`` and ``y``, or CSR parts ``X_...``."""
    X = _checked(X, path)
    y = as_vector(y, X.shape[0], f"{os.fspath(path)}: y")
    try:
        with open(path, "wb") as file:
            write_npz(file, X, y)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}; choose another.") from error


def write_npz(file: IO[bytes], X: Matrix, y: Vector) -> None:
    """The same to an open file, of samples that are checked."""
    if isinstance(X, np.ndarray):
        arrays: dict[str, Any] = {"X": X}
    else:
        parts = (X.data, X.indices, X.indptr, np.array(X.shape))
        arrays = dict(zip(CSR_KEYS, parts, strict=True))
    np.savez(file, y=y, **arrays)


class NpzReader(Reader):
    """One .npz file, dense or CSR.

    With ranks the arrays stay on disk unless they are compressed; their checksums are compared on
    every rank. ``data`` is the array X, or the values of a CSR matrix where ``indptr`` is not None.
    """

    n_features: int | None = None
    indptr: Numbers | None = None

    def __init__(self, peers: Peers, path: Path, selection: Selection) -> None:
        self.path, self.mapped = path, peers.size > 1
        require_unnamed(peers, path, ".npz", selection)
        attempt(peers, lambda: self._open(selection.n_features))

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the suffix, or else the content, is that of a .npz file."""
        if path.suffix.lower() == ".npz":
            return True
        if not path.is_file():
            return False
        with read_errors(path), path.open("rb") as file:
            return file.read(2) == ZIP_MAGIC

    def _open(self, n_features: int | None) -> None:
        """Load or map the arrays that fit together; rows are not checked yet."""
        path, archive = self.path, Archive(self.path)
        names = list(archive.members)
        if "X" in names:
            self.data = archive.read("X", self.mapped)
            shape = self.data.shape
        elif all(key in names for key in CSR_KEYS):
            self.data = archive.read("X_data", self.mapped)
            self.indices = archive.read("X_indices", self.mapped)
            indptr, sizes = archive.read("X_indptr"), archive.read("X_shape")
            with _valid_csr(path):
                shape = _csr_shape(self.data, self.indices, indptr, sizes)
            self.indptr = indptr.astype(np.int64, copy=False)
        else:
            raise DataError(
                f"{path} must hold X, or {', '.join(CSR_KEYS)}, but holds "
                f"{shortened(', '.join(names), LONGEST_LIST) or 'nothing'}; save it again, for "
                "example with save_npz."
            )
        check_kind(shape, self.data.dtype, f"{path}: X")
        self.n_samples, width = int(shape[0]), int(shape[1])
        if "y" in names:
            self.labels = as_vector(archive.read("y"), self.n_samples, f"{path}: y")
        if n_features is not None and width > n_features:
            raise DataError(
                f"{path} must have at most n_features={n_features} features, but has {width}; "
                "raise it or check the file."
            )
        self.width, self.n_features = width, n_features or width

    def count(self) -> int:
        return self.n_samples

    def read(self, rows: Numbers | None = None, keep: bool = True) -> Iterator[Piece]:
        """All rows, or some in any order, checked, float32 or float64; one piece if they are kept.

        Without ``keep``, several pieces.
        """
        if rows is None:
            yield Piece(self._checked_rows(), self.labels, np.arange(self.n_samples))
            return
        first = 0
        for part in [rows] if keep else self._blocks(rows):
            y = None if self.labels is None else self.labels[part]
            yield Piece(self._checked_rows(part), y, np.arange(first, first + len(part)))
            first += len(part)

    def _checked_rows(self, rows: Numbers | None = None) -> Matrix:
        """Some rows, or all of them."""
        if self.indptr is None:
            return _checked(self.data if rows is None else self.data[rows], self.path)
        data, indices, indptr = self._parts(rows, self.indptr)
        shape = (len(indptr) - 1, self.n_features)
        with _valid_csr(self.path):
            _raise(index_fault(indices, self.width))
            matrix = csr_matrix((data, indices, indptr), shape=shape)
        return _checked(matrix, self.path)

    def _parts(self, rows: Numbers | None, indptr: Numbers) -> tuple[NDArray[Any], ...]:
        """The three arrays of a CSR matrix of some rows, or of all."""
        if rows is None:
            return self.data[: indptr[-1]], self.indices[: indptr[-1]], indptr
        sizes = indptr[rows + 1] - indptr[rows]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        single = self.data.dtype == np.float32
        data = np.empty(bounds[-1], np.float32 if single else np.float64)
        indices = np.empty(bounds[-1], self.indices.dtype)
        first = 0
        for block in self._blocks(rows):
            last = first + len(block)
            part = slice(bounds[first], bounds[last])
            places = np.repeat(indptr[block] - bounds[first:last], sizes[first:last])
            places += np.arange(part.start, part.stop)
            data[part], indices[part] = self.data[places], self.indices[places]
            first = last
        return data, indices, bounds

    def _blocks(self, rows: Numbers) -> Iterator[Numbers]:
        """``rows`` in parts that take little memory; a CSR row has its mean size."""
        step = max(1, text_lines.BLOCK_BYTES // (self.data.nbytes // self.n_samples + 1))
        yield from (rows[first : first + step] for first in range(0, len(rows), step))


def _checked(source: Any, path: str | os.PathLike[str]) -> Matrix:
    """Finite floats, C-contiguous or CSR with sorted int32 indices."""
    X = as_matrix(source, f"{os.fspath(path)}: X", merge=False)
    return X if isinstance(X, np.ndarray) else csr_of(X.data, X.indices, X.indptr, X.shape)


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

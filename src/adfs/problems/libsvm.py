"""Reads LIBSVM text: one sample a line, ``label index:value ...``, indices from 1, ascending.

The text is decompressed and cut into blocks of whole lines, and scikit-learn parses each block. So
memory stays near the size of the result, a stream can be filtered as it passes, and a block that
fails is looked at again line by line, to name the line.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, SupportsInt, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from adfs.errors import DataError, ParameterError
from adfs.problems.line_faults import LARGEST_INDEX, first_fault
from adfs.problems.packed import open_text, reading, refuse_binary

Matrix: TypeAlias = "NDArray[Any] | csr_matrix[Any]"
Block: TypeAlias = "tuple[csr_matrix[Any], NDArray[np.float64]]"

BLOCK_BYTES = 4 << 20
DOUBTFUL = np.frombuffer(b" \t\n\r\x0b\x0c#", dtype=np.uint8)


class Samples(NamedTuple):
    """Rows ``X``, an array or a ``scipy.sparse.csr_matrix``, and their labels ``y``."""

    X: Matrix
    y: NDArray[np.float64]


class Lines(NamedTuple):
    """The lines of a text: where each begins (and the last ends), and which hold a sample."""

    bounds: NDArray[np.int64]
    samples: NDArray[np.int64]


def read_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Samples:
    r"""Read all samples of a LIBSVM file: plain, .gz, .bz2 or .xz.

    Parameters
    ----------
    path : str or path
        The file. Its first bytes say how it is compressed; a suffix that contradicts them is an
        error.
    n_features : int, optional
        Number of columns; the largest index of the file unless given.

    Returns
    -------
    Samples
        ``X`` of shape (n_samples, n_features) in float64: a C-contiguous array when at least half
        of the entries are non-zero, else a ``csr_matrix`` with int32 indices (int64 past 2^31
        entries). ``y`` holds the labels as the file has them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.txt"
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     X, y = read_libsvm(path)
    >>> X.tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    blocks = list(stream_libsvm(path, n_features))
    require_samples(path, len(blocks))
    X, y = join_blocks(blocks, n_features)
    return Samples(dense_if_full(X), y)


def require_samples(path: str | os.PathLike[str], count: int) -> None:
    """Refuse a file without samples."""
    if not count:
        raise DataError(f"{path} must hold at least one sample, but has none; check the file.")


def stream_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Iterator[Block]:
    """Consecutive samples (X, y), each X a CSR matrix as wide as its own largest index."""
    check_n_features(n_features)
    first_line = 1
    for text in text_blocks(Path(path)):
        block = parse(Path(path), text, itertools.count(first_line), n_features)
        first_line += text.count(b"\n")
        if len(block[1]):
            yield block


def check_n_features(n_features: int | None) -> None:
    """Refuse a number of columns that is none."""
    if n_features is not None and not (isinstance(n_features, Integral) and n_features >= 1):
        raise ParameterError(
            f"n_features={n_features!r} must be a whole number >= 1; leave it out to take the "
            "largest index of the data."
        )


def join_blocks(blocks: list[Block], n_features: int | None = None) -> Block:
    """One CSR matrix from consecutive blocks, which are emptied on the way to save memory."""
    sizes = [np.diff(X.indptr) for X, _ in blocks]
    indptr = np.concatenate([[0], *sizes]).cumsum()
    width = n_features or max(X.shape[1] for X, _ in blocks)
    y = np.concatenate([y for _, y in blocks])
    data, indices = np.empty(indptr[-1]), np.empty(indptr[-1], dtype=np.int32)
    end = len(data)
    while blocks:
        block, _ = blocks.pop()
        start = end - block.nnz
        data[start:end], indices[start:end] = block.data, block.indices
        end = start
    return csr_of(data, indices, indptr, (len(y), width)), y


def csr_of(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> csr_matrix[Any]:
    """The CSR matrix of three arrays, with int32 indices where they fit, else int64."""
    index_type: Any = np.int32 if max(len(data), *shape) <= LARGEST_INDEX else np.int64
    indices, indptr = (part.astype(index_type, copy=False) for part in (indices, indptr))
    return csr_matrix((data, indices, indptr), shape=shape)


def dense_if_full(X: csr_matrix[Any]) -> Matrix:
    """``X`` as an array when at least half of its entries are non-zero, else ``X`` itself."""
    return X.toarray() if is_full(X.nnz, X.shape[0], X.shape[1]) else X


def is_full(n_entries: SupportsInt, n_samples: int, n_features: int) -> bool:
    """Whether rows with so many non-zero entries are kept as an array."""
    return 2 * int(n_entries) >= n_samples * n_features


def parse(path: Path, text: bytes, numbers: Iterable[int], n_features: int | None) -> Block:
    """The samples of some whole lines; ``numbers`` are the lines' places in the file."""
    block = _parse(text, n_features)
    if block is None:
        raise first_fault(path, text, numbers, n_features)
    return block


def _parse(text: bytes, n_features: int | None) -> Block | None:
    """The samples of some whole lines, or None where a line breaks a rule."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(BytesIO(text), zero_based=False)
    except (ValueError, OverflowError):
        return None
    too_wide = n_features is not None and X.shape[1] > n_features
    if too_wide or not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        return None
    X.eliminate_zeros()
    return csr_of(X.data, X.indices, X.indptr, X.shape), y


def text_blocks(path: Path) -> Iterator[bytes]:
    """The file's text in blocks of whole lines, decompressed."""
    with reading(path), ExitStack() as stack:
        file, _ = open_text(path, stack)
        while text := file.read(BLOCK_BYTES) + file.readline():
            refuse_binary(path, text)
            yield text


def find_lines(text: bytes) -> Lines:
    """The lines of ``text``, without parsing them; blank lines and mere remarks are no samples.

    Most samples begin with a digit or a sign, so only other lines are looked at one by one.
    """
    letters = np.frombuffer(text, dtype=np.uint8)
    bounds = np.concatenate([[0], np.flatnonzero(letters == ord("\n")) + 1])
    if bounds[-1] != len(text):
        bounds = np.append(bounds, len(text))
    holds = ~np.isin(letters[bounds[:-1]], DOUBTFUL)
    for line in np.flatnonzero(~holds):
        words = text[bounds[line] : bounds[line + 1]].split(b"#")[0].split()
        holds[line] = len(words) > 0
    return Lines(bounds, np.flatnonzero(holds))

"""Reads LIBSVM text: one sample a line, ``label index:value ...``, indices from 1, ascending.

The text is decompressed and cut into blocks of whole lines, and scikit-learn parses each block. So
memory stays near the size of the result, a stream can be filtered as it passes, and a block that
fails is looked at again line by line, to name the line.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from adfs.errors import DataError, ParameterError

Matrix: TypeAlias = "NDArray[Any] | csr_matrix[Any]"
Block: TypeAlias = "tuple[csr_matrix[Any], NDArray[np.float64]]"

BLOCK_BYTES = 4 << 20
LARGEST_INDEX = np.iinfo(np.int32).max
MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
OPENERS: dict[str, Callable[[Any], Any]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}


class Samples(NamedTuple):
    """Rows ``X``, an array or a ``scipy.sparse.csr_matrix``, and their labels ``y``."""

    X: Matrix
    y: NDArray[np.float64]


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
    if not blocks:
        raise DataError(f"{path} must hold at least one sample, but has none; check the file.")
    X, y = join_blocks(blocks, n_features)
    return Samples(dense_if_full(X), y)


def stream_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Iterator[Block]:
    """Consecutive samples (X, y), each X a CSR matrix as wide as its own largest index."""
    if n_features is not None and not (isinstance(n_features, Integral) and n_features >= 1):
        raise ParameterError(
            f"n_features={n_features!r} must be a whole number >= 1; leave it out to take the "
            "largest index of the data."
        )
    first_line = 1
    for text in _text_blocks(Path(path)):
        block = _parse(text, n_features)
        if block is None:
            raise DataError(_first_fault(Path(path), text, first_line, n_features))
        first_line += text.count(b"\n")
        if len(block[1]):
            yield block


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
    return X.toarray() if 2 * X.nnz >= X.shape[0] * X.shape[1] else X


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


def _text_blocks(path: Path) -> Iterator[bytes]:
    """The file's text in blocks of whole lines, decompressed."""
    with ExitStack() as stack:
        try:
            file = _open(path, stack)
            while text := file.read(BLOCK_BYTES) + file.readline():
                if b"\0" in text:
                    raise DataError(
                        f"{path} must be LIBSVM text, but holds binary data; pass a text file, "
                        "packed or not, or a .npz file."
                    )
                yield text
        except EOFError as error:
            raise DataError(
                f"{path} must be a whole compressed file, but ends too early; fetch it again."
            ) from error
        except (OSError, zlib.error, lzma.LZMAError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"{path} cannot be read: {reason}; check the file.") from error


def _open(path: Path, stack: ExitStack) -> IO[bytes]:
    """The text of ``path``, decompressed as its first bytes say."""
    if path.is_dir():
        raise DataError(f"{path} must be a file, but is a folder; name a file in it.")
    if not path.exists():
        raise DataError(f"{path} must be an existing file, but there is none; check the name.")
    raw = stack.enter_context(path.open("rb"))
    head = raw.peek(6)[:6]
    packing = next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)
    promised = path.suffix.removeprefix(".").lower()
    if head and promised in MAGIC and promised != packing:
        raise DataError(
            f"{path} must hold {promised} data, as its suffix says, but holds "
            f"{packing or 'something else'}; rename the file or fetch it again."
        )
    return stack.enter_context(OPENERS[packing](raw)) if packing else raw


def _first_fault(path: Path, text: bytes, first_line: int, n_features: int | None) -> str:
    """The sentence about the first line of ``text`` that breaks a rule."""
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        fault = _line_fault(line, n_features)
        if fault:
            return f"{path}, line {number}: {fault}."
    return f"{path}, after line {first_line - 1}: this is not LIBSVM text; check the file."


def _line_fault(line: bytes, n_features: int | None) -> str | None:
    """What is wrong with one line: the rule, the value and the way out."""
    tokens = line.split(b"#")[0].split()
    if not tokens:
        return None
    label, *pairs = tokens
    if not math.isfinite(_number(label)):
        return (
            f"a line must begin with a finite label, not {_show(label)}; "
            "write 'label index:value ...', separated by spaces"
        )
    if pairs and pairs[0].startswith(b"qid:"):
        del pairs[0]
    previous = 0
    for pair in pairs:
        name, colon, value = pair.partition(b":")
        index = _whole_number(name)
        if not colon or index is None:
            return f"a feature must read index:value, not {_show(pair)}; check the separators"
        fault = _index_fault(index, previous, n_features)
        if fault:
            return fault
        if not math.isfinite(_number(value)):
            return f"a value must be a finite number, not {_show(value)}; remove or replace it"
        previous = index
    return None


def _index_fault(index: int, previous: int, n_features: int | None) -> str | None:
    """What is wrong with an index that follows ``previous`` in its row."""
    if index < 1:
        return f"LIBSVM indices start at 1, but {index} was found; add 1 to every index"
    if index <= previous:
        return (
            f"indices must ascend within a row, each once, but {index} follows {previous}; "
            "sort the row and merge what is double"
        )
    if index > (n_features or LARGEST_INDEX):
        limit = f"n_features={n_features}" if n_features else f"the limit {LARGEST_INDEX}"
        return f"index {index} is above {limit}; raise n_features or check the file"
    return None


def _whole_number(token: bytes) -> int | None:
    """The whole number a token spells, if it spells one."""
    try:
        return int(token)
    except ValueError:
        return None


def _number(token: bytes) -> float:
    """The number a token spells, NaN where it spells none."""
    try:
        return float(token)
    except ValueError:
        return math.nan


def _show(token: bytes) -> str:
    """A token, cut to a readable length, as a message shows it."""
    return repr(token[:30].decode("utf-8", "replace"))

"""Reads LIBSVM text: one sample per line, ``label index:value ...``, indices from 1, ascending.

The text is decompressed and cut into blocks of whole lines, and scikit-learn parses each block. So
memory stays near the size of the result, and a stream can be filtered as it passes. A block that
fails is read again line by line, to name the line.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix

from adfs import checks
from adfs.data.matrices import (
    LARGEST_INDEX,
    Facts,
    Numbers,
    Piece,
    Samples,
    Vector,
    common_layout,
    csr_of,
    dense_if_full,
    lay_out,
)
from adfs.errors import DataError

Block: TypeAlias = "tuple[csr_matrix[Any], Vector]"

BLOCK_BYTES = 4 << 20
LONGEST_LINE = 1 << 26  # bytes: some million features of one sample
MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
OPENERS: dict[str, Callable[[Any], Any]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
NOT_A_NUMBER = np.frombuffer(b" \t\n\r\x0b\x0c#", dtype=np.uint8)


class TextLines(NamedTuple):
    """The lines of a text: where each begins (and the last ends), and which hold a sample."""

    bounds: Numbers
    samples: Numbers


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
    n_features = check_n_features(n_features)
    pieces: list[Piece] = []
    labels, n_rows = [], 0
    for X, y in stream_libsvm(path, n_features):
        # Dense or CSR, whichever takes less memory.
        pieces.append(Piece(dense_if_full(X), np.arange(n_rows, n_rows + len(y))))
        labels.append(y)
        n_rows += len(y)
    require_samples(path, n_rows)
    layout = common_layout([Facts.of(pieces, n_features, None)])
    return Samples(lay_out(pieces, n_rows, layout), np.concatenate(labels))


def require_samples(path: str | os.PathLike[str], count: int) -> None:
    """Refuse a file without samples."""
    if not count:
        raise DataError(f"{path} must hold at least one sample, but has none; check the file.")


def stream_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Iterator[Block]:
    """Consecutive samples (X, y), each X a CSR matrix as wide as its own largest index."""
    file_path, first_line, n_features = Path(path), 1, check_n_features(n_features)
    with open_text(file_path) as (file, _):
        while text := read_lines(file_path, file, BLOCK_BYTES):
            block = parse(file_path, text, itertools.count(first_line), n_features)
            first_line += text.count(b"\n")
            if len(block[1]):
                yield block


def check_n_features(n_features: int | None) -> int | None:
    """A number of columns, if one is given: a whole number that an index can reach."""
    if n_features is None:
        return None
    way_out = "leave it out to take the largest index of the data"
    return checks.whole("n_features", n_features, 1, LARGEST_INDEX, way_out)


def parse(path: Path, text: bytes, numbers: Iterable[int], n_features: int | None) -> Block:
    """The samples of some whole lines; ``numbers`` are the line numbers, for an error message."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(BytesIO(text), zero_based=False)
    except (ValueError, OverflowError):
        raise first_error(path, text, numbers, n_features) from None
    too_wide = n_features is not None and X.shape[1] > n_features
    if too_wide or not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise first_error(path, text, numbers, n_features)
    X.eliminate_zeros()
    return csr_of(X.data, X.indices, X.indptr, X.shape), y


def find_lines(text: bytes) -> TextLines:
    """The lines of ``text``, without parsing them; blank lines and comments are not samples.

    Most samples begin with a digit or a sign, so only other lines are examined one by one.
    """
    letters = np.frombuffer(text, dtype=np.uint8)
    bounds = np.concatenate([[0], np.flatnonzero(letters == ord("\n")) + 1])
    if bounds[-1] != len(text):
        bounds = np.append(bounds, len(text))
    holds = ~np.isin(letters[bounds[:-1]], NOT_A_NUMBER)
    for line in np.flatnonzero(~holds):
        tokens = text[bounds[line] : bounds[line + 1]].split(b"#")[0].split()
        holds[line] = len(tokens) > 0
    return TextLines(bounds, np.flatnonzero(holds))


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


@contextmanager
def open_text(path: Path) -> Iterator[tuple[IO[bytes], str | None]]:
    """The text of ``path``, decompressed as its first bytes say, and the compression."""
    if path.is_dir():
        raise DataError(f"{path} must be a file, but is a folder; name a file in it.")
    if not path.exists():
        raise DataError(f"{path} must be an existing file, but there is none; check the name.")
    with read_errors(path), path.open("rb") as raw:
        head = raw.peek(6)[:6]
        found = next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)
        suffix = path.suffix.removeprefix(".").lower()
        if head and suffix in MAGIC and suffix != found:
            raise DataError(
                f"{path} must hold {suffix} data, as its suffix says, but holds "
                f"{found or 'something else'}; rename the file or fetch it again."
            )
        if found is None:
            yield raw, None
        else:
            with OPENERS[found](raw) as file:
                yield file, found


def read_lines(path: Path, file: IO[bytes], n_bytes: int) -> bytes:
    """The next ``n_bytes`` or so, in whole lines; what is not text is refused."""
    text = _require_text(path, file.read(n_bytes))
    return text if text.endswith(b"\n") else text + rest_of_line(path, file)


def rest_of_line(path: Path, file: IO[bytes]) -> bytes:
    """The rest of a line of limited length."""
    text = _require_text(path, file.readline(LONGEST_LINE))
    if len(text) == LONGEST_LINE and not text.endswith(b"\n"):
        raise DataError(
            f"{path} must have lines of at most {LONGEST_LINE >> 20} MB, but has a longer one; "
            "check the file, or save its rows as a .npz file."
        )
    return text


def _require_text(path: Path, text: bytes) -> bytes:
    """Refuse a zero byte, which LIBSVM text does not have."""
    if b"\0" in text:
        raise DataError(
            f"{path} must be LIBSVM text, but holds binary data; pass a text file, "
            "compressed or not, or a .npz file."
        )
    return text


class LineError(DataError):
    """A line that breaks a rule; ``order`` is its number, so that the first one is reported."""

    def __init__(self, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.order = line


def first_error(
    path: Path, text: bytes, numbers: Iterable[int], n_features: int | None
) -> LineError:
    """The error about the first line of ``text`` that breaks a rule.

    The numbers of the lines may have gaps, where ``text`` was picked from a longer one.
    """
    first = None
    for number, line in zip(numbers, text.split(b"\n"), strict=False):
        first = number if first is None else first
        broken_rule = _broken_rule(line, n_features)
        if broken_rule:
            return LineError(f"{path}, line {number}: {broken_rule}.", number)
    first = first or 1
    return LineError(
        f"{path}, after line {first - 1}: this is not LIBSVM text; check the file.", first
    )


def _broken_rule(line: bytes, n_features: int | None) -> str | None:
    """The first rule that a line breaks, with the value and the way out."""
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
        try:
            index = int(name)
        except ValueError:
            colon = b""
        if not colon:
            return f"a feature must read index:value, not {_show(pair)}; check the separators"
        if index < 1:
            return f"LIBSVM indices start at 1, but {index} was found; add 1 to every index"
        if index <= previous:
            return (
                f"indices must ascend within a row, each once, but {index} follows {previous}; "
                "sort the row and merge what is double"
            )
        if n_features and index > n_features:
            return f"index {index} is above n_features={n_features}; raise it or check the file"
        if index > LARGEST_INDEX:
            return f"index {index} is above the limit {LARGEST_INDEX}; check the file"
        if not math.isfinite(_number(value)):
            return f"a value must be a finite number, not {_show(value)}; remove or replace it"
        previous = index
    return None


def _number(token: bytes) -> float:
    """The number that a token spells; NaN where it spells none."""
    try:
        return float(token)
    except ValueError:
        return math.nan


def _show(token: bytes) -> str:
    """A token, cut to a readable length, as a message shows it."""
    return repr(token[:30].decode("utf-8", "replace"))

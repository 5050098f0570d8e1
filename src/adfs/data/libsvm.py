"""Reads LIBSVM text: one sample per line, ``label index:value ...``, indices from 1, ascending.

The text is decompressed and cut into blocks of whole lines, so memory stays near the size of the
result, and a stream can be filtered as it passes. Large blocks, and those with comments, are parsed
by scikit-learn; small ones by NumPy, in less time than scikit-learn takes to be imported. A block
that fails is read again line by line, to name the line.

Where ranks read some rows each, they first count the rows and lines of all blocks together, each in
its part of the bytes. With the table of all blocks a rank finds the bytes and the line number of
any row without reading the text before it. A compressed file has no such shortcut: rank 0 counts
it, and every rank decompresses it up to its last row.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix

from adfs.agreement import Alone, Peers, attempt
from adfs.data.matrices import LARGEST_INDEX, Numbers, Samples, Vector, csr_of
from adfs.data.reader import (
    Piece,
    check_n_features,
    dense_if_full,
    different_content,
    digest_of,
    read_all,
    read_errors,
    require_labels,
)
from adfs.errors import DataError

Block: TypeAlias = "tuple[csr_matrix[Any], Vector]"

BLOCK_BYTES = 4 << 20
SMALLEST_BLOCK = 1 << 16
BLOCKS_PER_RANK = 16  # at least, in a large file: so little is read beyond the rows of a rank
LONGEST_LINE = 1 << 26  # bytes: some million features of one sample
MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
OPENERS: dict[str, Callable[[Any], Any]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
NOT_A_NUMBER = np.frombuffer(b" \t\n\r\x0b\x0c#", dtype=np.uint8)
COLUMNS = 5  # of a table of blocks
NUMBER = rb"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
LINE = re.compile(rb"%b(?:[ \t]+\d+:%b)*[ \t\r]*\n" % (NUMBER, NUMBER))  # without a comment


def read_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Samples:
    r"""Read all samples of a LIBSVM file: plain, .gz, .bz2 or .xz, as its first bytes say.

    ``X`` has ``n_features`` columns, else as many as the largest index: a C-contiguous float64
    array when at least half of the entries are non-zero, else a ``csr_matrix`` with int32 indices
    (int64 past 2^31 entries). ``y`` holds the labels as the file has them.

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
    reader = LibsvmReader(Alone(), Path(path), check_n_features(n_features))
    return require_labels(*read_all(reader), path)


class LibsvmReader:
    """One LIBSVM file, plain or compressed; see `adfs.data.reader.Reader`."""

    labels: Vector | None = None  # all rows would have to be read
    dense: bool | None = None

    def __init__(self, peers: Peers, path: Path, n_features: int | None) -> None:
        self.peers, self.path, self.n_features = peers, path, n_features

    @staticmethod
    def recognises(path: Path) -> bool:
        """Any file that no other format takes."""
        return True

    def count(self) -> int:
        """Count the rows, each rank in its part of the bytes, and keep the table of all blocks."""
        peers = self.peers
        counts = peers.gather(attempt(peers, lambda: count_part(self.path, peers.rank, peers.size)))
        self._offset, self._length, self._digest, rows, lines = (
            np.concatenate(counts).reshape(-1, COLUMNS).T
        )
        self._counted_by = np.repeat(
            np.arange(peers.size), [len(each) // COLUMNS for each in counts]
        )
        # One entry more, for the end of the file.
        self._first_row = np.concatenate([[0], np.cumsum(rows)])
        self._first_line = np.concatenate([[1], 1 + np.cumsum(lines)])
        n_samples = int(self._first_row[-1])
        attempt(peers, lambda: _require_samples(self.path, n_samples))
        return n_samples

    def read(self, rows: Numbers | None = None, keep: bool = True) -> Iterator[Piece]:
        """All rows, or some in any order; each is parsed once, even if it is asked for twice."""
        if rows is None:
            yield from self._read_all()
            return
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        for number, text in self._blocks(ascending):
            first_row, last_row = self._first_row[number : number + 2]
            start, stop = np.searchsorted(ascending, [first_row, last_row])
            if start == stop:
                continue
            places, take = np.unique(ascending[start:stop] - first_row, return_inverse=True)
            bounds, samples = find_lines(text)
            lines = samples[places]
            starts, stops = (bounds[lines + k].tolist() for k in (0, 1))
            if lines[-1] - lines[0] + 1 == len(lines):
                text = text[starts[0] : stops[-1]]
            else:
                text = b"".join(text[a:b] for a, b in zip(starts, stops, strict=True))
            numbers = (self._first_line[number] + lines).tolist()
            X, y = parse(self.path, text, numbers, self.n_features)
            if len(places) < stop - start:
                X, y = X[take], y[take]
            yield Piece(dense_if_full(X), y, order[start:stop])

    def _read_all(self) -> Iterator[Piece]:
        n_rows, first_line = 0, 1
        with open_text(self.path) as (file, _):
            while text := read_lines(self.path, file, BLOCK_BYTES):
                X, y = parse(self.path, text, itertools.count(first_line), self.n_features)
                if len(y):
                    yield Piece(dense_if_full(X), y, np.arange(n_rows, n_rows + len(y)))
                n_rows += len(y)
                first_line += text.count(b"\n")
        _require_samples(self.path, n_rows)

    def _blocks(self, rows: Numbers) -> Iterator[tuple[int, bytes]]:
        """Number and text of the blocks that hold these ascending rows; of all before if packed.

        Every rank that reads a block compares it with the digest of the rank that counted it.
        """
        numbers = np.unique(np.searchsorted(self._first_row, rows, side="right") - 1)
        with open_text(self.path) as (file, compression):
            if compression and len(numbers):
                numbers = np.arange(numbers[-1] + 1)
            for number in numbers.tolist():
                file.seek(self._offset[number])
                text = file.read(self._length[number])
                if digest_of(text) != self._digest[number]:
                    counted_by = int(self._counted_by[number])
                    raise different_content(self.path, counted_by, self.peers.rank)
                yield number, text


def count_part(path: Path, rank: int, size: int) -> Numbers:
    """Place, length, digest, rows and lines of each block that begins in one part of the bytes."""
    with open_text(path) as (file, compression):
        if compression:
            start, stop = 0, 0 if rank else math.inf
            n_bytes = BLOCK_BYTES
        else:
            end = file.seek(0, 2)
            start, stop = rank * end // size, (rank + 1) * end // size
            n_bytes = min(BLOCK_BYTES, max(SMALLEST_BLOCK, end // (size * BLOCKS_PER_RANK)))
        counts, at = [], start
        file.seek(max(0, start - 1))
        if start:
            # A line belongs to the part where it begins: the rest of the line before is skipped.
            at += len(_rest_of_line(path, file)) - 1
        while at < stop and (text := read_lines(path, file, int(min(n_bytes, stop - at)))):
            n_rows = len(find_lines(text)[1])
            counts += [at, len(text), digest_of(text), n_rows, text.count(b"\n")]
            at += len(text)
    return np.array(counts, dtype=np.int64)


def _require_samples(path: Path, count: int) -> None:
    if not count:
        raise DataError(f"{path} must hold at least one sample, but has none; check the file.")


def parse(path: Path, text: bytes, numbers: Iterable[int], n_features: int | None) -> Block:
    """The samples of some whole lines; ``numbers`` are the line numbers, for an error message."""
    try:
        X, y = (len(text) < BLOCK_BYTES and _parse_numbers(text)) or _parse_any(text)
    except (ValueError, OverflowError):
        raise _first_error(path, text, numbers, n_features) from None
    too_wide = n_features is not None and X.shape[1] > n_features
    if too_wide or not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise _first_error(path, text, numbers, n_features)
    X.eliminate_zeros()
    return csr_of(X.data, X.indices, X.indptr, X.shape), y


def _parse_any(text: bytes) -> Block:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(BytesIO(text), zero_based=False)
    return X, y


def _parse_numbers(text: bytes) -> Block | None:
    """The same for lines of numbers without comments; None if a line holds anything else."""
    if not text.endswith(b"\n"):
        text += b"\n"
    if LINE.sub(b"", text):
        return None
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    indptr = np.searchsorted(np.flatnonzero(letters == ord(":")), ends)
    indptr = np.concatenate([[0], indptr])
    numbers = np.fromstring(text.replace(b":", b" "), sep=" ")
    labels = 2 * indptr[:-1] + np.arange(len(ends))
    columns, values = np.delete(numbers, labels).reshape(-1, 2).T
    rises = np.diff(columns, prepend=0.0) > 0
    rises[indptr[:-1][np.diff(indptr) > 0]] = True
    if not rises.all() or not (columns >= 1).all() or not (columns <= LARGEST_INDEX).all():
        return None
    width = int(columns.max(initial=1.0))
    X = csr_matrix((values.copy(), columns.astype(np.int32) - 1, indptr), shape=(len(ends), width))
    return X, numbers[labels]


def find_lines(text: bytes) -> tuple[Numbers, Numbers]:
    """Where each line begins (and the last ends), and which lines hold a sample, without parsing.

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
    return bounds, np.flatnonzero(holds)


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
    return text if text.endswith(b"\n") else text + _rest_of_line(path, file)


def _rest_of_line(path: Path, file: IO[bytes]) -> bytes:
    text = _require_text(path, file.readline(LONGEST_LINE))
    if len(text) == LONGEST_LINE and not text.endswith(b"\n"):
        raise DataError(
            f"{path} must have lines of at most {LONGEST_LINE >> 20} MB, but has a longer one; "
            "check the file, or save its rows as a .npz file."
        )
    return text


def _require_text(path: Path, text: bytes) -> bytes:
    if b"\0" in text:
        raise DataError(
            f"{path} must be LIBSVM text, but holds binary data; pass a text file, "
            "compressed or not, or a .npz file."
        )
    return text


def _first_error(
    path: Path, text: bytes, numbers: Iterable[int], n_features: int | None
) -> DataError:
    """The error about the first line of ``text`` that breaks a rule.

    The numbers of the lines may have gaps, where ``text`` was picked from a longer one.
    """
    lines = list(zip(numbers, text.split(b"\n"), strict=False))
    order = lines[0][0]
    error = DataError(f"{path}, after line {order - 1}: this is not LIBSVM text; check the file.")
    for number, line in lines:
        if broken_rule := _broken_rule(line, n_features):
            order, error = number, DataError(f"{path}, line {number}: {broken_rule}.")
            break
    error.order = order
    return error


def _broken_rule(line: bytes, n_features: int | None) -> str | None:
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
    try:
        return float(token)
    except ValueError:
        return math.nan


def _show(token: bytes) -> str:
    return repr(token[:30].decode("utf-8", "replace"))

"""Reads text with one sample per line, plain or compressed: whole, or only some lines of it.

The text is decompressed and cut into blocks of whole lines, so memory stays near the size of the
result, and a stream can be filtered as it passes.

Where ranks read some rows each, they first count the rows and lines of all blocks together, each in
its part of the bytes. With the table of all blocks a rank finds the bytes and the line number of
any row without reading the text before it. A compressed file has no such shortcut: rank 0 counts
it, and every rank decompresses it up to its last row.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adfs.agreement import Peers, attempt
from adfs.data.matrices import Matrix, Numbers
from adfs.data.reader import Piece, Reader, Selection, different_content, digest_of, read_errors
from adfs.errors import DataError

Block: TypeAlias = "tuple[Matrix, NDArray[Any] | None]"

BLOCK_BYTES = 4 << 20
SMALLEST_BLOCK = 1 << 16
BLOCKS_PER_RANK = 16  # at least, in a large file: so little is read beyond the rows of a rank
LONGEST_LINE = 1 << 26  # bytes: some million features of one sample
MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\x00"}
OPENERS: dict[str, Callable[[Any], Any]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
MAYBE_EMPTY = np.frombuffer(b" \t\n\r\x0b\x0c#", dtype=np.uint8)  # how a line without sample begins
COLUMNS = 5  # of a table of blocks


class LineReader(Reader):
    """One file of lines; a format says how they are parsed.

    ``body`` is where the samples begin, in bytes, and ``first_line`` the number of the line there.
    """

    kind = "text"
    body, first_line = 0, 1

    def __init__(self, peers: Peers, path: Path, selection: Selection) -> None:
        self.peers, self.path, self.selection = peers, path, selection

    def parse(self, text: bytes, numbers: Sequence[int]) -> Block:
        """The samples of some whole lines; ``numbers`` are the line numbers, for messages."""
        raise NotImplementedError

    def holds_sample(self, line: bytes) -> bool:
        """Whether a line that begins with white space or ``#`` holds a sample."""
        raise NotImplementedError

    def count(self) -> int:
        """Count the rows, each rank in its part of the bytes, and keep the table of all blocks."""
        peers = self.peers
        counts = peers.gather(attempt(peers, lambda: self.count_part(peers.rank, peers.size)))
        self._offset, self._length, self._digest, rows, lines = np.concatenate(counts).T
        self._counted_by = np.repeat(np.arange(peers.size), list(map(len, counts)))
        # One entry more, for the end of the file.
        self._first_row = np.concatenate([[0], np.cumsum(rows)])
        self._first_line = self.first_line + np.concatenate([[0], np.cumsum(lines)])
        n_samples = int(self._first_row[-1])
        attempt(peers, lambda: self.require_samples(n_samples))
        return n_samples

    def read(self, rows: Numbers | None = None, keep: bool = True) -> Iterator[Piece]:
        """All rows, or some in any order; each is parsed once, even if it is asked for twice."""
        if rows is None:
            yield from self._read_all()
            return
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        numbers = np.unique(np.searchsorted(self._first_row, ascending, side="right") - 1)
        for number, text in self._blocks(numbers):
            first_row, last_row = self._first_row[number : number + 2]
            start, stop = np.searchsorted(ascending, [first_row, last_row])
            if start == stop:
                continue
            places, take = np.unique(ascending[start:stop] - first_row, return_inverse=True)
            bounds, samples = self.find_lines(text)
            lines = samples[places]
            starts, stops = (bounds[lines + k].tolist() for k in (0, 1))
            if lines[-1] - lines[0] + 1 == len(lines):
                text = text[starts[0] : stops[-1]]
            else:
                text = b"".join(text[a:b] for a, b in zip(starts, stops, strict=True))
            X, y = self.parse(text, (self._first_line[number] + lines).tolist())
            if len(places) < stop - start:
                X, y = X[take], None if y is None else y[take]
            yield Piece(X, y, order[start:stop])

    def _read_all(self) -> Iterator[Piece]:
        n_rows = 0
        for first_line, text in self.texts():
            X, y = self.parse(text, line_numbers(first_line, text))
            n_new = X.shape[0]
            if n_new:
                yield Piece(X, y, np.arange(n_rows, n_rows + n_new))
            n_rows += n_new
        self.require_samples(n_rows)

    def texts(self) -> Iterator[tuple[int, bytes]]:
        """The samples of the whole file in blocks of whole lines, with the first line's number."""
        first_line = self.first_line
        with open_text(self.path) as (file, _):
            file.read(self.body)
            while text := self.read_lines(file, BLOCK_BYTES):
                yield first_line, text
                first_line += text.count(b"\n")

    def own_texts(self, rank: int) -> Iterator[tuple[int, bytes]]:
        """The blocks that a rank has counted, with the first line's number."""
        for number, text in self._blocks(np.flatnonzero(self._counted_by == rank)):
            yield int(self._first_line[number]), text

    def _blocks(self, numbers: Numbers) -> Iterator[tuple[int, bytes]]:
        """Number and text of these blocks; also of all before if the file is compressed.

        Every rank that reads a block compares it with the digest of the rank that counted it.
        """
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

    def count_part(self, rank: int, size: int) -> Numbers:
        """For each block that begins in a part of the bytes: place, length, digest, rows, lines."""
        with open_text(self.path) as (file, compression):
            if compression:
                start, stop = self.body, 0 if rank else math.inf
                n_bytes = BLOCK_BYTES
            else:
                end = file.seek(0, 2)
                n_body = end - self.body
                start, stop = (self.body + k * n_body // size for k in (rank, rank + 1))
                n_bytes = min(BLOCK_BYTES, max(SMALLEST_BLOCK, end // (size * BLOCKS_PER_RANK)))
            counts, at = [], start
            file.seek(max(self.body, start - 1))
            if start > self.body:
                # A line belongs to the part where it begins: the end of the one before is skipped.
                at += len(self._rest_of_line(file)) - 1
            while at < stop and (text := self.read_lines(file, int(min(n_bytes, stop - at)))):
                n_rows = len(self.find_lines(text)[1])
                counts.append((at, len(text), digest_of(text), n_rows, text.count(b"\n")))
                at += len(text)
        return np.array(counts, dtype=np.int64).reshape(-1, COLUMNS)

    def require_samples(self, count: int) -> None:
        """Refuse a file without rows."""
        if not count:
            raise DataError(
                f"{self.path} must hold at least one sample, but has none; check the file."
            )

    def find_lines(self, text: bytes) -> tuple[Numbers, Numbers]:
        """Where each line begins (and the last ends), and which lines hold a sample; no parsing.

        Most samples begin with a digit or a sign, so only other lines are examined one by one.
        """
        letters = np.frombuffer(text, dtype=np.uint8)
        bounds = np.concatenate([[0], np.flatnonzero(letters == ord("\n")) + 1])
        if bounds[-1] != len(text):
            bounds = np.append(bounds, len(text))
        holds = ~np.isin(letters[bounds[:-1]], MAYBE_EMPTY)
        for line in np.flatnonzero(~holds):
            holds[line] = self.holds_sample(text[bounds[line] : bounds[line + 1]])
        return bounds, np.flatnonzero(holds)

    def read_lines(self, file: IO[bytes], n_bytes: int) -> bytes:
        """The next ``n_bytes`` or so, in whole lines; what is not text is refused."""
        text = self._require_text(file.read(n_bytes))
        return text if text.endswith(b"\n") else text + self._rest_of_line(file)

    def _rest_of_line(self, file: IO[bytes]) -> bytes:
        text = self._require_text(file.readline(LONGEST_LINE))
        if len(text) == LONGEST_LINE and not text.endswith(b"\n"):
            raise DataError(
                f"{self.path} must have lines of at most {LONGEST_LINE >> 20} MB, but has a longer "
                "one; check the file, or save its rows as a .npz file."
            )
        return text

    def _require_text(self, text: bytes) -> bytes:
        if b"\0" in text:
            raise DataError(
                f"{self.path} must be {self.kind}, but holds binary data; pass a text file, "
                "compressed or not, a .parquet or a .npz file."
            )
        return text


def line_numbers(first: int, text: bytes) -> range:
    """Numbers of the lines of a text whose first line has this number."""
    return range(first, first + text.count(b"\n") + 1)


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

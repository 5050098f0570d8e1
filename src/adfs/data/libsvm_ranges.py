"""The rows of one LIBSVM file that a rank reads: only the bytes of its own rows, parsed once.

A block is some whole lines. The ranks count the rows and lines of all blocks together, each in its
part of the bytes. With the table of all blocks a rank finds the bytes and the line number of any
row without reading the text before it. A compressed file has no such shortcut: rank 0 counts it,
and every rank decompresses it up to its last row.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from adfs.agreement import Peers, attempt
from adfs.data import libsvm
from adfs.data.libsvm import (
    Block,
    TextLines,
    check_n_features,
    find_lines,
    open_text,
    parse,
    read_lines,
    require_samples,
    rest_of_line,
)
from adfs.data.matrices import Facts, Numbers, Piece, Vector, dense_if_full
from adfs.errors import DataError

SMALLEST_BLOCK = 1 << 16
END_BYTES = 1 << 16
BLOCKS_PER_RANK = 16  # at least, in a large file: so little is read beyond the rows of a rank
COLUMNS = 5


class TextBlock(NamedTuple):
    """Whole lines of a file: the numbers of the first row and of the first line, and the text."""

    first_row: int
    first_line: int
    text: bytes
    lines: TextLines

    def parse(self, path: Path, places: Numbers, n_features: int | None) -> Block:
        """Some samples, numbered within the block in ascending order."""
        lines = self.lines.samples[places]
        starts, stops = (self.lines.bounds[lines + k].tolist() for k in (0, 1))
        if lines[-1] - lines[0] + 1 == len(lines):
            text = self.text[starts[0] : stops[-1]]
        else:
            text = b"".join(self.text[a:b] for a, b in zip(starts, stops, strict=True))
        return parse(path, text, (self.first_line + lines).tolist(), n_features)


class BlockTable(NamedTuple):
    """For each block its place and length in bytes, its first row and its first line.

    ``first_row`` and ``first_line`` have one entry more, for the end of the file. ``digest`` is
    that of the text which the rank ``counted_by`` read. Every rank that reads the block compares.
    """

    offset: Numbers
    length: Numbers
    digest: Numbers
    counted_by: Numbers
    first_row: Numbers
    first_line: Numbers

    @classmethod
    def of(cls, counts: list[Numbers]) -> BlockTable:
        """From the counts of all ranks, rank 0 first."""
        offset, length, digest, rows, lines = np.concatenate(counts).reshape(-1, COLUMNS).T
        counted_by = np.repeat(np.arange(len(counts)), [len(each) // COLUMNS for each in counts])
        first_row = np.concatenate([[0], np.cumsum(rows)])
        first_line = np.concatenate([[1], 1 + np.cumsum(lines)])
        return cls(offset, length, digest, counted_by, first_row, first_line)


class LibsvmReader:
    """One LIBSVM file, plain or compressed, read by several ranks; see `adfs.data.files.Reader`."""

    labels: Vector | None = None  # all rows would have to be read
    dense: bool | None = None

    def __init__(self, peers: Peers, path: Path, n_features: int | None) -> None:
        self.path, self.rank = path, peers.rank
        self.n_features = attempt(peers, lambda: check_n_features(n_features))
        counts = attempt(peers, lambda: count_part(path, peers.rank, peers.size))
        self.table = BlockTable.of(peers.gather(counts))
        self.n_samples = int(self.table.first_row[-1])
        attempt(peers, lambda: require_samples(path, self.n_samples))

    def read(self, rows: Numbers) -> tuple[list[Piece], Vector]:
        """Some rows in any order; each is parsed once, even if it is asked for twice."""
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        y, pieces = np.empty(len(rows)), []
        for block in self._blocks(ascending):
            last_row = block.first_row + len(block.lines.samples)
            start, stop = np.searchsorted(ascending, [block.first_row, last_row])
            if start == stop:
                continue
            places, take = np.unique(ascending[start:stop] - block.first_row, return_inverse=True)
            X, labels = block.parse(self.path, places, self.n_features)
            if len(places) < stop - start:
                X, labels = X[take], labels[take]
            y[order[start:stop]] = labels
            # Dense or CSR, whichever takes less memory.
            pieces.append(Piece(dense_if_full(X), order[start:stop]))
        return pieces, y

    def survey(self, first: int, last: int) -> tuple[Facts, Vector]:
        """Check the rows of a range; facts about them, and their labels."""
        n_filled, width, labels = 0, 1, [np.empty(0)]
        for block in self._blocks(np.arange(first, last)):
            last_row = block.first_row + len(block.lines.samples)
            rows = np.arange(max(first, block.first_row), min(last, last_row))
            if len(rows):
                X, y = block.parse(self.path, rows - block.first_row, self.n_features)
                n_filled, width = n_filled + X.nnz, max(width, X.shape[1])
                labels.append(y)
        return (
            Facts(last - first, n_filled, self.n_features or width, "<f8", None),
            np.concatenate(labels),
        )

    def _blocks(self, rows: Numbers) -> Iterator[TextBlock]:
        """The blocks that hold some of these ascending rows, and those before if compressed."""
        table = self.table
        numbers = np.unique(np.searchsorted(table.first_row, rows, side="right") - 1)
        with open_text(self.path) as (file, compression):
            if compression and len(numbers):
                numbers = np.arange(numbers[-1] + 1)
            for number in numbers.tolist():
                file.seek(table.offset[number])
                text = file.read(table.length[number])
                if digest_of(text) != table.digest[number]:
                    raise different_content(self.path, int(table.counted_by[number]), self.rank)
                first_row, first_line = table.first_row[number], table.first_line[number]
                yield TextBlock(int(first_row), int(first_line), text, find_lines(text))


def count_part(path: Path, rank: int, size: int) -> Numbers:
    """Place, length, digest, rows and lines of each block that begins in one part of the bytes."""
    with open_text(path) as (file, compression):
        if compression:
            start, stop = 0, 0 if rank else math.inf
            n_bytes = libsvm.BLOCK_BYTES
        else:
            end = file.seek(0, 2)
            start, stop = rank * end // size, (rank + 1) * end // size
            n_bytes = max(SMALLEST_BLOCK, end // (size * BLOCKS_PER_RANK))
        counts = list(_counted(path, file, start, stop, min(n_bytes, libsvm.BLOCK_BYTES)))
    return np.array(counts, dtype=np.int64).reshape(-1)


def _counted(
    path: Path, file: IO[bytes], start: int, stop: float, n_bytes: int
) -> Iterator[tuple[int, int, int, int, int]]:
    """The blocks whose first line begins between ``start`` and ``stop``."""
    at = start
    file.seek(max(0, start - 1))
    if start:
        # A line belongs to the part where it begins, so the rest of the line before is skipped.
        at += len(rest_of_line(path, file)) - 1
    while at < stop and (text := read_lines(path, file, int(min(n_bytes, stop - at)))):
        yield at, len(text), digest_of(text), len(find_lines(text).samples), text.count(b"\n")
        at += len(text)


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

"""Where the rows of a LIBSVM file lie: each rank counts a part of the bytes, and all know the sums.

A block is some whole lines. With the table of all blocks a rank finds the bytes of any row, and its
line number, without reading what comes before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.errors import DataError
from adfs.problems import libsvm
from adfs.problems.files import NODE
from adfs.problems.libsvm import Lines, find_lines, text_blocks
from adfs.problems.packed import open_text, reading, refuse_binary

SMALLEST_BLOCK = 1 << 16
END_BYTES = 1 << 16
BLOCKS_A_RANK = 16  # at least, in a large file: so little is read beyond the rows of a rank
COLUMNS = 5


class TextBlock(NamedTuple):
    """Whole lines of a file: the numbers of the first row and of the first line, and the text."""

    first_row: int
    first_line: int
    text: bytes
    lines: Lines

    @property
    def last_row(self) -> int:
        """The number of the row that follows."""
        return self.first_row + len(self.lines.samples)


class BlockTable(NamedTuple):
    """For each block its place and length in bytes, its first row and its first line.

    ``first_row`` and ``first_line`` have one entry more, for what would follow. ``digest`` is that
    of the text which the rank ``counted_by`` saw: whoever reads the block compares.
    """

    offset: NDArray[np.int64]
    length: NDArray[np.int64]
    digest: NDArray[np.int64]
    counted_by: NDArray[np.int64]
    first_row: NDArray[np.int64]
    first_line: NDArray[np.int64]

    @classmethod
    def of(cls, counts: list[NDArray[np.int64]]) -> BlockTable:
        """From what the ranks counted, rank 0 first."""
        offset, length, digest, rows, lines = np.concatenate(counts).reshape(-1, COLUMNS).T
        counted_by = np.repeat(np.arange(len(counts)), [len(each) // COLUMNS for each in counts])
        first_row = np.concatenate([[0], np.cumsum(rows)])
        first_line = np.concatenate([[1], 1 + np.cumsum(lines)])
        return cls(offset, length, digest, counted_by, first_row, first_line)

    @property
    def n_samples(self) -> int:
        """Rows of the whole file."""
        return int(self.first_row[-1])

    def blocks_with(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the blocks that hold some of these rows, ascending."""
        return np.unique(np.searchsorted(self.first_row, rows, side="right") - 1)


def count_part(path: Path, rank: int, size: int) -> NDArray[np.int64]:
    """Place, length, digest, rows and lines of each block that begins in one part of the bytes."""
    with reading(path), ExitStack() as stack:
        file, _ = open_text(path, stack)
        n_bytes = file.seek(0, 2)
        start, stop = rank * n_bytes // size, (rank + 1) * n_bytes // size
        wanted = max(SMALLEST_BLOCK, n_bytes // (size * BLOCKS_A_RANK))
        counts = list(_counted(path, file, start, stop, min(wanted, libsvm.BLOCK_BYTES)))
    return np.array(counts, dtype=np.int64).reshape(-1)


def _counted(
    path: Path, file: IO[bytes], start: int, stop: int, block_bytes: int
) -> Iterator[tuple[int, int, int, int, int]]:
    """The blocks whose first line begins between ``start`` and ``stop``."""
    at = start
    if start:
        # A line belongs to the part where it begins, so the end of one before it is passed over.
        file.seek(start - 1)
        at += len(file.readline()) - 1
    else:
        file.seek(0)
    while at < stop:
        text = file.read(min(block_bytes, stop - at))
        if not text.endswith(b"\n"):
            text += file.readline()
        if not text:
            return
        refuse_binary(path, text)
        yield at, len(text), digest_of(text), len(find_lines(text).samples), text.count(b"\n")
        at += len(text)


def indexed_blocks(
    path: Path, table: BlockTable, numbers: Iterable[int], rank: int
) -> Iterator[TextBlock]:
    """Some blocks of a plain file; nothing else is read."""
    with reading(path), ExitStack() as stack:
        file, _ = open_text(path, stack)
        for number in numbers:
            file.seek(table.offset[number])
            text = file.read(table.length[number])
            if digest_of(text) != table.digest[number]:
                raise differing(path, int(table.counted_by[number]), rank)
            lines = find_lines(text)
            if len(lines.samples) != table.first_row[number + 1] - table.first_row[number]:
                raise changed(path)
            yield TextBlock(
                int(table.first_row[number]), int(table.first_line[number]), text, lines
            )


def streamed_blocks(
    path: Path, digests: NDArray[np.int64] | None = None, rank: int = 0
) -> Iterator[TextBlock]:
    """All blocks of a file from its beginning, decompressed; ``digests`` are those of rank 0."""
    first_row, first_line = 0, 1
    for number, text in enumerate(text_blocks(path)):
        if digests is not None and digests[number : number + 1].tolist() != [digest_of(text)]:
            raise differing(path, 0, rank)
        lines = find_lines(text)
        yield TextBlock(first_row, first_line, text, lines)
        first_row += len(lines.samples)
        first_line += text.count(b"\n")


def digest_of(text: bytes) -> int:
    """A number that differs where the text differs."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)


def digest_of_ends(path: Path) -> int:
    """The same of a file's first and last bytes, which every rank can afford to read.

    The end of a .npz, .gz or .bz2 file holds checksums of all of it.
    """
    with path.open("rb") as file:
        head = file.read(END_BYTES)
        file.seek(max(0, file.seek(0, 2) - END_BYTES))
        return digest_of(head + file.read(END_BYTES))


def differing(path: Path, first: int, second: int) -> DataError:
    """The error about a file of which two ranks see different contents."""
    if first == second:
        return changed(path)
    return DataError(
        f"{path} must be the same file on every rank, but its content on rank {second} is not "
        f"that on rank {first}; copy it anew, or give each node a file ({NODE})."
    )


def changed(path: Path) -> DataError:
    """The error about a file that is not what it was when it was counted."""
    return DataError(f"{path} must not change while it is read, but it did; start again.")

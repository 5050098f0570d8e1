"""The rows of one LIBSVM file that a rank keeps; what is not its own is not parsed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.intake.layout import Dealt, Layout, Numbers, Piece, lay_out
from adfs.intake.row_ranges import (
    BlockTable,
    TextBlock,
    changed,
    count_part,
    digest_of,
    indexed_blocks,
    streamed_blocks,
)
from adfs.launch.peers import Peers, attempt
from adfs.problems.libsvm import (
    Block,
    Matrix,
    check_n_features,
    dense_if_full,
    is_full,
    parse,
    require_samples,
)

Vector = NDArray[np.float64]


class Facts(NamedTuple):
    """What the whole file's layout depends on, of some of its rows."""

    n_entries: int
    width: int


class Kept(NamedTuple):
    """A rank's rows before their layout is known, their labels, and facts about them."""

    pieces: list[Piece]
    y: Vector
    facts: Facts

    def lay_out(self, layout: Layout) -> Matrix:
        """The rows in one matrix; the pieces are used up."""
        return lay_out(self.pieces, len(self.y), layout)


class TextSource:
    """One LIBSVM file, plain or packed, seen from one rank.

    Attributes
    ----------
    n_samples : int
        Rows of the file.
    labels : None
        All labels would have to be read; see `survey`.
    """

    labels: Vector | None = None

    def __init__(
        self, path: Path, n_features: int | None, n_samples: int, table: BlockTable | None,
        digests: Numbers | None, rank: int,
    ) -> None:  # fmt: skip
        self.path, self.n_features = path, n_features
        self.n_samples, self.table, self.digests, self.rank = n_samples, table, digests, rank

    @classmethod
    def opened(cls, peers: Peers, path: Path, n_features: int | None, packed: bool) -> TextSource:
        """Count the rows: each rank in its part of the bytes, rank 0 in a packed file."""
        attempt(peers, lambda: check_n_features(n_features))
        table = digests = None
        if packed:
            counted = attempt(peers, lambda: [0, None] if peers.rank else _count(path))
            n_samples, digests = peers.gather(counted)[0]
        else:
            part = attempt(peers, lambda: count_part(path, peers.rank, peers.size))
            table = BlockTable.of(peers.gather(part))
            n_samples = table.n_samples
        attempt(peers, lambda: require_samples(path, n_samples))
        return cls(path, n_features, n_samples, table, digests, peers.rank)

    def read(self, dealt: Dealt) -> Kept:
        """Parse the rows that were dealt, each once, whoever else has them too."""
        y, found = np.empty(len(dealt)), 0
        pieces, facts = [], [Facts(0, 1)]
        for block in self._blocks(dealt.ascending):
            slots, places = dealt.within(block.first_row, block.last_row)
            if not len(slots):
                continue
            distinct, take = np.unique(places, return_inverse=True)
            X, labels = self._parse(block, distinct)
            facts.append(Facts(X.nnz, X.shape[1]))
            if len(distinct) < len(places):
                X, labels = X[take], labels[take]
            y[slots] = labels
            pieces.append(Piece(dense_if_full(X), slots))  # what takes less
            found += len(slots)
        if found != len(dealt):
            raise changed(self.path)
        return Kept(pieces, y, self._total(facts))

    def survey(self, first: int, last: int) -> tuple[Facts, Vector]:
        """Check the rows of a range; facts about them, and their labels."""
        facts, labels = [Facts(0, 1)], []
        for block in self._blocks(np.arange(first, last)):
            rows = np.arange(max(first, block.first_row), min(last, block.last_row))
            if len(rows):
                X, y = self._parse(block, rows - block.first_row)
                facts.append(Facts(X.nnz, X.shape[1]))
                labels.append(y)
        return self._total(facts), np.concatenate([np.empty(0), *labels])

    def layout(self, facts: list[Facts]) -> Layout:
        """The layout of `read_libsvm`, from facts about all rows."""
        n_entries, width = self._total(facts)
        return Layout(is_full(n_entries, self.n_samples, width), width)

    def _total(self, facts: list[Facts]) -> Facts:
        width = max(width for _, width in facts)
        return Facts(sum(count for count, _ in facts), self.n_features or width)

    def _blocks(self, rows: NDArray[np.int64]) -> Iterator[TextBlock]:
        """The blocks that hold some of these ascending rows, and maybe others before them."""
        if self.table is not None:
            numbers = self.table.blocks_with(rows)
            return indexed_blocks(self.path, self.table, numbers, self.rank)
        stop = rows[-1] + 1 if len(rows) else 0
        blocks = streamed_blocks(self.path, self.digests, self.rank)
        return itertools.takewhile(lambda block: block.first_row < stop, blocks)

    def _parse(self, block: TextBlock, places: NDArray[np.int64]) -> Block:
        """Some samples of a block."""
        lines = block.lines.samples[places]
        bounds = block.lines.bounds
        starts, stops = bounds[lines].tolist(), bounds[lines + 1].tolist()
        if lines[-1] - lines[0] + 1 == len(lines):
            text = block.text[starts[0] : stops[-1]]
        else:
            text = b"".join(block.text[a:b] for a, b in zip(starts, stops, strict=True))
        return parse(self.path, text, (block.first_line + lines).tolist(), self.n_features)


def _count(path: Path) -> list[Any]:
    """Rows of a packed file, and the digests of its blocks."""
    n_samples, digests = 0, []
    for block in streamed_blocks(path):
        n_samples += len(block.lines.samples)
        digests.append(digest_of(block.text))
    return [n_samples, np.array(digests, dtype=np.int64)]

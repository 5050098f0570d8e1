"""Which files of a folder may go: only this run's, only this rank's, only what nobody needs."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from adfs.checkpoints import record
from adfs.checkpoints.identity import Identity, difference
from adfs.checkpoints.names import Name
from adfs.checkpoints.reader import Damaged
from adfs.storage import temporary_of

KEPT = 2


class Tidying:
    """What one rank may remove.

    Ranks pass a position at different times, and one that is behind must still find everybody's
    files of its own last position. So the two newest positions that *every* rank has are kept, with
    all that is newer.
    """

    def __init__(self, folder: Path, identity: Identity, rank: int, size: int) -> None:
        self.folder, self.identity = folder, identity
        self.rank, self.size = rank, size
        self._written: set[int] = set()  # by this process, so they are valid
        self._complete: set[int] = set()  # valid files at every rank

    def written(self, position: int) -> None:
        """This process wrote a file of this position."""
        self._written.add(position)

    def complete(self, position: int) -> None:
        """Every rank has a valid file of this position."""
        self._complete.add(position)

    def is_ours(self, name: Name) -> bool:
        """Whether this rank looks after a file: its own, and those of numbers nobody has now.

        Every file has one such rank, whatever the size of the run that wrote it.
        """
        return name.rank % self.size == self.rank

    def clear_temporaries(self) -> None:
        """Remove what this rank was writing when it was killed: it may be why the disk is full."""
        for text in os.listdir(self.folder):
            name = Name.parse(temporary_of(text) or "")
            if name is not None and self.is_ours(name):
                self._remove(text)

    def remove_old(self, names: Iterable[Name]) -> None:
        """Remove this rank's files of this run that are older than the last two positions.

        A file whose header is damaged stays: nobody can say whose it is.
        """
        there = {(name.position, name.rank) for name in names if name.size == self.size}
        ranks = range(self.size)
        self._complete |= {p for p in self._written if all((p, rank) in there for rank in ranks)}
        if len(self._complete) < KEPT:
            return
        oldest = sorted(self._complete)[-KEPT]
        self._complete = {p for p in self._complete if p >= oldest}
        self._written = {p for p in self._written if p >= oldest}
        for name in names:
            if name.position < oldest and self.is_ours(name) and self._is_of_this_run(name):
                self._remove(str(name))

    def _is_of_this_run(self, name: Name) -> bool:
        try:
            found = record.look(self.folder, name)
        except Damaged:
            return False
        return difference(found.identity, self.identity) is None

    def _remove(self, text: str) -> None:
        # A file that stays does no harm; the next call tries again.
        with contextlib.suppress(OSError):
            (self.folder / text).unlink()

"""A folder of checkpoints: one file per rank and position; the last two positions stay.

Each rank saves when it passes a position, without waiting. The files of one position are a
consistent cut, because the schedule is totally ordered. A file names the nodes that it holds, so
any number of ranks can continue from the files of any other number.
"""

import contextlib
import operator
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from adfs.engine import checkpoint_file
from adfs.engine.checkpoint_file import NOT_OURS, Array, Damaged
from adfs.engine.run_identity import Identity, check
from adfs.errors import CheckpointError, DataError, ParameterError
from adfs.storage import sync_folder, temporary_of, write_whole

WIDTH = 12  # digits of a position, so that a listing of the folder is in order
KEPT = 2  # positions
SHARED = "shared"  # in the place of a node: arrays that are the same in every process
_PATTERN = re.compile(rf"checkpoint-([0-9]{{{WIDTH},}})-([0-9]+)-of-([0-9]+)\.adfs")

NodeArrays = dict[str, Array]


class CheckpointName(NamedTuple):
    """The name of one file, such as ``checkpoint-000000001500-0-of-2.adfs``."""

    position: int
    rank: int
    size: int

    def __str__(self) -> str:
        return f"checkpoint-{self.position:0{WIDTH}}-{self.rank}-of-{self.size}.adfs"

    @classmethod
    def parse(cls, text: str) -> "CheckpointName | None":
        """The parts of a name that we write; None for any other, such as one with more zeros."""
        match = _PATTERN.fullmatch(text)
        if match is None or len(text) > 100:
            return None
        name = cls(int(match[1]), int(match[2]), int(match[3]))
        return name if str(name) == text and name.rank < name.size else None


class LoadedCheckpoint(NamedTuple):
    """Content of one or more files of a position: plain values, arrays by node, shared arrays."""

    run: dict[str, Any]
    nodes: dict[int, NodeArrays]
    shared: NodeArrays


class CheckpointFolder:
    """Checkpoints of one run in one folder, for one of its ranks.

    Files of another identity are refused, never mixed and never removed. ``skipped`` lists files
    that were not used, each with a reason that continues "PATH ...".
    """

    def __init__(
        self, folder: str | os.PathLike[str], identity: Identity, rank: int = 0, size: int = 1
    ) -> None:
        if not os.fspath(folder):
            raise DataError("Checkpoints need the name of a folder, but it is ''; give one.")
        self.folder, self.identity, self.rank, self.size = Path(folder), identity, rank, size
        self.skipped: list[tuple[Path, str]] = []
        self._written: set[int] = set()  # positions of valid files by this process
        self._complete: set[int] = set()  # positions with valid files of every rank
        self._lock: int | None = None

    def open(self) -> None:
        """Make the folder, check that it can be written, refuse one that holds another run.

        Call it before the first `save`, for resumed and for new runs: a new run in the folder of
        another would in time replace the other's files.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self.folder.parent)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
            self._clear_temporaries()
            names = self._list()
        except OSError as error:
            raise DataError(
                f"--checkpoint {self.folder} must be a folder that can be written: "
                f"{error.strerror}; choose another."
            ) from None
        for name in filter(self._is_ours, names):
            self._read(name)

    def lock(self) -> None:
        """Refuse a folder that another run is writing to; it is free when that process ends."""
        try:
            import fcntl
        except ImportError:
            return  # not on this system
        self._lock = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.unlock()
            raise ParameterError(
                f"--checkpoint {self.folder} is in use by another run; wait for it, stop it, or "
                "name another folder."
            ) from None
        except OSError:
            return  # a file system without locks

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def save(
        self,
        position: int,
        run: Mapping[str, Any],
        nodes: Mapping[int, Mapping[str, Array]],
        everywhere: int = -1,
        shared: Mapping[str, Array] | None = None,
    ) -> None:
        """Write the complete file of this position; then `tidy`.

        ``run`` are plain values, ``nodes`` the arrays of each node here, which must not change
        during the call, and ``shared`` arrays that are the same in every process. A system that
        refuses (a full disk) is a `CheckpointError`; earlier checkpoints are intact.
        """
        name, held = CheckpointName(operator.index(position), self.rank, self.size), sorted(nodes)
        data = {str(node): self.identity["data"][str(node)] for node in held}
        path, identity = self.folder / str(name), self.identity | {"data": data}
        header = {**name._asdict(), "identity": identity, "run": dict(run), "nodes": held}
        groups = [(node, nodes[node]) for node in held] + [(SHARED, shared or {})]
        arrays = {f"{group}/{key}": each for group, named in groups for key, each in named.items()}
        try:
            write_whole(path, checkpoint_file.pack(header, arrays))
        except OSError as error:
            raise CheckpointError(
                f"{path} could not be written: {error.strerror or error}; the checkpoints before "
                "it are intact."
            ) from error
        self._written.add(name.position)
        self.tidy(everywhere)

    def tidy(self, everywhere: int = -1) -> None:
        """Remove this rank's files but those of the last two positions that *every* rank has.

        Ranks pass a position at different times, and one that is behind needs the files of all
        ranks for its own last position; so newer files stay too. Call it once more when all are
        done. ``everywhere`` is the newest position that every rank has reported as saved (-1:
        none). Files in the folder count too, where all ranks share it. A failure to remove a file
        does no harm and is not reported; one whose header is damaged stays: its run is unknown.
        """
        if everywhere >= 0:
            self._complete.add(everywhere)
        with contextlib.suppress(OSError):
            self._clear_temporaries()
            names, ranks = self._list(), range(self.size)
            there = {(name.position, name.rank) for name in names if name.size == self.size}
            self._complete |= {p for p in self._written if all((p, r) in there for r in ranks)}
            if len(self._complete) < KEPT:
                return
            oldest = sorted(self._complete)[-KEPT]
            self._complete = {p for p in self._complete if p >= oldest}
            self._written = {p for p in self._written if p >= oldest}
            for name in names:
                if name.position < oldest and self._is_ours(name) and self._is_of_this_run(name):
                    self._remove(str(name))

    def valid_positions(self, nodes: Iterable[int]) -> Iterator[int]:
        """Positions for which valid files hold all of ``nodes``, newest first.

        A position is checked, every byte of its files, when the iterator comes to it; damaged files
        go to ``skipped``. A valid file of another run is a `ParameterError`.
        """
        try:
            wanted, names = set(nodes), self._list()
        except OSError as error:
            self._skip(self.folder, f"cannot be read: {error.strerror}")
            return
        for position in sorted({name.position for name in names}, reverse=True):
            if self._gather(position, names, wanted, keep=False) is not None:
                yield position

    def load(self, position: int, nodes: Iterable[int]) -> LoadedCheckpoint:
        """State of ``nodes`` at a position; the arrays of other nodes are checked but not kept."""
        loaded = self._gather(position, self._list(), set(nodes), keep=True)
        if loaded is None:
            raise CheckpointError(
                f"{self.folder} has no valid files of position {position} for all requested nodes; "
                "resume from another position."
            )
        self._complete.add(position)  # all ranks continue from the same position
        return loaded

    def _gather(
        self, position: int, names: list[CheckpointName], wanted: set[int], keep: bool
    ) -> LoadedCheckpoint | None:
        """Check files of a position until they hold all of ``wanted``; None if they do not."""
        missing, loaded = set(wanted), None
        for name in sorted(name for name in names if name.position == position):
            header = self._read(name)
            here = missing & set(header.nodes) if header else set()
            read = self._read(name, here if keep else set()) if here else None
            if read is not None:
                loaded = loaded or LoadedCheckpoint(read.run, {}, read.shared)
                loaded.nodes.update({node: read.nodes[node] for node in here & set(read.nodes)})
                missing -= set(loaded.nodes)
        if missing:
            reason = f"has no valid file of position {position} for node {min(missing)}"
            self._skip(self.folder, reason)
        return None if missing else loaded

    def _read(self, name: CheckpointName, kept: set[int] | None = None) -> LoadedCheckpoint | None:
        """A file of this run: its header, or with ``kept`` all bytes checked; None if damaged."""
        path = self.folder / str(name)
        arrays: NodeArrays = {}
        try:
            if kept is None:
                header = checkpoint_file.read_header(path)
            else:
                groups = {SHARED, *map(str, kept)}
                header, arrays = checkpoint_file.unpack(
                    path, lambda key: key.partition("/")[0] in groups
                )
            loaded = self._parsed(header, name)
        except Damaged as damage:
            self._skip(path, str(damage))
            return None
        for key, array in arrays.items():
            group, _, label = key.partition("/")
            named = loaded.shared if group == SHARED else loaded.nodes.setdefault(int(group), {})
            named[label] = array
        return loaded

    def _parsed(self, header: dict[str, Any], name: CheckpointName) -> LoadedCheckpoint:
        """A header's content, which must be of this run and of the file ``name``; no arrays yet."""
        try:
            inside = CheckpointName(*(operator.index(header[key]) for key in name._fields))
            loaded = LoadedCheckpoint(
                dict(header["run"]), {int(node): {} for node in header["nodes"]}, {}
            )
            if inside == name:
                check(header["identity"], self.identity, self.folder)
                return loaded
        except ParameterError:
            raise
        except NOT_OURS:
            raise Damaged("has a header that was not written by adfs") from None
        raise Damaged(f"was {inside} when it was written, and is now under another name")

    def _skip(self, path: Path, reason: str) -> None:
        if (path, reason) not in self.skipped:
            self.skipped.append((path, reason))

    def _list(self) -> list[CheckpointName]:
        found = (CheckpointName.parse(text) for text in os.listdir(self.folder))
        return [name for name in found if name is not None]

    def _is_ours(self, name: CheckpointName) -> bool:
        """Whether this rank tidies a file: its own, and those of ranks that do not exist now."""
        return name.rank % self.size == self.rank

    def _is_of_this_run(self, name: CheckpointName) -> bool:
        try:
            return self._read(name) is not None
        except ParameterError:
            return False

    def _clear_temporaries(self) -> None:
        """Remove files that this rank was writing when it was killed: they may fill the disk."""
        for text in os.listdir(self.folder):
            name = CheckpointName.parse(temporary_of(text) or "")
            if name is not None and self._is_ours(name):
                self._remove(text)

    def _remove(self, text: str) -> None:
        # A file that stays does no harm; the next call tries again.
        with contextlib.suppress(OSError):
            (self.folder / text).unlink()

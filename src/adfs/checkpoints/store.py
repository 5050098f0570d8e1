"""A folder of checkpoints: one file a rank and position, the last two positions kept.

Each rank saves when it passes a position, and waits for nobody; the files of one position are a
consistent cut, because the schedule is totally ordered. A file names the nodes that it holds, so
any number of ranks can go on from what any other number wrote.
"""

import contextlib
import operator
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from adfs.checkpoints import record
from adfs.checkpoints.format import Array
from adfs.checkpoints.identity import Identity, check
from adfs.checkpoints.names import Name
from adfs.checkpoints.reader import Damaged
from adfs.checkpoints.record import NodeArrays, Record
from adfs.checkpoints.tidying import Tidying
from adfs.errors import CheckpointError, DataError, ParameterError
from adfs.storage import settle, write_whole


class Loaded(NamedTuple):
    """What the files of one position say; ``run`` and ``shared`` are those of the first file."""

    position: int
    run: dict[str, Any]
    nodes: dict[int, NodeArrays]
    shared: NodeArrays


class Store:
    """Checkpoints of one run in one folder, as one of its ranks sees them.

    Parameters
    ----------
    folder : path
    identity : Identity
        What this run is; files of another run are refused, never mixed and never removed.
    rank, size : int
        This process among those of the run.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> identity = Identity(seed=0, config={"sigma": 1.0}, data={0: "ab", 1: "cd"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder, identity)
    ...     store.open()
    ...     for position in (100, 200, 300):
    ...         state = {node: {"theta": np.full(2, position + node)} for node in (0, 1)}
    ...         store.save(position, {"n_prox": position}, state)
    ...     positions = list(store.found([0, 1]))
    ...     loaded = store.load(positions[0], [1])
    >>> positions
    [300, 200]
    >>> loaded.run, loaded.nodes
    ({'n_prox': 300}, {1: {'theta': array([301, 301])}})
    """

    def __init__(
        self, folder: str | os.PathLike[str], identity: Identity, rank: int = 0, size: int = 1
    ) -> None:
        self.folder = Path(folder)
        self.identity = identity
        self.rank, self.size = rank, size
        self._tidying = Tidying(self.folder, identity, rank, size)
        self._skipped: dict[tuple[Path, str], None] = {}
        self._lock: int | None = None

    @property
    def skipped(self) -> list[tuple[Path, str]]:
        """Files that were not trusted, each with a reason that continues "PATH ..."."""
        return list(self._skipped)

    def open(self) -> None:
        """Make the folder, show that it can be written, refuse one that holds another run.

        Call it before the first `save`, whether the run is resumed or new: a new run in the folder
        of another would in time replace the other's files.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            settle(self.folder.parent)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
            self._tidying.clear_temporaries()
            names = self._list()
        except OSError as error:
            raise DataError(
                f"--checkpoint {self.folder} must be a folder that can be written: "
                f"{error.strerror}; choose another."
            ) from None
        for name in filter(self._tidying.is_ours, names):
            self._look(name)

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
        """Let others have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def save(
        self,
        position: int,
        run: Mapping[str, Any],
        nodes: Mapping[int, Mapping[str, Array]],
        everywhere: int | None = None,
        shared: Mapping[str, Array] | None = None,
    ) -> None:
        """Put a file of this position in the folder, whole or not at all; then `tidy`.

        Parameters
        ----------
        position : int
        run : dict
            Plain values about the whole run at this position.
        nodes : dict
            For each node held here its arrays by name; they must not change during the call.
        everywhere : int, optional
            See `tidy`.
        shared : dict, optional
            Arrays that are the same in every process of the run.

        Raises
        ------
        CheckpointError
            The system refused (a full disk, for example); what was saved before is intact.
        """
        name = Name(operator.index(position), self.rank, self.size)
        if name.position < 0:
            raise ValueError(f"position={position} must be at least 0.")
        path = self.folder / str(name)
        try:
            write_whole(path, record.content(name, self.identity, run, nodes, shared or {}))
        except OSError as error:
            raise CheckpointError(
                f"{path} could not be written: {error.strerror or error}; the checkpoints before "
                "it are intact."
            ) from error
        self._tidying.written(name.position)
        self.tidy(everywhere)

    def tidy(self, everywhere: int | None = None) -> None:
        """Remove what is no longer needed of this rank's files: all but the last two positions.

        Counted are positions that every rank has saved, so ranks that run ahead keep more for those
        behind; call it once more when all are done. ``everywhere`` is the newest position that
        every rank is known to have saved. Without it the folder is asked, which all ranks then have
        to share. A failure to remove a file does no harm and is not reported.
        """
        if everywhere is not None:
            self._tidying.complete(everywhere)
        with contextlib.suppress(OSError):
            self._tidying.clear_temporaries()
            self._tidying.remove_old(self._list())

    def found(self, nodes: Iterable[int]) -> Iterator[int]:
        """Positions for which valid files hold all of ``nodes``, newest first.

        A position is checked, every byte of its files, when the iterator comes to it. Files that
        are damaged or not ours are passed over and remembered in `skipped`.

        Raises
        ------
        ParameterError
            A valid file belongs to another run.
        """
        wanted, names = set(nodes), self._listed()
        for position in sorted({name.position for name in names}, reverse=True):
            if self._gather(position, names, wanted, keep=False) is not None:
                yield position

    def load(self, position: int, nodes: Iterable[int]) -> Loaded:
        """State of ``nodes`` at a position; the arrays of other nodes are checked but not kept.

        Raises
        ------
        CheckpointError
            The files do not hold all of ``nodes``, or no longer.
        """
        loaded = self._gather(position, self._listed(), set(nodes), keep=True)
        if loaded is None:
            raise CheckpointError(
                f"{self.folder} has no valid files of position {position} for all nodes asked for; "
                "resume from another position."
            )
        # All ranks go on from the same position, so all of them have it.
        self._tidying.complete(position)
        return loaded

    def _gather(
        self, position: int, names: list[Name], wanted: set[int], keep: bool
    ) -> Loaded | None:
        """Check files of a position until they hold all of ``wanted``; None if they do not."""
        missing, nodes, runs = set(wanted), dict[int, NodeArrays](), list[dict[str, Any]]()
        shared: list[NodeArrays] = []
        for name in sorted(name for name in names if name.position == position):
            glance = self._look(name)
            here = missing & glance.nodes if glance else set()
            read = self._read(name, here if keep else set()) if here else None
            if read is not None:
                runs.append(read[0].run)
                nodes.update(read[1])
                shared.append(read[2])
                missing -= here & read[0].nodes
        if missing:
            self._skip(
                self.folder, f"has no valid file of position {position} for node {min(missing)}"
            )
        return None if missing or not runs else Loaded(position, runs[0], nodes, shared[0])

    def _look(self, name: Name) -> Record | None:
        """The header of a file of this run; None, and remembered, if it cannot be trusted."""
        try:
            found = record.look(self.folder, name)
        except Damaged as damage:
            self._skip(self.folder / str(name), str(damage))
            return None
        check(found.identity, self.identity, self.folder)
        return found

    def _read(
        self, name: Name, nodes: set[int]
    ) -> tuple[Record, dict[int, NodeArrays], NodeArrays] | None:
        """A whole file checked, with the arrays of ``nodes``; None, and remembered, if damaged."""
        try:
            found = record.read(self.folder, name, nodes)
        except Damaged as damage:
            self._skip(self.folder / str(name), str(damage))
            return None
        check(found[0].identity, self.identity, self.folder)
        return found

    def _list(self) -> list[Name]:
        found = (Name.parse(text) for text in os.listdir(self.folder))
        return [name for name in found if name is not None]

    def _listed(self) -> list[Name]:
        """All names in the folder; none, and remembered, if it cannot be read."""
        try:
            return self._list()
        except OSError as error:
            self._skip(self.folder, f"cannot be read: {error.strerror}")
            return []

    def _skip(self, path: Path, reason: str) -> None:
        self._skipped[path, reason] = None

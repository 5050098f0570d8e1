"""Checkpoints of one rank; the files of all ranks at a position are a consistent cut."""

from collections.abc import Callable
from typing import Any

from adfs.checkpoints.store import Store
from adfs.distributed.rank import Rank
from adfs.errors import CheckpointError
from adfs.launch.peers import Peers, attempt
from adfs.runtime import keeping
from adfs.runtime.course import Course
from adfs.runtime.keeping import Spent


class RankKeeper:
    """Saves at every multiple of ``every``, each rank when it passes there.

    A disk that refuses costs the checkpoint, not the run: ``complain`` is told, once
    until it works again.
    """

    def __init__(self, store: Store, every: int, complain: Callable[[str], Any]) -> None:
        self.store, self.every = store, every
        self._complain, self._failed, self._has_holes = complain, False, False
        self._passed, self._newest = 0, -1

    @property
    def kept(self) -> int:
        """Up to where this rank has saved every position; -1 if it has not."""
        return -1 if self._has_holes else self._newest

    def next_after(self, position: int) -> int:
        """The next position at which to save."""
        return (position // self.every + 1) * self.every

    def is_due(self, position: int) -> bool:
        """Whether to save here."""
        return position % self.every == 0 and position != self._passed

    def save(self, rank: Rank, course: Course, seconds: float, everywhere: int) -> None:
        """Keep the rank's nodes as they stand; all ranks have saved the position ``everywhere``."""
        self._passed = rank.position
        try:
            keeping.save(
                self.store, rank.position, rank.share.nodes, rank.share, rank.state,
                _spent(rank, seconds), course, everywhere if everywhere >= 0 else None,
            )  # fmt: skip
            self._newest, self._failed = rank.position, False
        except CheckpointError as error:
            if not self._failed:
                self._complain(str(error))
            self._failed = self._has_holes = True

    def close(self, peers: Peers) -> None:
        """Remove what is no longer needed, now that all ranks are done."""
        everywhere = min(peers.gather(self.kept))
        self.store.tidy(everywhere if everywhere >= 0 else None)

    def resume(self, peers: Peers, rank: Rank, course: Course) -> tuple[int | None, float]:
        """Go on from the newest position that every rank has; None if there is none."""
        nodes = rank.share.nodes.tolist()
        found = peers.gather(attempt(peers, lambda: list(self.store.found(nodes))))
        common = set(found[0]).intersection(*found[1:])
        if not common:
            return None, 0.0
        self._passed = self._newest = position = max(common)
        told = peers.gather(attempt(peers, lambda: self._load(position, rank)))
        keeping.put_whole_state(rank.state, course, told[0][0])
        rank.position = position
        return position, max(seconds for _, seconds in told)

    def _load(self, position: int, rank: Rank) -> tuple[dict[str, Any], float]:
        share = rank.share
        return keeping.load(self.store, position, share.nodes, share, rank.state, _spent(rank))


def _spent(rank: Rank, seconds: float = 0.0) -> Spent:
    hands = rank.hands
    return Spent(hands.finish, hands.busy, hands.waiting, rank.tally, seconds)

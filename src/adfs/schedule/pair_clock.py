"""When pairwise events are done whose ends each work alone before they exchange (ESDACD)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs.errors import ParameterError
from adfs.kernels import clocks
from adfs.schedule.clock import CHUNK, Clock
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events


class PairClock(Clock):
    """A clock of nodes that compute before every exchange.

    An event on edge (k, l) is ``work[k]`` elementary steps at node k, ``work[l]`` at node l, side
    by side, and then an exchange as `Clock` knows it. Under ``rendezvous``, with equal work m and
    constant delays, T_k = T_l = max(T_k, T_l) + m + tau. Under a random law every elementary step
    and every exchange has its own factor: a node takes the sum of ``work`` draws. A local event
    (``which >= n_edges``) is the work of that node alone.

    Parameters
    ----------
    edges : array of int, shape (n_edges, 2)
    n_nodes : int
    work : array, shape (n_nodes,)
        Elementary steps of each node before an exchange, >= 0.
    delays : Delays
    kind : {"nonblocking", "rendezvous"}

    Examples
    --------
    >>> clock = PairClock(np.array([[0, 1]]), 2, [10.0, 4.0], Delays(tau=3.0), "rendezvous")
    >>> clock.advance(Events(0, np.zeros(2, np.int32), np.full(2, -1, np.int32)))
    >>> clock.finish, clock.waiting
    (array([26., 26.]), array([ 0., 12.]))
    """

    def __init__(
        self,
        edges: NDArray[np.integer],
        n_nodes: int,
        work: ArrayLike,
        delays: Delays,
        kind: str = "nonblocking",
    ) -> None:
        super().__init__(edges, n_nodes, delays, kind)
        self.work = np.array(work, dtype=np.float64)
        if self.work.shape != (n_nodes,) or not ((self.work >= 0) & (self.work < np.inf)).all():
            raise ParameterError(
                f"work has shape {self.work.shape}; give one finite number >= 0 for each of "
                f"{n_nodes} nodes: its elementary steps before an exchange."
            )
        first, last, *_ = self._law
        self._scopes = np.array([first < min(last, len(self.edges)), last > len(self.edges)])

    def advance(self, events: Events) -> None:
        """Execute a block of events; one that does not fit the graph is refused whole."""
        self._check(events)
        for first in range(0, len(events.which), CHUNK):
            parts, lengths = self._parts(events.which[first : first + CHUNK], events.start + first)
            clocks.advance(
                parts, self.edges, lengths, self.code, self.finish, self.busy, self.waiting
            )

    def durations(self, events: Events) -> NDArray[np.float64]:
        """Refused: an event has no one duration, because its ends work side by side."""
        raise ParameterError(
            "An event of this method has three durations, two of work and one of exchange; read "
            "finish, busy and waiting after advance."
        )

    def copy(self) -> "PairClock":
        """Another clock in the same state."""
        other = PairClock(self.edges, self.n_nodes, self.work, self.delays, self.kind)
        other.restore(self.state())
        return other

    def _parts(
        self, which: NDArray[np.int32], start: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The events as local parts and exchanges, with the length of each."""
        parts, lengths = np.empty(3 * len(which), np.int32), np.empty(3 * len(which))
        with np.errstate(over="ignore"):  # hashing wraps around 2^64
            used = clocks.spread(
                which, start, self.edges, self.work, self._nominal, self._scopes, *self._law[2:],
                self._keys, parts, lengths,
            )  # fmt: skip
        return parts[:used], lengths[:used]

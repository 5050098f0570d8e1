"""When each node has executed its part of a schedule (Figure 2)."""

import copy
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adfs import checks
from adfs.errors import GraphError, ParameterError
from adfs.kernels import clocks
from adfs.schedule.delays import Delays
from adfs.schedule.events import NO_TICKS, Events

T = TypeVar("T", bound="Clock")

CLOCKS = ("nonblocking", "rendezvous")
CODES = {"nonblocking": clocks.NONBLOCKING, "rendezvous": clocks.RENDEZVOUS}

# Durations of so many events are held at a time: small enough that the allocator reuses the memory.
CHUNK = 1 << 13
NOT_KEPT = np.empty((0, 2))  # in the place of when nodes reach and leave each event


class Clock:
    """Finish times of the nodes while they execute a schedule, event after event.

    An exchange of duration tau that its nodes reach at times T_k and T_l ends at

    - ``nonblocking`` (experiments, Appendix E): T_k <- max(T_k, T_l + tau) and
      T_l <- max(T_l, T_k + tau): a node posts its message and goes on once the other's arrived;
    - ``rendezvous`` (theory, Figure 2): T_k, T_l <- max(T_k, T_l) + tau, both nodes being held.

    A local update at node i adds its duration to T_i.

    Attributes
    ----------
    finish : array, shape (n_nodes,)
        When each node has done all its events so far.
    busy : array, shape (n_nodes,)
        Time in local updates and in exchanges that both nodes have reached. Under ``rendezvous``
        an exchange takes its full duration at both nodes; under ``nonblocking`` only the part that
        the node could not hide: from when both have posted until the other's message arrives.
    waiting : array, shape (n_nodes,)
        Time at exchanges that the peer had not reached yet. ``finish = busy + waiting``.

    Examples
    --------
    >>> clock = Clock(np.array([[0, 1]]), 2, Delays(tau=3.0), "rendezvous")
    >>> clock.advance(Events(0, np.array([2, 0], np.int32), np.array([0, -1], np.int32)))
    >>> clock.finish, clock.waiting
    (array([4., 4.]), array([1., 0.]))
    """

    def __init__(
        self, edges: NDArray[np.integer], n_nodes: int, delays: Delays, kind: str = "nonblocking"
    ) -> None:
        checks.choice("clock", kind, CLOCKS)
        self.edges = _checked_edges(edges, n_nodes)
        self.n_nodes, self.delays, self.kind = n_nodes, delays, kind
        self.finish, self.busy, self.waiting = np.zeros((3, n_nodes))
        self._nominal = delays.nominal(len(self.edges), n_nodes)
        self._law = delays.law_arguments(len(self.edges), n_nodes)
        self._keys = delays.keys()
        # One node, steps of one whole length: a product is the sum, to the bit.
        whole = delays.law == "constant" and float(self._nominal[-1]).is_integer()
        self._counts_only = n_nodes == 1 and whole

    @property
    def code(self) -> int:
        return CODES[self.kind]

    @property
    def time(self) -> float:
        """Idealized time so far: when the last node is done with the events seen."""
        return float(self.finish.max())

    def advance(self, events: Events) -> None:
        """Execute a block of events; one that does not fit the graph is refused whole."""
        self._check(events)
        if self._counts_only:
            self.finish += self._nominal * len(events.which)
            self.busy += self._nominal * len(events.which)
            return
        for first in range(0, len(events.which), CHUNK):
            which = events.which[first : first + CHUNK]
            parts, lengths = self._parts(which, events.start + first, _ticks(events, first))
            state = (self.finish, self.busy, self.waiting, NOT_KEPT, NOT_KEPT)
            clocks.advance(parts, self.edges, lengths, self.code, *state)

    def durations(self, events: Events) -> NDArray[np.float64]:
        """Duration of each event of a block."""
        self._check(events)
        return self._parts(events.which, events.start, _ticks(events, 0))[1]

    def idle_share(self) -> NDArray[np.float64]:
        """Share of the time so far that each node waited, or had done all its events; per node."""
        time = self.time
        return 1.0 - self.busy / time if time > 0.0 else np.zeros(self.n_nodes)

    def copy(self: T) -> T:
        """Another clock in the same state."""
        other = copy.copy(self)
        for name, array in self.arrays()[0].items():
            setattr(other, name, array.copy())
        return other

    def arrays(self) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
        """Views of its state: one row per node, and nothing shared."""
        return {"finish": self.finish, "busy": self.busy, "waiting": self.waiting}, {}

    def _parts(
        self, which: NDArray[np.int32], start: int, ticks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The events as local updates and exchanges, with the length of each."""
        lengths = np.empty(len(which))
        clocks.durations(which, start, ticks, self._nominal, *self._law, self._keys, lengths)
        return which, lengths

    def _check(self, events: Events) -> None:
        which, size = events.which, self._nominal.size
        low, high = (which.min(), which.max()) if len(which) else (0, 0)
        if low < 0 or high >= size:
            first = int(np.argmax((which < 0) | (which >= size)))
            raise ParameterError(
                f"event {events.start + first} has which={which[first]}, but a graph of "
                f"{len(self.edges)} edges and {self.n_nodes} nodes has numbers from 0 to "
                f"{size - 1}; time a schedule on the graph it was sampled for."
            )


class PairClock(Clock):
    """A clock of nodes that compute, each alone, before every exchange (ESDACD).

    An event on edge (k, l) is ``work[k]`` elementary steps at node k, ``work[l]`` at node l, side
    by side, and then an exchange as `Clock` knows it. Under ``rendezvous``, with equal work m and
    constant delays, T_k = T_l = max(T_k, T_l) + m + tau. Under a random law every elementary step
    and every exchange has its own factor: a node takes the sum of ``work`` draws. A local event
    (``which >= n_edges``) is the work of that node alone.

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
        self._counts_only = False
        first, last, *_ = self._law
        self._scopes = np.array([first < min(last, len(self.edges)), last > len(self.edges)])

    def durations(self, events: Events) -> NDArray[np.float64]:
        """Refused: an event has no one duration, because its ends work side by side."""
        raise ParameterError(
            "An event of this method has three durations, two of work and one of exchange; read "
            "finish, busy and waiting after advance."
        )

    def _parts(
        self, which: NDArray[np.int32], start: int, ticks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        parts, lengths = np.empty(3 * len(which), np.int32), np.empty(3 * len(which))
        used = clocks.spread(
            which, start, self.edges, self.work, self._nominal, self._scopes, *self._law[2:],
            self._keys, parts, lengths,
        )  # fmt: skip
        return parts[:used], lengths[:used]


def _ticks(events: Events, first: int) -> NDArray[np.int64]:
    return NO_TICKS if events.ticks is None else events.ticks[first:]


def _checked_edges(edges: NDArray[np.integer], n_nodes: int) -> NDArray[np.int32]:
    """Pairs of different nodes that exist: kernels follow them without checks."""
    array = np.asarray(edges)
    if array.size and (array.ndim != 2 or array.shape[1] != 2):
        raise GraphError(f"edges have shape {array.shape}; pass one row of two nodes per edge.")
    array = array.reshape(-1, 2)
    first, second = array.T
    outside = array.size and (array.min() < 0 or array.max() >= n_nodes)
    if outside or (first == second).any():
        wrong = np.minimum(first, second) < 0
        wrong |= (np.maximum(first, second) >= n_nodes) | (first == second)
        index = int(np.argmax(wrong))
        raise GraphError(
            f"edge {index} is {tuple(array[index].tolist())}; an edge joins two different nodes "
            f"numbered from 0 to {n_nodes - 1}. Correct it, or raise n_nodes={n_nodes}."
        )
    return np.ascontiguousarray(array, dtype=np.int32)

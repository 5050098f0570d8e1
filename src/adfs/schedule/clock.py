"""When each node has executed its part of a schedule (Figure 2)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from adfs import checks
from adfs.errors import GraphError, ParameterError
from adfs.kernels import clocks
from adfs.schedule.delays import Delays
from adfs.schedule.events import NO_TICKS, Events

CLOCKS = ("nonblocking", "rendezvous")
CODES = {"nonblocking": clocks.NONBLOCKING, "rendezvous": clocks.RENDEZVOUS}

# Durations of so many events are held at a time: small enough that the allocator reuses the memory.
CHUNK = 1 << 13


class Clock:
    """Finish times of the nodes while they execute a schedule, event after event.

    An exchange of duration tau that its nodes reach at times T_k and T_l ends at

    - ``nonblocking`` (experiments, Appendix E): T_k <- max(T_k, T_l + tau) and
      T_l <- max(T_l, T_k + tau): a node posts its message and goes on once the other's arrived;
    - ``rendezvous`` (theory, Figure 2): T_k, T_l <- max(T_k, T_l) + tau, both nodes being held.

    A local update at node i adds its duration to T_i.

    Parameters
    ----------
    edges : array of int, shape (n_edges, 2)
    n_nodes : int
    delays : Delays
    kind : {"nonblocking", "rendezvous"}

    Attributes
    ----------
    finish : array, shape (n_nodes,)
        When each node has done all its events so far.
    busy : array, shape (n_nodes,)
        Time in local updates and in exchanges that both nodes have reached. Under ``rendezvous``
        an exchange takes its full duration at both nodes; under ``nonblocking`` only the part that
        the node could not hide: from when both have posted until the other's message arrives,
        nothing if it had arrived before.
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
        self,
        edges: NDArray[np.integer],
        n_nodes: int,
        delays: Delays,
        kind: str = "nonblocking",
    ) -> None:
        checks.choice("clock", kind, CLOCKS)
        self.edges = _checked_edges(edges, n_nodes)
        self.n_nodes = n_nodes
        self.delays = delays
        self.kind = kind
        self.finish = np.zeros(n_nodes)
        self.busy = np.zeros(n_nodes)
        self.waiting = np.zeros(n_nodes)
        self._nominal = delays.nominal(len(self.edges), n_nodes)
        self._law = delays.law_arguments(len(self.edges), n_nodes)
        self._keys = delays.keys()
        # One node, steps of one whole length: a product is the sum, to the bit.
        whole = delays.law == "constant" and float(self._nominal[-1]).is_integer()
        self._counts_only = n_nodes == 1 and whole

    @property
    def code(self) -> int:
        """The kind of clock, as kernels know it."""
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
            clocks.advance(
                which,
                self.edges,
                self._draw_durations(which, events.start + first, _ticks(events, first)),
                self.code,
                self.finish,
                self.busy,
                self.waiting,
            )

    def durations(self, events: Events) -> NDArray[np.float64]:
        """Duration of each event of a block."""
        self._check(events)
        return self._draw_durations(events.which, events.start, _ticks(events, 0))

    def idle_share(self) -> NDArray[np.float64]:
        """Share of the time so far that each node was not busy, (n_nodes,).

        Waiting for a peer counts, and so does what passes between a node's last event and the end.
        """
        time = self.time
        return 1.0 - self.busy / time if time > 0.0 else np.zeros(self.n_nodes)

    def copy(self) -> "Clock":
        """Another clock in the same state."""
        other = Clock(self.edges, self.n_nodes, self.delays, self.kind)
        other.restore(self.state())
        return other

    def arrays(self) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
        """Views of its state: one row per node, and nothing shared."""
        return {"finish": self.finish, "busy": self.busy, "waiting": self.waiting}, {}

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Copies of the arrays from which ``restore`` makes this state again."""
        return {
            "finish": self.finish.copy(),
            "busy": self.busy.copy(),
            "waiting": self.waiting.copy(),
        }

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> None:
        """Take up a state that a clock of as many nodes exported."""
        for name in ("finish", "busy", "waiting"):
            values = np.asarray(state[name], dtype=np.float64)
            if values.shape != (self.n_nodes,):
                raise ParameterError(
                    f"the clock's {name!r} has shape {values.shape}, but there are {self.n_nodes} "
                    f"nodes; restore the state of a run on the same graph."
                )
            getattr(self, name)[:] = values

    def _draw_durations(
        self, which: NDArray[np.int32], start: int, ticks: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        out = np.empty(len(which))
        # Hashing wraps around 2^64, which NumPy reports when kernels run uncompiled.
        with np.errstate(over="ignore"):
            clocks.durations(which, start, ticks, self._nominal, *self._law, self._keys, out)
        return out

    def _check(self, events: Events) -> None:
        if not len(events.which):
            return
        if events.which.min() >= 0 and events.which.max() < self._nominal.size:
            return
        wrong = (events.which < 0) | (events.which >= self._nominal.size)
        first = int(np.argmax(wrong))
        raise ParameterError(
            f"event {events.start + first} has which={events.which[first]}, but a graph of "
            f"{len(self.edges)} edges and {self.n_nodes} nodes has numbers from 0 to "
            f"{self._nominal.size - 1}; time a schedule on the graph it was sampled for."
        )


def _ticks(events: Events, first: int) -> NDArray[np.int64]:
    """Ticks from event ``first`` of the block on; none in the shared form."""
    return NO_TICKS if events.ticks is None else events.ticks[first:]


def _checked_edges(edges: NDArray[np.integer], n_nodes: int) -> NDArray[np.int32]:
    """Pairs of different nodes that exist: kernels follow them without checks."""
    array = np.asarray(edges)
    if array.size and (array.ndim != 2 or array.shape[1] != 2):
        raise GraphError(f"edges have shape {array.shape}; pass one row of two nodes per edge.")
    array = array.reshape(-1, 2)
    wrong = (array < 0).any(axis=1) | (array >= n_nodes).any(axis=1) | (array[:, 0] == array[:, 1])
    if wrong.any():
        index = int(np.argmax(wrong))
        raise GraphError(
            f"edge {index} is {tuple(array[index].tolist())}; an edge joins two different nodes "
            f"numbered from 0 to {n_nodes - 1}. Correct it, or raise n_nodes={n_nodes}."
        )
    return np.ascontiguousarray(array, dtype=np.int32)

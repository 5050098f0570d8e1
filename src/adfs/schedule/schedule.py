"""A schedule as an object: drawn or given, streamed, saved, replayed and timed."""

import io
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.archives import Archive
from adfs.display import plot_function
from adfs.errors import DataError, ParameterError
from adfs.schedule.clock import Clock
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from adfs.schedule.sampling_law import Drawer, SamplingLaw
from adfs.schedule.stratified import StratifiedDrawer
from adfs.storage import write_whole

BLOCK = 1 << 14
STORED = ("edges", "n_nodes", "which", "sample")


class Schedule:
    """A sequence of events on a communication graph, drawn from a seed or given as arrays.

    Drawn schedules hold no events: any block is drawn when asked for, the same each time.

    Examples
    --------
    Figure 2 of the paper, nodes A to D being 0 to 3:

    >>> schedule = Schedule.from_events(
    ...     4, [(0, 2), (1, 3), (0, 1), (2, 3)], [(0, 2), (1, 3), (0, 1), 3, (2, 3)])
    >>> schedule.times(tau=3.0, clock="rendezvous")
    array([6., 6., 7., 7.])
    """

    def __init__(
        self, edges: NDArray[np.int32], n_nodes: int, n_events: int, source: "Drawer | Events"
    ) -> None:
        if n_events < 0:
            raise ParameterError(f"n_events={n_events} must be >= 0.")
        self.edges, self.n_nodes, self.n_events = edges, n_nodes, n_events
        self._source = source

    @classmethod
    def sample(
        cls, parameters: SamplingLaw, n_events: int, seed: int = 0, stratified: bool = False
    ) -> "Schedule":
        """Schedule of ``n_events`` drawn with the probabilities of ``parameters``.

        With ``stratified``, the samples of a node come in epochs (docs/algorithms/stratified.md).
        """
        drawer = (StratifiedDrawer if stratified else Drawer)(parameters, seed)
        return cls(parameters.edges, len(parameters.p_node), int(n_events), drawer)

    @classmethod
    def from_events(
        cls, n_nodes: int, edges: Sequence[tuple[int, int]], events: Sequence[object]
    ) -> "Schedule":
        """Schedule from a list: a pair is a communication, a number a local update at that node."""
        number = {frozenset(edge): k for k, edge in enumerate(edges)}
        which = np.empty(len(events), np.int32)
        for k, event in enumerate(events):
            if isinstance(event, int | np.integer) and 0 <= event < n_nodes:
                which[k] = len(edges) + int(event)
            elif isinstance(event, tuple) and frozenset(event) in number:
                which[k] = number[frozenset(event)]
            else:
                raise ParameterError(f"Event {k} is {event!r}: neither a node nor an edge given.")
        sample = np.where(which >= len(edges), 0, -1).astype(np.int32)
        table = np.array(edges, dtype=np.int32).reshape(-1, 2)
        return cls(table, n_nodes, len(events), Events(0, which, sample))

    def events(self, start: int = 0, stop: int | None = None) -> Events:
        """Events ``start`` to ``stop`` (to the end by default) as arrays."""
        stop = self.n_events if stop is None else min(stop, self.n_events)
        if isinstance(self._source, Drawer):
            return self._source.draw(start, stop)
        return Events(start, self._source.which[start:stop], self._source.sample[start:stop])

    def blocks(self, start: int = 0, size: int = BLOCK) -> Iterator[Events]:
        """The events from ``start`` on, in blocks; memory for one block only."""
        for first in range(start, self.n_events, size):
            yield self.events(first, first + size)

    def clock(
        self, tau: float = 1.0, clock: str = "nonblocking", delays: Delays | None = None
    ) -> Clock:
        """Run the clock over the whole schedule; iterates do not depend on it."""
        hands = Clock(self.edges, self.n_nodes, delays or Delays(tau=tau), clock)
        for block in self.blocks():
            hands.advance(block)
        return hands

    def times(
        self, tau: float = 1.0, clock: str = "nonblocking", delays: Delays | None = None
    ) -> NDArray[np.float64]:
        """Finish time of each node; ``delays`` replaces ``tau`` where they are not constant."""
        return self.clock(tau, clock, delays).finish

    def plot(
        self, tau: float = 1.0, clock: str = "nonblocking", n_events: int = 60, ax: Any = None
    ) -> Any:
        """Draw what each node does during the first ``n_events`` events; the matplotlib axes."""
        return plot_function("graph_plot", "draw_schedule")(self, tau, clock, n_events, ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the events to a .npz file, whole or not at all."""
        events = self.events()
        content = io.BytesIO()
        np.savez(
            content, edges=self.edges, n_nodes=self.n_nodes,
            which=events.which, sample=events.sample,
        )  # fmt: skip
        write_whole(path, content.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Schedule":
        """Read a schedule that `save` wrote."""
        try:
            archive = Archive(path)
            edges, n_nodes, which, sample = (archive.read(key) for key in STORED)
            events = Events(0, which, sample)
            _check_stored(edges, n_nodes, events)
            return cls(np.ascontiguousarray(edges), int(n_nodes), len(which), events)
        except ValueError as error:
            raise DataError(
                f"{path} is not a schedule that can be read ({getattr(error, 'reason', error)}); "
                "make one with Schedule.save or `adfs schedule sample --out FILE`."
            ) from None

    def __len__(self) -> int:
        return self.n_events

    def __repr__(self) -> str:
        return f"Schedule({self.n_events} events, {self.n_nodes} nodes, {len(self.edges)} edges)"


def _check_stored(edges: NDArray[np.int32], n_nodes: NDArray[Any], events: Events) -> None:
    """Refuse arrays that no schedule has: kernels follow their numbers without checks."""
    which, sample = events.which, events.sample
    if any(array.dtype != np.int32 for array in (edges, which, sample)):
        raise ValueError("its arrays are not of type int32")
    if which.ndim != 1 or which.shape != sample.shape or edges.shape[1:] != (2,):
        raise ValueError(f"shapes {edges.shape}, {which.shape} and {sample.shape} do not fit")
    most = max(1, 2 * len(edges) + len(which))  # nodes that an edge or an event can name
    if n_nodes.shape or n_nodes.dtype.kind not in "iu" or not 1 <= n_nodes <= most:
        raise ValueError(f"its n_nodes is not a whole number from 1 to {most}")
    local = which >= len(edges)
    if ((which < 0) | (which >= len(edges) + n_nodes) | ((sample < 0) & local)).any():
        raise ValueError("an event is outside its graph")
    if ((edges < 0) | (edges >= n_nodes)).any():
        raise ValueError("an edge is outside its graph")

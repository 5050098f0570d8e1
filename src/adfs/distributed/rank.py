"""One rank: the state of its nodes, and their part of the schedule from position to position."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.adfs import Adfs, AdfsState
from adfs.algorithms.base import Setting, Source
from adfs.algorithms.ns_adfs import NsAdfs, NsAdfsState
from adfs.distributed.own_events import own_source
from adfs.distributed.part import convex_part, local_ends, smooth_part
from adfs.distributed.share import Share
from adfs.distributed.transport import Transport
from adfs.kernels import convex, queues, ranks
from adfs.kernels.poisson import TICKS
from adfs.schedule.clock import CODES
from adfs.schedule.events import Events
from adfs.theory.non_smooth import NonSmoothParameters
from adfs.theory.parameters import Parameters

Vector = NDArray[np.float64]


class Rank:
    """Arithmetic of a rank's nodes; it neither sends nor waits, `serve` does.

    Attributes
    ----------
    position : int
        Every event before it is done at every node of this rank, unless `busy`.
    tally : array, shape (n_nodes, 2)
        Local updates of each node so far, and exchanges on edges whose first end it is.
    """

    def __init__(
        self, share: Share, parameters: Parameters | NonSmoothParameters, setting: Setting
    ) -> None:
        self.share, self.schedule = share, setting.schedule
        self.ends = local_ends(share)
        self.algorithm: Any = _algorithm(share, parameters, self.ends, setting.schedule)
        self.source: Source = own_source(parameters, setting.seed, setting.schedule, share)
        self.peer_of = _peers(share)
        self.hands = _hands(share, setting)
        n, width = share.n_nodes, share.n_features + 1
        self.desk = ranks.Desk(np.full(n, ranks.DONE, np.int8), np.zeros((2 * n, width)))
        self.position, self.tally = 0, np.zeros((n, 2), np.int64)
        self.start(None)

    def start(self, theta: Vector | None) -> None:
        """State before the first event, from zero or from a model."""
        self.take(self.algorithm.init(theta))

    def take(self, state: AdfsState | NsAdfsState) -> None:
        """Go on from this state."""
        self.state = state
        network = self.algorithm.network
        if isinstance(state, AdfsState):
            self.work: Any = ranks.Smooth(state.lines, state.centres, network, self.algorithm.decay)
            self._sequence = queues.Sequence(0.0, 0.0, 0.0)
        else:
            self.work = ranks.Convex(state.lines, state.pairs, network)
            self._sequence = queues.Sequence(
                network.smoothness, network.first_root, network.root_per_tick
            )

    @property
    def done(self) -> bool:
        """Whether every node has executed what was loaded."""
        return bool((self.desk.status == ranks.DONE).all())

    def load(self, stop: int) -> None:
        """Queue the events up to the position ``stop``; all before must be done."""
        events = self.source.draw(self.position, stop)
        count = np.zeros(self.share.n_nodes, np.int64)
        queues.count_own(events.which, self.ends, self.share.here, count)
        self.queue = self._queue(count)
        a, total = self._move_time(events, stop)
        queues.fill(
            self.queue, self.queue.head.copy(), events.which, events.sample, events.ticks, a, total,
            self.ends, self.share.here,
        )  # fmt: skip
        ranks.count_events(self.queue, self.ends, self.tally)
        ranks.begin(self.queue, self.desk)
        self.position = stop

    def _queue(self, count: NDArray[np.int64]) -> ranks.Queue:
        first = np.concatenate([[0], np.cumsum(count)])
        size = int(first[-1])
        weights = size if self._sequence.smoothness > 0.0 else 0
        return ranks.Queue(
            first, first[:-1].copy(), first[:-1].copy(), np.empty(size, np.int64),
            np.empty(size, np.int32), np.empty(size, np.int32), np.empty(weights + 1),
            np.empty(weights + 1),
        )  # fmt: skip

    def _move_time(self, events: Events, stop: int) -> tuple[Vector, Vector]:
        """What the state says of time becomes that of ``stop``, whichever events are ours.

        Returns Algorithm 3's weights at the events, with one more to spare.
        """
        state, in_ticks = self.state, self.schedule == "poisson"
        if isinstance(state, AdfsState):
            state.t = stop * TICKS if in_ticks else stop
            return np.empty(1), np.empty(1)
        a, total = np.empty((2, len(events.which) + 1))
        if in_ticks:
            queues.weights_of_ticks(events.ticks, self._sequence, a, total)
            state.growth = convex.weights_at(stop * TICKS, self._sequence)[1]
        else:
            state.growth = queues.weights_of_own(
                events.ticks, events.start, stop, state.growth, self._sequence, a, total
            )  # fmt: skip
        return a, total

    def advance(self) -> int:
        """Run every node until it stands before a message or at its end; how many moved."""
        moved: int = ranks.advance(
            self.work, self.share.rows, self.queue, self.hands, self.desk
        )  # fmt: skip
        return moved


def serve(rank: Rank, transport: Transport) -> int:
    """Run a rank's nodes as far as they go, begin their exchanges, finish those that are through.

    Returns how many nodes moved: nobody did when all wait for other ranks, or are done.
    """
    moved = rank.advance()
    for node in np.flatnonzero(rank.desk.status == ranks.POST).tolist():
        edge = int(rank.queue.which[rank.queue.head[node]])
        side = 0 if rank.ends[edge, 0] == node else 1
        outgoing, incoming = (rank.desk.messages[2 * node + k] for k in (side, 1 - side))
        transport.post(node, int(rank.peer_of[edge]), edge, outgoing, incoming)
        rank.desk.status[node] = ranks.WAIT
    for node in np.flatnonzero(rank.desk.status == ranks.WAIT).tolist():
        if transport.done(node):
            ranks.settle(node, rank.work, rank.queue, rank.hands, rank.desk)
            moved += 1
    return moved


def _algorithm(
    share: Share,
    parameters: Parameters | NonSmoothParameters,
    ends: NDArray[np.int32],
    schedule: str,
) -> Adfs | NsAdfs:
    if isinstance(parameters, Parameters):
        return Adfs(share, smooth_part(parameters, share.nodes, ends), schedule)
    return NsAdfs(share, convex_part(parameters, share.nodes, ends), schedule)


def _peers(share: Share) -> NDArray[np.int32]:
    """The rank at the far end of each edge that leaves this rank; -1 for all other edges."""
    owners = share.mapping.rank_of[share.topology.edges].reshape(-1, 2)
    mine = owners == share.peers.rank
    leaving = mine.sum(axis=1) == 1
    far = np.where(mine[:, 0], owners[:, 1], owners[:, 0])
    return np.where(leaving, far, -1).astype(np.int32)


def _hands(share: Share, setting: Setting) -> ranks.Hands:
    n_edges, n_nodes = share.topology.n_edges, share.topology.n_nodes
    nominal = setting.delays.nominal(n_edges, n_nodes)
    own = share.n_nodes
    return ranks.Hands(
        CODES[setting.clock], nominal[n_edges:][share.nodes].copy(), nominal[:n_edges].copy(),
        np.zeros(own), np.zeros(own), np.zeros(own),
    )  # fmt: skip

"""The events in which a rank's nodes take part, drawn without knowing the other nodes' samples."""

import math

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Source
from adfs.distributed.share import Share
from adfs.kernels import queues
from adfs.randomness import stream_key
from adfs.schedule.events import Events
from adfs.schedule.law import SamplingLaw, alias_table
from adfs.schedule.poisson import PoissonSource

DRAWN_AT_ONCE = 1_024


def own_source(law: SamplingLaw, seed: int, schedule: str, share: Share) -> Source:
    """Where a rank's events come from; all others are left out."""
    if schedule == "poisson":
        return PoissonSource(law, seed, share.nodes)
    return SharedSource(law, seed, share)


class SharedSource:
    """The paper's schedule: draws everybody's events, keeps this rank's.

    Their indices in the schedule stand where a Poisson schedule has the times (``ticks``).
    """

    def __init__(self, law: SamplingLaw, seed: int, share: Share) -> None:
        self._key = stream_key(seed, "schedule")
        probabilities = np.concatenate([law.p_edge, law.p_node])
        self._table = alias_table(probabilities)
        ours = (share.here[law.edges] >= 0).any(axis=1)
        self._mine = np.concatenate([ours, share.here >= 0]).astype(np.int64)
        self._rate = float(probabilities @ self._mine / probabilities.sum())
        self._n_edges, self._here, self._offsets = len(law.p_edge), share.here, share.offsets
        self._keys = np.array(
            [stream_key(seed, f"samples/{node}") for node in share.nodes], dtype=np.uint64
        )
        self._tables = np.concatenate([_table(law, int(node), share) for node in share.nodes])

    def draw(self, start: int, stop: int) -> Events:
        """Of the events ``start`` to ``stop``, those in which this rank takes part."""
        # Hashing wraps around 2^64, which NumPy reports when kernels run uncompiled.
        with np.errstate(over="ignore"):
            which, when = self._own(start, stop)
            sample = np.empty_like(which)
            queues.draw_own_samples(
                sample, which, when, self._n_edges, self._here, self._keys, self._tables,
                self._offsets,
            )  # fmt: skip
        return Events(start, which, sample, when, stop)

    def _own(self, start: int, stop: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        expected = self._rate * (stop - start)
        size = math.ceil(expected + 6.0 * math.sqrt(expected)) + DRAWN_AT_ONCE
        room = np.empty(DRAWN_AT_ONCE, np.int32)
        while True:
            which, when = np.empty(size, np.int32), np.empty(size, np.int64)
            used = queues.keep_own(
                start, stop, self._key, self._table, self._mine, which, when, room
            )  # fmt: skip
            if used + DRAWN_AT_ONCE <= size:
                return which[:used], when[:used]
            size = used + DRAWN_AT_ONCE


def _table(law: SamplingLaw, node: int, share: Share) -> NDArray[np.int64]:
    """A node that never computes needs no table, only its room."""
    if law.p_node[node] > 0.0:
        return alias_table(law.importance_of(node))
    own = share.here[node]
    return np.zeros(share.offsets[own + 1] - share.offsets[own], np.int64)

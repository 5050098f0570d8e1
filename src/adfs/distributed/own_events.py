"""The events in which a rank's nodes take part, drawn without knowing the other nodes' samples."""

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Source
from adfs.distributed.share import Share
from adfs.kernels import queues
from adfs.randomness import stream_key
from adfs.schedule.events import Events
from adfs.schedule.law import Drawer, SamplingLaw, alias_table
from adfs.schedule.poisson import PoissonSource


def own_source(law: SamplingLaw, seed: int, schedule: str, share: Share) -> Source:
    """Where a rank's events come from; the shared form draws everybody's, samples only its own."""
    if schedule == "poisson":
        return PoissonSource(law, seed, share.nodes)
    return SharedSource(law, seed, share)


class SharedSource:
    """The paper's schedule: all events, with the samples of this rank's nodes."""

    def __init__(self, law: SamplingLaw, seed: int, share: Share) -> None:
        self._everybody = Drawer(law, seed, with_samples=False)
        self._n_edges, self._here, self._offsets = len(law.p_edge), share.here, share.offsets
        self._keys = np.array(
            [stream_key(seed, f"samples/{node}") for node in share.nodes], dtype=np.uint64
        )
        self._tables = np.concatenate([_table(law, int(node), share) for node in share.nodes])

    def draw(self, start: int, stop: int) -> Events:
        """Events ``start`` to ``stop``."""
        events = self._everybody.draw(start, stop)
        # Hashing wraps around 2^64, which NumPy reports when kernels run uncompiled.
        with np.errstate(over="ignore"):
            queues.draw_own_samples(
                events.sample, events.which, start, self._n_edges, self._here, self._keys,
                self._tables, self._offsets,
            )  # fmt: skip
        return events


def _table(law: SamplingLaw, node: int, share: Share) -> NDArray[np.int64]:
    """A node that never computes needs no table, only its room."""
    if law.p_node[node] > 0.0:
        return alias_table(law.importance_of(node))
    own = share.here[node]
    return np.zeros(share.offsets[own + 1] - share.offsets[own], np.int64)

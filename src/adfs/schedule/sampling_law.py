"""The sampling law of a schedule: probabilities turned into alias tables, O(1) per draw."""

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.kernels import sampling
from adfs.network import Network
from adfs.randomness import stream_key, stream_keys
from adfs.schedule.events import Events

Vector = NDArray[np.float64]

DRAWN_AT_ONCE = 1_024


class SamplingLaw(Protocol):
    """What a schedule needs to know of parameters; ``offsets`` are of the nodes here."""

    @property
    def edges(self) -> NDArray[np.int32]: ...
    @property
    def p_edge(self) -> Vector: ...
    @property
    def p_node(self) -> Vector: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...
    def importance_of(self, node: int) -> Vector: ...


class Drawer:
    """Draws events of a law from a seed, any block at any time, without keeping a generator.

    The shared stream draws only the edge or the node of event ``t``; the sample comes from that
    node's own stream, so no node needs to know another one's data or draws. Where only some nodes
    are in this process, all events are drawn and those of other nodes dropped; the indices of the
    others stand where a Poisson schedule has the times (``Events.ticks``).
    """

    def __init__(
        self,
        law: SamplingLaw,
        seed: int,
        network: Network | None = None,
        with_samples: bool = True,
    ) -> None:
        self.n_edges, self.n_nodes = len(law.p_edge), len(law.p_node)
        self._key = stream_key(seed, "schedule")
        probabilities = np.concatenate([law.p_edge, law.p_node])
        self._table = alias_table(probabilities)
        self._offsets = law.offsets
        self._own = None if network is None or network.is_whole else network
        if self._own is not None:
            mine = np.concatenate([(self._own.ends >= 0).any(axis=1), self._own.here >= 0])
            self._mine = mine.astype(np.int64)
            self._share = float(probabilities @ self._mine / probabilities.sum())
        self._with_samples = with_samples
        if with_samples:
            nodes = np.arange(self.n_nodes) if self._own is None else self._own.nodes
            self._node_keys = stream_keys(seed, "samples", nodes)
            self._tables = _node_tables(law, nodes)

    def draw(self, start: int, stop: int) -> Events:
        """Events ``start`` to ``stop``: all of them, or those of the nodes here."""
        # Hashing wraps around 2^64, which NumPy reports when kernels run uncompiled.
        with np.errstate(over="ignore"):
            if self._own is not None:
                return self._draw_own(start, stop)
            which = np.zeros(stop - start, np.int32)  # one node alone: nothing to draw
            sample = np.full(stop - start, -1, np.int32)
            if len(self._table) > 1:
                sampling.draw_which(which, start, self._key, self._table)
            if self._with_samples:
                sampling.draw_samples(
                    sample, which, start, self.n_edges, self._node_keys, self._tables, self._offsets
                )
        return Events(start, which, sample)

    def _draw_own(self, start: int, stop: int) -> Events:
        assert self._own is not None
        expected = self._share * (stop - start)
        size = math.ceil(expected + 6.0 * math.sqrt(expected)) + DRAWN_AT_ONCE
        buffer = np.empty(DRAWN_AT_ONCE, np.int32)
        while True:
            which, when = np.empty(size, np.int32), np.empty(size, np.int64)
            used = sampling.keep_own(
                start, stop, self._key, self._table, self._mine, which, when, buffer
            )  # fmt: skip
            if used + DRAWN_AT_ONCE <= size:
                break
            size = used + DRAWN_AT_ONCE
        which, when = which[:used], when[:used]
        sample = np.empty_like(which)
        sampling.draw_own_samples(
            sample, which, when, self.n_edges, self._own.here, self._node_keys, self._tables,
            self._offsets,
        )  # fmt: skip
        return Events(start, which, sample, when, stop)


def alias_table(weights: Vector) -> NDArray[np.int64]:
    """Alias table of weights >= 0 with a positive sum."""
    if not 0.0 < weights.sum() < np.inf or (weights < 0).any():
        raise ParameterError("Sampling weights must be finite, >= 0 and not all zero.")
    table = np.zeros(len(weights), np.int64)
    sampling.build_alias(weights, table)
    return table


def _node_tables(law: SamplingLaw, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """One alias table per node here, end to end; a node that never computes needs none."""
    tables = np.zeros(int(law.offsets[-1]), np.int64)
    for own, node in enumerate(nodes.tolist()):
        if law.p_node[node] > 0.0:
            rows = slice(law.offsets[own], law.offsets[own + 1])
            tables[rows] = alias_table(law.importance_of(node))
    return tables

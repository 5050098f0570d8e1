"""The sampling law of a schedule: probabilities turned into alias tables, O(1) per draw."""

import math
from typing import Any, Protocol

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
    """What a schedule needs to know of parameters."""

    @property
    def edges(self) -> NDArray[np.int32]: ...
    @property
    def p_edge(self) -> Vector: ...
    @property
    def p_node(self) -> Vector: ...
    def importance_of(self, node: int) -> Vector: ...


class Drawer:
    """Draws events of a law from a seed, any block at any time, without keeping a generator.

    The shared stream draws only the edge or the node of event ``t``; the sample comes from that
    node's own stream, so no node needs to know another one's data or draws. Where only some nodes
    are in this process, all events are drawn and those of other nodes dropped; the indices of the
    others stand where a Poisson schedule has the times (``Events.ticks``).
    """

    def __init__(
        self, law: SamplingLaw, seed: int, network: Network | None = None, with_samples: bool = True
    ) -> None:
        self.n_edges, self.n_nodes = len(law.p_edge), len(law.p_node)
        self._key = stream_key(seed, "schedule")
        probabilities = np.concatenate([law.p_edge, law.p_node])
        self._table = alias_table(probabilities)
        nodes = np.arange(self.n_nodes)
        self._is_whole = network is None or network.is_whole
        if network is not None and not self._is_whole:
            nodes = network.nodes
            mine = np.concatenate([(network.ends >= 0).any(axis=1), network.here >= 0])
            self._mine = mine.astype(np.int64)
            self._share = float(probabilities @ self._mine / probabilities.sum())
        self._with_samples = with_samples
        if with_samples:
            keys = np.zeros(self.n_nodes, np.uint64)
            keys[nodes] = stream_keys(seed, "samples", nodes)
            self._samples = keys, *sample_tables(law, nodes)

    def draw(self, start: int, stop: int) -> Events:
        """Events ``start`` to ``stop``: all of them, or those of the nodes here."""
        which, when = self._draw_which(start, stop)
        sample = np.full(len(which), -1, np.int32)
        if self._with_samples:
            sampling.draw_samples(sample, which, start, when, self.n_edges, *self._samples)
        return Events(start, which, sample, when, None if when is None else stop)

    def _draw_which(
        self, start: int, stop: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64] | None]:
        """The edge or node of each event, and the indices where some are dropped."""
        if self._is_whole:
            which = np.zeros(stop - start, np.int32)  # one node alone: nothing to draw
            if len(self._table) > 1:
                sampling.draw_which(which, start, self._key, self._table)
            return which, None
        expected = self._share * (stop - start)
        size = math.ceil(expected + 6.0 * math.sqrt(expected)) + DRAWN_AT_ONCE
        buffer = np.empty(DRAWN_AT_ONCE, np.int32)
        while True:
            which, when = np.empty(size, np.int32), np.empty(size, np.int64)
            used = sampling.keep_own(
                start, stop, self._key, self._table, self._mine, which, when, buffer
            )  # fmt: skip
            if used + DRAWN_AT_ONCE <= size:
                return which[:used], when[:used]
            size = used + DRAWN_AT_ONCE


def alias_table(weights: Vector) -> NDArray[np.int64]:
    _check_weights(weights.sum(), weights)
    table = np.zeros(len(weights), np.int64)
    sampling.build_alias(weights, table)
    return table


def _check_weights(sums: "Vector | np.floating[Any]", weights: Vector) -> None:
    if not np.all((sums > 0.0) & (sums < np.inf)) or (weights < 0).any():
        raise ParameterError("Sampling weights must be finite, >= 0 and not all zero.")


def sample_tables(
    law: SamplingLaw, nodes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Alias tables of these nodes' samples, end to end, and where those of each node begin."""
    drawn = law.p_node[nodes] > 0.0
    if hasattr(law, "importances") and drawn.all():
        weights, sizes = law.importances()  # of the nodes here, one after another
        if len(sizes) == len(nodes):
            offsets = np.append(0, np.cumsum(sizes))
            _check_weights(np.add.reduceat(weights, offsets[:-1]), weights)
            flat = np.zeros(len(weights), np.int64)
            sampling.build_aliases(weights, offsets, flat)
            counts = np.zeros(len(law.p_node), np.int64)
            counts[nodes] = sizes
            return flat, np.append(0, np.cumsum(counts))
    tables, sizes = [np.zeros(0, np.int64)], np.zeros(len(law.p_node), np.int64)
    for node in nodes[law.p_node[nodes] > 0.0].tolist():
        tables.append(alias_table(law.importance_of(node)))
        sizes[node] = len(tables[-1])
    return np.concatenate(tables), np.append(0, np.cumsum(sizes))

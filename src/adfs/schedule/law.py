"""The sampling law of a schedule: probabilities turned into alias tables, O(1) a draw."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.kernels import sampling
from adfs.randomness import stream_key, stream_keys
from adfs.schedule.events import Events

Vector = NDArray[np.float64]


class SamplingLaw(Protocol):
    """What a schedule needs to know of parameters."""

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
    node's own stream, so no node needs to know another one's data or draws.
    """

    def __init__(self, law: SamplingLaw, seed: int, with_samples: bool = True) -> None:
        self.n_edges, self.n_nodes = len(law.p_edge), len(law.p_node)
        self._key = stream_key(seed, "schedule")
        self._table = alias_table(np.concatenate([law.p_edge, law.p_node]))
        self._offsets = law.offsets
        self._with_samples = with_samples
        if with_samples:
            self._node_keys = stream_keys(seed, "samples", self.n_nodes)
            self._tables = _node_tables(law)

    def draw(self, start: int, stop: int) -> Events:
        """Events ``start`` to ``stop``."""
        which = np.zeros(stop - start, np.int32)  # one node alone: nothing to draw
        sample = np.full(stop - start, -1, np.int32)
        # Hashing wraps around 2^64, which NumPy reports when kernels run uncompiled.
        with np.errstate(over="ignore"):
            if len(self._table) > 1:
                sampling.draw_which(which, start, self._key, self._table)
            if self._with_samples:
                sampling.draw_samples(
                    sample, which, start, self.n_edges, self._node_keys, self._tables, self._offsets
                )
        return Events(start, which, sample)


def alias_table(weights: Vector) -> NDArray[np.int64]:
    """Alias table of weights >= 0 with a positive sum."""
    if not 0.0 < weights.sum() < np.inf or (weights < 0).any():
        raise ParameterError("Sampling weights must be finite, >= 0 and not all zero.")
    table = np.zeros(len(weights), np.int64)
    sampling.build_alias(weights, table)
    return table


def _node_tables(law: SamplingLaw) -> NDArray[np.int64]:
    """One alias table a node, end to end; a node that never computes needs none."""
    tables = np.zeros(int(law.offsets[-1]), np.int64)
    for node in np.flatnonzero(law.p_node > 0.0):
        rows = slice(law.offsets[node], law.offsets[node + 1])
        tables[rows] = alias_table(law.importance_of(int(node)))
    return tables

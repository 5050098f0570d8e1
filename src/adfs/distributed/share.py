"""A rank's share of a problem: the rows of its own nodes, and what is known of all of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.distributed.gathered import (
    OF_CONDITIONING,
    OF_REACH,
    GatheredConditioning,
    GatheredReach,
    gathered,
)
from adfs.distributed.mapping import Mapping
from adfs.errors import DataError
from adfs.graphs.topology import Topology
from adfs.launch.peers import Peers, agree, attempt
from adfs.losses import Loss, get_loss
from adfs.problems.conditioning import Conditioning
from adfs.problems.finite_sum import COLUMNS_AT_ONCE, NOTHING_LIVE, Problem
from adfs.problems.labels import code
from adfs.problems.reach import Reach
from adfs.problems.shards import join_shards

Vector = NDArray[np.float64]


class Share(Problem):
    """The problem as one rank holds it: its nodes are numbered 0, 1, ... here.

    ``sigma`` is of these nodes, ``whole_sigma`` and ``topology`` of all. What theory needs of the
    other nodes' samples are a few numbers a node, gathered when the share is made.
    """

    def __init__(
        self,
        peers: Peers,
        shards: Sequence[Any],
        loss: str | Loss,
        sigma: Vector,
        topology: Topology,
        mapping: Mapping,
        classes: NDArray[Any] | None,
    ) -> None:
        self.peers, self.mapping = peers, mapping
        self.nodes, self.here = mapping.nodes(peers.rank), mapping.here(peers.rank)
        self.loss, self.topology, self.classes = get_loss(loss), topology, classes
        self.whole_sigma, self.sigma = sigma, sigma[self.nodes]
        self._conditioning: Conditioning | None = None
        self._reach: Reach | None = None
        attempt(peers, lambda: self._join(shards))
        alive = sum(peers.gather(int(np.count_nonzero(self.live))))
        agree(peers, None if alive else DataError(NOTHING_LIVE))

    def _join(self, shards: Sequence[Any]) -> None:
        joined = join_shards(shards)
        self.rows, self.offsets, self.weights = joined.rows, joined.offsets, joined.weights
        self.n_nodes, self.n_samples = len(self.nodes), int(joined.offsets[-1])
        self.n_features = joined.n_features
        if self.classes is None:
            self.labels = joined.targets.astype(np.float64)
        else:
            self.labels = code(joined.targets, self.classes)
        self._measure_rows()

    @property
    def total_sigma(self) -> float:
        """``sum_i sigma_i`` over all nodes."""
        return float(np.sum(self.whole_sigma))

    # Kept by hand: until Python 3.12 a cached_property holds a lock of its class while it computes,
    # and ranks that are threads of one process, as in tests, have to compute these together.
    @property
    def conditioning(self) -> Conditioning:  # type: ignore[override]
        """Smoothness and condition numbers of all nodes."""
        if self._conditioning is None:
            own = Conditioning.of(self)
            numbers = self._gathered(own, OF_CONDITIONING)
            self._conditioning = gathered(
                GatheredConditioning, own, self.here, self.whole_sigma, numbers
            )
        return self._conditioning

    @property
    def reach(self) -> Reach:  # type: ignore[override]
        """How far the duals of all nodes' samples can move a model."""
        if self._reach is None:
            own = Reach.of(self)
            numbers = self._gathered(own, OF_REACH)
            self._reach = gathered(GatheredReach, own, self.here, self.whole_sigma, numbers)
        return self._reach

    def _gathered(self, own: Any, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
        """What there is one of a node, of all nodes."""
        own_numbers = attempt(self.peers, lambda: [getattr(own, name) for name in names])
        return {
            name: self.of_all(numbers) for name, numbers in zip(names, own_numbers, strict=True)
        }

    def sums_at_zero(self) -> Iterator[NDArray[np.float64]]:
        """The same for all nodes, gathered a block of columns at a time."""
        for own in super().sums_at_zero():
            yield self.of_all(own)

    def sum_over_nodes(self, rows: NDArray[np.float64]) -> Vector:
        """Sum over all nodes of their rows, each rank giving its own; a block of columns a time."""
        cuts = range(0, rows.shape[1], COLUMNS_AT_ONCE)
        blocks = (self.of_all(rows[:, first : first + COLUMNS_AT_ONCE]) for first in cuts)
        return np.concatenate([super(Share, self).sum_over_nodes(block) for block in blocks])

    def of_all(self, own: NDArray[Any]) -> NDArray[Any]:
        """Rows of all nodes from each rank's own."""
        width = own.shape[1:]
        whole = np.empty((len(self.here), *width), own.dtype)
        for rank, part in enumerate(self.peers.gather(own.reshape(-1))):
            whole[self.mapping.nodes(rank)] = part.reshape(-1, *width)
        return whole

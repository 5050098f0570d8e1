"""The stratified schedule: the shared stream of events, and every node's samples in epochs."""

import sys

import numpy as np

from adfs.kernels import sampling, strata
from adfs.network import Network
from adfs.randomness import stream_keys
from adfs.schedule.events import Events
from adfs.schedule.sampling_law import Drawer, SamplingLaw

COUNTED_AT_ONCE = 1 << 16


class StratifiedDrawer(Drawer):
    """Draws the edges and nodes of `Drawer`, but the samples of a node in epochs.

    In each epoch of as many local updates as a node has samples, sample ``j`` of probability
    ``q_j`` comes up ``m q_j`` times, rounded up or down (`adfs.kernels.strata`). A local update's
    sample depends on the seed, the node, and the number of the node's updates before it. That
    number is counted along; before a block that does not begin where the last one ended, the
    events up to there are drawn and counted, without their samples.

    From the position ``independent_from`` on, samples are those of `Drawer`.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    >>> parameters = adfs.Parameters.choose(adfs.Problem(adfs.partition(X, y, 1)))
    >>> events = StratifiedDrawer(parameters, seed=0).draw(0, 400)
    >>> counts = np.bincount(events.sample, minlength=40)
    >>> q = parameters.importance_of(0) / parameters.importance_of(0).sum()
    >>> bool(np.all(np.abs(counts - 400 * q) < 10))
    True
    """

    def __init__(self, law: SamplingLaw, seed: int, network: Network | None = None) -> None:
        super().__init__(law, seed, network)
        self.independent_from: int = sys.maxsize
        _, _, offsets = self._samples
        sizes = np.diff(offsets)
        nodes, keys = np.flatnonzero(sizes), np.zeros(self.n_nodes, np.uint64)
        keys[nodes] = stream_keys(seed, "strata", nodes)
        size = int(offsets[-1])
        line, ends, order = np.empty(size, np.int32), np.empty(size), np.empty(size, np.int32)
        for node in nodes.tolist():
            own = slice(offsets[node], offsets[node + 1])
            strata.lay_out(law.importance_of(node), keys[node], line[own], ends[own])
        self._position, self._sizes = 0, np.maximum(sizes, 1)
        self._state = np.tile(np.array([0, 0, -1]), (self.n_nodes, 1))
        self._strata = self._state, keys, offsets, line, ends, order

    def draw(self, start: int, stop: int) -> Events:
        """Events ``start`` to ``stop``: all of them, or those of the nodes here."""
        which, when = self._draw_which(start, stop)
        sample, split = np.empty(len(which), np.int32), self.independent_from
        n = int(np.clip(split - start, 0, len(which)))
        if when is not None:
            n = int(np.searchsorted(when, split))
        if start < split:
            self._seek(start)
            strata.draw_strata(sample[:n], which[:n], self.n_edges, *self._strata)
            self._position = min(stop, split)
        later = None if when is None else when[n:]
        sampling.draw_samples(
            sample[n:], which[n:], start + n, later, self.n_edges, *self._samples
        )  # fmt: skip
        return Events(start, which, sample, when, None if when is None else stop)

    def _seek(self, position: int) -> None:
        """Bring every node's count of local updates to those before ``position``."""
        if position == self._position:
            return
        first, counts = 0, np.zeros(self.n_nodes, np.int64)
        if position > self._position:
            first, epoch, place = self._position, *self._state[:, :2].T
            counts = epoch * self._sizes + place
        for start in range(first, position, COUNTED_AT_ONCE):
            which, _ = self._draw_which(start, min(position, start + COUNTED_AT_ONCE))
            found = np.bincount(which, minlength=self.n_edges + self.n_nodes)
            counts += found[self.n_edges :]
        columns = np.divmod(counts, self._sizes)
        self._state[:, strata.EPOCH], self._state[:, strata.PLACE] = columns
        self._position = position

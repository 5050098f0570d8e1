"""The Poisson schedule of the continuized form: every edge and every node has its own clock.

A node knows all events in which it takes part from the seed and the rates of its own clocks alone;
with the shared schedule, every node generates the events of all nodes.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.kernels import poisson
from adfs.kernels.poisson import TICK_BITS
from adfs.randomness import stream_key
from adfs.schedule.events import Events
from adfs.schedule.sampling_law import SamplingLaw, sample_tables

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

LONGEST_CELL = 36  # log2 of units: places keep whole ticks in double precision


class PoissonSource:
    """Draws the events of Poisson clocks from a seed, any stretch of time, without a generator.

    Edge ``e`` rings at the rate ``p_edge[e]`` and node ``i`` at the rate ``p_node[i]``, about one
    event per unit of time for all together. Events are in one total order, known to every node for
    its own events: by tick, then by ``which``, then as the clock drew them.

    With ``nodes``, only the events in which these take part are drawn; the cost does not depend on
    the other nodes, whose samples' importance is not asked for. Without ``with_samples``, local
    events have the sample -1. ``rate`` is the mean number of events per unit of time.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), topology=adfs.Topology.ring(4))
    >>> parameters = adfs.Parameters.choose(problem, how="exact")
    >>> events = PoissonSource(parameters, seed=0).draw(0, 1000)
    >>> mine = PoissonSource(parameters, seed=0, nodes=[2]).draw(0, 1000)
    >>> set(mine.ticks.tolist()) < set(events.ticks.tolist())
    True
    """

    def __init__(
        self,
        law: SamplingLaw,
        seed: int,
        nodes: Sequence[int] | Integers | None = None,
        with_samples: bool = True,
    ) -> None:
        edges, mine = _own_clocks(law, nodes)
        rates = np.concatenate([law.p_edge[edges], law.p_node[mine]])
        if not np.isfinite(rates).all() or (rates < 0.0).any():
            raise ParameterError("Rates of Poisson clocks must be finite and >= 0.")
        ring = rates > 0.0  # a node without data never does
        sizes, self._tables = np.zeros(len(edges) + len(mine), np.int64), np.zeros(0, np.int64)
        if with_samples:
            self._tables, starts = sample_tables(law, mine)
            sizes[len(edges) :] = np.diff(starts)[mine]
        keys = np.concatenate([_keys(seed, "edges", edges), _keys(seed, "nodes", mine)])
        which = np.concatenate([edges, len(law.p_edge) + mine])
        first = np.cumsum(sizes) - sizes
        self._clocks = _clocks(which[ring], keys[ring], rates[ring], first[ring], sizes[ring])
        self.rate = float(rates.sum())

    def draw(self, start: int, stop: int) -> Events:
        """Events with ``start <= time < stop``, both whole units of time."""
        start, stop = int(start), int(stop)
        expected = self.rate * (stop - start)
        buffer = math.ceil(expected + 6.0 * math.sqrt(expected)) + 16
        while True:
            ticks, clock = np.empty(buffer, np.int64), np.empty(buffer, np.int32)
            chance = np.empty(buffer)
            used = poisson.draw_clocks(
                self._clocks, start << TICK_BITS, stop << TICK_BITS, ticks, clock, chance
            )
            if used <= buffer:
                return self._ordered(start, stop, ticks[:used], clock[:used], chance[:used])
            buffer = used

    def _ordered(
        self, start: int, stop: int, ticks: Integers, clock: NDArray[np.int32], chance: Vector
    ) -> Events:
        sample, which = np.empty_like(clock), np.empty_like(clock)
        ordered, drawn = np.empty_like(ticks), np.empty_like(clock)
        poisson.draw_samples(self._clocks, self._tables, clock, chance, sample)
        span = (stop - start) << TICK_BITS
        shift = max(0, span.bit_length() - max(1, len(ticks)).bit_length())
        slots = np.zeros((span >> shift) + 3, np.int64)
        poisson.put_in_order(
            start << TICK_BITS, shift, self._clocks, ticks, clock, sample, slots,
            ordered, which, drawn,
        )  # fmt: skip
        return Events(start, which, drawn, ordered, stop)


def _own_clocks(law: SamplingLaw, nodes: Sequence[int] | Integers | None) -> tuple[Integers, ...]:
    """Numbers of the edges and the nodes whose clocks are wanted, each in increasing order."""
    n_nodes, n_edges = len(law.p_node), len(law.p_edge)
    if nodes is None:
        return np.arange(n_edges), np.arange(n_nodes)
    mine = np.unique(np.asarray(nodes, dtype=np.int64))
    if mine.size and not (mine[0] >= 0 and mine[-1] < n_nodes):
        wrong = mine[0] if mine[0] < 0 else mine[-1]
        raise ParameterError(
            f"node {wrong} does not exist; choose nodes from 0 to {n_nodes - 1}, as in the graph."
        )
    return np.flatnonzero(np.isin(law.edges, mine).any(axis=1)), mine


def _keys(seed: int, kind: str, numbers: Integers) -> NDArray[np.uint64]:
    keys = np.empty(len(numbers), np.uint64)
    poisson.clock_keys(stream_key(seed, f"poisson/{kind}"), numbers, keys)
    return keys


def _clocks(
    which: Integers, key: NDArray[np.uint64], rate: Vector, first: Integers, size: Integers
) -> poisson.Clocks:
    """Cells long enough for 4 to 8 events in the mean: few empty ones, few events to sort out."""
    _, exponent = np.frexp(rate)
    length = np.minimum(3 - exponent, LONGEST_CELL).astype(np.int64)
    mean = np.ldexp(rate, length)
    # One by one: a clock's numbers must not depend on which other clocks are computed beside it.
    empty = np.fromiter((math.exp(-value) for value in mean), np.float64, len(mean))
    cell = length + TICK_BITS
    return poisson.Clocks(which.astype(np.int32), key, cell, mean, empty, first, size)

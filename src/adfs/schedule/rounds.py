"""Synchronous methods: rounds in which all nodes compute, then communicate, and their times.

A round ends when its slowest node and then its slowest edges are done. Under a random law every
elementary step and every message has its own factor, as for the pairwise methods: a node that
processes m samples takes the sum of m draws.
"""

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.errors import ParameterError
from adfs.kernels import clocks, sampling
from adfs.randomness import stream_key
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events

DRAWS = 1 << 18  # random numbers for a mean


class Cost(NamedTuple):
    """A kind of round: elementary steps at each node, side by side, then communication rounds."""

    work: NDArray[np.float64]  # (n,), in units of one proximal step
    rounds: int = 0


class Rounds:
    """Kinds of rounds in a fixed pattern, repeated forever after an ``opening``.

    Examples
    --------
    >>> Rounds([1, 0, 0]).draw(2, 7).which
    array([0, 1, 0, 0, 1], dtype=int32)
    >>> Rounds([0], opening=[2, 1]).draw(1, 4).which
    array([1, 0, 0], dtype=int32)
    """

    def __init__(self, pattern: Sequence[int], opening: Sequence[int] = ()) -> None:
        self._pattern, self._opening = (np.array(each, np.int32) for each in (pattern, opening))

    @property
    def period(self) -> int:
        """Rounds after which the pattern repeats."""
        return len(self._pattern)

    def draw(self, start: int, stop: int) -> Events:
        """Rounds ``start`` to ``stop``."""
        late = np.arange(start, stop) - len(self._opening)
        which = self._pattern[late % len(self._pattern)]
        which[late < 0] = self._opening[start : start + int(np.sum(late < 0))]
        return Events(start, which, np.full(stop - start, -1, np.int32))


class CoinRounds:
    """Rounds of kind 1 with probability ``p`` and of kind 0 otherwise, by counter from a seed."""

    def __init__(self, p: float, seed: int, stream: str) -> None:
        if not 0.0 <= p <= 1.0:
            raise ParameterError(f"p={p:g} must be a probability, between 0 and 1.")
        self.p, self._key = p, stream_key(seed, stream)

    def draw(self, start: int, stop: int) -> Events:
        which = np.empty(stop - start, np.int32)
        sampling.draw_coins(which, start, self._key, self.p)
        return Events(start, which, np.full(stop - start, -1, np.int32))


def mean_time(cost: Cost, edges: NDArray[np.integer], n_nodes: int, delays: Delays) -> float:
    """Idealized time of a round, under a random law the mean of many rounds."""
    draws = float(np.sum(cost.work)) + cost.rounds * len(edges)
    count = 1 if delays.law == "constant" else int(np.clip(DRAWS / max(draws, 1.0), 16, 1024))
    clock = RoundClock([cost], edges, n_nodes, delays)
    clock.advance(Rounds([0]).draw(0, count))
    return clock.time / count


class RoundClock:
    """Time of synchronous rounds; all nodes leave a round together.

    There is one ``Cost`` per kind, in the order of their numbers in ``Events.which``. A
    communication round goes over all ``edges``; without edges it takes no time.

    Examples
    --------
    >>> cost = Cost(np.array([10.0, 20.0]), rounds=3)
    >>> clock = RoundClock([cost], np.array([[0, 1]]), 2, Delays(tau=5.0, speed=(1.0, 2.0)))
    >>> clock.advance(Rounds([0]).draw(0, 2))
    >>> clock.time
    110.0
    """

    def __init__(
        self, costs: Sequence[Cost], edges: NDArray[np.integer], n_nodes: int, delays: Delays
    ) -> None:
        self.costs, self.edges, self.n_nodes, self.delays = tuple(costs), edges, n_nodes, delays
        nominal = delays.nominal(len(edges), n_nodes)
        self._tau, self._speed = nominal[: len(edges)], nominal[len(edges) :]
        self._work = np.array([cost.work for cost in self.costs], dtype=np.float64)
        self._rounds = np.array([cost.rounds for cost in self.costs], dtype=np.int64)
        self._state = {
            "counts": np.zeros(len(self.costs)),  # rounds of each kind so far
            "random": np.zeros(1),  # time so far, under a random law
            "random_busy": np.zeros(n_nodes),
        }

    @property
    def lengths(self) -> NDArray[np.float64]:
        """How long a round of each kind takes without randomness, (kinds,)."""
        slowest = float(np.max(self._tau, initial=0.0))
        return np.asarray(np.max(self._speed * self._work, axis=1) + self._rounds * slowest)

    @property
    def time(self) -> float:
        """Idealized time so far; constant delays are counted, the same however rounds are cut."""
        return float(self._state["counts"] @ self.lengths + self._state["random"][0])

    @property
    def busy(self) -> NDArray[np.float64]:
        """Time that each node computed, (n_nodes,)."""
        steady = self._state["counts"] @ (self._speed * self._work)
        return np.asarray(steady + self._state["random_busy"])

    def advance(self, events: Events) -> None:
        """Execute rounds."""
        if self.delays.law == "constant":
            self._state["counts"] += np.bincount(events.which, minlength=len(self.costs))
            return
        first, last, law, shape = self.delays.law_arguments(len(self.edges), self.n_nodes)
        scopes = np.array([first < len(self.edges), last > len(self.edges)])
        clocks.random_rounds(
            events.which, events.start, self._work, self._rounds, self._speed, self._tau, scopes,
            law, shape, self.delays.keys(), self._state["random"], self._state["random_busy"],
        )  # fmt: skip

    def copy(self) -> "RoundClock":
        """Another clock in the same state."""
        other = copy.copy(self)
        other._state = {name: array.copy() for name, array in self._state.items()}
        return other

    def arrays(self) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
        """Views of its state: nothing per node, because all nodes leave a round together."""
        return {}, {f"clock_{name}": array for name, array in self._state.items()}

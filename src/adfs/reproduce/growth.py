"""Time to learn on growing networks: ADFS on families of graphs, Point-SAGA on one machine.

Every node draws its own m samples; both are run to the same relative suboptimality.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from adfs.algorithms import registered  # noqa: F401  (fills the registry)
from adfs.algorithms.base import REGISTRY, Setting
from adfs.graphs.topology import Topology
from adfs.reproduce.order import Order
from adfs.reproduce.rates import Sizes
from adfs.reproduce.samples import Pool
from adfs.reproduce.yardstick import Network, draw_network, time_to
from adfs.schedule.delays import Delays

TAU, SIGMA = 5.0, 1.0
ONE_MACHINE = "point-saga"


class Plan(NamedTuple):
    """How large the study is."""

    m: int
    sizes: tuple[int, ...]
    tol: float
    most_seeds: int

    def seeds(self, n: int) -> range:
        """Large networks average over their nodes already, and cost more."""
        return range(max(1, min(self.most_seeds, self.sizes[-1] // n)))

    def spots(self) -> list["Spot"]:
        """Every network, small ones first; one node has no graph, so it is measured once."""
        return [
            Spot(family, n, seed)
            for n in self.sizes for family in FAMILIES for seed in self.seeds(n)
            if n > 1 or family == FIRST
        ]  # fmt: skip


FULL = Plan(1000, (1, 4, 16, 64, 256, 1024), 1e-6, 5)
QUICK = Plan(100, (1, 4, 16, 64), 1e-4, 2)


def _grid(n: int, seed: int) -> Topology:
    side = math.isqrt(n)
    return Topology.grid(side, side)


def _hypercube(n: int, seed: int) -> Topology:
    return Topology.hypercube(n.bit_length() - 1)


def _random_regular(n: int, seed: int) -> Topology:
    return Topology.complete(n) if n < 6 else Topology.random_regular(n, 4, seed)


FAMILIES: dict[str, Callable[[int, int], Topology]] = {
    "2D grid": _grid,
    "hypercube": _hypercube,
    "random 4-regular graph": _random_regular,
}
FIRST = next(iter(FAMILIES))


class Spot(NamedTuple):
    """A network to measure."""

    family: str
    n: int
    seed: int


class Time(NamedTuple):
    """What an algorithm needed there, None if it did not arrive, beside what theory says."""

    algorithm: str
    spot: Spot
    time: float | None
    sizes: Sizes


class Line(NamedTuple):
    """Medians over seeds for one algorithm on one family, by number of nodes.

    Sizes without a time are those at which it did not arrive.
    """

    times: dict[int, float]
    sizes: dict[int, Sizes]


def with_one_machine(spot: Spot) -> bool:
    """Point-SAGA has no network: once a size and seed is enough."""
    return spot.family == FIRST and ONE_MACHINE in REGISTRY


def measure(spot: Spot, plan: Plan, pool: Pool, order: Order) -> list[Time] | None:
    """Times of ADFS and, on the first family, of one machine with all samples.

    Without those that a signal broke off; None if that is all of them.
    """
    topology = FAMILIES[spot.family](spot.n, spot.seed)
    network = draw_network(pool, topology, plan.m, SIGMA, spot.seed)
    names = ["adfs", ONE_MACHINE] if with_one_machine(spot) else ["adfs"]
    found = []
    for name in names:
        time = _time(network, name, plan.tol, spot.seed, order)
        if time is None and order.interrupted:
            break
        found.append(Time(name, spot, time, Sizes.of(network.problem, TAU)))
    return found or None


def _time(network: Network, name: str, tol: float, seed: int, order: Order) -> float | None:
    setting = Setting(tau=TAU, delays=Delays(tau=TAU), seed=seed)
    return time_to(network, REGISTRY[name](network.problem, setting), tol, order.interrupts)


def line_of(found: list[Time], algorithm: str, family: str) -> Line:
    """The one node belongs to every family."""
    groups: dict[int, list[Time]] = {}
    for time in found:
        if time.algorithm == algorithm and (time.spot.family == family or time.spot.n == 1):
            groups.setdefault(time.spot.n, []).append(time)
    sizes = {n: groups[n][0].sizes for n in sorted(groups)}
    medians = {n: _median(groups[n]) for n in sizes}
    return Line({n: time for n, time in medians.items() if time is not None}, sizes)


def _median(group: list[Time]) -> float | None:
    """Over seeds; None unless more than half arrived."""
    median = np.median([math.inf if each.time is None else each.time for each in group])
    return float(median) if math.isfinite(median) else None


def critical_size(sizes: dict[int, Sizes]) -> float | None:
    """Number of nodes at which the network's term equals the rest; None if it never does.

    Between two sizes the ratio of the two is taken as a power of n.
    """
    measured = [(n, each.network / each.work) for n, each in sizes.items() if n > 1]
    for (n, low), (more, high) in itertools.pairwise(measured):
        if low < 1.0 <= high:
            share = math.log(1.0 / low) / math.log(high / low)
            return float(n * (more / n) ** share)
    return float(measured[0][0]) if measured and measured[0][1] >= 1.0 else None

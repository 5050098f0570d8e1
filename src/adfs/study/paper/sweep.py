"""Where `where-adfs-wins` looks: a base point, the axes of maps and of cuts through it."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from adfs.data.generators import random_features
from adfs.data.matrices import Samples
from adfs.schedule.delays import Delays
from adfs.study.paper import TEXT
from adfs.study.paper.study_context import Pool

POOL_ROWS = 20_000  # of which random features are made


class Place(NamedTuple):
    """A problem on a network, and its delays; the defaults are the base point."""

    data: str = "covtype"
    features: int = 600  # random Fourier features; 0 for the data's own
    graph: str = "grid:4x4"
    m: int = 500
    sigma: float = 0.01
    tau: float = 2.0
    spread: float = 1.0  # standard deviation of a delay over its mean
    slow: float = 4.0  # how many times slower the last node is

    @property
    def problem(self) -> "Place":
        """What the problem depends on: the same for all delays."""
        return self._replace(tau=0.0, spread=0.0, slow=1.0)

    def delays(self, n_nodes: int, seed: int) -> Delays:
        """Constant, exponential (spread 1), else lognormal; each of mean 1."""
        speed = [1.0] * (n_nodes - 1) + [self.slow]
        if self.spread in (0.0, 1.0):
            law, shape = ("exponential" if self.spread else "constant"), None
        else:
            law, shape = "lognormal", math.sqrt(math.log1p(self.spread**2))
        return Delays(tau=self.tau, speed=speed, law=law, shape=shape, seed=seed)

    def __str__(self) -> str:
        kind = f"{self.features:,} random Fourier features of " if self.features else ""
        slow = f"one node {self.slow:g} times slower" if self.slow != 1.0 else "no slow node"
        return (
            f"{kind}{self.data}, {self.graph}, m = {self.m:,}, sigma = {self.sigma:g}, tau = "
            f"{self.tau:g}, delays with a spread of {self.spread:g}, {slow}"
        )


class Axis(NamedTuple):
    """A direction from the base point: a field of `Place` and its values.

    A value of ``data`` is a data set, with a ``+`` behind it where its features are random ones.
    """

    label: str
    field: str
    values: tuple[float | str, ...]
    names: tuple[str, ...] = ()
    ordered: bool = True

    def at(self, base: Place, value: float | str) -> Place:
        if self.field == "data":
            name, plus, _ = str(value).partition("+")
            return base._replace(data=name, features=base.features if plus else 0)
        return base._replace(**{self.field: value})  # type: ignore[arg-type]

    def base_index(self, base: Place) -> int:
        """Which of its values the base point has."""
        return next(k for k, value in enumerate(self.values) if self.at(base, value) == base)

    @property
    def ticks(self) -> list[str]:
        return list(self.names) or [f"{value:,g}" for value in self.values]  # type: ignore[misc]


class Sweep(NamedTuple):
    """The base point, the axes of maps (across, up), further cuts, and the seeds."""

    base: Place
    maps: tuple[tuple[Axis, Axis], ...]
    cuts: tuple[Axis, ...]
    seeds: int

    def places(self) -> list[Place]:
        found = [self.base]
        for across, up in self.maps:
            found += [up.at(across.at(self.base, x), y) for x in across.values for y in up.values]
        found += [axis.at(self.base, value) for axis in self.cuts for value in axis.values]
        return list(dict.fromkeys(found))


SPREAD = Axis("spread of delays (standard deviation / mean)", "spread", (0.0, 0.5, 1.0, 2.0))
SLOW = Axis("how many times slower one node is", "slow", (1.0, 2.0, 4.0, 8.0))
TAU = Axis("tau: time of a message / of a proximal step", "tau", (0.1, 0.5, 2.0, 10.0, 50.0))
FEATURES = Axis("random features d", "features", (75, 300, 600))
SAMPLES = Axis("samples per node m", "m", (50, 150, 500, 1500))
FULL = Sweep(
    Place(),
    ((SPREAD, SLOW), (TAU, FEATURES)),
    (
        SAMPLES,
        Axis("sigma", "sigma", (1.0, 0.1, 0.01)),
        Axis("graph of 16 nodes", "graph",
             ("star:16", "ring:16", "grid:4x4", "complete:16"),
             ("star", "ring", "grid", "complete"), ordered=False),
        Axis("nodes of a grid", "graph", ("grid:2x2", "grid:4x4", "grid:6x6"),
             ("4", "16", "36")),
        Axis("data", "data", (TEXT, "covtype", "higgs", "covtype+", "higgs+"),
             ("Reuters", "Covtype", "Higgs", "Covtype,\nkernel", "Higgs,\nkernel"),
             ordered=False),
    ),
    seeds=3,
)  # fmt: skip
SMALL = Place(features=60, graph="grid:3x3", m=60, sigma=0.1)
QUICK = Sweep(
    SMALL,
    (
        (SPREAD._replace(values=(0.0, 1.0)), SLOW._replace(values=(1.0, 4.0))),
        (TAU._replace(values=(0.1, 2.0)), FEATURES._replace(values=(30, 60))),
    ),
    (SAMPLES._replace(values=(20, 60)),),
    seeds=1,
)


def load(places: Iterable[Place]) -> dict[tuple[str, int], Pool]:
    """Data by name and features: those of a set, or random features of 20,000 of its rows."""
    wanted = dict.fromkeys((place.data, place.features) for place in places)
    sets = {name: Pool.load(name) for name in dict.fromkeys(name for name, _ in wanted)}
    found = {}
    for name, features in wanted:
        pool = found[name, features] = sets[name]
        if features:
            samples, random = Samples(pool.X, pool.y), np.random.default_rng(0)
            X, y = random_features(samples, features, POOL_ROWS, random)
            found[name, features] = Pool(X, y, pool.source)
    return found

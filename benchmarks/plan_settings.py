"""The settings on which `algorithm="best"` is judged: 27 to build its rules on, then 15 more.

The last 15 and the rules of `adfs.plan` were committed before these 15 were run for the first time.
"""

import functools
from typing import NamedTuple

import numpy as np

from adfs import Delays, Problem, Topology, datasets, generators, partition


class Setting(NamedTuple):
    """A problem on a network: data, loss, graph, rows per node, regularisation and delays."""

    data: str
    graph: str
    m: int
    sigma: float  # per node
    tau: float
    law: str = "constant"
    slow: float = 1.0  # how many times slower the first node is
    loss: str = "logistic"
    how: str = "draw"

    @property
    def name(self):
        extra = [self.law] * (self.law != "constant") + [self.loss] * (self.loss != "logistic")
        extra += [f"slow {self.slow:g}"] * (self.slow != 1.0) + [self.how] * (self.how != "draw")
        parts = [self.data, self.graph, f"m {self.m}", f"sigma {self.sigma:g}", f"tau {self.tau:g}"]
        return ", ".join(parts + extra)

    def problem(self, seed=0):
        topology = Topology.parse(self.graph)
        X, y = load(self.data)
        n_rows = topology.n_nodes * self.m
        if self.how == "sorted":
            chosen = np.random.default_rng(seed).permutation(len(y))[:n_rows]
            shards = partition(X[chosen], y[chosen], topology.n_nodes, how="sorted")
        else:
            shards = partition(X, y, topology.n_nodes, how="draw", m=self.m, seed=seed)
        return Problem(shards, self.loss, self.sigma, topology)

    def delays(self, n_nodes):
        speed = np.ones(n_nodes)
        speed[0] = self.slow
        return Delays(tau=self.tau, speed=speed if self.slow != 1.0 else 1.0, law=self.law)


@functools.lru_cache(maxsize=4)
def load(name):
    """A data set, or random Fourier features of one: ``covtype+600``."""
    name, _, n_features = name.partition("+")
    samples = datasets.load(name)
    if not n_features:
        return samples
    random = np.random.default_rng(0)
    return generators.random_features(samples, int(n_features), 20_000, random)


KNOWN = [
    Setting("reuters-money-fx", "grid:6x6", 100, 1.0, 20.0),
    Setting("higgs", "grid:4x4", 500, 0.01, 50.0),
    Setting("higgs", "ring:16", 200, 1.0, 50.0),
    Setting("higgs", "grid:10x10", 200, 0.1, 5.0),
    Setting("reuters-money-fx", "grid:10x10", 70, 0.1, 2.0, "exponential"),
    Setting("higgs", "complete:9", 300, 0.1, 20.0, "exponential", 4.0),
    Setting("covtype", "grid:3x3", 1000, 0.1, 1.0),
    Setting("covtype", "ring:36", 100, 1.0, 50.0),
    Setting("covtype", "grid:6x6", 300, 0.01, 5.0, "exponential"),
    Setting("covtype", "complete:16", 200, 1.0, 50.0, "exponential", 4.0),
    Setting("covtype+600", "complete:9", 300, 1.0, 50.0),
    Setting("a9a", "grid:3x3", 1000, 1.0, 5.0),
    Setting("a9a", "grid:6x6", 500, 0.1, 50.0),
    Setting("a9a", "complete:9", 200, 1.0, 50.0),
    Setting("a9a", "complete:4", 3000, 1.0, 0.5, "exponential"),
    Setting("mushrooms", "grid:4x4", 400, 0.1, 10.0),
    Setting("reuters-money-fx", "ring:4", 1500, 0.01, 1.0, loss="squared"),
    Setting("reuters-money-fx", "grid:3x3", 500, 1.0, 5.0),
    Setting("reuters-money-fx", "grid:4x4", 300, 0.1, 0.1),
    Setting("reuters-money-fx", "ring:9", 500, 0.1, 50.0),
    Setting("reuters-money-fx", "complete:16", 300, 1.0, 1.0, "exponential", 4.0),
    Setting("covtype+600", "grid:4x4", 500, 0.01, 2.0, "exponential", 4.0),
    Setting("covtype+600", "grid:3x3", 500, 0.1, 5.0),
    Setting("covtype+300", "ring:16", 200, 0.1, 20.0),
    Setting("higgs+300", "grid:6x6", 200, 0.01, 1.0),
    Setting("higgs+300", "complete:9", 500, 0.1, 0.1, "exponential"),
    Setting("higgs+600", "grid:2x2", 1000, 0.01, 10.0, loss="squared_hinge"),
]
HELD_OUT = [
    Setting("higgs", "ring:36", 300, 0.1, 1.0, "exponential"),
    Setting("higgs", "grid:3x3", 4000, 0.01, 20.0),
    Setting("reuters-money-fx", "ring:25", 200, 1.0, 1.0, loss="squared"),
    Setting("covtype", "grid:10x10", 100, 0.1, 20.0),
    Setting("covtype+600", "ring:4", 2000, 0.1, 0.5),
    Setting("covtype", "grid:4x4", 500, 1.0, 2.0, "exponential", 4.0),
    Setting("a9a", "grid:5x5", 200, 0.1, 2.0, "exponential", 4.0),
    Setting("a9a", "complete:9", 300, 0.1, 50.0),
    Setting("mushrooms", "grid:3x3", 600, 0.01, 0.1, how="sorted"),
    Setting("reuters-money-fx", "grid:5x5", 200, 0.1, 10.0, "exponential"),
    Setting("reuters-money-fx", "complete:4", 1500, 1.0, 0.5),
    Setting("covtype+600", "grid:5x5", 300, 0.1, 1.0, "exponential", 4.0),
    Setting("covtype+300", "complete:9", 500, 0.01, 50.0),
    Setting("higgs+300", "ring:16", 300, 1.0, 5.0),
    Setting("higgs+600", "grid:3x3", 800, 0.1, 0.2, "exponential", loss="smoothed_hinge"),
]

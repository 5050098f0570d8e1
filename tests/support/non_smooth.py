"""The way from `NonSmoothParameters` and `NsAdfs` to the arguments of the oracle of Algorithm 3.

Of the parameters only mu^2, the probabilities, S and A_0 are taken; tests check the last two.
"""

import functools
from typing import NamedTuple

import numpy as np

from adfs.algorithms.ns_adfs import NsAdfs
from oracles import algorithm3, augmented
from support import problems
from support.problems import EDGE_MU2


class Literal(NamedTuple):
    """Arguments of `oracles.algorithm3.iterates`, in its order, but for the sampled sequence."""

    shards: list
    sigma: np.ndarray
    edges: list
    loss: str
    mu2_edge: np.ndarray
    mu2_virtual: np.ndarray
    p: np.ndarray
    s: float
    a_0: float

    @property
    def graph(self):
        """What the augmented graph is made of."""
        return self.shards, self.edges, self.mu2_edge, self.mu2_virtual

    @property
    def rows(self):
        """All samples' features, one after another."""
        return np.vstack([features for features, *_ in self.shards])


def literal(case, chosen, shards=None):
    """What the oracle needs to run with these parameters; ``shards`` without dead samples."""
    shards = case.shards if shards is None else shards
    owner = np.repeat(np.arange(len(shards)), [len(labels) for _, labels, _ in shards])
    edges = [(int(k), int(l)) for k, l in case.problem.topology.edges]
    return Literal(
        shards, case.problem.sigma, edges, case.problem.loss.name, np.full(len(edges), EDGE_MU2),
        chosen.mu2[owner], np.concatenate([chosen.p_edge, chosen.p_sample[owner]]),
        np.sqrt(chosen.smoothness), chosen.start,
    )  # fmt: skip


def node_rows(algorithm, state, rows):
    """``(x_t, v_t)`` of all augmented nodes, as Algorithm 3 writes them."""
    both = zip(algorithm.nodes(state), algorithm.virtual(state), strict=True)
    return tuple(np.vstack([centres, virtual[:, None] * rows]) for centres, virtual in both)


run = functools.partial(problems.run, method=NsAdfs)


def bits(state):
    """Everything a run of NS-ADFS will ever read again, as bytes."""
    return state.growth.hex(), state.lines.tobytes(), state.pairs.tobytes()


class DualGap:
    """``F*(x) - F*`` by the oracle's certified optimum, and the terms of Theorem 4's bound."""

    def __init__(self, oracle):
        self.arguments = oracle.shards, oracle.sigma, oracle.loss
        self.theta, c = algorithm3.optimum(*self.arguments)
        self.optimal = algorithm3.optimal_rows(oracle.shards, oracle.sigma, self.theta, c)
        certificate = algorithm3.gap(*self.arguments, self.theta, self.optimal)
        assert abs(certificate) < 1e-13 * augmented.objective(*self.arguments, self.theta)
        self.least = algorithm3.dual_objective(*self.arguments, self.optimal)
        self.norm2 = algorithm3.edge_norm2(*oracle.graph, self.optimal)
        self.at_zero = self(np.zeros_like(self.optimal))

    def __call__(self, x):
        return algorithm3.dual_objective(*self.arguments, x) - self.least

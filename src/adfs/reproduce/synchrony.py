"""The constant of Theorem 2, measured on drawn schedules.

Theorem 2: if every node computes with probability p_comp / n, and p_comp > p_comm^max or tau > 1,
then T(t) / t <= C / n (p_comp + 2 tau p_comm^max) for large t with some C < 24, where
p_comm^max = n / 2 max_k sum_l p_kl. Measured is C = T(t) n / (t (p_comp + 2 tau p_comm^max)).

Deviation (trap T15): the proof's lemma needs more than the theorem says. Its p_comm-bar is the
chance max_k sum_l p_kl = 2 p_comm^max / n that a node communicates, so "p_comp-bar >= p_comm-bar"
reads p_comp >= 2 p_comm^max, and its p_c = 4 p_comm-bar must be at most 1/2 where the text has "at
least". The alternative tau > 1 has no proof there. `hypothesis` tells the cases apart.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from adfs.graphs.topology import Topology
from adfs.problems.finite_sum import Problem
from adfs.randomness import generator
from adfs.schedule.clock import CLOCKS, Clock
from adfs.schedule.delays import Delays
from adfs.schedule.law import Drawer
from adfs.theory.parameters import Parameters

STAGES = (1, 4, 16)
BLOCK = 1 << 16
PROVEN, BY_SHARE, BY_TAU, OUTSIDE = "proven", "p_comp", "tau", "outside"


class Law(NamedTuple):
    """A graph, the share of communications (None: what the rule `exact` finds best), delays."""

    graph: str
    p_comm: float | None
    taus: tuple[float, ...]


class Case(NamedTuple):
    """A law under one tau and clock, with the constant after t, 4 t and 16 t events."""

    graph: str
    rule: str
    n: int
    p_comm: float
    p_comm_max: float
    tau: float
    clock: str
    constants: tuple[float, ...]
    hypothesis: str

    @property
    def constant(self) -> float:
        """After the longest time."""
        return self.constants[-1]


def hypothesis(n: int, p_comp: float, p_comm_max: float, tau: float) -> str:
    """Which hypotheses a case meets, nodes computing equally often in all of them.

    ``proven``: the lemma's; ``p_comp`` or ``tau``: only that one of the theorem's statement;
    ``outside``: none.

    Examples
    --------
    >>> hypothesis(100, 0.9, 0.1, tau=0.5), hypothesis(100, 0.6, 0.4, 5.0)
    ('proven', 'p_comp')
    >>> hypothesis(100, 0.5, 0.5, tau=5.0), hypothesis(100, 0.5, 0.5, tau=0.5)
    ('tau', 'outside')
    """
    if p_comp >= 2.0 * p_comm_max and 8.0 * p_comm_max / n <= 0.5:
        return PROVEN
    if p_comp > p_comm_max:
        return BY_SHARE
    return BY_TAU if tau > 1.0 else OUTSIDE


def homogeneous(topology: Topology, m: int) -> Problem:
    """``m`` samples of one norm at each node: all nodes compute equally often."""
    n = topology.n_nodes
    X = generator(0, "reproduce/theorem-2").standard_normal((n * m, 2))
    X *= 4.0 / np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(np.arange(n * m) % 2, 1.0, -1.0)
    return Problem([(X[k : k + m], y[k : k + m]) for k in range(0, n * m, m)], topology=topology)


def p_comm_max(chosen: Parameters) -> float:
    """``n / 2 max_k sum_l p_kl``: ``p_comm`` if all nodes communicated as often as the busiest."""
    n = chosen.topology.n_nodes
    load = np.bincount(chosen.edges.ravel(), np.repeat(chosen.p_edge, 2), minlength=n)
    return float(n * load.max() / 2.0)


def measure(law: Law, m: int, events_per_node: int, seeds: Iterable[int]) -> list[Case]:
    """Medians over seeds of the constant, for each tau and clock."""
    problem = homogeneous(Topology.parse(law.graph), m)
    chosen = Parameters.choose(problem, "exact", p_comm=law.p_comm)
    first = events_per_node * problem.n_nodes
    medians = np.median([constants(chosen, law.taus, first, seed) for seed in seeds], axis=0)
    n, most = problem.n_nodes, p_comm_max(chosen)
    rule = "exact" if law.p_comm is None else f"{law.p_comm:g}"
    return [
        Case(
            law.graph, rule, n, chosen.p_comm, most, tau, clock, tuple(medians[i, j].tolist()),
            hypothesis(n, chosen.p_comp, most, tau),
        )
        for i, tau in enumerate(law.taus) for j, clock in enumerate(CLOCKS)
    ]  # fmt: skip


def constants(
    chosen: Parameters, taus: Sequence[float], first: int, seed: int
) -> list[list[list[float]]]:
    """The constant for each tau, clock and stage; one schedule, drawn once for all of them."""
    n = chosen.topology.n_nodes
    clocks = [[Clock(chosen.edges, n, Delays(tau=tau), kind) for kind in CLOCKS] for tau in taus]
    drawer = Drawer(chosen, seed, with_samples=False)
    bounds = [chosen.p_comp + 2.0 * tau * p_comm_max(chosen) for tau in taus]
    found: list[list[list[float]]] = [[[] for _ in CLOCKS] for _ in taus]
    start = 0
    for stop in (first * stage for stage in STAGES):
        for at in range(start, stop, BLOCK):
            events = drawer.draw(at, min(stop, at + BLOCK))
            for clock in (clock for row in clocks for clock in row):
                clock.advance(events)
        start = stop
        for row, bound, out in zip(clocks, bounds, found, strict=True):
            for clock, values in zip(row, out, strict=True):
                values.append(clock.time * n / (stop * bound))
    return found

"""The default rule: the valid parameters with the least time per factor e, waiting included.

Candidates differ in the scale ``c`` of ``mu_ij^2`` (SPEC 2.4b), in ``p_comm`` around the value that
equalises the two rates, in the form of ``sigma_A`` (plain or projector) and in the nodes' shares
(equal, or in proportion to what each node needs). ``rho`` of a candidate costs one eigenvalue; its
time per event is measured by running the clock over a short schedule, the same random numbers for
all. ``exact`` and ``paper`` compete too, so the winner is never predicted slower than they are.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from adfs.schedule.clock import Clock
from adfs.schedule.law import Drawer
from adfs.theory.choices import Candidate, Setting, _alpha, exact, paper
from adfs.theory.parameters import Parameters, importance

Vector = NDArray[np.float64]

SCALES = np.exp(np.linspace(np.log(0.02), np.log(30.0), 15))
P_COMM_FACTORS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
LARGEST_P_COMM = 0.95
FEW_EVENTS_PER_NODE = 400
MOST_EVENTS = 400_000
FINALISTS = 6


def tune(setting: Setting, p_comm: float | None, mu_scale: float | None) -> Parameters:
    """Best valid parameters for the setting's delays and clock."""
    baseline = paper(setting)
    reference = time_per_efold(baseline, setting)
    rivals = [] if p_comm or mu_scale else [baseline, exact(setting)]
    contenders = [*rivals, *_shortlist(setting, p_comm, mu_scale)]
    times = [time_per_efold(contender, setting) for contender in contenders]
    best = int(np.argmin(times))
    return dataclasses.replace(
        contenders[best], how="tuned", time_per_efold=times[best], gain=reference / times[best]
    )


def _shortlist(
    setting: Setting, p_comm: float | None, mu_scale: float | None
) -> list[Parameters]:
    """The few candidates with the best time when nobody waits; only they are simulated."""
    scored = []
    for candidate in _candidates(setting, mu_scale):
        equal = candidate.equalising()
        chosen = [p_comm] if p_comm else [min(equal * f, LARGEST_P_COMM) for f in P_COMM_FACTORS]
        for value in chosen:
            scored.append((_unhindered(setting, candidate, value), candidate, value))
    scored.sort(key=lambda entry: entry[0])
    return [candidate.parameters("tuned", value) for _, candidate, value in scored[:FINALISTS]]


def _candidates(setting: Setting, mu_scale: float | None) -> Iterator[Candidate]:
    conditioning = setting.conditioning
    sums = np.add.reduceat(importance(conditioning), conditioning.offsets[:-1])
    equal = setting.has_data / np.count_nonzero(setting.has_data)
    for masses in (conditioning.batch_smoothness, conditioning.total_smoothness):
        for scale in SCALES if mu_scale is None else [mu_scale]:
            alpha = _alpha(setting, 1.0 + masses / conditioning.sigma, scale)
            need = sums * np.sqrt(alpha)
            for shares in (equal, need / need.sum()):
                yield Candidate(setting, masses, alpha, shares)


def _unhindered(setting: Setting, candidate: Candidate, p_comm: float) -> float:
    """Time per factor e of the busiest node if it never had to wait for another."""
    n_edges, n = setting.topology.n_edges, setting.topology.n_nodes
    nominal = setting.delays.nominal(n_edges, n)
    work = (1.0 - p_comm) * candidate.shares * nominal[n_edges:]
    talk = p_comm * candidate.edge_shares * nominal[:n_edges]
    ends = setting.topology.edges
    load = work + np.bincount(ends[:, 0], talk, n) + np.bincount(ends[:, 1], talk, n)
    return float(np.max(load)) / candidate.rho(p_comm)


def time_per_efold(parameters: Parameters, setting: Setting) -> float:
    """Idealized time per factor e, from the clock over a short schedule without its start."""
    n = setting.topology.n_nodes
    n_events = min(MOST_EVENTS, max(20_000, FEW_EVENTS_PER_NODE * n))
    drawer = Drawer(parameters, seed=0, with_samples=False)
    clock = Clock(setting.topology.edges, n, setting.delays, setting.clock)
    clock.advance(drawer.draw(0, n_events // 2))
    start = clock.time
    clock.advance(drawer.draw(n_events // 2, n_events))
    return (clock.time - start) / (n_events - n_events // 2) / parameters.rho

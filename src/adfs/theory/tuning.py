"""The default rule: the valid parameters that reach an accuracy first, waiting included.

**Rate.** Theorem 1 proves a factor ``1 - rho`` per iteration. What is measured (docs/tuning.md) is
``min(2 rho, beta v)``, where ``v`` is the least probability with which a sample of vanishing norm
is visited and ``beta`` was between 1 and 1.6 in what was measured: no method forgets a sample's
old dual before it visits it. A larger ``rho`` beyond that buys nothing, and the communications
spent on it cost time.

**Time.** The clock runs over a short schedule at a few values of ``p_comm``, with the same random
numbers for all.

**Choice.** Candidates differ in the scale ``c`` of ``mu_ij^2``, in ``p_comm`` around
the value that equalises the two rates, and in the nodes' shares (equal, in proportion to what each
needs, or fewer where a node is slow, with a smaller ``mu_ij^2`` there so that Theorem 1 allows
the same ``rho``); all use the projector form, whose ``sigma_A`` is never smaller. Taken is the one
whose time, relative to the better one of ``paper`` and ``exact``, is least for the worst ``beta``.
These two compete too, and at the typical ``beta`` the choice is never predicted slower than either.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from adfs.schedule.clock import Clock
from adfs.schedule.sampling_law import Drawer, SamplingLaw
from adfs.theory.description import Vector
from adfs.theory.parameters import Parameters
from adfs.theory.rules import Candidate, RuleInput, alpha_of, exact, paper
from adfs.theory.sigma_a import DENSE_LIMIT

BETAS = np.array([1.0, 1.2, 1.45])
TYPICAL = 1  # the beta at which predictions are printed
SCALES = np.exp(np.linspace(np.log(0.02), np.log(30.0), 23))
P_COMM_FACTORS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
P_COMM_RANGE = (1e-5, 0.95)
N_SIMULATIONS = 10
EVENTS_PER_NODE = 2_000
EVENTS_RANGE = (50_000, 1_000_000)
FINALISTS = 4
SLOWNESS_POWERS = (0.3, 0.5)


class TimedCandidate(NamedTuple):
    """A candidate at one ``p_comm``, with its predicted times for each beta."""

    candidate: Candidate
    p_comm: float
    times: Vector


def tune(setting: RuleInput, p_comm: float | None, mu_scale: float | None) -> Parameters:
    """Best valid parameters for the setting's delays and clock."""
    baselines = [paper(setting), exact(setting)]
    reference = np.array([predicted_times(each, setting) for each in baselines])
    goal = reference.min(axis=0)
    entries = [
        entry
        for shares, tilt in _splits(setting)
        for entry in _entries(setting, shares, tilt, p_comm, mu_scale)
    ]
    entries.sort(key=lambda entry: float(np.max(entry.times / goal)))
    finalists = []
    for found, share, _ in entries[:FINALISTS]:  # with its true sigma_A
        candidate = Candidate(setting, found.masses, found.alpha, found.shares)
        finalists.append(candidate.parameters("tuned", share))
    if p_comm is None and mu_scale is None:
        finalists += [*baselines, exact(setting, projector=True)]
    times = [predicted_times(each, setting) for each in finalists]
    best = _best(times, goal)
    return dataclasses.replace(
        finalists[best],
        how="tuned",
        time_per_efold=float(times[best][TYPICAL]),
        gain=float(reference[0][TYPICAL] / times[best][TYPICAL]),
    )


def _best(times: list[Vector], goal: Vector) -> int:
    """Least worst ratio to the goal, among those not slower than it at the typical beta."""
    ratios = np.array(times) / goal
    worst = np.max(ratios, axis=1)
    allowed = ratios[:, TYPICAL] <= 1.0
    return int(np.argmin(np.where(allowed, worst, np.inf) if allowed.any() else worst))


def predicted_times(parameters: Parameters, setting: RuleInput) -> Vector:
    """Idealized time per factor e of the error, for each beta."""
    live = setting.has_data
    visit = float(np.min(parameters.p_node[live] / setting.importance_sums[live]))
    return time_per_event(parameters, setting) / np.minimum(2.0 * parameters.rho, BETAS * visit)


def time_per_event(law: SamplingLaw, setting: RuleInput) -> float:
    """Idealized time of an iteration, from the clock over a short schedule without its start."""
    n = setting.topology.n_nodes
    n_events = int(np.clip(EVENTS_PER_NODE * n, *EVENTS_RANGE))
    drawer = Drawer(law, seed=0, with_samples=False)
    clock = Clock(setting.topology.edges, n, setting.delays, setting.clock)
    clock.advance(drawer.draw(0, n_events // 2))
    start = clock.time
    clock.advance(drawer.draw(n_events // 2, n_events))
    return (clock.time - start) / (n_events - n_events // 2)


def _splits(setting: RuleInput) -> Iterator[tuple[Vector, Vector]]:
    """How local updates are split between nodes, and a factor of each node's ``alpha_i``.

    Equal shares for all nodes with data, by the work of each, and fewer where a node is slow.
    """
    equal = setting.has_data / np.count_nonzero(setting.has_data)
    need = setting.importance_sums * np.sqrt(_alpha(setting, 1.0))
    yield equal, np.ones(len(equal))
    yield need / need.sum(), np.ones(len(equal))
    speed = setting.delays.nominal(setting.topology.n_edges, len(equal))[-len(equal) :]
    if np.ptp(speed) > 0.0:
        for power in SLOWNESS_POWERS:
            tilt = (speed / speed.min()) ** -power
            yield equal * tilt / np.sum(equal * tilt), tilt


def _alpha(setting: RuleInput, scale: float) -> Vector:
    masses = setting.conditioning.batch_smoothness()
    return alpha_of(setting, 1.0 + masses / setting.conditioning.sigma, scale)


def _entries(
    setting: RuleInput, shares: Vector, tilt: Vector, p_comm: float | None, mu_scale: float | None
) -> Iterator[TimedCandidate]:
    masses = setting.conditioning.batch_smoothness()
    rough = setting.topology.n_nodes > DENSE_LIMIT  # an eigenvalue for each would cost too much
    candidates = [
        Candidate(setting, masses, _alpha(setting, float(scale)) * tilt, shares, rough)
        for scale in (SCALES if mu_scale is None else [mu_scale])
    ]
    seconds = TimeCurve(lambda p_comm: candidates[0].parameters("", p_comm), setting)
    for candidate in candidates:
        around = np.clip(np.multiply(P_COMM_FACTORS, candidate.equalising()), *P_COMM_RANGE)
        for value in around if p_comm is None else [p_comm]:
            visit = (1.0 - value) * candidate.visit_rate
            rate = np.minimum(2.0 * candidate.rho(value), BETAS * visit)
            yield TimedCandidate(candidate, float(value), seconds(value) / rate)


class TimeCurve:
    """Time per event against ``p_comm``: simulated at a few values, interpolated between them."""

    def __init__(self, law: Callable[[float], SamplingLaw], setting: RuleInput) -> None:
        self.knots = np.geomspace(*P_COMM_RANGE, N_SIMULATIONS)
        times = [time_per_event(law(p), setting) for p in self.knots]
        self.logs = np.log(times)

    def __call__(self, p_comm: float) -> float:
        """Time per event at any ``p_comm``."""
        return float(np.exp(np.interp(np.log(p_comm), np.log(self.knots), self.logs)))

"""L-Katyusha: Katyusha without the loop (Kovalev, Horvath, Richtarik, 2019; Qian, Qu, Richtarik).

The same round as `adfs.algorithms.katyusha`, but a coin of probability ``p`` decides in each round
whether the snapshot moves to ``y``; there is no average. Kinds of rounds: 0 is an inner round, 1 a
snapshot and then an inner round. The first round always takes the snapshot.

Deviation: the published text moves the snapshot after round ``k`` to ``y_k``, the point before the
round; here to ``y_{k+1}``, the newest. The proof is the same and its rate a little better
(docs/algorithms/katyusha.md), and the first full gradient is a round like any other.
"""

import math

from adfs.algorithms import katyusha_parameters
from adfs.algorithms.base import Method, MethodSetting, register, require_smooth, rule_of
from adfs.algorithms.katyusha import prepare_method
from adfs.algorithms.katyusha_parameters import KatyushaParameters, MeanForm
from adfs.kernels import katyusha
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.schedule.rounds import CoinRounds

NAME = "l-katyusha"
RULES = ("theory", "tuned")


class Refreshes(CoinRounds):
    """Coins that begin with a snapshot: without one there is nothing to compare gradients with."""

    def draw(self, start: int, stop: int) -> Events:
        """Rounds ``start`` to ``stop``."""
        events = super().draw(start, stop)
        if start == 0 < stop:
            events.which[0] = katyusha.SNAPSHOT
        return events


@register(NAME)
def prepare(problem: Problem, setting: MethodSetting) -> Method:
    """L-Katyusha with its coins and its clock.

    Examples
    --------
    >>> import adfs, numpy as np
    >>> shards = [(np.eye(4)[:2], [1, 0]), (np.eye(4)[2:], [1, 0])]
    >>> problem = adfs.Problem(shards, topology=adfs.Topology.path(2))
    >>> method = prepare(problem, MethodSetting(rule="theory"))
    >>> method.parameters.batch, method.parameters.p
    (2, 1.0)
    """
    require_smooth(NAME, problem)
    mean = MeanForm(problem, setting)
    plan = theory(mean) if rule_of(NAME, setting, RULES) == "theory" else tuned(mean)
    source = Refreshes(plan.p, setting.seed, NAME)
    rho = 1.0 - 1.0 / plan.theta
    return prepare_method(mean, plan, source, rho, katyusha.run_l_katyusha, snapshot_moves=True)


def theory(mean: MeanForm) -> KatyushaParameters:
    """The constants of the authors' code at the paper's batch; ``p = B / N``."""
    batch = mean.paper_batch()
    variance, lam, smoothness = mean.variance(batch), mean.lam, mean.smoothness
    p = min(1.0, mean.total_batch(batch) / mean.n_samples)
    larger = max(smoothness, variance)
    tau2 = variance / (2.0 * larger)
    if smoothness <= variance / p:
        tau1 = min(1.0, math.sqrt(lam / (variance * p))) * tau2
    else:
        tau1 = min(math.sqrt(lam / smoothness), 0.5 * p)
    alpha = 1.0 / (tau1 * (smoothness + 2.0 * larger))
    rho = katyusha_parameters.coin_rate(tau1, tau2, 1.0 + alpha * lam, p)
    return mean.plan(
        NAME, "theory", batch, 1.0 / p, katyusha_parameters.Coupling(tau1, tau2, alpha, rho)
    )


def tuned(mean: MeanForm) -> KatyushaParameters:
    """The best batch, coin and constants that theory allows."""
    return mean.tuned(NAME, lambda every: katyusha_parameters.coin_surplus(1.0 / every))

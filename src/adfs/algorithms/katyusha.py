"""Katyusha (Allen-Zhu, 2017), mini-batch version over an all-reduce (Appendix E, SPEC section 4).

An epoch takes the full gradient at the snapshot ``w``, then ``mm`` inner rounds

    x = tau1 z + tau2 w + (1 - tau1 - tau2) y,   g = grad f(w) + estimated difference at x,
    z+ = (z - alpha g) / (1 + alpha lam),        y = x + tau1 (z+ - z),

and moves the snapshot to ``sum_k theta^k y_k / sum_k theta^k``. Each round ends with an all-reduce
of one vector, which takes the graph's diameter in communication rounds. Kinds of rounds: 0 is an
inner round, 1 a snapshot.

Deviation: ``theta`` is ``1 + alpha lam`` unless the problem is so well conditioned that the proof
needs less (`coupling.loop_rate`); with Allen-Zhu's constants that is where ``tau1`` is capped.
"""

import math

from adfs.algorithms import coupling
from adfs.algorithms.base import Method, Setting, register, require_smooth, rule_of
from adfs.algorithms.batches import prepare_method
from adfs.algorithms.mean_form import MeanForm, Plan
from adfs.kernels import minibatch
from adfs.problems.finite_sum import Problem
from adfs.schedule.rounds import Rounds

NAME = "katyusha"
RULES = ("theory", "tuned")


@register(NAME)
def prepare(problem: Problem, setting: Setting) -> Method:
    """Katyusha with its epochs and its clock.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem([(np.eye(2), [1, 0])])  # one node: no all-reduce, one sample a round
    >>> method = prepare(problem, Setting(rule="theory"))
    >>> method.source.draw(0, 7).which
    array([1, 0, 0, 0, 0, 1, 0], dtype=int32)
    >>> print(method.parameters)
    katyusha parameters (theory)
      b      1            samples a node and round; theory 1 + diameter * tau
      B      1            samples a round: b times the nodes that have any
      every  4            inner rounds between snapshots: mm, or 1 / p
      lam    0.5          sum sigma / N: strong convexity of the mean
      L_f    0.125        lambda_max(sum B_i) / N: smoothness of the mean
      V      0.25         max_i sum_j L_ij / (N b): variance of a batch
      tau1   0.5          weight of z
      tau2   0.5          weight of the snapshot
      alpha  2.66667      step of z: alpha tau1 (L_f + V / tau2) <= 1
      theta  1.18921      errors fall by it each round; at most 1 + alpha lam
      time   8.65617      idealized, per factor e
    """
    require_smooth(NAME, problem)
    mean = MeanForm(problem, setting)
    plan = theory(mean) if rule_of(NAME, setting, RULES) == "theory" else tuned(mean)
    length = round(plan.every)
    source = Rounds([minibatch.SNAPSHOT] + length * [minibatch.INNER])
    # An epoch of length + 1 events divides the errors by theta^length.
    rho = -math.expm1(-math.log(plan.theta) * length / (length + 1.0))
    return prepare_method(mean, plan, source, rho, minibatch.run_katyusha, snapshot_moves=False)


def theory(mean: MeanForm) -> Plan:
    """Allen-Zhu's constants at the paper's batch ``b = 1 + Delta tau`` (SPEC section 4).

    ``mm = ceil(N / B)``, or ``2 N`` with the original constants where ``B = 1``.
    """
    batch = mean.paper_batch()
    variance, lam, smoothness = mean.variance(batch), mean.lam, mean.smoothness
    total = mean.total_batch(batch)
    if total == 1:
        every, tau2, bound = 2 * mean.n_samples, 0.5, variance
        tau1 = min(math.sqrt(every * lam / (3.0 * variance)), 0.5)
    else:
        every, tau2 = -(-mean.n_samples // total), min(variance / (2.0 * smoothness), 0.5)
        if smoothness <= variance * every:
            tau1 = min(math.sqrt(8.0 * every * lam / (3.0 * variance)), 1.0) * tau2
            bound = variance / (2.0 * tau2)
        else:
            tau1 = min(math.sqrt(2.0 * lam / (3.0 * smoothness)), 0.5 / every)
            bound = smoothness
    alpha = 1.0 / (3.0 * tau1 * bound)
    rho = coupling.loop_rate(tau1, tau2, 1.0 + alpha * lam, every)
    return mean.plan(NAME, "theory", batch, every, coupling.Coupling(tau1, tau2, alpha, rho))


def tuned(mean: MeanForm) -> Plan:
    """The best batch, length of an epoch and constants that theory allows."""
    return mean.tuned(NAME, coupling.loop_surplus)

"""Networks of a thousand nodes: F at a thousand models, without a thousand passes.

Nodes draw their samples from one pool, with overlap (Appendix E). So F is a weighted sum over the
pool, the weight of a row being how many nodes drew it: exact, and far fewer rows than n m.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Method
from adfs.data.partition import partition, partition_rows
from adfs.engine.evaluation import objectives
from adfs.engine.interrupts import Interrupts
from adfs.engine.steppers import BlockStepper
from adfs.graphs.topology import Topology
from adfs.problem.finite_sum import Problem
from adfs.study.convergence_curves import Curve, first_reach
from adfs.study.paper.samples import Pool

Matrix = NDArray[np.float64]
MOST_FACTORS_E = 100.0  # theory's; practice needs half of them
NEAR = 4.0  # within this factor of tol, the error is computed by F itself


@dataclass(frozen=True)
class LargeNetwork:
    """A problem on a network, and the same F on one node as a weighted sum over the pool."""

    problem: Problem
    pooled: Problem

    @functools.cached_property
    def size(self) -> float:
        """``|F*|``, to which errors are relative."""
        return abs(self.pooled.optimum().objective)

    def error(self, thetas: Matrix) -> float:
        """Mean over nodes of ``F(theta_i) - F*``, relative."""
        if (thetas == thetas[0]).all():  # one machine, whose model all nodes have
            thetas = thetas[:1]
        best = self.pooled.optimum().objective
        return float(np.mean(objectives(self.pooled, thetas)) - best) / self.size

    def rough_error(self, thetas: Matrix) -> float:
        """The same by Taylor's formula at the optimum: cheap, and good near it."""
        away = thetas - self.pooled.optimum().theta
        return float(0.5 * np.mean(np.sum(away @ self._hessian * away, axis=1))) / self.size

    @functools.cached_property
    def _hessian(self) -> Matrix:
        """Of F at the optimum, by differences of gradients: two passes per feature."""
        best = self.pooled.optimum().theta
        step = 1e-4 * (float(np.linalg.norm(best)) or 1.0)
        shifts = step * np.eye(len(best))
        rows = [self.pooled.gradient(best + h) - self.pooled.gradient(best - h) for h in shifts]
        return np.array(rows) / (2.0 * step)


def draw_network(pool: Pool, topology: Topology, m: int, sigma: float, seed: int) -> LargeNetwork:
    """``m`` rows of the pool at each node, logistic loss."""
    n = topology.n_nodes
    shards = partition(pool.X, pool.y, n, how="draw", seed=seed, m=m)
    rows = np.concatenate(partition_rows(len(pool.y), n, "draw", seed, m))
    times = np.bincount(rows, minlength=len(pool.y))
    drawn = times > 0
    pooled = Problem([(pool.X[drawn], pool.y[drawn], times[drawn])], "logistic", n * sigma)
    return LargeNetwork(Problem(shards, "logistic", sigma, topology), pooled)


def time_to(
    network: LargeNetwork, method: Method, tol: float, interrupts: Interrupts
) -> float | None:
    """Idealized time until the error falls to ``tol``, log-linear between evaluations.

    An evaluation comes every quarter of theory's factors e, about half a factor e in practice; far
    from ``tol`` it is a rough one. None where a signal came first, or where the error does not fall
    as theory says.
    """
    stepper = BlockStepper(network.problem, method)
    interval = max(1, round(0.25 / method.rho))
    times, errors = [0.0], [network.error(method.algorithm.output(stepper.state))]
    while errors[-1] > tol:
        if stepper.position * method.rho > MOST_FACTORS_E:
            return None
        stop = stepper.position + interval
        while stepper.position < stop:
            if interrupts.received is not None:
                return None
            stepper.load(min(stop, stepper.position + method.block))
            stepper.serve()
        thetas = method.algorithm.output(stepper.state)
        rough = network.rough_error(thetas)
        times.append(stepper.clock.time)
        errors.append(rough if rough > NEAR * tol else network.error(thetas))
    return first_reach(Curve(np.array(times), np.array(errors)), tol)

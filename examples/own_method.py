"""
A method of your own
====================

A method is a start, a step and an output. Registered under a name, it runs in ``adfs.solve``, stops
on a duality gap, and takes part in comparisons. Here: gradient descent.
"""

import numpy as np

import adfs
from adfs.plugins import Arrays, Cost, Counts, Method, RoundClock, Rounds, register


class GradientDescent:
    """theta <- theta - grad F(theta) / L."""

    def __init__(self, problem, smoothness):
        self.problem, self.smoothness = problem, smoothness

    def init(self, theta=None):
        return np.zeros(self.problem.n_features) if theta is None else theta.copy()

    def step(self, theta, events):
        for _ in events.which:
            theta = theta - self.problem.gradient(theta) / self.smoothness
        return theta

    def output(self, theta):
        return np.tile(theta, (len(self.problem.nodes), 1))  # one row per node

    def duals(self, theta, node):
        return None

    def counts(self, events):
        rounds = len(events.which)
        messages = 2 * (self.problem.n_nodes - 1) * rounds
        size = 8 * self.problem.n_features * messages
        return Counts(n_grad=self.problem.n_samples * rounds, n_comm=messages, bytes=size)

    def arrays(self, theta):
        return Arrays({}, {}, {"theta": theta})

    def restore(self, theta, shared):
        theta[...] = shared["theta"]


@register("gradient-descent")
def prepare(problem, setting):
    """One round: all gradients, then one all-reduce over the diameter of the graph."""
    smoothness = problem.total_sigma + problem.conditioning.batch_smoothness().sum()
    cost = Cost(problem.sizes.astype(float), rounds=problem.topology.diameter)
    clock = RoundClock([cost], problem.topology.edges, problem.n_nodes, setting.delays)
    rho = problem.total_sigma / smoothness
    algorithm = GradientDescent(problem, smoothness)
    return Method(algorithm, Rounds([0]), clock, rho, f"step 1 / {smoothness:.4g}", proven=True)


# %%
# That is all. It is compared like any other method.

X, y = adfs.generators.two_gaussians(400, 5, seed=0)
problem = adfs.Problem(adfs.partition(X, y, 4), sigma=5.0)
comparison = adfs.compare(problem, ["adfs", "gradient-descent", "lbfgs"], tol=1e-6)
comparison.plot()
print(comparison)

# %%
# :doc:`/how-to/add-an-algorithm` has a faster method, its theorem and its tests.

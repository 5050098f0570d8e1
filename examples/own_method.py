"""
A method of your own
====================

A method in rounds is a class: what a round does, and what it asks for. Registered under a name, it
runs in ``adfs.solve``, stops on a duality gap, and takes part in comparisons. This is gradient
descent.
"""

from dataclasses import dataclass

import adfs
from adfs.plugins import Fact, PerNode, RoundMethod, Uses, register


@dataclass
class State:
    """The model; all nodes have the same."""

    theta: PerNode


@register("gradient-descent")
class GradientDescent(RoundMethod):
    """theta <- theta - grad F(theta) / L."""

    uses = Uses(gradients=1, sums=1)
    proven = True

    def __init__(self, nodes):
        super().__init__(nodes)
        ridge = nodes.problem.total_sigma
        self.smoothness = ridge + float(nodes.problem.conditioning.batch_smoothness().sum())
        self.rho = ridge / self.smoothness
        self.facts = [Fact("L", self.smoothness, "sum of sigma_i + lambda_max(B_i)")]

    def start(self, theta):
        return State(theta)

    def round(self, state, t, kind):
        gradient = self.nodes.sum(self.nodes.gradients(state.theta))
        state.theta = state.theta - gradient / self.smoothness


# %%
# That is all. It is compared like any other method.

X, y = adfs.generators.two_gaussians(400, 5, seed=0)
problem = adfs.Problem(adfs.partition(X, y, 4), sigma=5.0)
comparison = adfs.compare(problem, ["adfs", "gradient-descent", "lbfgs"], tol=1e-6)
comparison.plot()
print(comparison)

# %%
# :doc:`/how-to/add-an-algorithm` has a faster method, its theorem and its tests.

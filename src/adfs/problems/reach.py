"""How far each sample's dual can move a model: what the rate of Algorithm 3 depends on."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adfs.problems.shards import Vector

if TYPE_CHECKING:
    from adfs.problems.finite_sum import Problem


class Reach:
    """What Theorem 4 depends on beside the graph: how far each sample's dual can move a model.

    A dual coefficient of the hinge or of the absolute loss is at most the sample's weight, so a
    virtual node moves by at most ``w |x|``. Numbers per node are known of all nodes, numbers per
    sample of the nodes in this process.

    Attributes
    ----------
    sigma : array of shape (n_nodes,)
    totals : array of shape (n_nodes,)
        ``sum_j w_ij^2 |x_ij|^2``.
    live_counts : array of shape (n_nodes,)
        Number of samples inside the augmented graph.
    """

    def __init__(self, problem: "Problem") -> None:
        self.squared_norms, self.weights = problem.squared_norms, problem.weights
        self.offsets, self.sigma = problem.offsets, problem.sigma
        self._here = problem.network.here
        own = [self.squares(int(node)) for node in problem.nodes]
        self.totals: Vector = problem.network.facts(np.array([each.sum() for each in own]))
        counts = np.array([np.count_nonzero(each) for each in own], dtype=np.int64)
        self.live_counts: NDArray[np.int64] = problem.network.facts(counts)

    def squares(self, node: int) -> Vector:
        """``w^2 |x|^2`` of the samples of a node that is here; 0 outside the augmented graph."""
        own = self._here[node]
        rows = slice(self.offsets[own], self.offsets[own + 1])
        squares: Vector = self.weights[rows] ** 2 * self.squared_norms[rows]
        return squares

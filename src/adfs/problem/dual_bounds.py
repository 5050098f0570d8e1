"""How far each sample's dual can move a model: the rate of Algorithm 3 depends on it."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adfs.data.matrices import Vector

if TYPE_CHECKING:
    from adfs.problem.finite_sum import Problem


class DualBounds:
    """How far each sample's dual can move a model: Theorem 4 depends on this and the graph.

    A dual coefficient of the hinge or of the absolute loss is at most the sample's weight, so a
    virtual node moves by at most ``w |x|``. Numbers per node are known of all nodes, numbers per
    sample of the nodes in this process.

    Attributes
    ----------
    sigma : array of shape (n_nodes,)
    totals : array of shape (n_nodes,)
        ``sum_j w_ij^2 |x_ij|^2``.
    kappa : array of shape (n_nodes,)
        ``1 + sum_j w_ij |x_ij|^2 / sigma_i``: the condition numbers of a loss of curvature 1.
    live_counts : array of shape (n_nodes,)
        Number of samples inside the augmented graph.
    """

    def __init__(self, problem: "Problem") -> None:
        self.squared_norms, self.weights = problem.squared_norms, problem.weights
        self.offsets, self.sigma = problem.offsets, problem.sigma
        self._here = problem.network.here
        nodes = problem.nodes.tolist()
        with np.errstate(over="ignore"):  # refused by `require_scaled`
            own = [self.squares(node) for node in nodes]
            sums = [
                [squares.sum(), self._mass(node)] for squares, node in zip(own, nodes, strict=True)
            ]
            self.totals, masses = problem.network.facts(np.array(sums)).T.copy()
            self.kappa: Vector = 1.0 + masses / self.sigma
        counts = np.array([np.count_nonzero(each) for each in own], dtype=np.int64)
        self.live_counts: NDArray[np.int64] = problem.network.facts(counts)

    def _rows_of(self, node: int) -> slice:
        own = self._here[node]
        return slice(self.offsets[own], self.offsets[own + 1])

    def squares(self, node: int) -> Vector:
        """``w^2 |x|^2`` of the samples of a node in this process; 0 outside the augmented graph."""
        rows = self._rows_of(node)
        norms = self.squared_norms[rows]
        squares: Vector = np.where(norms > 0.0, self.weights[rows], 0.0) ** 2 * norms
        return squares

    def _mass(self, node: int) -> float:
        """``sum_j w_ij |x_ij|^2`` of a node in this process."""
        rows = self._rows_of(node)
        return float(self.weights[rows] @ self.squared_norms[rows])

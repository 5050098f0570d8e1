"""How far each sample's dual can move a model: what the rate of Algorithm 3 depends on."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adfs.problems.shards import Vector

if TYPE_CHECKING:
    from adfs.problems.finite_sum import Problem


@dataclass(frozen=True, eq=False)
class Reach:
    """What Theorem 4 depends on beside the graph: how far each sample's dual can move a model.

    A dual coefficient of the hinge or of the absolute loss is at most the sample's weight, so a
    virtual node moves by at most ``w |x|``.
    """

    squared_norms: Vector
    weights: Vector
    offsets: NDArray[np.int64]
    sigma: Vector

    @classmethod
    def of(cls, problem: "Problem") -> "Reach":
        """Reach of a problem's samples."""
        return cls(problem.squared_norms, problem.weights, problem.offsets, problem.sigma)

    def squares(self, node: int) -> Vector:
        """``w^2 |x|^2`` of a node's samples; 0 outside the augmented graph."""
        rows = slice(self.offsets[node], self.offsets[node + 1])
        squares: Vector = self.weights[rows] ** 2 * self.squared_norms[rows]
        return squares

    @functools.cached_property
    def totals(self) -> Vector:
        """``sum_j w_ij^2 |x_ij|^2`` for each node."""
        return np.array([self.squares(node).sum() for node in range(len(self.sigma))])

    @functools.cached_property
    def live_counts(self) -> NDArray[np.int64]:
        """Number of samples of each node inside the augmented graph."""
        counts = [np.count_nonzero(self.squares(node)) for node in range(len(self.sigma))]
        return np.array(counts, dtype=np.int64)

"""Growing samples of every node's rows: sums over a part of the data that stand for all of it.

Each node puts its rows into a random order of its own. Level k takes a share of them from the
front, so a sample holds all smaller ones; the last level is all rows, in the order of the data. A
node's sum over ``s`` of its ``m`` rows is multiplied by ``m / s``, so that its mean over the orders
is the sum over all rows. Only the numbers of the sampled rows are stored; no row is copied.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Matrix, Vector
from adfs.kernels import certificate
from adfs.kernels.rows import CsrRows
from adfs.problem.finite_sum import Problem
from adfs.problem.optimum import BLOCK, add_hessian
from adfs.randomness import generator


class NestedSamples:
    """Samples of a problem; ``shares`` ascend, and the last one is 1.

    Attributes
    ----------
    sizes : array of shape (levels, n_nodes)
        Rows of each node in each sample.
    """

    def __init__(self, problem: Problem, shares: Sequence[float], seed: int) -> None:
        self.problem, self.shares = problem, tuple(shares)
        self.sizes = sample_sizes(problem.sizes, self.shares)
        self._own = self.sizes[:, problem.nodes]
        self._scales = problem.sizes[problem.nodes] / self._own
        parts = [self._order(node, seed) for node in problem.nodes.tolist()]
        self._order_of_rows = np.concatenate(parts)
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])

    @property
    def last(self) -> int:
        """The level that is all rows."""
        return len(self.shares) - 1

    def _order(self, node: int, seed: int) -> NDArray[np.int64]:
        """A node's rows up to the largest sample that is not all of them.

        Those that a level adds are in the order of the data, which is the order of memory.
        """
        first, (*sizes, total) = self.problem.node_rows(node).start, self.sizes[:, node].tolist()
        order = generator(seed, f"nested samples/{node}").permutation(total)
        parts = np.split(order[: sizes[-1]] if sizes else order[:0], sizes[:-1])
        return np.asarray(first + np.concatenate([np.sort(part) for part in parts]))

    def rows(self, node: int, level: int) -> NDArray[np.int64]:
        """Numbers of a node's sampled rows, at a level below the last."""
        own = self.problem.network.here[node]
        first = self._starts[own]
        return self._order_of_rows[first : first + self._own[level, own]]

    def load_kernels(self) -> None:
        """Load the compiled kernels, which belongs to set-up: on no rows, and at no other node."""
        problem, none = self.problem, np.zeros(0, np.int64)
        zero, alone = np.zeros(problem.n_features), problem.network.links._replace(call=0)
        stack = np.empty((problem.network.n_levels, problem.n_features + 2))
        certificate.sampled_gradients(
            *problem.samples, problem.squared_norms, none, none, none, zero[:0], zero, alone, stack
        )
        certificate.sampled_curvatures(*problem.samples, none, zero, zero[:0])
        if isinstance(problem.rows, CsrRows):
            certificate.sampled_outer_products(problem.rows, zero[:0], none, zero[:, None])

    def objective_and_gradient(self, theta: Vector, level: int) -> tuple[float, Vector, float]:
        """``F_k``, its gradient, and below the last level the sum of all ``w^2 l'^2 |x|^2``."""
        problem, d = self.problem, self.problem.n_features
        if level == self.last:
            return *problem.objective_and_gradient(theta), 0.0
        stack = np.empty((problem.network.n_levels, d + 2))
        certificate.sampled_gradients(
            *problem.samples, problem.squared_norms, self._order_of_rows, self._starts,
            self._own[level], self._scales[level], theta, problem.network.links, stack,
        )  # fmt: skip
        sigma = problem.total_sigma
        objective = float(stack[0, d] + 0.5 * sigma * certificate.square(theta))
        return objective, stack[0, :d] + sigma * theta, float(stack[0, d + 1])

    def add_hessian(self, theta: Vector, level: int, node: int, total: Matrix) -> None:
        """Add the Hessian of a node's losses, at and below the diagonal."""
        problem = self.problem
        if level == self.last:
            add_hessian(problem, theta, problem.node_rows(node), total)
            return
        sample = self.rows(node, level)
        bends = np.empty(len(sample))
        certificate.sampled_curvatures(*problem.samples, sample, theta, bends)
        bends *= self._scales[level, problem.network.here[node]]
        if isinstance(problem.rows, CsrRows):
            certificate.sampled_outer_products(problem.rows, bends, sample, total)
            return
        scale, values = np.sqrt(bends)[:, None], problem.rows.values
        for first in range(0, len(sample), BLOCK):
            block = values[sample[first : first + BLOCK]] * scale[first : first + BLOCK]
            total += block.T @ block


def sample_sizes(sizes: NDArray[np.int64], shares: Sequence[float]) -> NDArray[np.int64]:
    """Rows of each node in each sample, (levels, n); at least one where a node has any.

    Examples
    --------
    >>> sample_sizes(np.array([100, 7]), (1 / 64, 1 / 8, 1.0))
    array([[  2,   1],
           [ 13,   1],
           [100,   7]])
    """
    return np.asarray(np.ceil(np.outer(shares, sizes)), np.int64)

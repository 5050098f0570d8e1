"""Dual gradients of the nodes, ``theta_i = grad f_i^*(x_i) = argmin f_i(theta) - x_i . theta``.

What the batch dual methods (MSDA, ESDACD) ask of a node in one iteration. The paper charges it as
one pass, ``m``; the real cost shows in the wall time, so it is kept near that: chord steps with an
old Hessian from the node's last answer (`adfs.kernels.dual_gradient`), a new Hessian only when the
old one has cost more passes than it would. Where d x d matrices are too large, Newton's steps come
from conjugate gradients instead.

Let ``e = r . H^{-1} r`` be the energy of the residual ``r = grad f_i - x_i``. A node stops when its
next step, whose ratio ``q`` of energies it has measured on the last one, will leave ``q e <= 1e-24
s_i``, where ``s_i`` is the larger of ``f_i(0)`` and the mean of ``f_k(0)`` over nodes; then it
makes that step. A step that stops gaining below ``e = 1e-20 s_i``, or where ``|r| <= 4 eps
|x_i|``, has met rounding. What this leaves of the error, and measured costs:
docs/algorithms/msda.md, Dual gradients.
"""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from adfs.algorithms.base import Matrix, Vector
from adfs.algorithms.descent import shortened, sufficient
from adfs.kernels import certificate, dual_gradient
from adfs.kernels.dual_gradient import Memory
from adfs.problem.finite_sum import Problem
from adfs.problem.optimum import add_hessian, curvatures
from adfs.threads import one_blas_thread

LARGEST_MATRIX = 500  # features up to which a node keeps a Hessian
LARGEST_MEMORY = 1 << 25  # numbers in the Hessians of all nodes
TOLERANCE = 1e-24
ROUNDING = 1e-20
ROUNDED = 4 * np.finfo(float).eps
MOST_RESCUES = 100
SHORTEST_STEP = 1e-12
ROWS_AT_ONCE = 5_000_000  # rows of dual gradients between two checks of limits: below a second
FORCING = 1e-2  # what conjugate gradients may leave of a residual


def keeps_matrices(n_nodes: int, n_features: int) -> bool:
    """Whether every node keeps a Hessian."""
    return n_features <= LARGEST_MATRIX and n_nodes * n_features**2 <= LARGEST_MEMORY


def dual_cost(costs: Any, n_nodes: int, n_features: int) -> Any:
    """What one sample costs in a dual gradient: one pass by the paper's costs."""
    if keeps_matrices(n_nodes, n_features):
        return costs.dual_gradient
    return costs.iterative_dual_gradient


class DualGradients:
    """Dual gradients of a problem's nodes; the caller keeps, and may copy, what they remember."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        d = problem.n_features
        self.with_matrices = keeps_matrices(problem.n_nodes, d)
        self.samples = dual_gradient.NodeSamples(
            *problem.samples, problem.offsets, problem.own_sigma
        )  # fmt: skip
        own = problem.at_zero[:, 0]
        self.scale: Vector = np.maximum(own, problem.network.facts(own).mean())
        # Twice what a new Hessian costs in passes: 4 to 6 measured for d = 28 and 54.
        self.max_passes = 10 + d // 16
        self._work = dual_gradient.Workspace(*np.empty((5, d)))
        self._rows = [slice(*cut) for cut in itertools.pairwise(problem.offsets.tolist())]

    def start(self, theta: Vector | None = None) -> Memory:
        """What nodes remember that have only summed their slopes at a model, or at zero."""
        n, d = len(self.problem.nodes), self.problem.n_features
        size = d if self.with_matrices else 0
        memory = Memory(
            np.tile(np.zeros(d) if theta is None else theta, (n, 1)), np.empty((n, d)),
            np.empty((n, size, size)), np.zeros(n, np.int64), np.zeros(n, np.int64),
        )  # fmt: skip
        with one_blas_thread():
            for node in range(n):
                dual_gradient.slope_at(self.samples, node, memory.theta[node], memory.slope[node])
                self._take_hessian(memory, node)
        # Of no node: compiles, if that has to be, before anything is timed.
        self.solve(memory, np.arange(0), memory.theta, memory.theta)
        return memory

    def balanced(self, memory: Memory) -> Matrix:
        """``x_i = grad f_i - (sigma_i / sum sigma) sum_k grad f_k`` at the remembered points.

        Where all nodes remember one model these rows sum to zero and are dual to it: at the
        optimum, where the sum vanishes, ``grad f_i^*(x_i)`` is that model for every node.
        """
        shares = self.problem.own_sigma / self.problem.total_sigma
        total = self.problem.network.sum_rows(memory.slope, self.problem.n_features)
        return np.asarray(memory.slope - np.outer(shares, total))

    def solve(self, memory: Memory, nodes: NDArray[np.int64], targets: Matrix, out: Matrix) -> None:
        """``out[k] = grad f_i^*(targets[k])`` for ``i = nodes[k]``, a local number.

        Callers hold BLAS to one thread (`adfs.threads`), once for many calls: entering that takes
        longer than a small node's dual gradient.
        """
        if not self.with_matrices:
            for k, node in enumerate(nodes):
                out[k] = self._truncated_newton(memory, int(node), targets[k])
            return
        position, rescues = 0, 0
        while True:
            stopped = dual_gradient.many_nodes(
                self.samples, memory, nodes, position, targets, TOLERANCE * self.scale,
                self.max_passes, out, self._work,
            )  # fmt: skip
            if stopped == len(nodes):
                return
            rescues = rescues + 1 if stopped == position else 1
            position = stopped
            node = int(nodes[position])
            if rescues > MOST_RESCUES or not self._rescue(memory, node, targets[position]):
                out[position] = memory.theta[node] + self._work.step
                position, rescues = position + 1, 0

    def _rescue(self, memory: Memory, node: int, target: Vector) -> bool:
        """A fresh Hessian; if it was fresh, a step that surely gains first. False if none can."""
        if memory.moved[node] == 0:
            residual, step = memory.slope[node] - target, self._work.step
            energy = dual_gradient.chord(memory.inverse, node, residual, step)
            rounding = ROUNDED * float(np.linalg.norm(target))  # of the residual's own sum
            if not energy > ROUNDING * self.scale[node] or np.linalg.norm(residual) <= rounding:
                return False
            if not self._move(memory, node, target, step.copy()):
                return False
        self._take_hessian(memory, node)
        return True

    def _take_hessian(self, memory: Memory, node: int) -> None:
        if not self.with_matrices:
            return
        eye = np.eye(self.problem.n_features)
        hessian = self.samples.sigma[node] * eye
        add_hessian(self.problem, memory.theta[node], self._rows[node], hessian)
        try:
            memory.inverse[node] = cho_solve(cho_factor(hessian, lower=True), eye)
        except LinAlgError:  # sigma is below the rounding of the other part: no eigenvalue is less
            values, vectors = np.linalg.eigh(hessian)
            least = np.maximum(values, self.samples.sigma[node])
            memory.inverse[node] = (vectors / least) @ vectors.T
        memory.moved[node] = memory.excess[node] = 0

    def _move(self, memory: Memory, node: int, target: Vector, step: Vector) -> bool:
        """Go along ``step`` as far as a line search finds good; False if it finds nothing."""
        theta = memory.theta[node].copy()
        value, slope = self._value(node, theta, target)
        down = float(step @ slope)
        size = 1.0
        while size > SHORTEST_STEP:
            point = theta + size * step
            trial, slope = self._value(node, point, target)
            along = float(step @ slope)
            if sufficient(value, down, size, trial, along, self.scale[node]):
                memory.theta[node], memory.slope[node] = point, slope + target
                memory.moved[node] += 1
                return True
            size = shortened(size, down, along)
        return False

    def _value(self, node: int, theta: Vector, target: Vector) -> tuple[float, Vector]:
        """``f_i(theta) - target . theta`` and its gradient."""
        rows, sigma = self._rows[node], self.samples.sigma[node]
        slope = sigma * theta
        value = certificate.objective_gradient(
            *self.problem.samples, rows.start, rows.stop, theta, slope
        )  # fmt: skip
        value += float(theta @ (0.5 * sigma * theta - target))
        return value, slope - target

    def _truncated_newton(self, memory: Memory, node: int, target: Vector) -> Vector:
        """The same rule with steps from conjugate gradients; the last one is not looked at."""
        if not np.isfinite(target).all():
            return np.full_like(target, np.nan)
        rows = self._rows[node]
        step = np.empty(self.problem.n_features)
        before = np.inf
        for _ in range(MOST_RESCUES):
            theta = memory.theta[node]
            bend = curvatures(self.problem, theta, rows)
            energy = dual_gradient.conjugate_gradients(
                self.samples, node, bend, memory.slope[node] - target, FORCING, step, self._work
            )
            ratio = max(energy / before, FORCING**2) if before < np.inf else 1.0
            if not ratio * energy > TOLERANCE * self.scale[node]:
                break
            stuck = energy > 0.25 * before and energy <= ROUNDING * self.scale[node]
            if stuck or not self._move(memory, node, target, step):
                break
            before = energy
        return np.asarray(memory.theta[node] + step)

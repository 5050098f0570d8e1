"""What a method asks of its nodes: their samples, each other, and what that costs.

`Nodes` has the nodes of this process. Each computes on its own samples, at a point of its own: a
matrix has one row per node here. What a node learns about others goes through gossip or a sum, and
has the same bits in one process and on ranks. `Uses` declares what a round asks for; time and
counts follow from that, and `adfs.check_algorithm` compares it with what was asked.
"""

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adfs.algorithms.base import Counts, Matrix, MethodSetting, Vector
from adfs.algorithms.descent import messages
from adfs.algorithms.dual_gradient import DualGradients, dual_cost
from adfs.graphs.weights import MixingWeights
from adfs.kernels import gossip, oracles, sampling
from adfs.kernels.dual_gradient import Memory
from adfs.problem.finite_sum import Problem
from adfs.problem.optimum import add_outer_products, curvatures
from adfs.randomness import stream_keys
from adfs.schedule.rounds import Cost

Places = NDArray[np.int64]


class Uses(NamedTuple):
    """What a round asks of every node, then of the network.

    Examples
    --------
    >>> Uses(gradients=1, gossips=2)  # a gradient of all samples, and two rounds of gossip
    Uses(gradients=1, gossips=2)
    """

    gradients: int = 0  # of all samples of a node; also a pass for slopes or second derivatives
    samples: int = 0  # gradients of samples that were drawn
    steps: int = 0  # proximal steps
    products: int = 0  # of the Hessian with a vector: a pass each
    hessians: int = 0  # matrices of second derivatives
    factorisations: int = 0  # of a d x d matrix
    dual_gradients: int = 0  # minimisers of f_i(theta) - x . theta
    gossips: int = 0  # rounds in which neighbours exchange vectors
    sums: int = 0  # of a vector over all nodes
    numbers: int = 0  # that are added beside a vector
    message_bytes: int | None = None  # of one message of gossip; 8 d by default

    def cost(self, problem: Problem, costs: Any) -> Cost:
        """What it takes at each node, in proximal steps, and in rounds of communication."""
        sizes = problem.sizes
        dual = dual_cost(costs, problem.n_nodes, problem.n_features)
        per_sample = self.gradients * costs.gradient + self.products * costs.product
        per_sample = per_sample + self.hessians * costs.hessian + self.dual_gradients * dual
        work = sizes * per_sample + self.samples * costs.sampled_gradient + self.steps
        work = work + self.factorisations * costs.factorisation
        return Cost(work, self.gossips + self.sums * problem.topology.diameter)

    def counts(self, problem: Problem) -> Counts:
        """What it adds to a trace."""
        n, d, passes = problem.n_nodes, problem.n_features, self.gradients + self.products
        n_grad = problem.n_samples * (passes + self.dual_gradients) + n * self.samples
        gossip = 2 * problem.topology.n_edges * self.gossips
        size = 8 * d if self.message_bytes is None else self.message_bytes
        found = Counts(n * self.steps, n_grad, gossip, size * gossip)
        if self.sums or self.numbers:
            found = found.plus(messages(n, self.sums * d + self.numbers, d))
        return found

    def __repr__(self) -> str:
        pairs = zip(self._fields, self, strict=True)
        given = (f"{name}={value}" for name, value in pairs if value)
        return f"Uses({', '.join(given)})"


class Mixer:
    """Gossip with a mixing matrix: ``mixer(rows)`` is ``W rows``, one round of messages."""

    def __init__(self, nodes: "Nodes", weights: MixingWeights) -> None:
        self.weights, self._nodes = weights, nodes
        network = nodes.problem.network
        matrix = weights.matrix[nodes.numbers]
        self._entries = (
            matrix.indptr.astype(np.int64), network.row_of[matrix.indices], matrix.data.copy()
        )  # fmt: skip

    def __call__(self, rows: Matrix) -> Matrix:
        self._nodes.asked["gossips"] += 1
        network = self._nodes.problem.network
        message = np.empty((network.n_rows, rows.shape[1]))
        message[: len(rows)] = rows
        network.neighbours(message)
        out = np.empty_like(message[: len(rows)])
        gossip.mix(*self._entries, message, out)
        return out


class ChebyshevMixer:
    """So many rounds of gossip as one: ``I - P_K``, whose ``contraction`` is the least possible.

    Disagreement falls by ``contraction = 1 / T_K((1 + gamma) / (1 - gamma))``.
    """

    def __init__(self, nodes: "Nodes", rounds: int) -> None:
        self.rounds, self._nodes = rounds, nodes
        spectrum = nodes.problem.topology.spectrum
        self._has_edges = nodes.problem.topology.n_edges > 0
        low, high = spectrum.lambda_min, spectrum.lambda_max
        if self._has_edges and rounds > 0:
            self._steps = gossip.chebyshev_weights(low, high, rounds)  # type: ignore[no-untyped-call]
            ends = gossip.interval(low, high, rounds)  # type: ignore[no-untyped-call]
            self.contraction = float(ends[1] - 1.0)
        else:
            self.contraction = 1.0 if self._has_edges else 0.0

    def __call__(self, rows: Matrix) -> Matrix:
        self._nodes.asked["gossips"] += self.rounds
        if not self._has_edges or self.rounds == 0:
            return rows.copy()
        network, size = self._nodes.problem.network, rows.shape
        product, before = np.empty(size), np.empty(size)
        gossip.chebyshev(
            network.links, self._steps, np.ones(len(rows)), np.ascontiguousarray(rows), product,
            before, np.empty((network.n_rows, size[1])),
        )  # fmt: skip
        return np.asarray(rows - product)


class Sampler:
    """Draws rows of each node, number by number from the seed: ``p`` is each row's probability."""

    def __init__(self, nodes: "Nodes", p: Vector, stream: str) -> None:
        problem = nodes.problem
        self.p, self._offsets = p, problem.offsets
        self._tables = np.zeros(problem.n_rows, np.int64)
        sampling.build_aliases(p, problem.offsets, self._tables)
        self._keys = stream_keys(nodes.setting.seed, f"{stream}/node", nodes.numbers)

    def draw(self, round: int, batch: int = 1) -> Places:
        """Rows of this process drawn in a round, shape (nodes here, batch)."""
        out = np.empty((len(self._keys), batch), np.int64)
        oracles.draw_rows(out, round * batch, self._keys, self._tables, self._offsets)
        return out


class Uniforms:
    """Numbers in [0, 1) of each node, by its number, the round and the seed alone."""

    def __init__(self, nodes: "Nodes", stream: str) -> None:
        self._keys = stream_keys(nodes.setting.seed, f"{stream}/numbers", nodes.numbers)

    def draw(self, round: int, count: int = 1) -> Matrix:
        """Numbers drawn in a round, shape (nodes here, count)."""
        out = np.empty((len(self._keys), count))
        oracles.draw_numbers(out, round * count, self._keys)
        return out


class Nodes:
    """The nodes of this process, for methods in rounds; see the head of this file.

    Attributes
    ----------
    problem : Problem
    setting : MethodSetting
    numbers : array
        Numbers of the nodes in this process; matrices have one row for each.
    sigma : array of shape (nodes here, 1)
        Their ``sigma_i``, to multiply matrices with.
    asked : Counter
        What was asked so far, by the names of `Uses`.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(40, 3, seed=0)
    >>> problem = adfs.Problem(adfs.partition(X, y, 4), sigma=1.0)
    >>> nodes = Nodes(problem, adfs.MethodSetting())
    >>> theta = np.zeros((4, 3))
    >>> total = nodes.sum(nodes.gradients(theta))
    >>> np.allclose(total, problem.gradient(theta[0]))
    True
    >>> mixed = nodes.mixer("metropolis")(nodes.gradients(theta))
    >>> np.allclose(mixed.sum(axis=0), total)  # gossip keeps the mean
    True
    """

    def __init__(self, problem: Problem, setting: MethodSetting) -> None:
        self.problem, self.setting = problem, setting
        self.numbers = problem.nodes
        self.n, self.d = len(self.numbers), problem.n_features
        self.sigma: Matrix = problem.own_sigma[:, None]
        self.asked: Counter[str] = Counter()

    @property
    def smoothness(self) -> Vector:
        """``sigma_i + lambda_max(B_i)`` of every node of the graph: ``f_i`` has no more."""
        return np.asarray(self.problem.sigma + self.problem.conditioning.batch_smoothness())

    # Gradients and second derivatives of all samples of a node.

    def gradients(self, points: Matrix) -> Matrix:
        """``grad f_i(points[i])``."""
        return self.values_and_gradients(points)[1]

    def values_and_gradients(self, points: Matrix) -> tuple[Vector, Matrix]:
        """``f_i(points[i])`` and ``grad f_i(points[i])``: one pass."""
        self.asked["gradients"] += 1
        values, out = np.empty(self.n), np.empty((self.n, self.d))
        oracles.gradients(
            *self.problem.samples, self.problem.offsets, self.problem.own_sigma, points, values, out
        )
        return values, out

    def values_along(self, points: Matrix, directions: Matrix, sizes: Vector) -> Matrix:
        """``f_i(points[i] + s directions[i])`` for several step sizes ``s``: one pass."""
        self.asked["gradients"] += 1
        out = np.empty((self.n, len(sizes)))
        oracles.values_along(
            *self.problem.samples, self.problem.offsets, self.problem.own_sigma, points, directions,
            sizes, out,
        )  # fmt: skip
        return out

    def slopes(self, points: Matrix) -> Vector:
        """``w l'(x . points[i])`` of every row here: one pass."""
        self.asked["gradients"] += 1
        out = np.empty(self.problem.n_rows)
        oracles.all_slopes(*self.problem.samples, self.problem.offsets, points, out)
        return out

    def row_sums(self, factors: Vector) -> Matrix:
        """``sum_j factors_j x_j`` over the rows of each node; with `slopes` it is one pass."""
        out = np.zeros((self.n, self.d))
        oracles.weighted_sums(self.problem.rows, self.problem.offsets, factors, out)
        return out

    def bends(self, points: Matrix) -> Vector:
        """``w l''(x . points[i])`` of every row here; free in a pass that has its gradient too."""
        found = [curvatures(self.problem, points[i], rows) for i, rows in enumerate(self.rows())]
        return np.concatenate(found)

    def hessian_products(self, bends: Vector, vectors: Matrix) -> Matrix:
        """``(X_i^T diag(bends) X_i + sigma_i I) vectors[i]``: one pass."""
        self.asked["products"] += 1
        out = np.empty((self.n, self.d))
        oracles.hessian_products(
            self.problem.rows, bends, self.problem.offsets, self.problem.own_sigma, vectors, out
        )
        return out

    def hessians(self, bends: Vector) -> Iterator[Matrix]:
        """``X_i^T diag(bends) X_i`` of one node after another, at and below the diagonal."""
        self.asked["hessians"] += 1
        for rows in self.rows():
            total = np.zeros((self.d, self.d))
            add_outer_products(self.problem, bends[rows], rows, total)
            yield total

    def rows(self) -> list[slice]:
        """The rows of each node here."""
        return [self.problem.node_rows(node) for node in self.numbers.tolist()]

    # Samples that are drawn.

    def sampler(self, p: Vector | None = None, stream: str = "samples") -> Sampler:
        """Draws from each node's rows; by default half uniformly and half by their smoothness."""
        return Sampler(self, self.mixed_law() if p is None else p, stream)

    def uniforms(self, stream: str) -> Uniforms:
        """Uniform numbers for each node, the same on ranks; not those of any other stream."""
        return Uniforms(self, stream)

    def mixed_law(self) -> Vector:
        """``p_j = (1 / m_i + L_j / sum L) / 2``; uniform where all ``L_j`` are zero."""
        parts = []
        for node in self.numbers.tolist():
            smooth = self.problem.conditioning.smoothness(node)
            total, uniform = float(smooth.sum()), np.full(len(smooth), 1.0 / len(smooth))
            parts.append(0.5 * uniform + 0.5 * smooth / total if total > 0.0 else uniform)
        return np.concatenate(parts)

    def sample_slopes(self, points: Matrix, places: Places) -> Matrix:
        """``w l'(x . points[i])`` of the rows ``places[i]``: one sample's gradient each."""
        self.asked["samples"] += places.shape[1]
        out = np.empty(places.shape)
        oracles.slopes(*self.problem.samples, places, points, out)
        return out

    def add_rows(self, factors: Matrix, places: Places, out: Matrix) -> None:
        """``out[i] += sum_r factors[i, r] x`` for the rows ``places[i, r]``."""
        oracles.add_rows(self.problem.rows, places, factors, out)

    def sampled_gradients(self, points: Matrix, places: Places, p: Vector) -> Matrix:
        """Unbiased estimates of ``grad f_i(points[i])``; ``p`` are the rows' probabilities."""
        factors = self.sample_slopes(points, places) / (p[places] * places.shape[1])
        out = self.sigma * points
        self.add_rows(factors, places, out)
        return out

    def coordinate_steps(
        self, points: Matrix, duals: Vector, places: Places, strength: Vector
    ) -> None:
        """Proximal steps on rows, one after another; ``points`` and ``duals`` change in place.

        With ``u = points[i]`` and ``k = strength[i]`` the dual of a row becomes ``c' = w l'(x .
        u')``, ``u' = u - k (c' - c) x``.
        """
        self.asked["steps"] += places.shape[1]
        oracles.coordinate_steps(
            *self.problem.samples, self.problem.squared_norms, places, strength, points, duals
        )

    # Problems that a node solves.

    @functools.cached_property
    def _dual_gradients(self) -> DualGradients:
        return DualGradients(self.problem)

    def dual_memory(self, theta: Vector | None = None) -> Memory:
        """What `dual_gradients` remembers: a part of the state."""
        return self._dual_gradients.start(theta)

    def dual_gradients(self, memory: Memory, slopes: Matrix) -> Matrix:
        """``argmin f_i(theta) - slopes[i] . theta``, in about one pass; changes ``memory``."""
        self.asked["dual_gradients"] += 1
        out = np.empty_like(slopes)
        self._dual_gradients.solve(memory, np.arange(self.n), slopes, out)
        return out

    # What nodes say to each other.

    def mixer(self, weights: str | MixingWeights = "metropolis") -> Mixer:
        """Gossip with a mixing matrix, by name as in `Topology.weights`."""
        if isinstance(weights, str):
            weights = self.problem.topology.weights(weights)
        return Mixer(self, weights)

    def chebyshev(self, rounds: int) -> ChebyshevMixer:
        """So many rounds of gossip that act as one good one."""
        return ChebyshevMixer(self, rounds)

    def sum(self, rows: Matrix) -> Vector:
        """The sum of one row per node over all nodes, known to all; more than d numbers are free
        to ask for, but are declared as ``numbers`` beside a vector.
        """
        width = rows.shape[1]
        self.asked["sums"] += width // self.d
        self.asked["numbers"] += width % self.d
        return self.problem.network.sum_rows(np.ascontiguousarray(rows), width)

    def mean(self, rows: Matrix) -> Vector:
        """The mean of one row per node over all nodes."""
        return self.sum(rows) / self.problem.n_nodes

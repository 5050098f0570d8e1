"""Small problems shared by tests, and the way from them to the oracles' arguments.

Everything the oracles are given is computed here from the raw shards, not by the code under test;
only what `Parameters` chose (alpha, sigma_A, rho and the probabilities) is taken from it.
"""

import itertools
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import adfs
from adfs.algorithms.adfs import Adfs
from adfs.kernels.sampling import ALIAS_BITS, ALIAS_MASK, THRESHOLD_ONE
from oracles import augmented

REGRESSION = ("squared", "huber", "absolute")
RULES = ("paper", "balanced", "exact", "projector", "tuned")
EDGE_MU2 = 0.5


class Case(NamedTuple):
    """A problem, and the same data as plain dense shards (X, y, weights)."""

    problem: adfs.Problem
    shards: list


def make_shards(
    n_nodes, loss, seed=0, n_features=4, sizes=None, density=1.0, dead=False
):  # fmt: skip
    """Shards of 2 to 4 rows of very different norms, weights in [0.5, 2].

    With ``dead`` there are a row of zeros and a sample of weight zero.
    """
    generator = np.random.default_rng(seed)
    sizes = sizes or [2 + node % 3 for node in range(n_nodes)]
    shards = []
    for size in sizes:
        norms = generator.uniform(0.1, 2.0, (size, 1))
        norms[0] = 0.05  # so small a row that eta~ > L
        features = norms * generator.standard_normal((size, n_features))
        features *= generator.random((size, n_features)) < density
        features[:, generator.integers(n_features)] += 0.03  # no row is zero
        labels = generator.standard_normal(size) if loss in REGRESSION else _signs(generator, size)
        shards.append((features, labels, generator.uniform(0.5, 2.0, size)))
    if loss not in REGRESSION:
        shards[0][1][0], shards[-1][1][-1] = -1.0, 1.0  # both classes exist
    if dead:
        shards[1][0][2], shards[-1][2][3] = 0.0, 0.0
    return shards


def homogeneous_shards(n_nodes, n_samples, n_features=3, seed=0, norm=1.0):
    """Shards of rows of one norm and weight 1: all L_ij are equal."""
    generator = np.random.default_rng(seed)
    shards = []
    for _ in range(n_nodes):
        rows = generator.standard_normal((n_samples, n_features))
        rows *= norm / np.linalg.norm(rows, axis=1, keepdims=True)
        shards.append((rows, _signs(generator, n_samples), np.ones(n_samples)))
    return shards


def make_case(
    graph, loss="logistic", seed=0, n_features=4, sizes=None, density=1.0, sigma=None, shards=None
):
    """A heterogeneous problem on a graph given by its text; sigma in [0.5, 1.5] by default."""
    topology = adfs.Topology.parse(graph)
    if shards is None:
        shards = make_shards(topology.n_nodes, loss, seed, n_features, sizes, density)
    if sigma is None:
        sigma = np.random.default_rng([seed, 1]).uniform(0.5, 1.5, topology.n_nodes)
    return Case(adfs.Problem(shards, loss=loss, sigma=sigma, topology=topology), shards)


def make_data(loss="logistic", n_samples=60, n_features=4, seed=0, noise=0.5, scales=None):
    """Rows, and labels or targets of a planted model with noise.

    The columns grow from the first to the second of ``scales``; without it the rows have very
    different lengths.
    """
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((n_samples, n_features))
    if scales is None:
        rows *= generator.exponential(1.0, (n_samples, 1))
    else:
        rows *= np.linspace(*scales, n_features)
    scores = rows @ generator.standard_normal(n_features)
    scores += noise * generator.standard_normal(n_samples)
    return rows, scores if loss in REGRESSION else np.where(scores > 0, 1.0, -1.0)


def make_problem(loss="logistic", n_nodes=4, sigma=0.3, convert=np.asarray, **samples):
    """The problem of `make_data`, its rows shared out evenly."""
    rows, labels = make_data(loss, **samples)
    return adfs.Problem(adfs.partition(convert(rows), labels, n_nodes), loss, sigma)


def gaussian_problem(
    graph="grid:2x2", loss="logistic", sigma=0.3, convert=np.asarray, samples=(60, 3), seed=0,
    condition=1.0, **options,
):  # fmt: skip
    """Two Gaussian classes, ``samples`` (rows, features) in all, shared out evenly on a graph."""
    topology = adfs.Topology.parse(graph)
    rows, labels = adfs.generators.two_gaussians(*samples, seed=seed, condition=condition)
    shards = adfs.partition(convert(rows), labels, topology.n_nodes)
    return adfs.Problem(shards, loss, sigma, topology, **options)


def stored_as(case, kind):
    """The same problem with its rows stored as "dense", "csr" or "float32"."""
    convert = {"dense": np.asarray, "csr": sp.csr_matrix, "float32": np.float32}[kind]
    problem = case.problem
    shards = [(convert(features), *rest) for features, *rest in case.shards]
    return adfs.Problem(shards, problem.loss.name, problem.sigma, problem.topology)


class Literal(NamedTuple):
    """Arguments of `oracles.algorithm1.iterates`, in its order, but for the sampled sequence."""

    shards: list
    sigma: np.ndarray
    edges: list
    loss: str
    mu2_edge: np.ndarray
    mu2_virtual: np.ndarray
    p: np.ndarray
    rho: float
    sigma_a: float

    @property
    def incidence(self):
        """Matrix A of the augmented graph."""
        return augmented.incidence(self.shards, self.edges, self.mu2_edge, self.mu2_virtual)

    @property
    def sigma_matrix(self):
        """Diagonal matrix Sigma of the augmented graph."""
        return augmented.sigma_matrix(self.shards, self.sigma, self.loss)

    @property
    def eta_over_smoothness(self):
        """``eta~_ij / L_ij`` of every sample."""
        eta = self.rho * self.mu2_virtual / (self.sigma_a * self.p[len(self.edges) :])
        return eta / augmented.smoothness(self.shards, self.loss)

    @property
    def rows(self):
        """All samples' features, one after another."""
        return np.vstack([features for features, *_ in self.shards])


def literal(case, parameters, mu2=EDGE_MU2):
    """What the oracles need to run with these parameters."""
    problem, shards = case
    owner = np.repeat(np.arange(len(shards)), [len(labels) for _, labels, _ in shards])
    smoothness = augmented.smoothness(shards, problem.loss.name)
    weight = np.sqrt(1.0 + smoothness / problem.sigma[owner])
    within = weight / np.bincount(owner, weight)[owner]
    edges = [(int(k), int(l)) for k, l in problem.topology.edges]
    p = np.concatenate([parameters.p_edge, parameters.p_node[owner] * within])
    return Literal(
        shards, problem.sigma, edges, problem.loss.name, np.full(len(edges), mu2),
        parameters.alpha[owner] * smoothness, p, parameters.rho, parameters.sigma_A,
    )  # fmt: skip


class Lyapunov:
    """``sigma_A |v - x*|^2 + 2 (F_A^*(x) - F_A^*(x*))`` in edge space: what Theorem 1 contracts."""

    def __init__(self, case, oracle):
        self.arguments = case.shards, case.problem.sigma, case.problem.loss.name
        self.theta = augmented.minimiser(*self.arguments)
        self.optimal = augmented.optimal_rows(*self.arguments, self.theta)
        self.least = augmented.dual_objective(*self.arguments, self.optimal)
        self.inverse = np.linalg.pinv(oracle.incidence)
        self.sigma_a = oracle.sigma_a

    def __call__(self, x, v):
        distance = np.sum((self.inverse @ (v - self.optimal)) ** 2)
        above = augmented.dual_objective(*self.arguments, x) - self.least
        return self.sigma_a * distance + 2.0 * above


def augmented_edges(problem, events):
    """Index of each event's edge in the augmented graph: communications, then samples."""
    n_edges = problem.topology.n_edges
    node = np.maximum(events.which - n_edges, 0)
    return np.where(
        events.which < n_edges, events.which, n_edges + problem.offsets[node] + events.sample
    )


def node_rows(algorithm, state, rows):
    """``(x_t, v_t, y_t)`` of all augmented nodes, as Algorithm 1 writes them."""
    (y, v), (y_virtual, v_virtual) = algorithm.nodes(state), algorithm.virtual(state)
    y = np.vstack([y, y_virtual[:, None] * rows])
    v = np.vstack([v, v_virtual[:, None] * rows])
    rho = algorithm.parameters.rho
    return (1.0 + rho) * y - rho * v, v, y  # line 4 solved for x


def run(problem, parameters, n_events, seed=0, cuts=(), method=Adfs):
    """Algorithm and state after ``n_events`` drawn events, cut into blocks at ``cuts``."""
    algorithm = method(problem, parameters)
    schedule = adfs.Schedule.sample(parameters, n_events, seed=seed)
    state = algorithm.init()
    for first, last in itertools.pairwise([0, *cuts, n_events]):
        state = algorithm.step(state, schedule.events(first, last))
    return algorithm, state


def all_duals(algorithm, state):
    """Dual coefficients of all samples, node after node; None if the algorithm has none."""
    n_nodes = len(algorithm.output(state))
    parts = [algorithm.duals(state, node) for node in range(n_nodes)]
    return None if parts[0] is None else np.concatenate(parts)


def sums(state):
    """Rows ``s = x + v`` of the centres, as a view."""
    return state.centres.pairs[:, ::2]


def differences(state):
    """Rows ``delta`` of the centres, as a view; ``x - v`` is ``scale`` times that."""
    return state.centres.pairs[:, 1::2]


def bits(state):
    """Everything a run of ADFS will ever read again, as bytes."""
    return (state.t, state.lines.tobytes(), *(part.tobytes() for part in state.centres))


def _signs(generator, size):
    return np.where(generator.random(size) < 0.5, -1.0, 1.0)


def drawn_exactly(table):
    """The probability of each cell under an alias table: its threshold, and what others send it."""
    threshold = (table >> ALIAS_BITS) / THRESHOLD_ONE
    alias = table & ALIAS_MASK
    own = np.where(alias == np.arange(len(table)), 1.0, threshold)
    probability = own.copy()
    np.add.at(probability, alias, 1.0 - own)
    return probability / len(table)

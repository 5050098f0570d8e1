"""Chebyshev gossip against the published recursion and NumPy's polynomials."""

import math

import numpy as np
import pytest

import adfs
from adfs.kernels import gossip
from adfs.network import Network
from oracles import msda as literal

pytestmark = pytest.mark.uncompiled
GRAPHS = ("path:2", "grid:3x3", "complete:9", "ring:9", "star:5", "grid:5x7", "path:30")
ROUNDS = (1, 2, 3, 7, 20)


def extremes(graph, scale=None):
    """Laplacian of a graph, and the ends of its (scaled) positive spectrum."""
    lap = adfs.Topology.parse(graph).laplacian().toarray()
    root = np.sqrt(np.ones(len(lap)) if scale is None else scale)
    values = np.linalg.eigvalsh(lap / np.outer(root, root))
    return lap, values[1], values[-1]


def apply(graph, rows, rounds, scale=None):
    """``G_K rows`` by the kernel."""
    lap, low, high = extremes(graph, scale)
    inverse = np.ones(len(lap)) if scale is None else 1.0 / scale
    out = np.empty_like(rows)
    gossip.chebyshev(
        Network(adfs.Topology.parse(graph)).links, gossip.chebyshev_weights(low, high, rounds),
        inverse, rows, out, np.empty_like(rows), np.empty_like(rows),
    )  # fmt: skip
    return out


def rows_of(graph, seed=0, d=3):
    return np.random.default_rng(seed).standard_normal((adfs.Topology.parse(graph).n_nodes, d))


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_it_is_the_published_accelerated_gossip(graph, rounds):
    lap, low, high = extremes(graph)
    gamma = low / high
    if gamma > 1.0 - 1e-12:  # there the published recursion divides infinity by infinity
        rounds, c2 = 1, math.inf
    else:
        c2 = (1 + gamma) / (1 - gamma)
    rows = rows_of(graph)
    expected = literal.accelerated_gossip(rows, lap, rounds, c2, 2 / ((1 + gamma) * high))
    np.testing.assert_allclose(apply(graph, rows, rounds), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("graph", ["grid:3x3", "star:5", "path:30"])
def test_with_weights_of_nodes_it_is_the_polynomial_of_the_scaled_laplacian(graph, rounds):
    rows = rows_of(graph)
    scale = np.random.default_rng(1).uniform(0.3, 3.0, len(rows))
    lap, _, _ = extremes(graph)
    expected = literal.gossip_matrix(lap, scale, rounds) @ rows
    np.testing.assert_allclose(apply(graph, rows, rounds, scale), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_equal_rows_give_exactly_zero_and_columns_sum_to_zero(graph, rounds):
    rows = rows_of(graph)
    scale = np.random.default_rng(2).uniform(0.3, 3.0, len(rows))
    same = np.tile(rows[0], (len(rows), 1))
    assert (apply(graph, same, rounds) == 0.0).all()
    assert (apply(graph, same, rounds, scale) == 0.0).all()
    assert np.max(np.abs(apply(graph, rows, rounds, scale).sum(axis=0))) < 1e-12


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_positive_eigenvalues_lie_in_the_promised_interval(graph, rounds):
    lap, low, high = extremes(graph)
    matrix = apply(graph, np.eye(len(lap)), rounds)
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-13)
    values = np.linalg.eigvalsh(matrix)
    least, most = gossip.interval(low, high, rounds)
    assert abs(values[0]) < 1e-12
    assert values[1] >= least - 1e-12
    assert values[-1] <= most + 1e-12
    # lambda_min is taken at the lower end, whatever K.
    assert values[1] == pytest.approx(least, abs=1e-12)
    gamma = low / high
    c = ((1 - math.sqrt(gamma)) / (1 + math.sqrt(gamma))) ** rounds
    assert most / least == pytest.approx(((1 + c) / (1 - c)) ** 2, rel=1e-9)


@pytest.mark.parametrize("graph", GRAPHS)
def test_scamans_number_of_rounds_makes_the_condition_number_a_constant(graph):
    # K = floor(1 / sqrt gamma) gives kappa(P_K) <= 4 (Scaman et al., proof of Theorem 4).
    _, low, high = extremes(graph)
    least, most = gossip.interval(low, high, max(1, math.floor(math.sqrt(high / low) + 1e-9)))
    assert math.sqrt(most / least) < 2.0


def test_the_polynomial_of_numbers_is_that_of_matrices():
    lap, low, high = extremes("grid:3x3")
    values, vectors = np.linalg.eigh(lap)
    weights = gossip.chebyshev_weights(low, high, 5)
    rows = rows_of("grid:3x3")
    expected = (vectors * gossip.polynomial(weights, values)) @ vectors.T @ rows
    np.testing.assert_allclose(apply("grid:3x3", rows, 5), expected, rtol=0, atol=1e-13)


def test_no_rounds_are_no_talk():
    assert (apply("grid:3x3", rows_of("grid:3x3"), 0) == 0.0).all()


def test_a_thousand_rounds_do_not_overflow():
    # T_1000(c2) of this graph is beyond 1e308.
    out = apply("grid:3x3", rows_of("grid:3x3"), 1000)
    rows = rows_of("grid:3x3")
    np.testing.assert_allclose(out, rows - rows.mean(axis=0), rtol=0, atol=1e-12)

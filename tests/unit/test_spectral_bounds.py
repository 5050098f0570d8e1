"""Bounds on spectra of large graphs: on the safe side, and near."""

import itertools
import math

import numpy as np
import pytest

import adfs
from adfs.errors import GraphError
from adfs.graphs import random_draws, spectral_bounds
from adfs.graphs.spectrum import bounded_spectrum
from adfs.graphs.topology import Topology
from adfs.kernels import gram

GRAPHS = (
    "random_regular:300,k=3", "random_regular:300,k=8", "erdos_renyi:300,p=0.03", "grid:12x25",
    "hypercube:8", "complete:40", "star:50", "ring:60", "path:2",
)  # fmt: skip


def dense(graph):
    """Eigenvalues and effective resistances, from the dense Laplacian."""
    k, l = graph.edges.T
    laplacian = np.diag(graph.degrees.astype(float))
    laplacian[k, l] = laplacian[l, k] = -1.0
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    diagonal = inverse.diagonal()
    return np.linalg.eigvalsh(laplacian), diagonal[k] + diagonal[l] - 2.0 * inverse[k, l]


@pytest.mark.parametrize("text", GRAPHS)
def test_bounds_are_on_the_side_that_theorem_1_allows(text):
    graph = Topology.parse(text)
    values, resistances = dense(graph)
    found = bounded_spectrum(graph.n_nodes, graph.edges)
    assert not found.exact
    assert (1.0 - spectral_bounds.SLACK) * values[1] * (1 - 1e-8) <= found.lambda_min <= values[1]
    assert values[-1] * (1.0 - 1e-12) <= found.lambda_max <= 2.0 * graph.degrees.max() * 1.001
    assert (found.resistances >= resistances * (1.0 - 1e-9)).all()
    assert (found.resistances <= 1.0).all()


@pytest.mark.parametrize(("k", "most"), [(6, 1.25), (8, 1.16), (16, 1.07)])
def test_resistances_of_random_regular_graphs_are_near(k, most):
    graph = Topology.random_regular(400, k)
    found = bounded_spectrum(graph.n_nodes, graph.edges).resistances
    assert found.sum() <= most * (graph.n_nodes - 1)  # Foster: resistances sum to n - 1


def test_eps_is_where_the_polynomial_leaves_the_chance():
    for n, steps in [(10**3, 50), (10**6, 300)]:
        eps = spectral_bounds.relative_error(n, steps)
        chebyshev = math.cosh((steps - 1) * math.acosh((1 + eps) / (1 - eps)))
        assert math.sqrt(2 * n / (math.pi * eps)) / chebyshev == pytest.approx(
            spectral_bounds.CHANCE, rel=1e-3
        )


def test_ritz_values_of_random_starts_are_better_than_eps_says():
    # Hypothesis: some spectrum in [0, 1]; conclusion: the share of bad starts is below the chance.
    values = np.concatenate([[1.0], np.linspace(0.0, 0.97, 60)])
    bad, n_starts, steps, eps = 0, 400, 6, 0.1
    bound = math.sqrt(2 * len(values) / (math.pi * eps))
    bound /= math.cosh((steps - 1) * math.acosh((1 + eps) / (1 - eps)))
    for start in np.random.default_rng(0).standard_normal((n_starts, len(values))):
        krylov = np.linalg.qr(start[:, None] * values[:, None] ** np.arange(steps))[0]
        bad += np.linalg.eigvalsh(krylov.T @ (values[:, None] * krylov))[-1] < 1.0 - eps
    assert bad / n_starts <= bound


def test_a_graph_without_a_proven_eigengap_is_refused(monkeypatch):
    monkeypatch.setattr(spectral_bounds, "MOST_STEPS", 30)
    ring = Topology.ring(3000)
    with pytest.raises(GraphError, match="no lower bound on the eigengap"):
        bounded_spectrum(ring.n_nodes, ring.edges)


@pytest.mark.parametrize(("n", "k"), [(50, 3), (300, 8), (300, 21)])
def test_large_regular_draws_are_simple_and_regular(n, k):
    edges = random_draws.regular_edges(n, k, seed=1, attempt=0)
    assert (np.bincount(edges.ravel(), minlength=n) == k).all()
    assert (edges[:, 0] < edges[:, 1]).all()
    assert len(np.unique(edges, axis=0)) == n * k // 2
    np.testing.assert_array_equal(edges, random_draws.regular_edges(n, k, seed=1, attempt=0))


def test_large_draws_of_pairs_choose_every_pair_as_often():
    n, p, draws = 12, 0.3, 2_000
    counts = np.zeros((n, n))
    for attempt in range(draws):
        k, l = random_draws.pair_edges(n, p, 0, attempt).T
        counts[k, l] += 1
    above = counts[np.triu_indices(n, 1)] / draws
    assert counts.sum() == counts[np.triu_indices(n, 1)].sum()
    np.testing.assert_allclose(above, p, atol=5.0 * math.sqrt(p * (1 - p) / draws))


def test_a_large_graph_of_no_family_is_solved_with_bounds():
    graph = Topology.random_regular(20_002, 6)  # drawn, tuned and bounded as large ones are
    X, y = adfs.generators.two_gaussians(graph.n_nodes, 2, seed=0)
    problem = adfs.Problem(adfs.partition(X, y, graph.n_nodes), topology=graph)
    parameters = adfs.Parameters.choose(problem)
    assert not graph.spectrum.exact
    assert repr(graph.spectrum).startswith("Spectrum(lambda_min>=")
    assert parameters.rho <= parameters.rho_limit
    result = adfs.solve(problem, parameters=parameters, tol=0.1, progress=False)
    assert result.status == "converged"


@pytest.mark.parametrize("d", [1, 3, 10])
def test_eigenvalues_of_many_small_matrices_are_bounded_closely(d):
    rows, factors = np.random.default_rng(d).standard_normal((60, d)), np.full(60, 0.25)
    rows[12:18] = 0.0
    offsets = np.array([0, 1, 12, 18, 60])
    found = np.empty(4)
    gram.top_bounds(rows, factors, offsets, found)
    wanted = np.array([
        np.linalg.eigvalsh(0.25 * rows[a:b].T @ rows[a:b])[-1]
        for a, b in itertools.pairwise(offsets)
    ])  # fmt: skip
    assert (found >= wanted).all()
    assert (found <= wanted * d ** (1 / 2**7) * (1 + 1e-6)).all()

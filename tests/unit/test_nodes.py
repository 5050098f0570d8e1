"""What a method asks of its nodes equals the definition, dense and sparse, on unequal nodes."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import adfs
from adfs.algorithms.base import Counts, MethodSetting
from adfs.algorithms.nodes import Nodes, Uses
from oracles import losses as literal
from support.problems import make_case, stored_as

LOSSES = ("logistic", "squared", "squared_hinge", "huber")


def make(loss, kind="dense", graph="grid:2x3"):
    case = make_case(graph, loss, density=0.7)
    problem = stored_as(case, kind)
    points = np.random.default_rng(1).standard_normal((problem.n_nodes, problem.n_features))
    return case, Nodes(problem, MethodSetting(seed=4)), points


def rows_of(case, node):
    X, y, *rest = case.shards[node]
    weights = rest[0] if rest else np.ones(len(y))
    return np.asarray(X), np.asarray(y), np.asarray(weights)


def gradient(case, loss, node, point):
    X, y, w = rows_of(case, node)
    slopes = [literal.derivative(loss, x @ point, b, a) for x, b, a in zip(X, y, w, strict=True)]
    return case.problem.sigma[node] * point + X.T @ np.array(slopes)


def value(case, loss, node, point):
    X, y, w = rows_of(case, node)
    values = [literal.value(loss, x @ point, b, a) for x, b, a in zip(X, y, w, strict=True)]
    return case.problem.sigma[node] / 2.0 * point @ point + sum(values)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_values_and_slopes(loss, kind):
    case, nodes, points = make(loss, kind)
    values, gradients = nodes.values_and_gradients(points)
    for node, point in enumerate(points):
        assert np.allclose(gradients[node], gradient(case, loss, node, point), rtol=1e-12)
        assert values[node] == pytest.approx(value(case, loss, node, point), rel=1e-12)
    summed = nodes.row_sums(nodes.slopes(points)) + nodes.sigma * points
    assert np.allclose(summed, gradients, rtol=1e-12)
    assert nodes.asked == {"gradients": 2}


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_hessians_and_their_products(loss, kind):
    case, nodes, points = make(loss, kind)
    bends = nodes.bends(points)
    vectors = np.random.default_rng(2).standard_normal(points.shape)
    products, h = nodes.hessian_products(bends, vectors), 1e-6
    for node, lower in enumerate(nodes.hessians(bends)):
        whole = np.tril(lower) + np.tril(lower, -1).T
        by_matrix = whole @ vectors[node] + case.problem.sigma[node] * vectors[node]
        assert np.allclose(products[node], by_matrix, rtol=1e-10, atol=1e-12)
        ends = [gradient(case, loss, node, points[node] + s * h * vectors[node]) for s in (1, -1)]
        assert np.allclose(products[node], (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-6)
    assert nodes.asked == {"products": 1, "hessians": 1}


def test_sampled_gradients_are_unbiased():
    case, nodes, points = make("logistic")
    sampler = nodes.sampler()
    expected = np.zeros_like(points)
    offsets = nodes.problem.offsets
    for node in range(nodes.n):
        rows = slice(offsets[node], offsets[node + 1])
        assert sampler.p[rows].sum() == pytest.approx(1.0)
        for row in range(rows.start, rows.stop):
            places = offsets[:-1, None].copy()
            places[node] = row
            found = nodes.sampled_gradients(points, places, sampler.p)
            expected[node] += sampler.p[row] * found[node]
    for node, point in enumerate(points):
        assert np.allclose(expected[node], gradient(case, "logistic", node, point), rtol=1e-12)


def test_draws_follow_their_law_and_depend_on_the_seed_alone():
    _, nodes, _ = make("logistic")
    sampler, again = nodes.sampler(), nodes.sampler()
    n_draws, offsets = 40_000, nodes.problem.offsets
    drawn = sampler.draw(3, n_draws)
    assert np.array_equal(drawn, again.draw(3, n_draws))
    single = np.concatenate([again.draw(3 * n_draws + t) for t in range(5)], axis=1)
    assert np.array_equal(single, drawn[:, :5])  # number by number, however they are cut
    assert not np.array_equal(nodes.sampler(stream="other").draw(3, 50), drawn[:, :50])
    for node in range(nodes.n):
        assert offsets[node] <= drawn[node].min()
        assert drawn[node].max() < offsets[node + 1]
        share = np.bincount(drawn[node] - offsets[node]) / n_draws
        p = sampler.p[offsets[node] : offsets[node + 1]]
        assert np.abs(share - p).max() < 5.0 * np.sqrt(p.max() / n_draws)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_coordinate_step_solves_the_dual_of_one_row(loss):
    case, nodes, points = make(loss)
    duals = np.zeros(nodes.problem.n_rows)
    strength = np.linspace(0.3, 2.0, nodes.n)
    places = nodes.problem.offsets[:-1, None] + 1
    moved = points.copy()
    nodes.coordinate_steps(moved, duals, places, strength)
    for node in range(nodes.n):
        X, y, w = rows_of(case, node)
        c = duals[places[node, 0]]
        assert np.allclose(moved[node], points[node] - strength[node] * c * X[1], rtol=1e-12)
        slope = literal.derivative(loss, X[1] @ moved[node], y[1], w[1])
        assert c == pytest.approx(slope, rel=1e-9, abs=1e-12)
    assert nodes.asked == {"steps": 1}


@pytest.mark.parametrize("loss", LOSSES)
def test_later_coordinate_steps_solve_it_too(loss):
    case, nodes, points = make(loss)
    duals = np.random.default_rng(1).uniform(-0.2, 0.2, nodes.problem.n_rows)
    places, strength = nodes.problem.offsets[:-1, None] + 1, np.full(nodes.n, 0.7)
    for _ in range(3):
        points += 0.5  # what other rows may have done
        nodes.coordinate_steps(points, duals, places, strength)
        for node in range(nodes.n):
            X, y, w = rows_of(case, node)
            slope = literal.derivative(loss, X[1] @ points[node], y[1], w[1])
            assert duals[places[node, 0]] == pytest.approx(slope, rel=1e-9, abs=1e-12)


def test_gossip_is_the_matrix_product():
    _, nodes, points = make("squared")
    weights = nodes.problem.topology.weights("metropolis")
    assert np.allclose(nodes.mixer()(points), weights.matrix.toarray() @ points, rtol=1e-14)
    assert nodes.asked == {"gossips": 1}


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_chebyshev_gossip_keeps_the_mean_and_contracts_as_it_says(rounds):
    _, nodes, _ = make("squared", graph="ring:9")
    gossip = nodes.chebyshev(rounds)
    matrix = np.column_stack([gossip(np.eye(9)[:, [j]]) for j in range(9)])
    assert np.allclose(matrix.sum(axis=0), 1.0, rtol=0.0, atol=1e-13)
    values = np.linalg.eigvals(matrix - np.ones((9, 9)) / 9.0)
    assert np.abs(values).max() == pytest.approx(gossip.contraction, rel=1e-10)
    gamma = nodes.problem.topology.spectrum.lambda_min / nodes.problem.topology.spectrum.lambda_max
    top = np.cosh(rounds * np.arccosh((1.0 + gamma) / (1.0 - gamma)))
    assert gossip.contraction == pytest.approx(1.0 / top, rel=1e-10)


def test_a_local_problem_is_solved():
    _, nodes, slopes = make("logistic")
    memory = nodes.dual_memory()
    for _ in range(30):  # each call goes on from what the last one found
        found = nodes.dual_gradients(memory, slopes)
    nodes.asked.clear()
    assert np.allclose(nodes.gradients(found), slopes, rtol=0.0, atol=1e-8)


def test_what_a_round_uses_is_what_it_costs():
    _, nodes, _ = make("logistic")
    problem, costs = nodes.problem, MethodSetting().costs.of(nodes.problem)
    uses = Uses(gradients=2, steps=3, gossips=2, sums=1)
    found = uses.cost(problem, costs)
    assert np.allclose(found.work, 2 * costs.gradient * problem.sizes + 3)
    assert found.rounds == 2 + problem.topology.diameter
    n, d, n_edges = problem.n_nodes, problem.n_features, problem.topology.n_edges
    n_messages = 2 * 2 * n_edges + 2 * (n - 1)
    assert uses.counts(problem) == Counts(
        3 * n, 2 * problem.n_samples, n_messages, 8 * d * n_messages
    )
    small = Uses(gossips=1, message_bytes=20).counts(problem)
    assert small == Counts(n_comm=2 * n_edges, bytes=40 * n_edges)
    assert repr(uses) == "Uses(gradients=2, steps=3, gossips=2, sums=1)"


def test_one_node_that_has_all_samples_has_the_same_problem():
    case = make_case("grid:2x3", "logistic")
    whole = case.problem.on_one_node()
    theta = np.linspace(-1.0, 1.0, whole.n_features)
    assert whole.objective(theta) == pytest.approx(case.problem.objective(theta), rel=1e-14)
    best, same = whole.optimum(), case.problem.optimum()
    assert best.objective == pytest.approx(same.objective, rel=1e-12)
    total = block_diag(*[rows_of(case, node)[0] for node in range(6)])
    assert whole.n_rows == total.shape[0]
    assert adfs.certify(whole, same.theta).duality_gap < 1e-9 * same.objective


def test_a_prepared_method_has_the_time_of_messages_that_it_is_given():
    problem = make_case("grid:2x2", "logistic").problem
    for tau in (0.5, 50.0):
        method = adfs.prepare(problem, "extra", tau=tau)
        method.clock.advance(method.source.draw(0, 1))
        assert method.clock.time == problem.sizes.max() + tau

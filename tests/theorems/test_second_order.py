"""Newton, L-BFGS and TRON over an all-reduce: the oracles, their theorems, what they charge."""

import copy
import dataclasses
import itertools
import lzma
import math

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import minimize

import adfs
from adfs.algorithms import descent, lbfgs, newton, tron
from adfs.algorithms.base import Counts, MethodSetting
from adfs.costs import HESSIAN, PAPER
from adfs.data.libsvm import read_libsvm
from adfs.errors import ParameterError
from adfs.schedule.delays import Delays
from adfs.schedule.rounds import Rounds
from oracles import all_reduce, augmented, second_order
from oracles.losses import SMOOTH
from support.problems import REGRESSION, gaussian_problem, make_case, make_shards, stored_as

METHODS = {"newton": newton.prepare, "lbfgs": lbfgs.prepare, "tron": tron.prepare}
PASSES = {"newton": 1, "lbfgs": 1, "tron": 6}  # in one step: an evaluation, and at most d products
GRAPHS = ("grid:3x3", "complete:9", "ring:9")
D = 5


def hard_case(loss, graph="grid:3x3", seed=6):
    """Little regularisation; at theta = 0 real targets lie far out on Huber's straight pieces."""
    shards = make_shards(9, loss, seed, n_features=D, sizes=[5 + node % 4 for node in range(9)])
    factor = 30.0 if loss in REGRESSION else 1.0
    shards = [(features, factor * labels, weights) for features, labels, weights in shards]
    return make_case(graph, loss, shards=shards, sigma=np.linspace(2e-4, 1e-3, 9))


def points(method, n_events, start=None):
    """The point taken after each event, and the state in the end."""
    state = method.algorithm.init(start)
    found = []
    for t in range(n_events):
        state = method.algorithm.step(state, method.source.draw(t, t + 1))
        found.append(state.theta)
    return np.array(found), state


def rejections(path, best):
    """Events after which the point stayed although it was not yet the best one."""
    return [
        t
        for t in range(1, len(path))
        if np.array_equal(path[t], path[t - 1]) and np.abs(path[t] - best).max() > 1e-6
    ]


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_newton_is_the_literal_damped_newton_along_the_whole_run(loss, kind):
    case = hard_case(loss)
    method = METHODS["newton"](stored_as(case, kind), MethodSetting())
    taken, trials = second_order.newton(case.shards, case.problem.sigma, loss, np.zeros(D), 40)
    state = method.algorithm.init()
    for t in range(40):
        state = method.algorithm.step(state, method.source.draw(t, t + 1))
        np.testing.assert_allclose(state.theta, taken[t], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(state.trial, trials[t], rtol=1e-10, atol=1e-10)
    if loss == "huber":  # steps that failed were part of the comparison
        assert len(rejections(taken, taken[-1])) > 3


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_lbfgs_is_the_explicit_inverse_bfgs_matrix_along_the_run(loss, kind):
    case = hard_case(loss)
    method = METHODS["lbfgs"](stored_as(case, kind), MethodSetting())
    smoothness = case.problem.sigma.sum() + sum(
        np.linalg.eigvalsh(curvature_matrix(shard, loss))[-1] for shard in case.shards
    )
    literal = second_order.lbfgs(
        case.shards, case.problem.sigma, loss, np.zeros(D), 30, lbfgs.MEMORY, smoothness
    )
    path, _ = points(method, 30)
    np.testing.assert_allclose(path, literal, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_tron_minimises_over_krylov_spaces_in_the_region_all_along(loss, kind):
    case = hard_case(loss)
    method = METHODS["tron"](stored_as(case, kind), MethodSetting())
    taken, trials = second_order.tron(case.shards, case.problem.sigma, loss, np.zeros(D), 80)
    state = method.algorithm.init()
    bounded = []
    for t in range(80):
        state = method.algorithm.step(state, method.source.draw(t, t + 1))
        np.testing.assert_allclose(state.theta, taken[t], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(state.trial, trials[t], rtol=1e-10, atol=1e-10)
        bounded.append(state.bounded)
    if loss == "huber":  # steps that were shortened, or ended at the radius, were compared
        assert any(bounded)
        assert math.isfinite(state.radius)


def products(method, n_events):
    """How many products each solve took, and the points between the solves."""
    state = method.algorithm.init()
    found, thetas = [], []
    for t in range(n_events):
        state = method.algorithm.step(state, method.source.draw(t, t + 1))
        if not state.solving and state.n_products:
            found.append(state.n_products)
        if state.solving and not state.n_products:
            thetas.append(state.theta)
    return found, thetas


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_quadratic_is_solved_within_d_products(kind, monkeypatch):
    """Conjugate gradients end after as many products as H has eigenvalues (Hestenes, Stiefel)."""
    monkeypatch.setattr(tron, "LOOSEST", 1e-13)  # one solve to the end
    problem = stored_as(make_case("grid:3x3", "squared", n_features=D, sizes=[8] * 9), kind)
    method = METHODS["tron"](problem, MethodSetting())
    path, state = points(method, 1 + D + 1)
    assert state.n_products == 0  # a full step was taken, and the next solve begins
    np.testing.assert_allclose(path[-1], problem.optimum().theta, rtol=1e-10, atol=1e-12)


def test_two_clusters_of_eigenvalues_need_two_products(monkeypatch):
    monkeypatch.setattr(tron, "LOOSEST", 1e-12)
    rows = np.diag([1.0, 1.0, 1.0, 3.0, 3.0, 3.0])  # H = I + sigma or 9 I + sigma
    problem = adfs.Problem([(rows, np.arange(1.0, 7.0))], "squared", sigma=0.5)
    method = METHODS["tron"](problem, MethodSetting())
    path, _ = points(method, 4)
    np.testing.assert_allclose(path[-1], problem.optimum().theta, rtol=1e-10)


def test_tron_converges_faster_than_linearly():
    """|g+| <= 0.9 |g| (|g| / |g-|)^1.618 + what the Hessian turns: the falls themselves fall."""
    case = make_case("grid:3x3", "logistic", sizes=[8] * 9)
    _, thetas = products(METHODS["tron"](case.problem, MethodSetting()), 60)
    sizes = np.array([np.linalg.norm(case.problem.gradient(theta)) for theta in thetas])
    sizes = sizes[sizes > 1e-11 * sizes[0]]
    falls = sizes[1:] / sizes[:-1]
    assert len(falls) >= 3
    orders = np.log(falls[1:]) / np.log(falls[:-1])
    assert orders.min() >= 1.5  # (1 + sqrt 5) / 2, but for the factor 0.9 and the turn


def test_the_product_is_that_of_the_literal_hessian():
    case = hard_case("logistic")
    algorithm = METHODS["tron"](case.problem, MethodSetting()).algorithm
    rng = np.random.default_rng(0)
    state = algorithm.init(rng.standard_normal(D))
    state = algorithm.step(state, Rounds([0]).draw(0, 1))
    state.search = rng.standard_normal(D)
    expected = second_order.hessian(case.shards, case.problem.sigma, "logistic", state.theta)
    product, bend = algorithm._product(state)
    np.testing.assert_allclose(product, expected @ state.search, rtol=1e-12)
    assert bend == pytest.approx(state.search @ expected @ state.search, rel=1e-12)


def curvature_matrix(shard, loss):
    """``l''max sum_j w x x^T`` of a shard."""
    features, _, weights = shard
    bound = {"logistic": 0.25, "squared_hinge": 2.0}.get(loss, 1.0)
    return bound * (features.T * weights) @ features


def test_some_steps_of_lbfgs_are_rejected_in_what_was_compared():
    counts = []
    for loss in SMOOTH:
        case = hard_case(loss)
        path, state = points(METHODS["lbfgs"](case.problem, MethodSetting()), 30)
        counts.append(len(rejections(path, state.theta)))
    assert sum(counts) > 0


@pytest.mark.parametrize("memory", [1, 3, 8])
def test_the_two_loops_multiply_by_the_inverse_bfgs_matrix(memory):
    rng = np.random.default_rng(memory)
    root = rng.standard_normal((6, 6))
    steps = rng.standard_normal((memory, 6))
    pairs = [(s, root @ root.T @ s + s) for s in steps]
    gradient = rng.standard_normal(6)
    expected = second_order.inverse_bfgs(pairs, 6) @ gradient
    np.testing.assert_allclose(lbfgs.two_loops(gradient, pairs), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("name", METHODS)
def test_it_reaches_the_certified_optimum_from_zero_and_stays_there(name, loss, graph):
    problem = hard_case(loss, graph).problem
    method = METHODS[name](problem, MethodSetting())
    best = problem.optimum()
    path, _ = points(method, 100 * PASSES[name])
    values = np.array([problem.objective(theta) for theta in path])
    late = 80 * PASSES[name]
    scale = max(1.0, abs(best.objective))
    assert np.diff(values).max() <= 2e-12 * scale  # F never rises, but for rounding
    assert (values[late:] - best.objective).max() <= 1e-12 * scale
    assert certified_gap(problem, path[-1]) <= 1e-12 * scale
    accuracy = np.sqrt(2 * best.duality_gap / problem.total_sigma)  # of the optimum itself
    assert np.abs(path[late:] - best.theta).max() <= 1e-8 * np.abs(best.theta).max() + 2 * accuracy


def certified_gap(problem, theta):
    gradient = problem.gradient(theta)
    return gradient @ gradient / (2 * problem.total_sigma)


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber"])
@pytest.mark.parametrize("name", METHODS)
def test_one_node_alone_needs_no_messages_and_reaches_the_optimum(name, loss):
    case = make_case("single", loss, sizes=[30])
    method = METHODS[name](case.problem, MethodSetting())
    path, _ = points(method, 40 * PASSES[name])
    np.testing.assert_allclose(path[-1], case.problem.optimum().theta, atol=1e-8)
    counts = method.algorithm.counts(method.source.draw(0, 40))
    assert counts == Counts(n_grad=40 * 30)


def full_steps(method, n_events):
    """Pairs (theta, next theta) of the steps tried undamped and taken, and where they end."""
    state = method.algorithm.init()
    pairs = []
    for t in range(n_events):
        before = state.theta
        state = method.algorithm.step(state, method.source.draw(t, t + 1))
        if state.trusted:
            pairs.append((before, state.theta))
    return pairs, state.theta


def test_newton_is_quadratic_with_the_textbook_constant():
    """|theta+ - theta*| <= M / (2 mu) |theta - theta*|^2 (Nocedal and Wright, Theorem 3.5).

    mu is the least eigenvalue of the Hessian, M bounds how fast it turns: the third derivative of
    the logistic loss is at most 1 / (6 sqrt 3), so M = sum w |x|^3 / (6 sqrt 3).
    """
    case = make_case("grid:3x3", "logistic", sizes=[8] * 9)
    problem = case.problem
    turn = sum(w * (x @ x) ** 1.5 for _, x, _, w in augmented.samples(case.shards))
    turn /= 6.0 * np.sqrt(3.0)
    pairs, best = full_steps(METHODS["newton"](problem, MethodSetting()), 20)
    orders = []
    for theta, following in pairs:
        error, next_error = (np.linalg.norm(point - best) for point in (theta, following))
        hessian = second_order.hessian(case.shards, problem.sigma, "logistic", theta)
        constant = turn / (2.0 * np.linalg.eigvalsh(hessian)[0])
        assert next_error <= constant * error**2 + 1e-13
        if next_error > 1e-12 and constant * error < 1.0:
            orders.append(np.log(constant * next_error) / np.log(constant * error))
    assert len(orders) >= 2  # in units of 1 / constant the error is squared or better
    assert min(orders) >= 2.0


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "smoothed_hinge", "huber"])
def test_newton_is_exact_from_the_quadratic_piece_that_holds_the_optimum(loss):
    case = hard_case(loss)
    rows = augmented.samples(case.shards)
    method = METHODS["newton"](case.problem, MethodSetting())
    best = points(method, 80)[0][-1]

    def piece(theta):
        return [second_order.curvature(loss, x @ theta, y) for _, x, y, _ in rows]

    size = np.linalg.norm(best)
    start = best + 1e-4 * size * np.random.default_rng(0).standard_normal(D)
    assert piece(start) == piece(best)
    _, following = points(method, 2, start)[0]
    assert np.linalg.norm(start - best) > 1e-5 * size
    assert np.linalg.norm(following - best) <= 1e-12 * size


@pytest.mark.parametrize("name", METHODS)
def test_bits_do_not_depend_on_where_the_events_are_cut(name):
    method = METHODS[name](hard_case("huber").problem, MethodSetting())
    whole = method.algorithm.step(method.algorithm.init(), method.source.draw(0, 33))
    for cuts in ([0, 1, 2, 33], [0, 8, 16, 24, 32, 33], [0, 7, 7, 33]):
        state = method.algorithm.init()
        for first, last in itertools.pairwise(cuts):
            state = method.algorithm.step(state, method.source.draw(first, last))
        assert state.trial.tobytes() == whole.trial.tobytes()
        assert method.algorithm.output(state).tobytes() == method.algorithm.output(whole).tobytes()


@pytest.mark.parametrize("name", METHODS)
def test_a_start_at_the_optimum_is_kept_to_rounding(name):
    problem = hard_case("logistic").problem
    method = METHODS[name](problem, MethodSetting())
    close, _ = points(method, 80)
    path, _ = points(method, 60, start=close[-1])
    assert np.abs(path - close[-1]).max() <= 1e-9 * np.abs(close[-1]).max()


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("name", METHODS)
def test_steps_made_of_rounding_do_not_lead_away_from_the_optimum(name, loss):
    for seed in (0, 1):
        case = make_case(
            "grid:3x3", loss, seed, n_features=6, sizes=[12] * 9, sigma=np.linspace(2e-4, 1e-3, 9)
        )
        best = points(METHODS["newton"](case.problem, MethodSetting()), 30)[0][-1]
        errors = np.abs(points(METHODS[name](case.problem, MethodSetting()), 70)[0] - best).max(
            axis=1
        )
        arrived = int(np.argmax(errors <= 1e-11))
        assert 0 < arrived < 40
        assert errors[arrived:].max() <= 1e-10


def test_newton_shows_the_next_point_only_after_a_full_step_was_taken():
    """At zero no sample bends Huber's loss: the first trial is far worse than where it began."""
    problem = hard_case("huber").problem
    method = METHODS["newton"](problem, MethodSetting())
    state = method.algorithm.step(method.algorithm.init(), method.source.draw(0, 1))
    assert problem.objective(state.trial) > 5.0 * problem.objective(state.theta)
    values = []
    for t in range(1, 60):
        values.append(problem.objective(method.algorithm.output(state)[0]))
        state = method.algorithm.step(state, method.source.draw(t, t + 1))
    assert max(values) <= values[0] * (1 + 1e-12)
    assert state.trusted
    np.testing.assert_array_equal(method.algorithm.output(state)[3], state.trial)


def test_the_slopes_decide_where_the_objective_has_no_digits_left():
    """phi(s) = 1e10 + (s - 1)^2 / 2 in double precision: nothing but rounding is left of s."""
    top, slope = 1e10 + 0.5, -1.0
    assert descent.sufficient(top, slope, 1.0, 1e10, 0.0)
    assert descent.sufficient(top, slope, 1.7, top + 1e-6, 0.7)  # F looks worse: rounding
    assert not descent.sufficient(top, slope, 1.9, top + 1e-6, 0.9)  # beyond the bottom
    assert not descent.sufficient(top, slope, 1.7, top + 1.0, 0.7)  # worse by more than that
    assert descent.shortened(1.0, -1.0, 3.0) == 0.25
    assert descent.shortened(1.0, -1.0, 1e9) == 0.1
    assert descent.shortened(0.5, -1.0, -2.0) == 0.25


def test_newton_charges_gradient_and_hessian_then_a_pipelined_sum():
    case = make_case("path:3", "logistic", n_features=4, sizes=[3, 9, 5])
    delays = Delays(tau=5.0, speed=(1.0, 1.0, 10.0))
    method = METHODS["newton"](case.problem, MethodSetting(delays=delays))
    method.clock.advance(method.source.draw(0, 7))
    a, b, c, e = HESSIAN.dense
    h = (a + 4 * b + 10 * c) / (1 + 4 * e)
    slowest = 10.0 * 5 * (1 + h)  # the third node, ten times slower than the second with 9 rows
    assert method.clock.time == pytest.approx(7 * (slowest + 5.0 * (2 + 4 + 3)))
    numbers = 10 + 4 + 1  # half a matrix, a gradient, an objective: in 4 messages
    expected = Counts(n_grad=7 * 17, n_comm=7 * 2 * 2 * 4, bytes=7 * 2 * 2 * 8 * numbers)
    assert method.algorithm.counts(method.source.draw(0, 7)) == expected
    assert f"{h:.6g}" in str(method.parameters)


@pytest.mark.parametrize("name", ["lbfgs", "tron"])
def test_a_pass_is_charged_as_a_gradient_then_the_diameter(name):
    case = make_case("path:3", "logistic", n_features=4, sizes=[3, 9, 5])
    method = METHODS[name](case.problem, MethodSetting(delays=Delays(tau=5.0)))
    method.clock.advance(method.source.draw(0, 7))
    assert method.clock.time == pytest.approx(7 * (9 + 5.0 * 2))
    expected = Counts(n_grad=7 * 17, n_comm=7 * 2 * 2 * 2, bytes=7 * 2 * 2 * 8 * 5)
    assert method.algorithm.counts(method.source.draw(0, 7)) == expected


def test_a_row_of_more_features_costs_more_in_the_hessian():
    costs = [float(PAPER.of_dense(d).hessian[0]) for d in (4, 28, 123, 300, 2000)]
    assert costs == sorted(costs)
    # benchmarks/costs.py on the machine that gave the constants, at d = 28 and 300
    assert costs[1] == pytest.approx(0.592, rel=0.12)
    assert costs[3] == pytest.approx(13.7, rel=0.12)


def test_a_sparse_node_is_charged_by_its_own_pairs_of_non_zeros():
    rows = np.zeros((4, 6))
    rows[0, 0] = rows[1, 3] = 1.0  # one non-zero, one pair: itself
    rows[2:, :] = 1.0  # six, 21 pairs
    shards = [(rows[:2], np.array([1.0, -1.0])), (rows[2:], np.array([1.0, -1.0]))]
    dense = adfs.Problem(shards)
    assert len(set(PAPER.of(dense).hessian)) == 1
    a, b, c, e = HESSIAN.sparse
    problem = stored_as(make_case("path:2", shards=shards, sigma=1.0), "csr")
    expected = [(a + b + c) / (1 + e), (a + 6 * b + 21 * c) / (1 + 6 * e)]
    np.testing.assert_allclose(PAPER.of(problem).hessian, expected)


@pytest.mark.parametrize("n_features", [1, 2, 3, 28])
def test_messages_of_an_all_reduce_hold_what_they_carry(n_features):
    gradient = n_features + 1  # with its objective
    for numbers in (gradient, gradient + n_features * (n_features + 1) // 2):
        cost = descent.messages(5, numbers, n_features)
        assert cost.bytes == 8 * 8 * numbers
        assert cost.bytes <= 8 * n_features * cost.n_comm < cost.bytes + 8 * 8 * n_features
    assert descent.messages(1, 100, n_features) == Counts()
    assert descent.matrix_rounds(adfs.Topology.ring(6), n_features) == 3 + n_features + 3
    assert descent.matrix_rounds(adfs.Topology.single(), n_features) == 0


TREES = [nx.path_graph(3), nx.path_graph(6), nx.star_graph(4), nx.balanced_tree(2, 3)]
TREES += [nx.random_labeled_tree(9, seed=seed) for seed in range(3)]


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: f"{len(tree)}-{nx.diameter(tree)}")
def test_a_pipelined_sum_of_half_a_matrix_takes_what_is_charged(tree):
    """Exactly for odd d, one round less for even d; a vector takes the diameter (Appendix E)."""
    topology = adfs.Topology.from_networkx(tree)
    assert all_reduce.rounds(tree, 1) == topology.diameter
    for n_features in (1, 2, 3, 4, 9, 28):
        numbers = n_features * (n_features + 1) // 2 + n_features + 1
        n_parts = descent.messages(2, numbers, n_features).n_comm // 2
        charged = descent.matrix_rounds(topology, n_features)
        spare = 1 - n_features % 2
        assert all_reduce.rounds(tree, n_parts) == charged - spare
        # no tree does with less: the last part comes to the farthest node n_parts - 1 rounds late
        assert all_reduce.rounds(tree, n_parts, overlap=True) == topology.diameter + n_parts - 1


def test_two_nodes_sum_half_a_matrix_in_less_than_is_charged():
    pair = nx.path_graph(2)
    for n_features in (1, 2, 9):
        charged = descent.matrix_rounds(adfs.Topology.path(2), n_features)
        assert all_reduce.rounds(pair, (n_features + 5) // 2) <= charged


def test_newton_refuses_too_many_features_and_names_the_way_out():
    rng = np.random.default_rng(0)
    problem = adfs.Problem([(rng.standard_normal((3, 2001)), [1, 0, 1])])
    with pytest.raises(ParameterError, match="d=2001 is more than 2000; take lbfgs or tron"):
        METHODS["newton"](problem, MethodSetting())
    METHODS["lbfgs"](problem, MethodSetting())


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("name", METHODS)
def test_a_loss_that_is_not_smooth_is_refused(name, loss):
    with pytest.raises(ParameterError, match=f"'{name}' needs a smooth loss and '{loss}' is not"):
        METHODS[name](make_case("path:2", loss).problem, MethodSetting())


class Reached(Exception):
    """A point is good enough."""


def evaluations_of_scipy(problem, tol):
    """Calls of F by SciPy's L-BFGS-B of the same memory until one is within ``tol`` of F*."""
    best, calls = problem.optimum().objective, 0

    def value_and_gradient(theta):
        nonlocal calls
        calls += 1
        value, gradient = problem.objective_and_gradient(theta)
        if value - best <= tol * max(1.0, abs(best)):
            raise Reached
        return value, gradient

    options = {"maxcor": lbfgs.MEMORY, "ftol": 0.0, "gtol": 0.0, "maxiter": 2000, "maxfun": 2000}
    with pytest.raises(Reached):
        minimize(
            value_and_gradient, np.zeros(problem.n_features), jac=True, method="L-BFGS-B",
            options=options,
        )  # fmt: skip
    return calls


def evaluations_of_ours(problem, tol):
    best = problem.optimum().objective
    method = METHODS["lbfgs"](problem, MethodSetting())
    state = method.algorithm.init()
    for t in range(2000):
        state = method.algorithm.step(state, method.source.draw(t, t + 1))
        if state.objective - best <= tol * max(1.0, abs(best)):
            return t + 1
    return np.inf


@pytest.mark.parametrize("condition", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge"])
def test_lbfgs_needs_hardly_more_evaluations_than_scipys(loss, condition):
    problem = gaussian_problem("grid:2x2", loss, 0.1, samples=(500, 20), condition=condition)
    assert evaluations_of_ours(problem, 1e-8) <= 1.3 * evaluations_of_scipy(problem, 1e-8) + 1


@pytest.mark.parametrize(
    ("loss", "condition", "sigma"),
    [("logistic", 100.0, 1e-3), ("squared", 1000.0, 0.1), ("squared_hinge", 100.0, 0.1)],
)
def test_lbfgs_takes_a_fifth_fewer_evaluations_than_with_memory_10(
    loss, condition, sigma, monkeypatch
):
    """In an ill-conditioned problem; in a well-conditioned one memory matters less."""
    problem = gaussian_problem("grid:2x2", loss, sigma, samples=(500, 20), condition=condition)
    chosen = evaluations_of_ours(problem, 1e-8)
    monkeypatch.setattr(lbfgs, "MEMORY", 10)
    assert chosen <= 0.8 * evaluations_of_ours(problem, 1e-8)


@pytest.mark.realdata
@pytest.mark.parametrize("file", ["a9a.xz", "covtype.libsvm.binary.scale.xz", "HIGGS.57594.xz"])
def test_lbfgs_needs_hardly_more_evaluations_than_scipys_on_real_rows(file, data_folder, tmp_path):
    with lzma.open(data_folder / file, "rt") as lines:
        (tmp_path / "rows").write_text("".join(itertools.islice(lines, 3000)))
    X, y = read_libsvm(tmp_path / "rows")
    problem = adfs.Problem(adfs.partition(X, y, 4), "logistic", 1.0)
    assert evaluations_of_ours(problem, 1e-8) <= 1.3 * evaluations_of_scipy(problem, 1e-8)


@pytest.mark.parametrize("name", METHODS)
def test_a_state_from_a_checkpoint_has_every_field_of_the_one_saved(name):
    """A run whose next step is rejected needs them all, also the direction."""
    X, y = adfs.generators.two_gaussians(60, 4, seed=1)
    method = adfs.prepare(adfs.Problem(adfs.partition(X, y, 4), sigma=0.1), name)
    algorithm = method.algorithm
    state = algorithm.init(np.full(4, 9.0))
    for t in range(6):
        state = algorithm.step(state, method.source.draw(t, t + 1))
        again = algorithm.init()
        algorithm.restore(again, copy.deepcopy(algorithm.arrays(state).shared))
        for field in dataclasses.fields(state):
            kept, found = (np.array(getattr(each, field.name)) for each in (state, again))
            np.testing.assert_array_equal(found, kept, err_msg=field.name)

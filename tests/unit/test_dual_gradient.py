"""Dual gradients: as exact as promised from any start, for every smooth loss, however stored."""

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.algorithms import dual_gradient
from adfs.algorithms.dual_gradient import DualGradients
from adfs.kernels.dual_gradient import Memory
from oracles import losses
from oracles import msda as literal
from support.problems import make_case, stored_as
from support.selection import covering

pytestmark = pytest.mark.uncompiled
N, D = 3, 5


def make(loss, kind="dense", seed=0, spread=1.0):
    """A problem of three nodes with 25 rows each, and its shards."""
    case = make_case(f"path:{N}", loss, seed=seed, n_features=D, sizes=[25] * N, density=0.7)
    shards = [(spread * features, *rest) for features, *rest in case.shards]
    case = make_case(f"path:{N}", loss, seed=seed, shards=shards)
    return stored_as(case, kind), shards


def solve(duals, memory, x):
    out = np.empty_like(x)
    duals.solve(memory, np.arange(len(x)), x, out)
    return out


def residuals(problem, shards, x, theta):
    """``|grad f_i(theta_i) - x_i| / sigma_i``: no minimiser is further away than that."""
    return np.array(
        [
            np.linalg.norm(
                literal.node_gradient(shard, problem.sigma[i], problem.loss.name, theta[i]) - x[i]
            )
            / problem.sigma[i]
            for i, shard in enumerate(shards)
        ]
    )


def without_matrices(monkeypatch):
    monkeypatch.setattr(dual_gradient, "LARGEST_MATRIX", 0)


@pytest.mark.parametrize("matrices", [True, False])
@pytest.mark.parametrize("loss", losses.SMOOTH)
def test_it_is_the_minimiser_that_plain_descent_finds(loss, matrices, monkeypatch):
    if not matrices:
        without_matrices(monkeypatch)
    problem, shards = make(loss)
    duals = DualGradients(problem)
    assert duals.with_matrices == matrices
    memory = duals.start()
    rng = np.random.default_rng(1)
    for size in (0.0, 1.0, 30.0):
        x = size * rng.standard_normal((N, D))
        expected = literal.all_dual_gradients(shards, problem.sigma, loss, x)
        np.testing.assert_allclose(solve(duals, memory, x), expected, rtol=0, atol=2e-11)


@covering(loss=losses.SMOOTH, kind=("dense", "csr", "float32"), matrices=(True, False))
def test_from_any_start_and_along_any_path_the_gradient_certifies_it(
    loss, kind, matrices, monkeypatch
):
    if not matrices:
        without_matrices(monkeypatch)
    for seed, spread, far in ((0, 1.0, 0.0), (1, 5.0, 40.0), (2, 0.2, 300.0)):
        problem, shards = make(loss, kind, seed, spread)
        if kind == "float32":
            shards = [(np.float32(features).astype(float), *rest) for features, *rest in shards]
        rng = np.random.default_rng(seed)
        duals = DualGradients(problem)
        memory = duals.start(far * rng.standard_normal(D))
        x = 20.0 * rng.standard_normal((N, D))
        for t in range(25):
            x += 20.0 * 0.4**t * rng.standard_normal((N, D))
            theta = solve(duals, memory, x)
            scale = np.sqrt(duals.scale / problem.sigma) * max(1.0, spread)
            assert (residuals(problem, shards, x, theta) <= 1e-10 * scale).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge", "huber"])
def test_minimisers_that_lie_on_kinks_are_found(loss):
    # One feature, rows 1, 2, 3: the minimiser is put exactly where one row's slope bends.
    rows, labels = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, -1.0, 1.0])
    problem = adfs.Problem(
        [(rows, labels)], loss, sigma=0.7, topology=adfs.Topology.single()
    )  # fmt: skip
    duals = DualGradients(problem)
    kinks = [1.0, 0.5, 1 / 3, -0.5, 0.0, 2.0, 4 / 3, 2 / 3, -1.0]
    for start in (None, np.array([50.0]), np.array([-50.0])):
        memory = duals.start(start)
        for theta in kinks:
            shard = (rows, labels, np.ones(3))
            x = literal.node_gradient(shard, 0.7, loss, np.array([theta]))
            np.testing.assert_allclose(solve(duals, memory, x[None])[0, 0], theta, atol=1e-12)


def test_the_squared_loss_takes_one_pass():
    problem, _ = make("squared")
    duals = DualGradients(problem)
    memory = duals.start()
    before = memory.inverse.copy()
    rng = np.random.default_rng(0)
    for t in range(1, 6):
        solve(duals, memory, rng.standard_normal((N, D)))
        assert memory.moved.tolist() == [t] * N
    assert (memory.inverse == before).all()
    assert (memory.excess == 0).all()


def test_a_question_asked_again_takes_one_pass_at_most_and_has_the_same_answer():
    problem, _ = make("logistic")
    duals = DualGradients(problem)
    memory = duals.start()
    x = np.random.default_rng(0).standard_normal((N, D))
    first = solve(duals, memory, x)
    for _ in range(3):
        moved = memory.moved.copy()
        np.testing.assert_allclose(solve(duals, memory, x), first, rtol=0, atol=1e-12)
        assert (memory.moved <= moved + 1).all()


def test_an_old_hessian_is_replaced_once_it_has_cost_more_than_a_new_one():
    problem, _ = make("logistic", spread=3.0)
    duals = DualGradients(problem)
    memory = duals.start()
    rng = np.random.default_rng(3)
    x, replaced, most = np.zeros((N, D)), 0, 0
    for _ in range(60):
        before = memory.inverse.copy()
        x += 0.3 * rng.standard_normal((N, D))
        solve(duals, memory, x)
        replaced += np.count_nonzero((memory.inverse != before).any(axis=(1, 2)))
        most = max(most, memory.excess.max())
    assert 0 < replaced < 40 * N
    assert 0 < most <= 2 * duals.max_passes
    # Small moves keep it: a chord step gains enough.
    before = memory.inverse.copy()
    for k in range(5):
        solve(duals, memory, x + 1e-8 * k)
    assert (memory.inverse == before).all()


def test_nodes_answer_for_themselves_in_any_order_and_on_copies():
    problem, _ = make("logistic")
    duals = DualGradients(problem)
    rng = np.random.default_rng(5)
    questions = 4.0 * rng.standard_normal((6, N, D))
    together, apart = duals.start(), duals.start()
    for x in questions:
        expected = solve(duals, together, x)
        copied = Memory(*(array.copy() for array in apart))
        assert solve(duals, copied, x).tobytes() == expected.tobytes()
        for node in (2, 0, 1):
            out = np.empty((1, D))
            duals.solve(apart, np.array([node]), x[node : node + 1], out)
            assert out[0].tobytes() == expected[node].tobytes()


@pytest.mark.parametrize("matrices", [True, False])
def test_a_node_without_live_samples_answers_x_over_sigma(matrices, monkeypatch):
    if not matrices:
        without_matrices(monkeypatch)
    case = make_case("path:2", "logistic", n_features=D)
    dead = np.zeros((2, D)), np.array([1.0, -1.0]), np.ones(2)
    weightless = np.ones((2, D)), np.array([1.0, -1.0]), np.zeros(2)
    for shard in (dead, weightless):
        problem = adfs.Problem(
            [case.shards[0], shard], "logistic", [0.5, 2.0], adfs.Topology.path(2)
        )
        duals = DualGradients(problem)
        x = np.random.default_rng(0).standard_normal((2, D))
        theta = solve(duals, duals.start(), x)
        np.testing.assert_allclose(theta[1], x[1] / 2.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("matrices", [True, False])
def test_what_is_not_a_number_stays_so_and_ends(matrices, monkeypatch):
    if not matrices:
        without_matrices(monkeypatch)
    problem, _ = make("logistic")
    duals = DualGradients(problem)
    memory = duals.start()
    x = np.zeros((N, D))
    x[1] = np.nan
    theta = solve(duals, memory, x)
    assert np.isfinite(theta[[0, 2]]).all()
    assert np.isnan(theta[1]).all()
    assert np.isfinite(memory.theta).all()


def test_many_features_need_no_matrix():
    rng = np.random.default_rng(0)
    d = dual_gradient.LARGEST_MATRIX + 100
    rows = sp.random(60, d, density=0.02, random_state=1, format="csr")
    labels = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    problem = adfs.Problem(
        [(rows[:30], labels[:30]), (rows[30:], labels[30:])], sigma=0.1,
        topology=adfs.Topology.path(2),
    )  # fmt: skip
    duals = DualGradients(problem)
    memory = duals.start()
    assert memory.inverse.size == 0
    x = 0.1 * rng.standard_normal((2, d))
    theta = solve(duals, memory, x)
    for node in (0, 1):
        part = slice(30 * node, 30 * node + 30)
        shard = rows[part].toarray(), labels[part], np.ones(30)
        slope = literal.node_gradient(shard, 0.1, "logistic", theta[node])
        assert np.linalg.norm(slope - x[node]) < 1e-11


def test_balanced_rows_sum_to_zero_and_are_dual_to_the_optimum():
    case = make_case("grid:2x2", "logistic", seed=4)
    problem = case.problem
    duals = DualGradients(problem)
    for theta in (np.ones(4), problem.optimum().theta):
        x = duals.balanced(duals.start(theta))
        assert np.max(np.abs(x.sum(axis=0))) < 1e-12
    np.testing.assert_allclose(
        solve(duals, duals.start(), x), np.tile(problem.optimum().theta, (4, 1)), atol=1e-9
    )

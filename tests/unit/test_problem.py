"""Objective, gradient and condition numbers against plain NumPy, for every loss and storage."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import adfs
from adfs.errors import DataError, GraphError, ParameterError
from adfs.kernels.rows import CsrRows, DenseRows
from adfs.losses import LOSSES
from oracles import losses as literal
from support import problems

NAMES = list(LOSSES)
SMOOTH = [name for name in NAMES if LOSSES[name].smooth]
SIGMA = np.array([0.3, 1.0, 2.5])
SIZES = (1, 6, 13)
STORAGE = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_matrix,
    "csr float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
}


def make_shards(loss):
    """Three shards of unequal size, with weights, a zero row and a row of weight zero."""
    return problems.make_shards(3, loss, n_features=5, sizes=SIZES, density=0.7, dead=True)


def make_problem(loss, storage="dense", **options):
    shards = [(STORAGE[storage](X), y, w) for X, y, w in make_shards(loss)]
    return adfs.Problem(shards, loss, SIGMA, **options)


def plain_objective(loss, theta, dtype=np.float64):
    total = SIGMA.sum() / 2 * theta @ theta
    for X, y, w in make_shards(loss):
        scores = X.astype(dtype).astype(np.float64) @ theta
        values = [literal.value(loss, s, b, v) for s, b, v in zip(scores, y, w, strict=True)]
        total += float(np.sum(values))
    return total


def plain_gradient(loss, theta, dtype=np.float64):
    total = SIGMA.sum() * theta
    for X, y, w in make_shards(loss):
        X = X.astype(dtype).astype(np.float64)
        slopes = [
            float(literal.derivative(loss, s, b, v))
            for s, b, v in zip(X @ theta, y, w, strict=True)
        ]
        total = total + X.T @ slopes
    return total


def thetas(scale=1.0):
    rng = np.random.default_rng(9)
    return [np.zeros(5), scale * rng.normal(size=5), 30.0 * scale * rng.normal(size=5)]


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("loss", NAMES)
def test_objective_and_gradient_are_those_of_plain_numpy(loss, storage):
    problem = make_problem(loss, storage)
    dtype = np.float32 if "float32" in storage else np.float64
    assert problem.rows.values.dtype == dtype
    for theta in thetas():
        value, gradient = problem.objective_and_gradient(theta)
        assert value == pytest.approx(plain_objective(loss, theta, dtype), rel=1e-13)
        np.testing.assert_allclose(gradient, plain_gradient(loss, theta, dtype), atol=1e-11)
        assert problem.objective(theta) == value
        assert np.array_equal(problem.gradient(theta), gradient)


@pytest.mark.parametrize("loss", NAMES)
def test_storage_does_not_change_the_problem(loss):
    theta = thetas()[1]
    expected = make_problem(loss).objective(theta)
    for storage, tolerance in (("csr", 1e-14), ("float32", 1e-6), ("csr float32", 1e-6)):
        assert make_problem(loss, storage).objective(theta) == pytest.approx(
            expected, rel=tolerance
        )


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_gradient_is_the_slope_of_the_objective(loss):
    problem, theta, step = make_problem(loss), thetas()[1], 1e-6
    for k in range(5):
        shift = step * np.eye(5)[k]
        rise = problem.objective(theta + shift) - problem.objective(theta - shift)
        assert problem.gradient(theta)[k] == pytest.approx(rise / (2 * step), abs=1e-6)


@pytest.mark.parametrize("loss", NAMES)
def test_nothing_overflows_at_scores_of_ten_thousand(loss):
    problem = make_problem(loss)
    theta = 1e4 * thetas()[1]
    value, gradient = problem.objective_and_gradient(theta)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_zero_rows_and_weight_zero_leave_the_graph_but_zero_rows_keep_their_loss():
    problem = make_problem("logistic")
    dead = np.flatnonzero(~problem.live).tolist()
    assert {SIZES[0] + 2, SIZES[0] + SIZES[1] + 3} <= set(dead)
    zero = adfs.Problem([(np.array([[1.0], [0.0]]), [1, -1], [1.0, 3.0])])
    assert zero.objective([0.7]) - 0.5 * 0.7**2 == pytest.approx(
        np.log1p(np.exp(-0.7)) + 3 * np.log(2)
    )
    without = adfs.Problem([(np.array([[1.0], [5.0]]), [1, -1], [1.0, 0.0])])
    assert without.objective([0.7]) - 0.5 * 0.7**2 == pytest.approx(np.log1p(np.exp(-0.7)))


def test_condition_numbers_are_those_of_the_introduction():
    for loss in SMOOTH:
        problem, bound = make_problem(loss), literal.curvature_bound(loss)
        kappa, batch = [], []
        for (X, _, w), sigma in zip(make_shards(loss), SIGMA, strict=True):
            kappa.append(1 + bound * np.sum(w * np.sum(X**2, axis=1)) / sigma)
            batch.append(1 + bound * np.linalg.norm(X.T @ (w[:, None] * X), 2) / sigma)
        np.testing.assert_allclose(problem.conditioning.kappa, kappa)
        assert problem.conditioning.kappa_s == pytest.approx(max(kappa))
        assert problem.conditioning.kappa_b() == pytest.approx(max(batch))
        csr = make_problem(loss, "csr").conditioning
        assert (csr.kappa_s, csr.kappa_b()) == pytest.approx((max(kappa), max(batch)))


@pytest.mark.parametrize("shape", [(30, 700), (600, 620)])
def test_kappa_b_is_right_where_the_gram_matrix_would_be_too_large(shape):
    """More than 500 features: the small side's Gram matrix, or Lanczos from above."""
    X = sp.random(*shape, 0.02, format="csr", random_state=0)
    y = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)
    problem = adfs.Problem([(X, y)], "logistic", 0.5)
    exact = 1 + 0.25 * np.linalg.norm(X.toarray(), 2) ** 2 / 0.5
    assert problem.conditioning.kappa_b() == pytest.approx(exact, rel=1e-8)
    assert problem.conditioning.kappa_b() >= exact * (1 - 1e-9)


def test_a_problem_knows_its_sizes_and_says_them():
    problem = make_problem("huber")
    assert (problem.n_nodes, problem.n_samples, problem.n_features) == (3, 20, 5)
    assert problem.offsets.tolist() == [0, 1, 7, 20]
    assert problem.total_sigma == pytest.approx(3.8)
    assert isinstance(problem.rows, DenseRows)
    assert isinstance(make_problem("huber", "csr").rows, CsrRows)
    assert repr(problem).startswith("Problem(huber, 20 x 5 dense, 3 nodes, ")
    assert "20 x 5 sparse" in repr(make_problem("huber", "csr"))


def test_sigma_is_a_number_or_one_a_node():
    shards = make_shards("logistic")
    assert adfs.Problem(shards, sigma=2).sigma.tolist() == [2.0, 2.0, 2.0]
    assert adfs.Problem(shards, sigma=[1, 2, 3]).total_sigma == 6.0


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, 1e-101, 1e101, [1.0, 0.0, 1.0]])
def test_sigma_out_of_range_is_refused(bad):
    with pytest.raises(ParameterError, match="must be a finite number > 0, from 1e-100 to"):
        adfs.Problem(make_shards("logistic"), sigma=bad)


def test_sigma_of_the_wrong_length_is_refused():
    with pytest.raises(
        ParameterError, match=r"sigma has shape \(2,\); give one number, or one for"
    ):
        adfs.Problem(make_shards("logistic"), sigma=[1.0, 2.0])


def test_a_graph_of_another_size_is_refused():
    with pytest.raises(GraphError, match="has 4 nodes but there are 3 shards"):
        adfs.Problem(make_shards("logistic"), topology=adfs.Topology.ring(4))


@pytest.mark.parametrize("weights", [np.ones(3), np.zeros(3)])
def test_a_problem_of_zero_rows_only_is_refused(weights):
    X = np.zeros((3, 2)) if weights.any() else np.ones((3, 2))
    with pytest.raises(DataError, match="All rows are zero or have weight zero"):
        adfs.Problem([(X, [0, 1, 1], weights)])


def test_a_row_whose_squared_norm_overflows_is_refused():
    X = np.ones((3, 2))
    X[1] = 1e200
    with (
        np.errstate(over="ignore"),
        pytest.raises(DataError, match=r"Row 1 has a squared norm beyond 1e308; scale"),
    ):
        adfs.Problem([(X, [0, 1, 1])])


@pytest.mark.parametrize("weight", [1e-101, 1e101])
def test_a_weight_out_of_range_is_refused(weight):
    adfs.Problem([(np.ones((2, 2)), [0, 1], [1e-100, 0.0])])
    with pytest.raises(DataError, match=r"A weight of .* is outside the range from 1e-100"):
        adfs.Problem([(np.ones((2, 2)), [0, 1], [1.0, weight])])


def test_rows_that_are_nothing_beside_their_weights_are_refused():
    with pytest.raises(DataError, match="All rows are zero or have weight zero, or are so small"):
        adfs.Problem([(np.full((2, 2), 1e-135), [0, 1], [1e-30, 1e-30])])


@pytest.mark.parametrize("theta", [np.zeros(4), np.zeros((5, 1)), 0.0])
def test_a_model_of_another_shape_is_refused(theta):
    shape = re.escape(str(np.ascontiguousarray(theta).shape))
    with pytest.raises(DataError, match=f"theta has shape {shape}; this problem has 5 features"):
        make_problem("logistic").objective(theta)


@pytest.mark.parametrize("loss", [name for name in NAMES if name not in SMOOTH])
def test_a_loss_that_is_not_smooth_has_no_condition_number(loss):
    with pytest.raises(ParameterError, match=f"'{loss}' is not smooth, so it has no condition"):
        _ = make_problem(loss).conditioning


def test_data_of_the_caller_is_never_written():
    shards = make_shards("logistic")
    before = [[array.copy() for array in shard] for shard in shards]
    problem = adfs.Problem(shards, sigma=SIGMA)
    adfs.solve(problem, tol=1e-6)
    for shard, copies in zip(shards, before, strict=True):
        for array, copy in zip(shard, copies, strict=True):
            assert np.array_equal(array, copy)

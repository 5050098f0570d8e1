"""Ridge has scikit-learn's coefficients and intercept, on dense and on sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model

import adfs
from adfs.estimators.regressors import Eliminated
from support.estimators import NODES, relative, ridge_reference, rows, weighted
from support.selection import covering


@covering(
    layout=(np.asarray, sp.csr_array),
    name=("breast-cancer", "digits"),
    intercept=(False, True),
    weighting=("none", "weights"),
    nodes=NODES,
)
def test_coefficients_equal_scikit_learns(layout, name, intercept, weighting, nodes):
    X, y = rows(name)
    fit, _ = weighted(weighting, len(y))
    model = adfs.Ridge(fit_intercept=intercept, n_nodes=nodes, tol=1e-14)
    model.fit(layout(X), y.astype(float), **fit)
    assert relative(model, ridge_reference(name, intercept, weighting)) < 1e-5


def sparse_rows_with_a_near_constant(seed=0):
    """Indicator columns that sum to one in every row: the intercept is nearly among them."""
    generator = np.random.default_rng(seed)
    X = np.zeros((300, 12))
    X[np.arange(300), generator.integers(0, 6, 300)] = 1.0
    X[np.arange(300), 6 + generator.integers(0, 5, 300)] = 1.0
    X[:, 11] = generator.random(300) < 0.1
    return X, X @ generator.standard_normal(12) + 5.0 + 0.1 * generator.standard_normal(300)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("nodes", [1, 4])
def test_the_eliminated_intercept_is_exact_where_it_is_hard_to_tell(alpha, nodes):
    X, y = sparse_rows_with_a_near_constant()
    weights = np.random.default_rng(1).random(300)
    model = adfs.Ridge(alpha=alpha, n_nodes=nodes, tol=1e-17)
    model.fit(sp.csr_array(X), y, sample_weight=weights)
    reference = sklearn.linear_model.Ridge(alpha=alpha).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-5)


def test_the_gap_of_sparse_rows_bounds_what_the_intercept_eliminated_objective_lacks():
    X, y = sparse_rows_with_a_near_constant()
    centred, aims = X - X.mean(axis=0), y - y.mean()
    best = sklearn.linear_model.Ridge(alpha=0.1, fit_intercept=False).fit(centred, aims).coef_

    def objective(theta):
        return 0.5 * np.sum((centred @ theta - aims) ** 2) + 0.05 * theta @ theta

    for max_iter in (200, 1000, 5000):
        model = adfs.Ridge(alpha=0.1, max_iter=max_iter, tol=1e-12)
        with pytest.warns(UserWarning, match="relative duality gap"):
            model.fit(sp.csr_array(X), y)
        lacking = objective(model.coef_) - objective(best)
        assert 0.0 < lacking <= model.dual_gap_
        assert model.result_.objective == pytest.approx(objective(model.coef_))
        assert model.history_["duality_gap"][-1] == model.dual_gap_


def test_sparse_rows_are_not_made_dense(monkeypatch):
    seen, steps = [], Eliminated.steps
    monkeypatch.setattr(Eliminated, "steps", lambda own, *a: (seen.append(own), steps(own, *a))[1])
    X, y = sparse_rows_with_a_near_constant()
    adfs.Ridge(n_nodes=4).fit(sp.csr_array(X), y)
    assert seen
    stored = np.count_nonzero(X)
    for own in seen:
        assert own.problem.n_numbers == 2 * stored  # a row for each of the two models
        assert all(sp.issparse(matrix) for matrix, _, _ in own.nodes)
        assert sum(matrix.nnz for matrix, _, _ in own.nodes) == stored


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_columns_of_targets_are_models_of_their_own(layout):
    X, y = rows("digits")
    Y = np.eye(10)[y][:, :3]
    model = adfs.Ridge(tol=1e-13).fit(layout(X), Y)
    reference = sklearn.linear_model.Ridge().fit(X, Y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-5)
    np.testing.assert_allclose(model.predict(layout(X)), reference.predict(X), atol=1e-5)
    assert model.dual_gap_.shape == (3,)
    assert len(model.history_) == 3


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_warm_start_from_a_near_solution_saves_iterations(layout):
    X, y = rows("digits")
    model = adfs.Ridge(tol=1e-14, warm_start=True).fit(layout(X), y)
    cold = adfs.Ridge(alpha=1.01).fit(layout(X), y)
    warm = model.set_params(alpha=1.01, tol=1e-6).fit(layout(X), y)
    assert warm.n_iter_ < 0.6 * cold.n_iter_
    assert warm.result_.relative_gap <= 1e-6

"""What a run finds out about large matrices before it begins, and that this is bounded."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from adfs.apcg import geometry, smooth
from adfs.apcg.penalties import Penalty
from adfs.apcg.smooth import LeastSquares, Quadratic
from adfs.apcg.solver import apcg


def path(n):
    """Laplacian of a path."""
    ends = np.r_[1.0, np.full(n - 2, 2.0), 1.0]
    return sp.diags_array([-np.ones(n - 1), ends, -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def grid(n, ridge):
    """Laplacian of a grid of n x n nodes with more on the diagonal."""
    edge = path(n)
    one = sp.eye_array(n)
    return sp.csr_array(sp.kron(edge, one) + sp.kron(one, edge) + ridge * sp.eye_array(n * n))


def random_sparse(n_rows, n, seed=0):
    """Ten non-zeros a column."""
    return sp.random_array(
        (n_rows, n), density=10 / n_rows, random_state=np.random.default_rng(seed), format="csr"
    )  # fmt: skip


def refuse_to_factor(*arguments, **options):
    raise AssertionError("factors were asked for")


@pytest.mark.parametrize("stored", [sp.csr_array, sp.csr_array.toarray])
def test_a_large_matrix_gets_a_proven_lower_bound(monkeypatch, stored):
    """Diagonal weights 0.1 and 0.9 make discs see 0.1 only, and eigenvalues more."""
    monkeypatch.setattr(geometry, "DENSE", 10)
    H = grid(12, 0.0) + sp.diags_array(np.where(np.arange(144) % 2, 0.9, 0.1))
    least = np.linalg.eigvalsh(H.toarray())[0]
    found = geometry.geometry_of(stored(sp.csr_array(H)))
    assert found.full
    assert 0.1 * 1.5 < 0.99 * least < found.sigma_A <= least
    monkeypatch.setattr(geometry, "LARGEST_WORK", 1e3)
    monkeypatch.setattr(geometry, "LARGEST_DENSE", 100)
    discs = geometry.geometry_of(stored(sp.csr_array(H))).sigma_A
    assert 0.1 - 1e-10 < discs <= 0.1


@pytest.mark.parametrize("stored", [sp.csr_array, sp.csr_array.toarray])
def test_a_large_singular_matrix_is_convex_and_an_indefinite_one_is_refused(monkeypatch, stored):
    monkeypatch.setattr(geometry, "DENSE", 10)
    found = geometry.geometry_of(stored(path(60)))
    assert (found.full, found.sigma_A) == (True, 0.0)
    with pytest.raises(ValueError, match=r"must be positive semi-definite; .*eigenvalue"):
        geometry.geometry_of(stored(sp.csr_array(path(60) - 0.1 * sp.eye_array(60))))


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_factors_are_no_longer_than_counted(seed):
    """A dense factorisation shows where the non-zeros are; 64-bit indices and empty rows too."""
    K = random_sparse(80, 60, seed).astype(bool).astype(float)
    H = sp.csr_array(K.T @ K + sp.diags_array(np.full(60, 1e-3)))
    order = reverse_cuthill_mckee(H, symmetric_mode=True)
    factor = scipy.linalg.cholesky(H.toarray()[order][:, order], lower=True)
    lengths = geometry.column_lengths(H, order)
    assert (np.count_nonzero(np.abs(factor) > 1e-14, axis=0) <= lengths).all()
    assert geometry.column_lengths(path(9), np.arange(9)).tolist() == [2.0] * 8 + [1.0]
    assert geometry.column_lengths(sp.csr_array((3, 3)), np.arange(3)).tolist() == [1.0] * 3


def test_a_random_sparse_matrix_is_not_factored_and_still_solved(monkeypatch):
    """16,000 coordinates without an order in which factors stay sparse."""
    monkeypatch.setattr(geometry, "_positive_factor", refuse_to_factor)
    n = 16_000
    K = random_sparse(2 * n, n)
    c = np.random.default_rng(1).standard_normal(2 * n)
    result = apcg(LeastSquares(K, c), Penalty(l1=1.0), tol=1e-4)
    assert (result.status, result.parameters.sigma_A) == ("converged", 0.0)
    assert apcg(Quadratic(K.T @ K, K.T @ c), ("l1", 1.0), tol=1e-4).status == "converged"


def test_a_full_row_does_not_make_a_full_matrix(monkeypatch):
    """K'K of a sparse K may be full: that is seen before."""
    monkeypatch.setattr(smooth, "geometry_of", refuse_to_factor)
    n = 4000
    K = sp.vstack([sp.eye_array(n), np.ones((1, n))], format="csr")
    assert LeastSquares(K, np.ones(n + 1)).geometry().sigma_A == 0.0


def test_what_is_too_large_is_bounded_by_ridge_and_discs(monkeypatch):
    monkeypatch.setattr(smooth, "DENSE", 3)
    monkeypatch.setattr(smooth, "LARGEST_DENSE", 3)
    K = np.diag(np.linspace(1.0, 2.0, 6)) + 0.05
    ridge = np.linspace(0.2, 1.0, 6)
    exact = np.linalg.eigvalsh(K.T @ K + np.diag(ridge))[0]
    found = LeastSquares(K, np.ones(6), ridge).geometry()
    assert 0.2 < found.sigma_A <= exact
    wide = LeastSquares(np.ones((2, 6)), np.ones(2), ridge).geometry()
    assert wide.sigma_A == 0.2
    assert LeastSquares(np.ones((2, 6)), np.ones(2)).geometry().sigma_A == 0.0


def test_a_zero_sparse_matrix_is_one_like_any_other():
    nothing = apcg(Quadratic(sp.csr_array((2000, 2000))), x0=np.ones(2000))
    assert (nothing.status, nothing.x.tolist()) == ("converged", [1.0] * 2000)
    boxed = apcg(Quadratic(sp.csr_array((2000, 2000)), np.ones(2000)), ("box", -1.0, 1.0))
    assert boxed.status == "converged"
    np.testing.assert_allclose(boxed.x, 1.0, rtol=0, atol=1e-8)
    f = LeastSquares(sp.csr_array((3000, 2000)), np.ones(3000))
    shrunk = apcg(f, ("l1", 1.0), x0=np.ones(2000))
    assert shrunk.status == "converged"
    np.testing.assert_allclose(shrunk.x, 0.0, rtol=0, atol=1e-8)


def test_64_bit_indices_are_ordered_too():
    H = grid(40, 0.1)
    H.indices, H.indptr = H.indices.astype(np.int64), H.indptr.astype(np.int64)
    assert geometry.least_eigenvalue(H) == pytest.approx(0.1, rel=0.05)


def test_setting_up_counts_as_time(monkeypatch):
    slept = []
    monkeypatch.setattr("adfs.apcg.solver.time.perf_counter", lambda: 100.0 * len(slept))
    monkeypatch.setattr(Quadratic, "geometry", lambda self: slept.append(1))
    result = apcg(Quadratic(np.eye(2) + 0.1, np.ones(2)), x0=[1.0, 0.0], time_limit=50.0)
    assert (result.status, result.iterations) == ("time_limit", 0)

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from adfs.data.generators import higgs_like, random_features, sparse_text, two_gaussians
from adfs.data.matrices import Samples
from adfs.errors import ParameterError

MAKERS = {
    "two_gaussians": lambda seed: two_gaussians(301, 7, seed=seed),
    "higgs_like": lambda seed: higgs_like(301, seed=seed),
    "sparse_text": lambda seed: sparse_text(301, 400, seed=seed),
}


def dense(X):
    return X.toarray() if isinstance(X, csr_matrix) else X


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_seed_fixes_the_samples_and_another_seed_changes_them(make):
    first, again, other = make(3), make(3), make(4)
    np.testing.assert_array_equal(dense(first.X), dense(again.X))
    np.testing.assert_array_equal(first.y, again.y)
    assert (dense(first.X) != dense(other.X)).any()
    assert (first.y != other.y).any()


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_labels_are_minus_and_plus_one_and_rows_are_finite_floats(make):
    X, y = make(0)
    assert set(y) == {-1.0, 1.0}
    assert y.dtype == dense(X).dtype == np.float64
    assert np.isfinite(dense(X)).all()
    assert X.shape[0] == len(y) == 301


def test_two_gaussians_have_the_asked_distance_and_scales():
    X, y = two_gaussians(200_000, 4, seed=1, separation=3.0, condition=100.0)
    scales = np.geomspace(1, 0.01, 4)
    gap = (X[y > 0].mean(0) - X[y < 0].mean(0)) / scales
    assert np.linalg.norm(gap) == pytest.approx(3.0, rel=0.02)
    np.testing.assert_allclose(X[y > 0].std(0), scales, rtol=0.02)


def test_higgs_like_is_as_hard_and_as_skewed_as_higgs():
    X, y = higgs_like(20_000)
    assert X.shape == (20_000, 28)
    assert (y > 0).mean() == pytest.approx(0.53)
    accuracy = LogisticRegression(max_iter=2000).fit(X, y).score(X, y)
    assert 0.60 < accuracy < 0.68, "0.64 on the real set"
    masses = X[:, 21:]
    kurtosis = ((masses - masses.mean(0)) ** 4).mean(0) / masses.var(0) ** 2
    assert (kurtosis > 6).all(), "a Gaussian has 3"
    assert X.std(0).max() / X.std(0).min() > 10


def test_sparse_text_has_unit_rows_and_zipf_frequencies():
    X, _ = sparse_text(3000, 5000, words_per_row=60)
    assert isinstance(X, csr_matrix)
    assert X.has_canonical_format
    assert (X.indices.dtype, X.indptr.dtype) == (np.int32, np.int32)
    np.testing.assert_allclose(np.linalg.norm(X.toarray(), axis=1), 1.0)
    assert 40 < X.nnz / 3000 < 60
    ranked = np.sort(np.bincount(X.indices, minlength=5000))[::-1]
    slope = np.polyfit(np.log(np.arange(20, 400)), np.log(ranked[20:400]), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.15)


def test_sparse_text_labels_are_balanced_and_learnable():
    X, y = sparse_text(4000, 300, seed=2)
    assert y.sum() == 0
    accuracy = LogisticRegression(max_iter=2000).fit(X[:3000], y[:3000]).score(X[3000:], y[3000:])
    assert accuracy > 0.8


@pytest.mark.parametrize("make", [higgs_like, lambda n: two_gaussians(n, 3)])
@pytest.mark.parametrize("size", [0, -3, 1.5])
def test_a_size_must_be_a_count(make, size):
    with pytest.raises(ParameterError, match=r"n_samples=.* must be a whole number >= 1"):
        make(size)


def test_shapes_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match=r"n_features=0 must be a whole number >= 1"):
        sparse_text(5, 0)
    with pytest.raises(ParameterError, match=r"words_per_row=0\.5 must be at least 1; try 50"):
        sparse_text(5, 5, words_per_row=0.5)
    with pytest.raises(ParameterError, match=r"condition=0\.5 at least 1"):
        two_gaussians(5, 5, condition=0.5)


def test_one_sample_is_enough():
    for X, y in (two_gaussians(1, 1), higgs_like(1), sparse_text(1, 1)):
        assert X.shape[0] == len(y) == 1


def test_products_of_random_features_are_a_gaussian_kernel():
    """Rahimi and Recht (2007): in the mean over features, within a few 1 / sqrt(d)."""
    samples = two_gaussians(60, 3, seed=2, condition=10.0)
    X, y = random_features(samples, 40_000, 25, np.random.default_rng(1))
    chosen = np.random.default_rng(1).permutation(60)[:25]
    np.testing.assert_array_equal(y, samples.y[chosen])
    rows = samples.X[chosen]
    rows = (rows - rows.mean(0)) / rows.std(0)
    distances = ((rows[:, None] - rows[None]) ** 2).sum(2)
    np.testing.assert_allclose(X @ X.T, np.exp(-distances / (2 * 3)), atol=0.03)


def test_random_features_of_sparse_rows_are_those_of_dense_ones():
    X, y = sparse_text(50, 40)
    of_each = [
        random_features(Samples(rows, y), 8, 100, np.random.default_rng(0)).X
        for rows in (X, X.toarray())
    ]
    np.testing.assert_array_equal(*of_each)
    with pytest.raises(ParameterError, match="n_features"):
        random_features(Samples(X, y), 0, 100, np.random.default_rng(0))

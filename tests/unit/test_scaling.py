"""Standardised features: scikit-learn's numbers, and coefficients in units of the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from adfs.data.partition import partition
from adfs.data.scaling import Scaler, measure
from adfs.errors import DataError
from adfs.graphs.topology import Topology
from adfs.network import Network


def shards_of(X, n_nodes=3):
    shards = partition(X, np.zeros(X.shape[0]), n_nodes, "contiguous")
    return Network(Topology.ring(n_nodes)), shards


def rows(n=50, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal([1e6, -3.0, 0.0, 5.0], [1.0, 1e-3, 10.0, 0.0], size=(n, 4))
    return np.column_stack([X, random.random(n) < 0.1])


def test_dense_columns_are_those_of_scikit_learn():
    X = rows()
    network, shards = shards_of(X)
    scaler = measure(network, shards, np.ones(5, bool))
    theirs = StandardScaler().fit(X)
    np.testing.assert_allclose(scaler.scales, theirs.scale_, rtol=1e-9)
    scaled = np.vstack([scaler.scaled(shard.X) for shard in shards])
    constant = theirs.var_ < 1e-20  # they subtract its mean; for us it may be the intercept
    np.testing.assert_allclose(scaled[:, ~constant], theirs.transform(X)[:, ~constant], atol=1e-8)
    np.testing.assert_array_equal(scaled[:, constant], X[:, constant])


def test_sparse_columns_are_divided_and_full_ones_centered():
    X = rows() * np.array([1, 1, 1, 0, 1])
    network, shards = shards_of(sp.csr_matrix(X))
    scaler = measure(network, shards, np.ones(5, bool))
    assert scaler.means[:3].all()
    assert scaler.means[4] == 0.0  # a tenth of it is not zero
    np.testing.assert_allclose(scaler.scales[4], X[:, 4].std(), rtol=1e-12)
    scaled = sp.vstack([scaler.scaled(shard.X) for shard in shards]).toarray()
    np.testing.assert_allclose(scaled, (X - scaler.means) / scaler.scales, atol=1e-9)


def test_columns_of_categories_stay():
    network, shards = shards_of(rows())
    scaler = measure(network, shards, np.array([1, 1, 1, 1, 0], bool))
    assert scaler.means[4] == 0.0
    assert scaler.scales[4] == 1.0


def test_coefficients_in_units_of_the_data_give_the_same_scores():
    X, random = rows(), np.random.default_rng(1)
    network, shards = shards_of(X)
    scaler = measure(network, shards, np.ones(5, bool))
    theta = random.normal(size=(2, 6))
    scaled = np.column_stack([(X - scaler.means) / scaler.scales, np.ones(len(X))])
    coef = scaler.to_units(theta, True)
    ours = np.column_stack([X, np.ones(len(X))]) @ coef.T
    np.testing.assert_allclose(ours, scaled @ theta.T, atol=1e-7)
    back, constants = scaler.from_units(coef[:, :5], coef[:, 5])
    np.testing.assert_allclose(np.column_stack([back, constants]), theta, atol=1e-8)


def test_without_a_mean_there_is_no_constant():
    scaler = Scaler(np.zeros(2), np.array([2.0, 4.0]))
    assert scaler.to_units(np.array([1.0, 1.0]), False).tolist() == [0.5, 0.25]


def test_a_column_that_overflows_is_named():
    network, shards = shards_of(np.array([[1.0, 1e300], [1.0, -1e300], [1.0, 0.0]]))
    with pytest.raises(DataError, match="Column 2 is too large"):
        measure(network, shards, np.ones(2, bool))

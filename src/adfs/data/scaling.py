"""Standardised features: each column minus its mean, divided by its standard deviation.

Means and variances are two sums over the network, so no rank sees another's rows, and the bits do
not depend on the number of ranks. A column of zeros mostly is divided only, in CSR: subtracting a
mean would fill it. A constant column is left as it is. The columns of categories are left as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from adfs.data.matrices import Matrix, Vector
from adfs.data.partition import Shard
from adfs.errors import DataError
from adfs.network import Network

ROUNDING = 10 * np.finfo(np.float64).eps
ROWS_AT_ONCE = 1 << 14
Array = NDArray[np.float64]


class Scaler(NamedTuple):
    """What is subtracted from each feature, and then what it is divided by."""

    means: Vector
    scales: Vector

    def to_units(self, theta: Array, has_constant: bool) -> Array:
        """Coefficients of scaled features as those of the features themselves.

        ``theta`` may have one row per model. If anything was subtracted, or with a constant
        feature, the last coefficient of the result is that of the constant.

        Examples
        --------
        >>> Scaler(np.array([3.0]), np.array([2.0])).to_units(np.array([4.0, 1.0]), True)
        array([ 2., -5.])
        """
        d = len(self.means)
        coef = theta[..., :d] / self.scales
        shift = theta[..., d:].sum(axis=-1, keepdims=True) - (coef @ self.means)[..., None]
        return np.concatenate([coef, shift], axis=-1) if has_constant or self.centers else coef

    def from_units(self, coef: Array, constant: Vector) -> tuple[Array, Vector]:
        """The other way round, for a start: coefficients of the features and of the constant."""
        return coef * self.scales, constant + coef @ self.means

    def scaled(self, X: Matrix) -> Matrix:
        """The rows with scaled features, in float64."""
        if isinstance(X, np.ndarray):
            return np.asarray((X - self.means) / self.scales)
        X = sp.csr_matrix(X.multiply(1.0 / self.scales))
        if self.centers:
            columns, n_rows = np.flatnonzero(self.means), X.shape[0]
            shift = self.means[columns] / self.scales[columns]
            places = np.tile(columns, n_rows), np.arange(n_rows + 1) * len(columns)
            X = sp.csr_matrix(X - sp.csr_matrix((np.tile(shift, n_rows), *places), shape=X.shape))
        return X

    @property
    def centers(self) -> bool:
        """Whether anything is subtracted."""
        return bool(self.means.any())


def measure(network: Network, shards: Sequence[Shard], is_scaled: NDArray[np.bool_]) -> Scaler:
    """Means and standard deviations of the columns over all nodes; called on all ranks.

    ``shards`` are those of this process's nodes, dense or all in CSR, without the constant. A row
    of weight 2 counts as two rows.
    """
    d = shards[0].X.shape[1]
    weights = [np.ones(len(s.y)) if s.weights is None else s.weights for s in shards]
    pairs = list(zip((shard.X for shard in shards), weights, strict=True))
    # For each column its sum, and the weight of the rows in which it is not zero.
    first = np.array([[len(w), w.sum(), *_sums(X, w), *_sums(X != 0.0, w)] for X, w in pairs])
    n_samples, total, *sums = network.sum_rows(first, 2 + 2 * d)
    means, filled = np.array(sums[:d]) / total, np.array(sums[d:])
    with np.errstate(over="ignore", invalid="ignore"):
        second = np.array([_squares(X, w, means) for X, w in pairs])
        variances = network.sum_rows(second, d) / total
    if not np.isfinite(variances).all():
        column = int(np.argmin(np.isfinite(variances))) + 1
        raise DataError(f"Column {column} is too large to be standardized; divide it first.")
    # As scikit-learn: a spread within rounding is that of a constant column.
    limit = n_samples * ROUNDING * variances + (n_samples * means * ROUNDING) ** 2
    is_scaled = is_scaled & (variances > limit)
    is_dense = isinstance(shards[0].X, np.ndarray)
    is_centered = is_scaled & (is_dense | (2 * filled >= total))
    scales = np.where(is_scaled, np.sqrt(variances), 1.0)
    return Scaler(np.where(is_centered, means, 0.0), scales)


def _sums(X: Matrix, weights: Vector) -> Array:
    """Weighted sum per column."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("i,ij->j", weights, X))
    return _binned(X, _of_entries(X, weights) * X.data)


def _squares(X: Matrix, weights: Vector, means: Vector) -> Array:
    """Weighted sum of squared distances from the mean, per column."""
    if isinstance(X, np.ndarray):
        starts = range(0, len(X), ROWS_AT_ONCE)
        blocks = ((weights[k : k + ROWS_AT_ONCE], X[k : k + ROWS_AT_ONCE] - means) for k in starts)
        return np.asarray(sum(np.einsum("i,ij,ij->j", w, away, away) for w, away in blocks))
    stored = _of_entries(X, weights)
    away = X.data - means[X.indices]
    missing = weights.sum() - _binned(X, stored)
    return np.asarray(_binned(X, stored * away * away) + missing * means**2)


def _of_entries(X: sp.csr_matrix, weights: Vector) -> Vector:
    """The weight of each stored entry's row."""
    return np.repeat(weights, np.diff(X.indptr))


def _binned(X: sp.csr_matrix, values: Vector) -> Array:
    """Sum per column of one value per stored entry."""
    return np.asarray(np.bincount(X.indices, values, X.shape[1]), dtype=np.float64)

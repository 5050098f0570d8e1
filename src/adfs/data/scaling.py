"""Standardised features: each column minus its mean, divided by its standard deviation.

Means and variances are two sums over the network, so no rank sees another's rows, and the bits do
not depend on the number of ranks. A column of zeros mostly is divided only, in CSR: subtracting a
mean would fill it. A constant column is left as it is. The columns of categories are left as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

    @property
    def centers(self) -> bool:
        """Whether anything is subtracted."""
        return bool(self.means.any())


def measure(network: Network, shards: Sequence[Shard], is_scaled: NDArray[np.bool_]) -> Scaler:
    """Means and standard deviations of the columns over all nodes; called on all ranks.

    ``shards`` are those of this process's nodes, dense or all in CSR, without the constant.
    """
    d = shards[0].X.shape[1]
    first = np.array([[len(s.y), *_sums(s.X), *_counts(s.X)] for s in shards])
    total = network.sum_rows(first, 1 + 2 * d)
    n_samples, means, filled = total[0], total[1 : d + 1] / total[0], total[d + 1 :]
    with np.errstate(over="ignore", invalid="ignore"):
        second = np.array([_squares(shard.X, means) for shard in shards])
        variances = network.sum_rows(second, d) / n_samples
    if not np.isfinite(variances).all():
        column = int(np.argmin(np.isfinite(variances))) + 1
        raise DataError(f"Column {column} is too large for --standardize; divide it first.")
    # As scikit-learn: a spread within rounding is that of a constant column.
    limit = n_samples * ROUNDING * variances + (n_samples * means * ROUNDING) ** 2
    is_scaled = is_scaled & (variances > limit)
    is_dense = isinstance(shards[0].X, np.ndarray)
    is_centered = is_scaled & (is_dense | (2 * filled >= n_samples))
    scales = np.where(is_scaled, np.sqrt(variances), 1.0)
    return Scaler(np.where(is_centered, means, 0.0), scales)


def apply(scaler: Scaler, shards: Iterable[Shard]) -> list[Shard]:
    """The shards with scaled features, in float64."""
    return [shard._replace(X=_scaled(scaler, shard.X)) for shard in shards]


def _scaled(scaler: Scaler, X: Matrix) -> Matrix:
    if isinstance(X, np.ndarray):
        return np.asarray((X - scaler.means) / scaler.scales)
    X = sp.csr_matrix(X.multiply(1.0 / scaler.scales))
    if scaler.centers:
        columns = np.flatnonzero(scaler.means)
        shift = np.zeros(X.shape[1])
        shift[columns] = scaler.means[columns] / scaler.scales[columns]
        rows = np.arange(X.shape[0])
        filled = sp.csr_matrix(
            (np.tile(shift[columns], len(rows)), np.tile(columns, len(rows)),
             np.arange(len(rows) + 1) * len(columns)), shape=X.shape,
        )  # fmt: skip
        X = sp.csr_matrix(X - filled)
    return X


def _sums(X: Matrix) -> Array:
    return np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()


def _counts(X: Matrix) -> Array:
    """Entries per column that are not zero."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.count_nonzero(X, axis=0), dtype=np.float64)
    return np.bincount(X.indices[X.data != 0.0], minlength=X.shape[1]).astype(np.float64)


def _squares(X: Matrix, means: Vector) -> Array:
    """Sum of squared distances from the mean, per column."""
    if isinstance(X, np.ndarray):
        blocks = (X[k : k + ROWS_AT_ONCE] - means for k in range(0, len(X), ROWS_AT_ONCE))
        return np.asarray(sum((block * block).sum(axis=0) for block in blocks))
    away = X.data - means[X.indices]
    stored = np.bincount(X.indices, minlength=X.shape[1])
    found = np.bincount(X.indices, weights=away * away, minlength=X.shape[1])
    return np.asarray(found + (X.shape[0] - stored) * means**2)

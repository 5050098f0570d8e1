"""What the regressors share: predictions, and a fit whose intercept is a constant column."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from adfs.estimators.base import LinearEstimator
from adfs.estimators.company import Company, company_of
from adfs.estimators.models import Target
from adfs.estimators.weights import sample_weights
from adfs.runtime.solve import Result


class LinearRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """Predictions ``x . coef_ + intercept_``."""

    _needs: ClassVar[dict[str, Any]] = {"y_numeric": True}

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Value of each row, (n_samples,), or (n_samples, n_targets) where y had columns."""
        scores = self._scores(X)
        return scores[:, 0] if self.coef_.ndim == 1 else scores


class ColumnRegressor(LinearRegressor):
    """A regressor whose intercept is a regularised constant column."""

    def _shape(self) -> tuple[str, float, float, float]:
        """Loss, total regularisation, factor of all losses, unit of the targets."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Weights >= 0; a weight of 2 is the row twice, 0 is no row.
        groups : array of shape (n_samples,), optional
            The node that each row belongs to, by any name; without it rows are dealt evenly.

        Returns
        -------
        self
        """
        with company_of(self) as company:
            results = self._fit(X, y, sample_weight, groups, company)
        self._conclude(results)
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, company: Company
    ) -> list[Result]:
        """What all ranks do together."""
        options, loss, sigma, factor, unit = self._settings(company, self._shape)
        rows, values = self._rows_and_targets(X, y, company)
        weights = factor * sample_weights(sample_weight, len(values), company)
        layout = self._lay_out(len(values), groups, options, company)
        target = Target(values / unit, weights)
        coef, intercept, results = self._with_column(
            rows, [target], loss, sigma, options, layout, company, unit
        )
        self.coef_, self.intercept_ = coef[0], float(intercept[0])
        return results

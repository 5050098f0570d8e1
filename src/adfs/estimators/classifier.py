"""What the classifiers share: labels, the weights of classes, one class against the rest."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from adfs.errors import DataError
from adfs.estimators.base import LinearEstimator
from adfs.estimators.company import Company, company_of
from adfs.estimators.layout import Layout
from adfs.estimators.models import Target, Vector
from adfs.estimators.options import positive
from adfs.estimators.weights import (
    check_class_weight,
    check_labels,
    classes_of,
    n_models,
    sample_weights,
)
from adfs.runtime.solve import Result


class LinearClassifier(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """Two classes, or several one against the rest."""

    C: Any
    class_weight: Any

    def _loss(self) -> str:
        """The name of the loss."""
        raise NotImplementedError

    def _weigh(
        self, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: Layout
    ) -> list[Vector]:
        """Weights of all rows in each model's problem, those of the classes multiplied in."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels, numbers or words.
        sample_weight : array of shape (n_samples,), optional
            Weights >= 0; a weight of 2 is the row twice, 0 is no row.
        groups : array of shape (n_samples,), optional
            The node that each row belongs to, by any name; without it rows are dealt evenly.

        Returns
        -------
        self
        """
        with company_of(self) as company:
            classes, results = self._fit(X, y, sample_weight, groups, company)
        self._conclude(results, classes.tolist())
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, company: Company
    ) -> tuple[NDArray[Any], list[Result]]:
        """What all ranks do together."""
        options, loss, sigma = self._settings(company, self._what)
        rows, labels = self._rows_and_targets(X, y, company)
        company.each(lambda: check_classification_targets(labels))
        weights = sample_weights(sample_weight, len(labels), company)
        classes = classes_of(labels, weights, company)
        company.each(lambda: self._check_classes(classes))
        layout = self._lay_out(len(labels), groups, options, company)
        targets = self._targets(classes, labels, weights, layout)
        coef, intercept, results = self._with_column(
            rows, targets, loss, sigma, options, layout, company
        )
        self.classes_, self.coef_, self.intercept_ = classes, coef, intercept
        return classes, results

    def _what(self) -> tuple[str, float]:
        """Loss and total regularisation."""
        check_class_weight(self.class_weight)
        sigma = 1.0 / positive("C", self.C, "the inverse of the regularisation; try 1")
        return self._loss(), sigma

    def _targets(
        self, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: Layout
    ) -> list[Target]:
        positives = classes[1:] if len(classes) == 2 else classes
        labels = [np.where(y == positive, 1.0, -1.0) for positive in positives]
        heavy = self._weigh(classes, y, weights, layout)
        return [Target(*pair) for pair in zip(labels, heavy, strict=True)]

    def _check_classes(self, classes: NDArray[Any]) -> None:
        check_labels(self.class_weight, classes)
        if not self.warm_start or not hasattr(self, "classes_"):
            return
        if not np.array_equal(self.classes_, classes):
            raise DataError(
                f"warm_start=True goes on from the classes {self.classes_.tolist()}, but this "
                f"data has {classes.tolist()}; set warm_start=False."
            )

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores ``x . coef_ + intercept_``, (n_samples,) or (n_samples, n_classes)."""
        scores = self._scores(X)
        return scores[:, 0] if n_models(self.classes_) == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score; of two, the second where its score is > 0."""
        scores = self._scores(X)
        several = scores.shape[1] > 1
        places = scores.argmax(axis=1) if several else (scores[:, 0] > 0).astype(np.intp)
        return np.asarray(self.classes_[places])

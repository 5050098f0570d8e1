"""A trained model as a fitted pipeline of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adfs.data.columns import WORD, Columns
from adfs.display import data_frame

if TYPE_CHECKING:
    from adfs.model import Model


def fitted_pipeline(model: Model) -> Any:
    """A pipeline with the model's coefficients; a model of a table starts with its encoding.

    The coefficients are those of unscaled features, so there is no step that scales.
    """
    from sklearn.pipeline import Pipeline

    steps = [("model", _estimator(model))]
    if model.columns is not None:
        steps.insert(0, ("columns", _encoder(model.columns)))
    return Pipeline(steps)


def _encoder(columns: Columns) -> Any:
    """Takes a data frame with the columns of the table, in any order."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    steps: list[tuple[str, Any, list[str]]] = [
        (name, OneHotEncoder(categories=[list(columns.categories[name])]), [name])
        if kind == WORD
        else (name, "passthrough", [name])
        for name, kind in columns.kinds.items()
    ]
    row = {name: [columns.categories.get(name, (0.0,))[0]] for name in columns.kinds}
    return ColumnTransformer(steps).fit(data_frame(row))


def _estimator(model: Model) -> Any:
    from sklearn import linear_model, svm

    sigma, loss = model.meta.get("sigma", 1.0), model.loss.name
    total = float(np.sum(sigma)) if np.ndim(sigma) else sigma * model.meta.get("n_nodes", 1)
    coef, intercepts = np.atleast_2d(model.coef[..., : model.n_features]), np.zeros(1)
    if model.intercept:
        intercepts = np.atleast_1d(model.coef[..., -1])
    settings = {"fit_intercept": model.intercept}
    if loss == "logistic":
        made = linear_model.LogisticRegression(C=1.0 / total, solver="liblinear", **settings)
        return _classifier(made, coef, intercepts, model.classes)
    if model.loss.binary:
        kind = "hinge" if loss == "hinge" else "squared_hinge"
        svc = svm.LinearSVC(C=1.0 / total, loss=kind, **settings)
        return _with(svc, coef, intercepts, classes_=model.classes)
    made = {
        "huber": linear_model.HuberRegressor(alpha=total, **settings),
        "absolute": svm.LinearSVR(C=1.0 / total, **settings),
    }.get(loss, linear_model.Ridge(alpha=total, **settings))
    return _with(made, coef[0], intercepts[0])


def _classifier(made: Any, coef: Any, intercepts: Any, classes: NDArray[Any] | None) -> Any:
    """The estimator of two classes; of more, one per class as ``OneVsRestClassifier`` has them."""
    assert classes is not None
    if len(coef) == 1:
        return _with(made, coef, intercepts, classes_=classes)
    from sklearn.multiclass import OneVsRestClassifier

    # A fit to rows of zeros gives it all it needs but the coefficients.
    whole = OneVsRestClassifier(made).fit(np.zeros(coef.shape), classes)
    intercepts = np.broadcast_to(intercepts, len(coef))
    for k, each in enumerate(whole.estimators_):
        _with(each, coef[k : k + 1], intercepts[k : k + 1])
    return whole


def _with(estimator: Any, coef: Any, intercepts: Any, **fitted: Any) -> Any:
    """The estimator with the attributes that a fit would have set."""
    fitted |= {"coef_": coef, "intercept_": intercepts, "n_features_in_": coef.shape[-1]}
    for name, value in fitted.items():
        setattr(estimator, name, value)
    return estimator

"""A trained model as a file that holds arrays and text, nothing pickled."""

import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

import adfs
from adfs.archives import Archive
from adfs.data.columns import Columns
from adfs.data.matrices import checked_csr
from adfs.data.scaling import Scaler
from adfs.errors import DataError, ParameterError, shortened
from adfs.losses import LOSSES, Loss, get_loss
from adfs.problem.finite_sum import Problem
from adfs.run import Result
from adfs.storage import csv_bytes, write_whole

Vector = NDArray[np.float64]

FORMAT = 1
ROWS_AT_ONCE = 1 << 14
LONGEST_REASON = 100  # letters
# What reading a file depends on, and its type; the rest of `meta` is information.
NEEDED = {"format": int, "loss": str, "intercept": bool, "n_features": int, "classes": list}


@dataclass(frozen=True, eq=False)
class Model:
    """Coefficients of a linear model, and what is needed to use them on other data.

    Parameters
    ----------
    coef : array, shape (n_features,) or (n_features + 1,), or (classes, ...)
        With an intercept, the last entry is the weight of the constant feature 1. More than two
        classes have one row each, of that class against the others. Whatever the features were
        scaled by, these are the coefficients of the features as the data has them.
    thetas : array, shape (n_nodes, len(coef)), or (classes, n_nodes, ...)
        The model of each node; ``coef`` is their sigma-weighted mean.
    meta : dict
        Of plain values: ``loss``, ``classes`` (empty for a regression), ``intercept``,
        ``n_features``, for a table ``feature_names`` and ``columns``, and how the model came about.

    Examples
    --------
    >>> meta = {"format": 1, "loss": "logistic", "classes": [3, 7], "intercept": False,
    ...         "n_features": 2}
    >>> model = Model(np.array([1.0, -1.0]), np.array([[1.0, -1.0]]), meta)
    >>> model.predict(np.array([[2.0, 1.0], [0.0, 1.0]])).tolist()
    [7, 3]
    >>> model.coefficients()
    {'x1': 1.0, 'x2': -1.0}
    """

    coef: Vector
    thetas: NDArray[np.float64]
    meta: Mapping[str, Any]

    def __post_init__(self) -> None:
        _check_meta(self.meta)
        n_classes, width = len(self.meta["classes"]), self.n_features + self.intercept
        expected = (n_classes, width) if n_classes > 2 else (width,)
        if self.coef.shape != expected:
            raise DataError(f"coef has shape {self.coef.shape} where meta promises {expected}")
        found = self.thetas.shape
        if len(found) != len(expected) + 1 or (*found[:-2], found[-1]) != expected:
            raise DataError(f"thetas has shape {found}, which does not suit coef, {expected}")

    @classmethod
    def from_result(
        cls,
        results: Result | Sequence[Result],
        problem: Problem,
        intercept: bool = False,
        command: str = "",
        classes: NDArray[Any] | None = None,
        columns: Columns | None = None,
        scaler: Scaler | None = None,
    ) -> "Model":
        """Model of a run, or of one run per class; ``result`` is described by its worst class.

        With ``intercept`` the problem's last column is the constant 1. ``columns`` and ``scaler``
        say how the features were made from the data.
        """
        each = [results] if isinstance(results, Result) else list(results)
        result = worst(each)
        sigma = np.unique(problem.sigma)
        known = problem.classes if classes is None else classes
        theta, thetas = (
            np.stack(arrays) if len(each) > 1 else arrays[0]
            for arrays in ([one.theta for one in each], [one.thetas for one in each])
        )
        n_features = problem.n_features - intercept
        if scaler is not None:
            theta, thetas = (scaler.to_units(a, intercept) for a in (theta, thetas))
            intercept = theta.shape[-1] > n_features
        about_data: dict[str, Any] = {}
        if columns is not None:
            about_data |= {"feature_names": columns.feature_names, "columns": columns.to_dict()}
        if scaler is not None:
            about_data["scaler"] = {
                "means": scaler.means.tolist(), "scales": scaler.scales.tolist(),
            }  # fmt: skip
        meta = {
            "format": FORMAT,
            "adfs": adfs.__version__,
            "loss": problem.loss.name,
            "classes": [] if known is None else [plain(label) for label in known],
            "intercept": intercept,
            "n_features": n_features,
            **about_data,
            "n_samples": problem.n_samples,
            "n_nodes": problem.n_nodes,
            "graph": problem.topology.name,
            "sigma": float(sigma[0]) if len(sigma) == 1 else problem.sigma.tolist(),
            "seed": result.seed,
            "algorithm": result.algorithm,
            "schedule": result.schedule,
            "costs": result.costs.to_dict(),
            "parameters": summary(result),
            "status": result.status,
            "objective": finite(result.objective),
            "duality_gap": finite(result.duality_gap),
            "iterations": sum(one.iterations for one in each),
            "command": command,
        }
        return cls(theta, thetas, meta)

    @property
    def loss(self) -> Loss:
        """The loss it was trained with."""
        return get_loss(self.meta["loss"])

    @property
    def classes(self) -> NDArray[Any] | None:
        """The labels as the data had them, in order; None for a regression."""
        return np.array(self.meta["classes"]) if self.loss.binary else None

    @property
    def intercept(self) -> bool:
        """Whether the last coefficient belongs to a constant feature."""
        return bool(self.meta["intercept"])

    @property
    def n_features(self) -> int:
        """Columns of the data, the constant not counted."""
        return int(self.meta["n_features"])

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns: those in the file, else ``x1``, ``x2``, ... (counted from 1)."""
        names = self.meta.get("feature_names")
        return list(names) if names else [f"x{j + 1}" for j in range(self.n_features)]

    @property
    def columns(self) -> Columns | None:
        """How the columns of a table become features; None if the data had no names."""
        columns = self.meta.get("columns")
        return None if columns is None else Columns.from_dict(columns)

    def coefficients(self) -> dict[Any, Any]:
        """Coefficient of each feature by its name; ``intercept`` comes last if there is one.

        With more than two classes, one such dictionary per class.
        """
        names = [*self.feature_names, *(["intercept"] if self.intercept else [])]
        rows = [dict(zip(names, row, strict=True)) for row in np.atleast_2d(self.coef).tolist()]
        return rows[0] if len(rows) == 1 else dict(zip(self.meta["classes"], rows, strict=True))

    def __repr__(self) -> str:
        return (
            f"Model({self.meta['loss']}, {self.n_features} features, intercept={self.intercept}, "
            f"{len(self.thetas)} nodes)"
        )

    def decision(self, X: Any) -> Vector:
        """Score of each row, or of each row and class; columns that ``X`` lacks count as zero."""
        if X.ndim != 2 or X.shape[1] > self.n_features:
            raise DataError(
                f"The data has shape {X.shape} but the model was trained on {self.n_features} "
                "features; remove the additional columns, or train again with --n-features."
            )
        rows = checked_csr(X, "The data") if issparse(X) else X
        scores = linear_scores(rows, self.coef[..., : X.shape[1]].T)
        return scores + self.coef[..., -1] if self.intercept else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Label or value of each row."""
        return self.labels(self.decision(X))

    def labels(self, scores: Vector) -> NDArray[Any]:
        """Predictions from scores: the larger class where a score is > 0, values as they are.

        With more than two classes the one with the largest score.
        """
        classes = self.classes
        if classes is None:
            return scores
        chosen = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return np.asarray(classes[chosen])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, one row per sample; logistic regression only."""
        return self.probabilities(self.decision(X))

    def probabilities(self, scores: Vector) -> NDArray[np.float64]:
        """The same from scores."""
        if self.loss.name != "logistic":
            raise ParameterError(
                f"Probabilities need the loss 'logistic', but this model was trained with "
                f"{self.loss.name!r}; train with --loss logistic, or predict without --proba."
            )
        return class_probabilities(scores)

    def to_sklearn(self) -> Any:
        """A fitted pipeline of scikit-learn that predicts the same.

        A model of a table takes a pandas DataFrame with the columns of that table; others take
        arrays with all features. The pipeline can be stored and served without this package.
        """
        from adfs.model_export import fitted_pipeline

        return fitted_pipeline(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line per feature: its name and its coefficient, one column per class."""
        names = [*self.feature_names, *(["intercept"] if self.intercept else [])]
        several = self.coef.ndim == 2
        header = ["feature", *(self.meta["classes"] if several else ["coefficient"])]
        rows = zip(names, *np.atleast_2d(self.coef).tolist(), strict=True)
        write_whole(path, csv_bytes([header, *rows]))

    def to_bytes(self) -> bytes:
        """Content of the model's file, the same for the same model."""
        buffer = io.BytesIO()
        meta = np.array(json.dumps(dict(self.meta), allow_nan=False))
        np.savez(buffer, coef=self.coef, thetas=self.thetas, meta=meta)
        return buffer.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file, whole or not at all."""
        write_whole(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Model":
        """Read what `save` wrote; anything else is refused with a sentence."""
        if not Path(path).is_file():
            raise DataError(f"{path} must be a model file, but there is none; check the path.")
        try:
            return _read(path)
        except MemoryError:
            raise
        # A damaged file can make the reader of JSON raise anything.
        except Exception as error:
            reason = getattr(error, "reason", str(error)) or type(error).__name__
            reason = shortened(" ".join(reason.split()), LONGEST_REASON)
            raise DataError(
                f"{path} is not a model ({reason}); make one with `adfs train DATA --out FILE`."
            ) from None


def worst(results: Sequence[Result]) -> Result:
    """The result of the class that is furthest from its tolerance, one that stopped early first."""
    return max(
        results,
        key=lambda each: (
            each.status != "converged",
            math.inf if math.isnan(each.relative_gap) else each.relative_gap,
        ),
    )


def class_probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of two classes, or of several, each against the rest, scaled to sum 1."""
    from scipy.special import expit

    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    shares = expit(scores)
    totals = shares.sum(axis=1, keepdims=True)
    even = np.full_like(shares, 1.0 / shares.shape[1])
    return np.asarray(np.divide(shares, totals, out=even, where=totals > 0.0))


def linear_scores(X: Any, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """``X @ coef`` in float64; float32 rows are widened a block at a time."""
    scores = np.empty((X.shape[0], *coef.shape[1:]))
    for first in range(0, len(scores), ROWS_AT_ONCE):
        scores[first : first + ROWS_AT_ONCE] = X[first : first + ROWS_AT_ONCE] @ coef
    return scores


def _read(path: str | os.PathLike[str]) -> Model:
    archive = Archive(path)
    arrays = {name: archive.read(name) for name in ("coef", "thetas", "meta")}
    for name in ("coef", "thetas"):
        if arrays[name].dtype.kind != "f" or not np.isfinite(arrays[name]).all():
            raise DataError(f"{name} must be finite floating-point numbers")
    meta = arrays["meta"]
    if meta.dtype.kind != "U" or meta.ndim:
        raise DataError("meta must be one text")
    coef, thetas = (arrays[name].astype(np.float64) for name in ("coef", "thetas"))
    model = Model(coef, thetas, json.loads(str(meta)))
    labels = model.meta["classes"]
    numbers = all(isinstance(each, int | float) and math.isfinite(each) for each in labels)
    if not numbers and not all(isinstance(each, str) for each in labels):
        raise DataError("its classes are neither numbers nor words")
    return model


def _check_meta(meta: Any) -> None:
    if not isinstance(meta, Mapping):
        raise DataError("meta is not a JSON object")
    for name, kind in NEEDED.items():
        if type(meta.get(name)) is not kind:
            raise DataError(f"meta has no {name!r} of type {kind.__name__}")
    if meta["format"] != FORMAT:
        raise DataError(f"format {meta['format']}, this version of adfs reads format {FORMAT}")
    if meta["loss"] not in LOSSES:
        raise DataError(f"loss {meta['loss']!r} is not known; load the file that defines it")
    if meta["n_features"] < 1:
        raise DataError(f"loss {meta['loss']!r} on {meta['n_features']} features")
    if (len(meta["classes"]) >= 2) != LOSSES[meta["loss"]].binary or len(meta["classes"]) == 1:
        raise DataError(f"{len(meta['classes'])} classes with the loss {meta['loss']!r}")
    columns = meta.get("columns")
    names = (
        meta.get("feature_names") if columns is None else Columns.from_dict(columns).feature_names
    )
    if names is not None and (not isinstance(names, list) or len(names) != meta["n_features"]):
        raise DataError("its feature names do not suit its number of features")


def summary(result: Result) -> dict[str, Any]:
    """The chosen parameters in a few plain values; None where the algorithm has no such number.

    Parameters of ADFS have the ``tau`` and ``clock`` that they were chosen for, which may differ
    from those of the run; those of the other algorithms were chosen for the run.
    """
    chosen = result.parameters
    own = chosen.summary() if hasattr(chosen, "summary") else {}
    return {
        "how": result.rule,
        "rho": finite(result.rho) if result.proven or not own else None,
        "p_comm": None,
        "tau": result.tau,
        "clock": result.clock,
        "gain": None,
        **own,
        "text": str(chosen),
    }


def finite(value: float) -> float | None:
    """``value``, or None where JSON cannot hold it."""
    return float(value) if math.isfinite(value) else None


def plain(label: Any) -> Any:
    """A label as Python has it, whole numbers as int."""
    value = label.item() if isinstance(label, np.generic) else label
    return int(value) if isinstance(value, float) and value.is_integer() else value

"""Fits that are made in one process and on ranks, with the rows of each node named."""

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris

import adfs

N_NODES = 4
KEPT = ("coef_", "intercept_", "classes_", "n_iter_", "dual_gap_")


class Fit(NamedTuple):
    """What all ranks together are given; node ``groups[j]`` has row ``j``."""

    make: Any
    X: Any
    y: Any
    weights: Any = None
    again: Any = None  # parameters of a second fit

    @property
    def groups(self):
        """Four nodes of unequal size, their rows one after another."""
        cuts = (np.array([0.1, 0.5, 0.6]) * len(self.y)).astype(int)
        return np.searchsorted(cuts, np.arange(len(self.y)), side="right")

    def fit(self, rows=slice(None), **options):
        """The estimator, fitted on some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        model = self.make(**{"tol": 1e-4} | options)
        model.fit(self.X[rows], self.y[rows], weights, groups=self.groups[rows])
        if self.again is not None:
            model.set_params(**self.again)
            model.fit(self.X[rows], self.y[rows], weights, groups=self.groups[rows])
        return model


def bits_of(model):
    """Everything that is to be the same on any number of ranks, as bytes; no seconds."""
    kept = {name: np.asarray(getattr(model, name, 0)) for name in KEPT}
    histories = model.history_ if isinstance(model.history_, list) else [model.history_]
    columns = [name for name in histories[0] if name not in ("wall_time", "suboptimality")]
    kept["history_"] = np.array([each[name] for each in histories for name in columns], object)
    return {
        name: repr(value.tolist()) if value.dtype.hasobject else value.tobytes().hex()
        for name, value in kept.items()
    }


@functools.cache
def cancer():
    """Rows of two classes, scaled."""
    X, y = load_breast_cancer(return_X_y=True)
    return ((X - X.mean(0)) / X.std(0))[:90, :6].copy(), y[:90]


@functools.cache
def iris():
    """Rows of three classes with names, one class after another: most nodes lack some of them."""
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def heavy(n):
    """Weights, some of them zero."""
    return np.random.default_rng(0).integers(0, 5, n) / 3.0


def fits():
    """Every estimator, both layouts, weights, classes, float32, several targets, a warm start."""
    X, y = cancer()
    many, names = iris()
    aims = X @ np.arange(6.0) + np.random.default_rng(1).standard_normal(len(y))
    sparse = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    balanced = {"class_weight": "balanced"}
    logistic, svc, ridge = adfs.LogisticRegression, adfs.LinearSVC, adfs.Ridge
    return {
        "logistic": Fit(functools.partial(logistic, n_nodes=4), X, y),
        "logistic-csr": Fit(functools.partial(logistic, graph="ring"), sparse, y, heavy(len(y))),
        "logistic-words": Fit(
            functools.partial(logistic, **balanced), many, names.astype(object), heavy(150)
        ),
        "logistic-float32": Fit(
            functools.partial(logistic, intercept_scaling=0.3), X.astype(np.float32), y
        ),
        "svc-words": Fit(functools.partial(svc, **balanced), many, names, heavy(150)),
        "svc-hinge": Fit(functools.partial(svc, loss="hinge"), X, y),
        "ridge": Fit(ridge, X, aims, heavy(len(y))),
        "ridge-csr": Fit(ridge, sparse, aims, heavy(len(y))),
        "ridge-columns": Fit(ridge, sparse, np.column_stack([aims, y])),
        "ridge-without": Fit(functools.partial(ridge, fit_intercept=False), sparse, aims),
        "huber": Fit(functools.partial(adfs.HuberRegressor, delta=2.0), X, aims),
        "svr": Fit(adfs.LinearSVR, X, aims),
        "scaled": Fit(
            functools.partial(logistic, standardize=True), sp.csr_array(many), names, heavy(150)
        ),
        "warm": Fit(functools.partial(logistic, warm_start=True), X, y, again={"C": 1.3}),
        "ridge-csr-warm": Fit(
            functools.partial(ridge, warm_start=True), sparse, aims, again={"alpha": 1.3}
        ),
    }

"""Linear classifiers: two classes, or several one against the rest.

With several classes a class's weight has no unique meaning; each estimator follows scikit-learn's
of the same name (docs/estimators.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from adfs.agreement import agree
from adfs.checks import choice, finite
from adfs.errors import DataError, ParameterError
from adfs.estimators.base import ColumnEstimator, sigma_of
from adfs.estimators.fitting import FitTask, Matrix, Objective, Target, Vector
from adfs.estimators.node_layout import on_all, union
from adfs.model import class_probabilities
from adfs.run import Result


@dataclass(eq=False, repr=False)
class LinearClassifier(ClassifierMixin, ColumnEstimator):  # type: ignore[misc]
    """A classifier; a subclass has its loss and how it weighs rows."""

    C: float = 1.0
    _: KW_ONLY
    class_weight: Any = None

    # Whether a class's weight counts in its own problem only, where all other rows have weight one
    # (liblinear's rule); otherwise every row has the weight of its class in all problems.
    _weighs_one_class = False

    def _loss(self) -> str:
        raise NotImplementedError

    def _objective(self) -> Objective:
        weights = self.class_weight
        if isinstance(weights, Mapping):
            for label, weight in weights.items():
                finite(f"class_weight[{label!r}]", weight, least=0, hint="use 1 for no weight")
        elif weights is not None and not _is_balanced(weights):
            raise ParameterError(
                f"class_weight={weights!r} must be None, 'balanced' or a dict from label to "
                "weight; pass one of them."
            )
        return Objective(self._loss(), sigma_of(self.C))

    def _targets(self, task: FitTask) -> tuple[NDArray[Any], list[Target]]:
        """The classes, and one target, or one per class if there are more than two."""
        y, ranks = task.y, task.layout.ranks
        on_all(ranks, lambda: check_classification_targets(y))
        classes = _classes_of(task)
        on_all(ranks, lambda: self._check_classes(classes))
        positives = classes[1:] if len(classes) == 2 else classes
        labels = [np.where(y == positive, 1.0, -1.0) for positive in positives]
        return classes, list(zip(labels, self._weights(classes, task), strict=True))

    def _train(self, task: FitTask) -> tuple[list[Result], Sequence[Any]]:
        classes, targets = self._targets(task)
        coefs, intercepts, results = self._train_with_column(task, targets)
        self.classes_ = classes
        self._keep_models(task, coefs, intercepts)
        return results, classes.tolist()

    def _check_classes(self, classes: NDArray[Any]) -> None:
        """Refuse weights of unknown labels while some known label has none, and other classes."""
        known = classes.tolist()
        if isinstance(self.class_weight, Mapping):
            missing = [label for label in known if label not in self.class_weight]
            if missing and len(self.class_weight) > len(known) - len(missing):
                raise ParameterError(
                    f"class_weight has an entry that is no label while the label {missing[0]!r} "
                    f"has none; the labels are {', '.join(map(repr, known))}."
                )
        if not self.warm_start or not hasattr(self, "classes_"):
            return
        if not np.array_equal(self.classes_, classes):
            raise DataError(
                f"warm_start=True continues from the classes {self.classes_.tolist()}, but this "
                f"data has {known}; set warm_start=False."
            )

    def _weights(self, classes: NDArray[Any], task: FitTask) -> list[Vector]:
        """Weights of the rows in each problem; ``balanced`` balances each by itself.

        As scikit-learn's ``OneVsRestClassifier(LogisticRegression(class_weight="balanced"))``,
        but for ``_weighs_one_class``.
        """
        y, given, several = task.y, self.class_weight, len(classes) > 2
        if several and self._weighs_one_class and given is not None:
            pairs = zip(classes, _class_weights(given, classes, y, task), strict=True)
            return [task.weights * np.where(y == label, weight, 1.0) for label, weight in pairs]
        if several and _is_balanced(given):
            found = []
            for own in (y == label for label in classes):
                rest, heavy = _class_weights(given, np.array([False, True]), own, task)
                found.append(task.weights * np.where(own, heavy, rest))
            return found
        # Rows whose label is not among the classes have weight 0 already.
        places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        weights = task.weights * _class_weights(given, classes, y, task)[places]
        return [weights] * (len(classes) if several else 1)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores ``x . coef_ + intercept_``, (n_samples,) or (n_samples, n_classes)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score; of two, the second where its score is > 0."""
        scores = self._scores(X)
        several = scores.shape[1] > 1
        places = scores.argmax(axis=1) if several else (scores[:, 0] > 0).astype(np.intp)
        return np.asarray(self.classes_[places])


@dataclass(eq=False, repr=False)
class LogisticRegression(LinearClassifier):
    """Logistic regression with an L2 penalty, trained over a communication graph.

    Minimises ``sum_j w_j log(1 + exp(-y_j s_j)) + |theta|^2 / (2 C)``, ``s_j = x_j . theta``. With
    ``fit_intercept`` each ``x_j`` has one more feature, the constant ``intercept_scaling``, whose
    weight is regularised like the others: scikit-learn's ``solver="liblinear"``. Several classes
    are trained one against the rest, over the same schedule.

    Parameters
    ----------
    C : float
        Inverse of the total regularisation, whatever the number of nodes.
    class_weight : dict, "balanced" or None
        Weight of each label; with several classes, "balanced" balances each one against its rest.
    n_nodes : int, optional
        Nodes that share the rows; by default the size of ``graph``, one per group, or 4.
    graph : str or Topology
        Which nodes exchange messages: ``grid``, ``ring``, ``grid:2x3``, ...
        (`adfs.Topology.parse`).
    tau : float
        Time of one message, in units of one sample's proximal step.
    algorithm : str
        ``auto``, ``best`` (what `adfs.plan` recommends) or one of `adfs.algorithms`.
    tol : float
        Relative duality gap, ``gap / |F|``, at which a fit stops.
    max_iter : int, optional
        Largest number of events; by default far more than the theory needs.
    fit_intercept : bool
    intercept_scaling : float
        Height of the constant column; the larger, the less the intercept is regularised.
    standardize : bool
        Whether columns are standardised first; `coef_` is in the units of ``X`` either way. Columns
        of a sparse matrix that are zero in most rows are divided only.
    warm_start : bool
        Whether a fit starts from the coefficients of the last one.
    random_state : int, RandomState or None
        Seed of the partition of the rows and of the schedule; None takes a new one each time.
    verbose : int
        1 prints a line per evaluation.
    engine : {"local", "mpi"}
        With ``mpi`` every rank that mpiexec started calls ``fit`` with its own rows, and all get
        the model of all rows; by default there is one node per rank.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    n_iter_ : int or array of shape (n_classes,)
        Events executed.
    dual_gap_ : float or array of shape (n_classes,)
        Proven bound on ``F(theta) - F*``.
    history_ : dict or list of dict
        The trace: one key per column, one entry per evaluation.
    result_ : Result or list of Result
        Status, times and models of the nodes; its ``parameters`` are a text.
    n_features_in_ : int

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> model = adfs.LogisticRegression(C=10.0, n_nodes=9, graph="ring", tol=1e-8).fit(X, y)
    >>> model.result_.status, model.coef_.shape, round(model.score(X, y), 3)
    ('converged', (1, 5), 0.835)
    """

    def _loss(self) -> str:
        return "logistic"

    def predict_proba(self, X: Any) -> Matrix:
        """Probability of each class; with several, each one's against the rest, scaled to sum 1."""
        return class_probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> Matrix:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):  # a probability of 0 has the logarithm -inf
            return np.asarray(np.log(self.predict_proba(X)))


@dataclass(eq=False, repr=False)
class LinearSVC(LinearClassifier):
    """Linear support vector machine, trained over a communication graph.

    Minimises ``sum_j w_j l(y_j s_j) + |theta|^2 / (2 C)`` with ``l(m) = max(0, 1 - m)^2``
    (``squared_hinge``) or ``max(0, 1 - m)`` (``hinge``, by NS-ADFS): liblinear's objective divided
    by C. The intercept is that of `LogisticRegression`, as in scikit-learn's `LinearSVC`. A class's
    weight counts in its own problem against the rest, where all other rows have weight one, as in
    liblinear.

    Parameters
    ----------
    C : float
        Inverse of the total regularisation, whatever the number of nodes.
    loss : {"squared_hinge", "hinge"}
    class_weight : dict, "balanced" or None
    n_nodes, graph, tau, algorithm, tol, max_iter, fit_intercept, intercept_scaling, standardize, \
warm_start, random_state, verbose, engine
        As in `LogisticRegression`. The gap of ``hinge`` falls to about 1e-14 and no further: there
        rounding enters it at first order.

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, dual_gap_, history_, result_, n_features_in_
        As in `LogisticRegression`.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> model = adfs.LinearSVC(C=0.1).fit(X, y)
    >>> model.result_.status, round(model.score(X, y), 3)
    ('converged', 0.845)
    """

    _: KW_ONLY
    loss: str = "squared_hinge"

    _weighs_one_class = True

    def _loss(self) -> str:
        return choice("loss", self.loss, ("squared_hinge", "hinge"))


def _classes_of(task: FitTask) -> NDArray[Any]:
    """The labels of all ranks in order, without those whose rows all have weight 0."""
    ranks = task.layout.ranks
    classes = on_all(ranks, lambda: np.unique(task.y[task.weights > 0.0]))
    if ranks.size > 1:
        classes, _ = union(ranks, classes, "Labels")
    single = DataError(
        f"Among the rows of weight > 0 there is only one class, {classes.tolist()[0]!r}; a "
        "classifier needs two classes or more. Check the labels and the weights."
    )
    agree(ranks, None if len(classes) > 1 else single)
    return classes


def _class_weights(
    given: Any, classes: NDArray[Any], y: NDArray[Any], task: FitTask
) -> NDArray[np.float64]:
    """One per class; ``balanced`` is ``sum w / (n_classes * sum of w over the class)``."""
    if given is None:
        return np.ones(len(classes))
    if _is_balanced(given):
        weights = task.weights
        masses = task.layout.add_up(
            lambda own: [weights[own][y[own] == label].sum() for label in classes]
        )
        return np.asarray(masses.sum() / (len(classes) * masses))
    return np.array([float(given.get(label, 1.0)) for label in classes.tolist()])


def _is_balanced(class_weight: Any) -> bool:
    return isinstance(class_weight, str) and class_weight == "balanced"

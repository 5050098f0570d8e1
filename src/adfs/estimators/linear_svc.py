"""Linear support vector machines."""

from typing import Any

from numpy.typing import NDArray

from adfs.estimators.classifier import LinearClassifier
from adfs.estimators.layout import Layout
from adfs.estimators.models import Vector
from adfs.estimators.options import choice
from adfs.estimators.weights import the_class_against_ones


class LinearSVC(LinearClassifier):
    """Linear support vector machine, trained over a communication graph.

    Minimises ``sum_j w_j l(y_j s_j) + |theta|^2 / (2 C)`` with ``l(m) = max(0, 1 - m)^2``
    (``squared_hinge``) or ``max(0, 1 - m)`` (``hinge``, by NS-ADFS): liblinear's objective divided
    by C. The intercept is that of `LogisticRegression`, as in scikit-learn's `LinearSVC`. A class's
    weight counts in its own problem against the rest, where all others weigh one, as in liblinear.

    Parameters
    ----------
    C : float
        Inverse of the total regularisation, whatever the number of nodes.
    loss : {"squared_hinge", "hinge"}
    class_weight : dict, "balanced" or None
    n_nodes, graph, tau, algorithm, tol, max_iter, fit_intercept, intercept_scaling, warm_start, \
random_state, verbose, engine
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

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        class_weight: Any = None,
        n_nodes: int | None = None,
        graph: Any = "grid",
        tau: float = 5.0,
        algorithm: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        warm_start: bool = False,
        random_state: Any = 0,
        verbose: int = 0,
        engine: str = "local",
    ) -> None:
        self.C = C
        self.loss = loss
        self.class_weight = class_weight
        self.n_nodes = n_nodes
        self.graph = graph
        self.tau = tau
        self.algorithm = algorithm
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def _weigh(
        self, classes: NDArray[Any], y: NDArray[Any], weights: Vector, layout: Layout
    ) -> list[Vector]:
        return the_class_against_ones(self.class_weight, classes, y, weights, layout)

    def _loss(self) -> str:
        return choice("loss", self.loss, ("squared_hinge", "hinge"))

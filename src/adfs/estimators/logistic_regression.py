"""Logistic regression."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adfs.estimators.classifier import LinearClassifier
from adfs.estimators.layout import Layout
from adfs.estimators.models import Matrix, Vector
from adfs.estimators.weights import each_row_its_own


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
        Nodes that share the rows; by default what ``graph`` or ``groups`` say, else 4.
    graph : str or Topology
        Who talks to whom: ``grid``, ``ring``, ``grid:2x3``, ... (`adfs.Topology.parse`).
    tau : float
        What a message takes, in units of one sample's proximal step.
    algorithm : str
        ``auto`` or one of `adfs.algorithms`.
    tol : float
        Relative duality gap, ``gap / max(1, |F|)``, at which a fit stops.
    max_iter : int, optional
        Most events; by default well beyond what theory needs.
    fit_intercept : bool
    intercept_scaling : float
        Height of the constant column; the larger, the less the intercept is regularised.
    warm_start : bool
        Whether a fit goes on from the coefficients of the last one.
    random_state : int, RandomState or None
        Seed of the rows' deal and of the schedule; None takes another one each time.
    verbose : int
        1 prints a line an evaluation.
    engine : {"local", "mpi"}
        With ``mpi`` every rank that mpiexec started calls ``fit`` with its own rows, and all get
        the model of all rows; by default a rank is one node.

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
        The trace: one column a key, one entry an evaluation.
    result_ : Result or list of Result
        All about the run; its ``parameters`` are the text that explains them.
    n_features_in_ : int

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> model = adfs.LogisticRegression(C=10.0, n_nodes=9, graph="ring", tol=1e-8).fit(X, y)
    >>> model.result_.status, model.coef_.shape, round(model.score(X, y), 3)
    ('converged', (1, 5), 0.835)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
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
        return each_row_its_own(self.class_weight, classes, y, weights, layout)

    def _loss(self) -> str:
        return "logistic"

    def predict_proba(self, X: Any) -> Matrix:
        """Probability of each class; with several, each one's against the rest, scaled to sum 1."""
        from scipy.special import expit

        scores = self._scores(X)
        if scores.shape[1] == 1:
            return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
        shares = expit(scores)
        totals = shares.sum(axis=1, keepdims=True)
        even = np.full_like(shares, 1.0 / shares.shape[1])
        return np.asarray(np.divide(shares, totals, out=even, where=totals > 0.0))

    def predict_log_proba(self, X: Any) -> Matrix:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):  # a probability of 0 has the logarithm -inf
            return np.asarray(np.log(self.predict_proba(X)))

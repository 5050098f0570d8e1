"""Linear support vector regression."""

from typing import Any

from adfs.estimators.options import choice, positive
from adfs.estimators.regressor import ColumnRegressor

LOSSES = {"epsilon_insensitive": ("absolute", 1.0), "squared_epsilon_insensitive": ("squared", 2.0)}


class LinearSVR(ColumnRegressor):
    """Least absolute deviations with an L2 penalty, trained over a communication graph.

    Minimises ``sum_j w_j |x_j . theta - y_j| + |theta|^2 / (2 C)``, or with squares for
    ``squared_epsilon_insensitive``: scikit-learn's `LinearSVR` at its default ``epsilon=0``. A tube
    of another width needs a loss that is not among `adfs.losses`, so there is no ``epsilon`` here.

    Parameters
    ----------
    C : float
        Inverse of the total regularisation, whatever the number of nodes.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        The first one is not smooth and is trained by NS-ADFS.
    n_nodes, graph, tau, algorithm, tol, max_iter, fit_intercept, intercept_scaling, warm_start, \
random_state, verbose, engine
        As in `LogisticRegression`. The gap of the first loss falls to about 1e-14 and no further:
        there rounding enters it at first order.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    n_iter_, dual_gap_, history_, result_, n_features_in_
        As in `LogisticRegression`, of one model.

    Examples
    --------
    >>> import adfs
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(200, 5, noise=1.0, random_state=0)
    >>> model = adfs.LinearSVR(C=10.0).fit(X, y)
    >>> model.result_.algorithm, model.score(X, y) > 0.9
    ('ns-adfs', True)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "epsilon_insensitive",
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

    def _shape(self) -> tuple[str, float, float, float]:
        loss, factor = LOSSES[choice("loss", self.loss, tuple(LOSSES))]
        return loss, 1.0 / positive("C", self.C, "try 1"), factor, 1.0

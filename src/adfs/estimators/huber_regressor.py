"""Regression with Huber's loss: least squares for small residuals, absolute ones for large."""

from typing import Any

from adfs.estimators.options import positive
from adfs.estimators.regressor import ColumnRegressor


class HuberRegressor(ColumnRegressor):
    """Regression that outliers cannot bend, trained over a communication graph.

    Minimises ``sum_j w_j h(x_j . theta - y_j) + alpha / 2 |theta|^2`` where ``h(r)`` is ``r^2 / 2``
    for ``|r| <= delta`` and ``delta |r| - delta^2 / 2`` beyond. Targets in units of ``delta`` make
    it the loss ``huber`` of `adfs.Problem`.

    Deviation: scikit-learn's `HuberRegressor` learns a scale as well, leaves its intercept free and
    penalises ``alpha |theta|^2``. Where it found ``scale_``, this one has its minimiser for
    ``delta = epsilon * scale_`` and ``alpha`` times ``scale_``, without intercept.

    Parameters
    ----------
    delta : float
        Residual, in units of y, from which on the loss grows linearly.
    alpha : float
        Total regularisation, whatever the number of nodes.
    n_nodes, graph, tau, algorithm, tol, max_iter, fit_intercept, intercept_scaling, warm_start, \
random_state, verbose, engine
        As in `LogisticRegression`.

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
    >>> y[:10] += 1000.0
    >>> model = adfs.HuberRegressor(delta=5.0, alpha=0.01).fit(X, y)
    >>> model.result_.status, model.score(X[10:], y[10:]) > 0.9
    ('converged', True)
    """

    def __init__(
        self,
        delta: float = 1.0,
        *,
        alpha: float = 1.0,
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
        self.delta = delta
        self.alpha = alpha
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
        delta = positive("delta", self.delta, "a residual in units of y; try 1")
        alpha = positive("alpha", self.alpha, "the regularisation; try 1")
        # h(r) = delta^2 h_1(r / delta), so F is the same number in either unit.
        return "huber", alpha * delta**2, delta**2, delta

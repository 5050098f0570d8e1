"""Ridge regression."""

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from adfs.estimators.elimination import solve_eliminated
from adfs.estimators.layout import Layout, lay_out
from adfs.estimators.models import Matrix, Target, Vector, after, build_problems, train
from adfs.estimators.options import Options, flag, positive, read_options
from adfs.estimators.regressor import LinearRegressor
from adfs.estimators.weights import sample_weights
from adfs.runtime.model import linear_scores
from adfs.runtime.solve import Result
from adfs.threads import one_blas_thread


class Ridge(LinearRegressor):
    """Ridge regression, trained over a communication graph.

    Minimises ``sum_j w_j (x_j . theta + b - y_j)^2 / 2 + alpha / 2 |theta|^2``, half of what
    scikit-learn's `Ridge` writes, with the same minimiser. The intercept ``b`` is free: dense data
    are centred by their weighted means, which takes one sum over the network; sparse data stay as
    they are and ``b`` is eliminated (`adfs.estimators.elimination`).

    Parameters
    ----------
    alpha : float
        Total regularisation, whatever the number of nodes.
    n_nodes, graph, tau, algorithm, tol, max_iter, warm_start, random_state, verbose
        As in `LogisticRegression`.
    fit_intercept : bool

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        With columns of targets, one model a column, over the same schedule.
    intercept_ : float or array of shape (n_targets,)
    n_iter_, dual_gap_, history_, result_, n_features_in_
        As in `LogisticRegression`; objective and gap are those of the centred problem.

    Examples
    --------
    >>> import adfs
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(200, 5, noise=1.0, random_state=0)
    >>> model = adfs.Ridge(alpha=0.1, n_nodes=16, tol=1e-10).fit(X, y)
    >>> model.result_.status, model.coef_.shape, model.score(X, y) > 0.9
    ('converged', (5,), True)
    """

    _needs: ClassVar[dict[str, Any]] = {"y_numeric": True, "multi_output": True}

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        n_nodes: int | None = None,
        graph: Any = "grid",
        tau: float = 5.0,
        algorithm: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        fit_intercept: bool = True,
        warm_start: bool = False,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.n_nodes = n_nodes
        self.graph = graph
        self.tau = tau
        self.algorithm = algorithm
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), optional
            Weights >= 0; a weight of 2 is the row twice, 0 is no row.
        groups : array of shape (n_samples,), optional
            The node that each row belongs to, by any name; without it rows are dealt evenly.

        Returns
        -------
        self
        """
        options = read_options(self)
        alpha = positive("alpha", self.alpha, "the regularisation; try 1")
        centred = flag("fit_intercept", self.fit_intercept)
        # One row alone is its own mean: nothing would be left of it.
        rows, values = self._rows_and_targets(X, y, ensure_min_samples=1 + centred)
        weights = sample_weights(sample_weight, len(values))
        columns = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        layout = lay_out(len(values), self.n_nodes, self.graph, groups, options.seed)
        fit = self._fit_sparse if centred and issparse(rows) else self._fit_dense
        coef, results = fit(rows, columns, weights, alpha, options, layout)
        intercept = np.zeros(len(coef))
        if centred:
            intercept = np.array([
                np.average(column - linear_scores(rows, theta), weights=weights)
                for column, theta in zip(columns.T, coef, strict=True)
            ])  # fmt: skip
        single = values.ndim == 1
        self.coef_ = coef[0] if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept
        self._conclude(results, [f"target {k}" for k in range(len(results))])
        return self

    def _fit_dense(
        self, rows: Any, columns: Matrix, weights: Vector, alpha: float, options: Options,
        layout: Layout,
    ) -> tuple[Matrix, list[Result]]:  # fmt: skip
        """Centred where there is an intercept, then one model a column."""
        if self.fit_intercept:
            with one_blas_thread():  # so that the means have the same bits everywhere
                shares = weights / weights.sum()
                rows, columns = rows - shares @ rows, columns - shares @ columns
        targets = [Target(column, weights) for column in columns.T]
        problems = build_problems(rows, targets, "squared", alpha, layout)
        start = self._start(len(targets), rows.shape[1])
        results = train(problems, options, None if start is None else start[0])
        return np.array([result.theta for result in results]), results

    def _fit_sparse(
        self, rows: Any, columns: Matrix, weights: Vector, alpha: float, options: Options,
        layout: Layout,
    ) -> tuple[Matrix, list[Result]]:  # fmt: skip
        """With the intercept eliminated, one model a column."""
        targets = [Target(column, weights) for column in columns.T]
        ones = Target(np.ones(len(weights)), weights)
        problems = build_problems(rows, [*targets, ones], "squared", alpha, layout)
        results = []
        for k, problem in enumerate(problems[:-1]):
            start = self._pair_start(k, len(targets), rows.shape[1])
            result, self._of_ones = solve_eliminated(problem, problems[-1], options, start)
            results.append(result)
            options = after(result, options)
        return np.array([result.theta for result in results]), results

    def _pair_start(self, k: int, n_models: int, width: int) -> Vector | None:
        """``u = theta + b v`` and ``v`` of the last fit; ``v = 0`` where it had none."""
        last = self._start(n_models, width)
        if last is None:
            return None
        v: Vector = getattr(self, "_of_ones", np.zeros(0))
        if v.shape != (width,):
            v = np.zeros(width)
        return np.concatenate([last[0][k] + last[1][k] * v, v])

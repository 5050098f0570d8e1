"""Ridge regression."""

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, issparse

from adfs.estimators.base import same_start
from adfs.estimators.company import Company, company_of
from adfs.estimators.elimination import solve_eliminated, twice, twice_labels
from adfs.estimators.layout import Layout
from adfs.estimators.models import (
    Matrix,
    Target,
    Vector,
    after,
    build_problems,
    keepable,
    shareable,
    train,
)
from adfs.estimators.options import Options, flag, positive
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
    n_nodes, graph, tau, algorithm, tol, max_iter, warm_start, random_state, verbose, engine
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
        engine: str = "local",
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
        self.engine = engine

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
        with company_of(self) as company:
            results = self._fit(X, y, sample_weight, groups, company)
        self._conclude(results, [f"target {k}" for k in range(len(results))])
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, company: Company
    ) -> list[Result]:
        """What all ranks do together."""
        options, alpha, centred = self._settings(company, self._what)
        # One row alone is its own mean: nothing would be left of it.
        least = 1 + (centred and company.alone)
        rows, values = self._rows_and_targets(X, y, company, ensure_min_samples=least)
        company.require_same(
            "y needs the same columns on all ranks", "give all targets to all ranks.",
            columns=values.shape[1:],
        )  # fmt: skip
        weights = sample_weights(sample_weight, len(values), company)
        columns = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        layout = self._lay_out(len(values), groups, options, company)
        fit = self._fit_sparse if centred and issparse(rows) else self._fit_dense
        coef, results = fit(rows, columns, weights, alpha, options, layout, company)
        intercept = np.zeros(len(coef))
        if centred:
            intercept = _means(rows, columns, weights, coef, layout)
        single = values.ndim == 1
        self.coef_ = coef[0] if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept
        return results

    def _what(self) -> tuple[float, bool]:
        """Regularisation, and whether there is an intercept."""
        alpha = positive("alpha", self.alpha, "the regularisation; try 1")
        return alpha, flag("fit_intercept", self.fit_intercept)

    def _fit_dense(
        self, rows: Any, columns: Matrix, weights: Vector, alpha: float, options: Options,
        layout: Layout, company: Company,
    ) -> tuple[Matrix, list[Result]]:  # fmt: skip
        """Centred where there is an intercept, then one model a column."""
        if self.fit_intercept:
            rows, columns = _centred(rows, columns, weights, layout)
        targets = [Target(column, weights) for column in columns.T]
        problems = build_problems(rows, targets, "squared", alpha, layout)
        last = company.each(lambda: self._start(len(targets), rows.shape[1]))
        starts = same_start(None if last is None else last[0], company)
        results = train(problems, options, starts)
        return np.array([result.theta for result in results]), results

    def _fit_sparse(
        self, rows: Any, columns: Matrix, weights: Vector, alpha: float, options: Options,
        layout: Layout, company: Company,
    ) -> tuple[Matrix, list[Result]]:  # fmt: skip
        """With the intercept eliminated, one model a column."""
        targets = [Target(column, weights) for column in columns.T]
        both = [twice_labels(target) for target in targets]
        doubled, wide = twice(csr_matrix(rows), layout)
        problems = build_problems(doubled, both, "squared", alpha, wide)
        starts = company.each(lambda: self._pair_starts(len(targets), rows.shape[1]))
        starts = same_start(starts, company)
        results: list[Result] = []
        rule: Any = "tuned"
        for k, problem in enumerate(problems):
            start = None if starts is None else starts[k]
            result, self._of_ones = solve_eliminated(problem, options, rule, start)
            rule = shareable(result.parameters)
            results.append(keepable(result))
            options = after(result, options)
        return np.array([result.theta for result in results]), results

    def _pair_starts(self, n_models: int, width: int) -> Matrix | None:
        """``u = theta + b v`` and ``v`` of the last fit; ``v = 0`` where it had none."""
        last = self._start(n_models, width)
        if last is None:
            return None
        v: Vector = getattr(self, "_of_ones", np.zeros(0))
        if v.shape != (width,):
            v = np.zeros(width)
        coefs, intercepts = last
        return np.hstack([coefs + intercepts[:, None] * v, np.tile(v, (n_models, 1))])


def _centred(rows: Any, columns: Matrix, weights: Vector, layout: Layout) -> tuple[Matrix, Matrix]:
    """Rows and targets less their weighted means over all nodes."""
    d = rows.shape[1]
    with one_blas_thread():  # so that the means have the same bits everywhere
        sums = layout.add_up(
            lambda own: np.concatenate([
                weights[own] @ rows[own], weights[own] @ columns[own], [weights[own].sum()]
            ])
        )  # fmt: skip
    means = sums[:-1] / sums[-1]
    return rows - means[:d], columns - means[d:]


def _means(rows: Any, columns: Matrix, weights: Vector, coefs: Matrix, layout: Layout) -> Vector:
    """The intercept of each model: the weighted mean of what it leaves, over all nodes."""
    left = np.column_stack([
        column - linear_scores(rows, theta) for column, theta in zip(columns.T, coefs, strict=True)
    ])  # fmt: skip
    sums = layout.add_up(lambda own: [*(weights[own] @ left[own]), weights[own].sum()])
    return np.asarray(sums[:-1] / sums[-1])

"""Linear regressors: Huber's loss, least absolute deviations, and ridge regression.

Ridge's intercept is eliminated on sparse rows, which centring would make dense. For a given ``b``
the best model is ``u - b v``, where ``u`` and ``v`` are the models without intercept of the targets
``y`` and ``1``, and

    b = sum_j w_j (y_j - x_j . u) / sum_j w_j (1 - x_j . v).

Both are trained together as one model of twice the width: each row occurs twice, as ``(x, 0)`` for
the target ``y`` and as ``(0, x)`` for the target 1. Besides the messages only sums of a few numbers
are exchanged. Derivation, and the gap of the whole: docs/estimators.md, The intercept.
"""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import RegressorMixin

from adfs.agreement import Peers, require_same
from adfs.checks import choice, positive
from adfs.data.shards import slice_rows
from adfs.engine.evaluation import Evaluation, Evaluator
from adfs.estimators.base import ColumnEstimator, LinearEstimator, sigma_of
from adfs.estimators.fitting import FitTask, Matrix, Objective, Vector, train
from adfs.estimators.node_layout import RowLayout, on_all
from adfs.model import linear_scores
from adfs.network import Ask, Part, Steps
from adfs.problem.certificate import in_order, quadratic
from adfs.problem.finite_sum import Problem
from adfs.run import Result
from adfs.threads import one_blas_thread

SVR_LOSSES = {
    "epsilon_insensitive": ("absolute", 1.0),
    "squared_epsilon_insensitive": ("squared", 2.0),
}
NO_ROW = np.empty(0)


@dataclass(eq=False, repr=False)
class ColumnRegressor(RegressorMixin, ColumnEstimator):  # type: ignore[misc]
    """A regressor whose intercept is a regularised constant column."""

    def _needs(self, ranks: Peers) -> dict[str, Any]:
        return {"y_numeric": True}

    def _train(self, task: FitTask) -> tuple[list[Result], Sequence[Any]]:
        targets = [(task.y / task.objective.unit, task.weights)]
        coefs, intercepts, results = self._train_with_column(task, targets)
        self._keep_models(task, coefs, intercepts, single=True)
        return results, ["y"]


@dataclass(eq=False, repr=False)
class HuberRegressor(ColumnRegressor):
    """Regression that is robust against outliers, trained over a communication graph.

    Minimises ``sum_j w_j h(x_j . theta - y_j) + alpha / 2 |theta|^2`` where ``h(r)`` is ``r^2 / 2``
    for ``|r| <= delta`` and ``delta |r| - delta^2 / 2`` beyond. With targets in units of ``delta``
    this is the loss ``huber`` of `adfs.Problem`.

    Deviation: scikit-learn's `HuberRegressor` learns a scale as well, leaves its intercept free and
    penalises ``alpha |theta|^2``. Where it found ``scale_``, this one has its minimiser for
    ``delta = epsilon * scale_`` and ``alpha`` times ``scale_``, without intercept.

    Parameters
    ----------
    delta : float
        Residual, in units of y, from which on the loss grows linearly.
    alpha : float
        Total regularisation, whatever the number of nodes.
    n_nodes, graph, tau, algorithm, tol, max_iter, fit_intercept, intercept_scaling, standardize, \
warm_start, random_state, verbose, engine
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

    delta: float = 1.0
    _: KW_ONLY
    alpha: float = 1.0

    def _objective(self) -> Objective:
        delta = positive("delta", self.delta, "try 1, a residual in units of y")
        alpha = positive("alpha", self.alpha, "try 1, the regularisation")
        # h(r) = delta^2 h_1(r / delta), so F is the same number in either unit.
        return Objective("huber", alpha * delta**2, delta**2, delta)


@dataclass(eq=False, repr=False)
class LinearSVR(ColumnRegressor):
    """Least absolute deviations with an L2 penalty, trained over a communication graph.

    Minimises ``sum_j w_j |x_j . theta - y_j| + |theta|^2 / (2 C)``, or with squares for
    ``squared_epsilon_insensitive``: scikit-learn's `LinearSVR` at its default ``epsilon=0``. There
    is no ``epsilon`` here: a tube of another width needs a loss that `adfs.losses` does not have.

    Parameters
    ----------
    C : float
        Inverse of the total regularisation, whatever the number of nodes.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        The first one is not smooth and is trained by NS-ADFS.
    n_nodes, graph, tau, algorithm, tol, max_iter, fit_intercept, intercept_scaling, standardize, \
warm_start, random_state, verbose, engine
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

    C: float = 1.0
    _: KW_ONLY
    loss: str = "epsilon_insensitive"

    def _objective(self) -> Objective:
        loss, factor = SVR_LOSSES[choice("loss", self.loss, SVR_LOSSES)]
        return Objective(loss, sigma_of(self.C), factor)


@dataclass(eq=False, repr=False)
class Ridge(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """Ridge regression, trained over a communication graph.

    Minimises ``sum_j w_j (x_j . theta + b - y_j)^2 / 2 + alpha / 2 |theta|^2``, half of what
    scikit-learn's `Ridge` writes, with the same minimiser. The intercept ``b`` is free: dense data
    are centred by their weighted means, which takes one sum over the network; sparse data stay as
    they are and ``b`` is eliminated (docs/estimators.md).

    Parameters
    ----------
    alpha : float
        Total regularisation, whatever the number of nodes.
    n_nodes, graph, tau, algorithm, tol, max_iter, standardize, warm_start, random_state, \
verbose, engine
        As in `LogisticRegression`.
    fit_intercept : bool

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        With columns of targets, one model per column, over the same schedule.
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

    alpha: float = 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _needs(self, ranks: Peers) -> dict[str, Any]:
        # One row alone is its own mean: nothing would be left of it.
        least = 2 if self.fit_intercept and ranks.size == 1 else 1
        return {"y_numeric": True, "multi_output": True, "ensure_min_samples": least}

    def _objective(self) -> Objective:
        return Objective("squared", positive("alpha", self.alpha, "try 1, the regularisation"))

    def _train(self, task: FitTask) -> tuple[list[Result], Sequence[Any]]:
        rule, way_out = "y needs the same columns on all ranks", "give all targets to all ranks."
        require_same(task.layout.ranks, {"columns": task.y.shape[1:]}, way_out, rule)
        columns = np.asarray(task.y, dtype=np.float64).reshape(len(task.y), -1)
        is_eliminated = self.fit_intercept and issparse(task.rows)
        results = (self._fit_eliminated if is_eliminated else self._fit_centred)(task, columns)
        coefs = np.array([result.theta for result in results])
        intercepts = np.zeros(len(coefs))
        if self.fit_intercept:
            intercepts = _mean_residuals(task, columns, coefs)
        self._keep_models(task, coefs, intercepts, single=task.y.ndim == 1)
        return results, [f"target {k}" for k in range(len(results))]

    def _fit_centred(self, task: FitTask, columns: Matrix) -> list[Result]:
        """One model per column; rows and targets are centred where there is an intercept."""
        last = on_all(task.layout.ranks, lambda: self._last_model(columns.shape[1], task))
        if self.fit_intercept:
            rows, columns = _centred(task, columns)
            task = task._replace(rows=rows)
        targets = [(column, task.weights) for column in columns.T]
        return train(task, targets, None if last is None else last[0])

    def _fit_eliminated(self, task: FitTask, columns: Matrix) -> list[Result]:
        """One model per column, with the intercept eliminated."""
        starts = on_all(task.layout.ranks, lambda: self._pair_starts(columns.shape[1], task))
        ones, weights = np.ones(len(columns)), np.tile(task.weights, 2)
        targets = [(np.concatenate([column, ones]), weights) for column in columns.T]
        rows, layout = twice(csr_matrix(task.rows), task.layout)
        made: list[Eliminated] = []

        def evaluator(problem: Problem) -> Evaluator:
            made[:] = [Eliminated(problem)]
            return made[0].steps

        results = train(task._replace(rows=rows, layout=layout), targets, starts, evaluator)
        self._of_ones = made[0].of_ones
        return results

    def _pair_starts(self, n_models: int, task: FitTask) -> Matrix | None:
        """``u = theta + b v`` and ``v`` of the last fit; ``v = 0`` where it had none."""
        last = self._last_model(n_models, task)
        if last is None:
            return None
        coefs, intercepts = last
        v: Vector = getattr(self, "_of_ones", np.zeros(0))
        if v.shape != coefs[0].shape:
            v = np.zeros(coefs.shape[1])
        return np.hstack([coefs + intercepts[:, None] * v, np.tile(v, (n_models, 1))])


def _centred(task: FitTask, columns: Matrix) -> tuple[Matrix, Matrix]:
    """Rows and targets minus their weighted means over all nodes."""
    rows, weights = task.rows, task.weights
    with one_blas_thread():  # so that the means have the same bits everywhere
        sums = task.layout.add_up(
            lambda own: np.concatenate([
                weights[own] @ rows[own], weights[own] @ columns[own], [weights[own].sum()]
            ])
        )  # fmt: skip
    means = sums[:-1] / sums[-1]
    d = rows.shape[1]
    return rows - means[:d], columns - means[d:]


def _mean_residuals(task: FitTask, columns: Matrix, coefs: Matrix) -> Vector:
    """The intercept of each model: the weighted mean of its residuals over all nodes."""
    weights = task.weights
    left = np.column_stack([
        column - linear_scores(task.rows, theta)
        for column, theta in zip(columns.T, coefs, strict=True)
    ])  # fmt: skip
    sums = task.layout.add_up(lambda own: [*(weights[own] @ left[own]), weights[own].sum()])
    return np.asarray(sums[:-1] / sums[-1])


def twice(X: csr_matrix, layout: RowLayout) -> tuple[csr_matrix, RowLayout]:
    """Rows and layout of both models; a node's rows for ``u``, then those for ``v``."""
    n, d = X.shape
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    indptr, indices = (
        np.concatenate([indptr, indptr[1:] + indptr[-1]]),
        np.concatenate([indices, indices + d]),
    )
    rows = csr_matrix((np.concatenate([X.data, X.data]), indices, indptr), shape=(2 * n, 2 * d))
    parts = np.split(layout.order, layout.cuts[1:-1])
    order = np.concatenate([half for part in parts for half in (part, part + n)])
    return rows, layout._replace(order=order, cuts=2 * layout.cuts)


class Eliminated:
    """Evaluations of the model that ``(u, v)`` make, for a problem made by `twice`.

    Attributes
    ----------
    nodes : list of (matrix, targets, weights)
        Of the rows of each node that are for ``u``.
    of_ones : array of shape (d,)
        ``v`` at the last evaluation, from which a warm start continues.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.half = problem, problem.n_features // 2
        self.of_ones = np.zeros(self.half)
        self.nodes: list[tuple[Any, Vector, Vector]] = []
        for node in problem.nodes.tolist():
            first = problem.node_rows(node).start
            last = (first + problem.node_rows(node).stop) // 2
            matrix = slice_rows(problem.rows, problem.n_features, first, last)[:, : self.half]
            self.nodes.append((matrix, problem.labels[first:last], problem.weights[first:last]))

    def steps(self, problem: Problem, outputs: list[Matrix], duals: Any) -> Steps[Evaluation]:
        """An evaluation of ``(u_i, v_i)`` of this process's nodes; sums are over all nodes."""
        both, nodes = outputs[0], self.nodes
        half, alpha = self.half, self.problem.total_sigma
        own = zip(self.problem.own_sigma, both, nodes, strict=True)
        total, sums = yield _ask(
            2 * half, 2, ((sigma * row, w @ y, w.sum()) for sigma, row, (_, y, w) in own)
        )
        u, v = total[:half] / alpha, total[half:] / alpha
        targets, weight = _added(sums)
        mean = targets / weight
        # The two sums whose ratio is b, and the losses of theta = 0.
        _, sums = yield _ask(0, 3, (
            (NO_ROW, w @ (y - X @ u), w @ (1.0 - X @ v), 0.5 * w @ (y - mean) ** 2)
            for X, y, w in nodes
        ))  # fmt: skip
        above, below, at_zero = _added(sums)
        b = above / below
        theta, thetas = u - b * v, both[:, :half] - b * both[:, half:]
        residuals = [(X, w, X @ theta - y) for X, y, w in nodes]
        _, sums = yield _ask(0, 1, ((NO_ROW, w @ r) for _, w, r in residuals))
        mean = _added(sums)[0] / weight
        # X^T W r and the losses, with residuals r around their mean.
        centred = [(X, w * (r - mean), r - mean) for X, w, r in residuals]
        slope, sums = yield _ask(half, 1, ((X.T @ wr, 0.5 * (wr @ r)) for X, wr, r in centred))
        objective = _added(sums)[0] + 0.5 * alpha * float(theta @ theta)
        _, distances = yield _ask(0, 1, ((NO_ROW, np.sum((own - theta) ** 2)) for own in thetas))
        self.of_ones = v
        gap = quadratic(slope + alpha * theta, 1.0, 2.0 * alpha)
        spread = float(np.sqrt(np.mean(distances)))
        return Evaluation(theta, thetas, float(objective), gap, None, spread, at_zero)


def _ask(width: int, n_values: int, parts: Iterable[tuple[Any, ...]]) -> Ask:
    """For sums over all nodes; a part is a row of ``width`` numbers, then ``n_values`` numbers."""
    lines = ((np.asarray(row)[None], np.array([own], dtype=np.float64)) for row, *own in parts)
    return Ask(width, n_values, (Part(*line) for line in lines))


def _added(values: Matrix) -> list[float]:
    """The sum of each column, added node after node."""
    return [in_order(column) for column in values.T]

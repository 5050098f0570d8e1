"""What all estimators share: their options, how rows become models, what a fit leaves behind."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack, issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from adfs.errors import DataError
from adfs.estimators.columns import as_one_array
from adfs.estimators.company import Company
from adfs.estimators.layout import Layout, lay_out
from adfs.estimators.models import Matrix, Target, Vector, build_problems, train
from adfs.estimators.options import Options, flag, on_ranks, positive, read_options
from adfs.runtime.model import linear_scores
from adfs.runtime.solve import Result

FLOATS = (np.float64, np.float32)


class LinearEstimator(BaseEstimator):  # type: ignore[misc]
    """A linear model fitted by nodes that exchange messages; the base of all estimators."""

    _needs: ClassVar[dict[str, Any]] = {}  # how `validate_data` is to judge X and y

    # Declared here, set by the constructors of the estimators and by `fit`.
    n_nodes: Any
    graph: Any
    fit_intercept: Any
    intercept_scaling: Any
    warm_start: Any
    tol: Any
    engine: Any
    coef_: Matrix
    intercept_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _settings(self, company: Company, judge: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """The options, and what ``judge`` makes of the estimator's own parameters."""
        options, own = company.each(lambda: (read_options(self), judge()))
        if company.alone:
            return options, *own
        what = "Ranks that fit one model need the same parameters"
        company.require_same(what, "call the same fit.", estimator=type(self).__name__)
        given = {k: v for k, v in self.get_params(deep=False).items() if k != "verbose"}
        company.require_same(what, "make them equal.", **given)
        return company.each(lambda: on_ranks(options, company.peers)), *own

    def _rows_and_targets(
        self, X: Any, y: Any, company: Company, **needs: Any
    ) -> tuple[Any, NDArray[Any]]:
        """Checked by scikit-learn: finite, of one length, CSR or C-contiguous."""
        rows, targets = company.each(
            lambda: validate_data(
                self, X, y, accept_sparse="csr", dtype=FLOATS, order="C", **self._needs, **needs
            )
        )
        return as_one_array(rows, getattr(self, "feature_names_in_", None), company), targets

    def _lay_out(self, n_samples: int, groups: Any, options: Options, company: Company) -> Layout:
        return lay_out(n_samples, self.n_nodes, self.graph, groups, options.seed, company)

    def _scores(self, X: Any) -> Matrix:
        """``X coef_^T + intercept_``, one column a model."""
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        coefs, intercepts = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        pairs = zip(coefs, intercepts, strict=True)
        return np.column_stack([linear_scores(rows, coef) + b for coef, b in pairs])

    def _with_column(
        self, X: Any, targets: Sequence[Target], loss: str, sigma: float, options: Options,
        layout: Layout, company: Company, unit: float = 1.0,
    ) -> tuple[Matrix, Vector, list[Result]]:  # fmt: skip
        """Coefficients, intercepts and results of one model a target.

        The intercept is the weight of a constant column, ``intercept_scaling`` high, and is
        regularised like any other. ``unit`` is that of the targets: models come in multiples of it.
        """
        column, scaling = company.each(self._column)
        scaling = float(X.dtype.type(scaling))  # as the column holds it
        width = X.shape[1]
        last, starts = company.each(lambda: self._start(len(targets), width)), None
        if last is not None:
            parts = (last[0], last[1][:, None] / scaling)
            starts = np.hstack(parts if column else parts[:1]) / unit
        rows = with_constant(X, scaling) if column else X
        problems = build_problems(rows, targets, loss, sigma, layout)
        results = train(problems, options, same_start(starts, company))
        thetas = unit * np.array([result.theta for result in results])
        intercepts = scaling * thetas[:, width] if column else np.zeros(len(thetas))
        return thetas[:, :width], intercepts, results

    def _column(self) -> tuple[bool, float]:
        """Whether there is a constant column, and its height."""
        scaling = positive("intercept_scaling", self.intercept_scaling, "try 1")
        return flag("fit_intercept", self.fit_intercept), scaling

    def _start(self, n_models: int, width: int) -> tuple[Matrix, Vector] | None:
        """Where a warm start begins: the last fit's coefficients and intercepts."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coefs, intercepts = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        if coefs.shape != (n_models, width):
            raise DataError(
                f"warm_start=True goes on from coefficients of shape {coefs.shape}, but this data "
                f"needs {(n_models, width)}: other features or classes. Set warm_start=False."
            )
        return coefs, intercepts

    def _conclude(self, results: list[Result], names: Sequence[Any] = ()) -> None:
        """Keep what the runs tell; warn where one stopped early; pass Ctrl-C on."""
        single = len(results) == 1
        iterations = [result.iterations for result in results]
        gaps = [result.duality_gap for result in results]
        histories = [result.trace.to_dict() for result in results]
        self.n_iter_ = iterations[0] if single else np.array(iterations)
        self.dual_gap_ = gaps[0] if single else np.array(gaps)
        self.history_ = histories[0] if single else histories
        self.result_ = results[0] if single else results
        if any(result.status == "interrupted" for result in results):
            raise KeyboardInterrupt
        self._warn(results, names)

    def _warn(self, results: list[Result], names: Sequence[Any]) -> None:
        early = [k for k, result in enumerate(results) if result.status != "converged"]
        if not early:
            return
        worst = max(early, key=lambda k: results[k].relative_gap)
        result = results[worst]
        where = f" (the worst of {len(early)}: {names[worst]!s})" if len(results) > 1 else ""
        ways = "scale the features" if result.status == "diverged" else "raise max_iter or tol"
        warnings.warn(
            f"{type(self).__name__} stopped with {result.status!r} after {result.iterations} "
            f"iterations at a relative duality gap of {result.relative_gap:.2g}, above "
            f"tol={self.tol:g}{where}; {ways}.",
            ConvergenceWarning,
            stacklevel=4,
        )


def same_start(starts: Any, company: Company) -> Any:
    """Where a warm start begins, which has to be the same model on all ranks."""
    company.require_same(
        "warm_start=True goes on from one model on all ranks",
        "fit all ranks together from the beginning.", start=starts,
    )  # fmt: skip
    return starts


def with_constant(X: Any, height: float) -> Any:
    """``X`` with a last column of ``height``, in its own layout and type of number."""
    column = np.full((X.shape[0], 1), height, dtype=X.dtype)
    if issparse(X):
        return hstack([csr_matrix(X), csr_matrix(column)], format="csr")
    return np.hstack([X, column])

"""What all estimators have in common: parameters, the steps of a fit, what a fit keeps."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from adfs.agreement import Peers, agree, gather_from_all, require_same
from adfs.algorithms.base import CHOSEN, get_algorithm
from adfs.checks import finite, flag, positive, whole
from adfs.data.matrices import checked_csr, with_constant
from adfs.engine.stopping import Stopping
from adfs.errors import DataError, ParameterError
from adfs.estimators.fitting import (
    FitOptions,
    FitTask,
    Matrix,
    Objective,
    Target,
    Vector,
    standardized,
    train,
)  # fmt: skip
from adfs.estimators.node_layout import as_one_array, fit_group, lay_out, on_all
from adfs.model import linear_scores
from adfs.run import Result

FLOATS = (np.float64, np.float32)
LARGEST_SEED = 2**31 - 1


@dataclass(eq=False, repr=False)
class LinearEstimator(BaseEstimator):  # type: ignore[misc]
    """A linear model fitted by nodes; its fields are the parameters, which `fit` checks."""

    _: KW_ONLY
    n_nodes: int | None = None
    graph: Any = "grid"
    tau: float = 5.0
    algorithm: str = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    fit_intercept: bool = True
    standardize: bool = False
    warm_start: bool = False
    random_state: Any = 0
    verbose: int = 0
    engine: str = "local"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels (numbers or words) or targets; `Ridge` also takes (n_samples, n_targets).
        sample_weight : array of shape (n_samples,), optional
            Weights >= 0; a weight of 2 is the row twice, 0 is no row.
        groups : array of shape (n_samples,), optional
            The node of each row, by any name; without it rows are dealt evenly.

        Returns
        -------
        self
        """
        with fit_group(self.engine) as ranks:
            results, names = self._train(self._prepare(X, y, sample_weight, groups, ranks))
        self._keep_results(results, names)
        return self

    def _objective(self) -> Objective:
        raise NotImplementedError

    def _needs(self, ranks: Peers) -> dict[str, Any]:
        return {}

    def _train(self, task: FitTask) -> tuple[list[Result], Sequence[Any]]:
        """Train and keep the models; their results and names, for messages."""
        raise NotImplementedError

    def _prepare(self, X: Any, y: Any, sample_weight: Any, groups: Any, ranks: Peers) -> FitTask:
        """Check everything that a user gave; all ranks do so together."""
        options, objective = self._settings(ranks)
        needs = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C"} | self._needs(ranks)
        rows, targets = on_all(ranks, lambda: validate_data(self, csr_if_sparse(X), y, **needs))
        rows = as_one_array(rows, getattr(self, "feature_names_in_", None), ranks)
        weights = objective.factor * sample_weights(sample_weight, len(targets), ranks)
        layout = lay_out(len(targets), self.n_nodes, self.graph, groups, options.seed, ranks)
        task = FitTask(rows, targets, weights, objective, options, layout)
        return standardized(task) if self.standardize else task

    def _settings(self, ranks: Peers) -> tuple[FitOptions, Objective]:
        """The checked parameters; all ranks use rank 0's seed, and only rank 0 prints."""
        options, objective = on_all(ranks, lambda: (self._options(), self._objective()))
        what = "Ranks that fit one model need the same parameters"
        require_same(ranks, {"estimator": type(self).__name__}, "call the same fit.", what)
        given = {k: v for k, v in self.get_params(deep=False).items() if k != "verbose"}
        require_same(ranks, given, "make them equal.", what)
        seed = int(ranks.gather(options.seed)[0])
        verbose = options.verbose and ranks.rank == 0
        return options._replace(seed=seed, verbose=verbose), objective

    def _options(self) -> FitOptions:
        """The checked parameters that all estimators have."""
        if not isinstance(self.algorithm, str):
            raise ParameterError(f"algorithm={self.algorithm!r} must be a name; 'auto' is one.")
        if self.algorithm not in CHOSEN:
            get_algorithm(self.algorithm)
        hint = "try 5, the time of one message in proximal steps"
        tau = finite("tau", self.tau, least=0, hint=hint)
        flag("fit_intercept", self.fit_intercept)
        flag("standardize", self.standardize)
        flag("warm_start", self.warm_start)
        verbose = int(self.verbose) if isinstance(self.verbose, np.bool_ | bool) else self.verbose
        prints = whole("verbose", verbose, hint="0 prints nothing, 1 a line per evaluation") > 0
        stopping, seed = Stopping(self.tol, self.max_iter), seed_of(self.random_state)
        return FitOptions(self.algorithm, stopping, tau, seed, prints)

    def _last_model(self, n_models: int, task: FitTask) -> tuple[Matrix, Vector] | None:
        """Where a warm start begins: the last fit's coefficients and intercepts."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coefs, intercepts = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        if coefs.shape != (n_models, task.rows.shape[1]):
            raise DataError(
                f"warm_start=True continues from coefficients of shape {coefs.shape}, but this "
                f"data needs {(n_models, task.rows.shape[1])}: other features or classes. Set "
                "warm_start=False."
            )
        if task.scaler is not None:
            return task.scaler.from_units(coefs, intercepts)
        return coefs, intercepts

    def _keep_models(
        self, task: FitTask, coefs: Matrix, intercepts: Vector, single: bool = False
    ) -> None:
        """Keep coefficients and intercepts in the units of the columns."""
        if task.scaler is not None:
            found = task.scaler.to_units(np.column_stack([coefs, intercepts]), has_constant=True)
            coefs, intercepts = found[:, :-1], found[:, -1]
        self.coef_: Any = coefs[0] if single else coefs
        self.intercept_: Any = float(intercepts[0]) if single else intercepts

    def _keep_results(self, results: list[Result], names: Sequence[Any]) -> None:
        """Keep the facts of the runs; warn where one stopped early; pass Ctrl-C on."""
        first, single = results[0], len(results) == 1
        self.result_ = first if single else results
        self.n_iter_ = first.iterations if single else np.array([r.iterations for r in results])
        self.dual_gap_ = first.duality_gap if single else np.array([r.duality_gap for r in results])
        histories = [result.trace.to_dict() for result in results]
        self.history_ = histories[0] if single else histories
        if any(result.status == "interrupted" for result in results):
            raise KeyboardInterrupt
        early = [k for k, result in enumerate(results) if result.status != "converged"]
        if not early:
            return
        worst = max(early, key=lambda k: results[k].relative_gap)
        result = results[worst]
        where = "" if single else f" (the worst of {len(early)}: {names[worst]!s})"
        ways = "raise max_iter or tol"
        if result.status == "diverged":
            ways = "scale X or y"
        elif self.max_iter is None:
            ways = "this is the default limit: scale the features, regularise more, or set max_iter"
        warnings.warn(
            f"{type(self).__name__} stopped with {result.status!r} after {result.iterations} "
            f"iterations at relative duality gap {result.gap_text}, above "
            f"tol={self.tol:g}{where}; {ways}.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _scores(self, X: Any) -> Matrix:
        """``X coef_^T + intercept_``, one column per model."""
        check_is_fitted(self)
        rows = validate_data(self, csr_if_sparse(X), accept_sparse="csr", dtype=FLOATS, reset=False)
        coefs, intercepts = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        pairs = zip(coefs, intercepts, strict=True)
        return np.column_stack([linear_scores(rows, coef) + b for coef, b in pairs])

    def predict(self, X: Any) -> NDArray[Any]:
        """Value of each row, (n_samples,), or (n_samples, n_targets) where y had columns."""
        scores = self._scores(X)
        return scores[:, 0] if self.coef_.ndim == 1 else scores


@dataclass(eq=False, repr=False)
class ColumnEstimator(LinearEstimator):
    """Has as intercept the weight, regularised, of a column that is ``intercept_scaling`` high."""

    _: KW_ONLY
    intercept_scaling: float = 1.0

    def _train_with_column(
        self, task: FitTask, targets: Sequence[Target]
    ) -> tuple[Matrix, Vector, list[Result]]:
        """Coefficients, intercepts and results of one model per target."""
        rows, unit, ranks = task.rows, task.objective.unit, task.layout.ranks
        given = on_all(
            ranks, lambda: positive("intercept_scaling", self.intercept_scaling, "try 1")
        )
        last = on_all(ranks, lambda: self._last_model(len(targets), task))
        scaling = float(rows.dtype.type(given))  # as the column holds it
        starts, width = None, rows.shape[1]
        if last is not None:
            parts = (last[0], last[1][:, None] / scaling)
            starts = np.hstack(parts if self.fit_intercept else parts[:1]) / unit
        if self.fit_intercept:
            task = task._replace(rows=with_constant(rows, scaling))
        results = train(task, targets, starts)
        return *self._models_of(results, width, scaling, unit), results

    def _models_of(
        self, results: Sequence[Result], width: int, scaling: float, unit: float = 1.0
    ) -> tuple[Matrix, Vector]:
        """Coefficients of ``width`` columns and intercepts, one row per result."""
        thetas = unit * np.array([result.theta for result in results])
        intercepts = scaling * thetas[:, width] if self.fit_intercept else np.zeros(len(thetas))
        return thetas[:, :width], intercepts


def sample_weights(given: Any, n_samples: int, ranks: Peers) -> Vector:
    """One weight per row: ones, the same for all, or as given; some of them > 0 on some rank."""
    weights = on_all(ranks, lambda: _checked_weights(given, n_samples))
    found = gather_from_all(ranks, bool(weights.any()))
    nothing = DataError("All sample weights are zero, so nothing can be learnt; check them.")
    agree(ranks, None if any(found) else nothing)
    return weights


def _checked_weights(given: Any, n_samples: int) -> Vector:
    try:
        weights = np.array(1.0 if given is None else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be numbers, but: {error}; convert it.") from None
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise DataError(
            f"sample_weight must have one entry per row, but sample_weight.shape is "
            f"{weights.shape} for {n_samples} rows; pass one array of that length."
        )
    bad = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(bad):
        raise DataError(f"sample_weight has {bad[0]:g}; weights are finite and >= 0.")
    return weights


def sigma_of(C: Any) -> float:
    sigma = 1.0 / positive("C", C, "try 1, the inverse of the regularisation")
    return finite("1 / C", sigma, hint=f"C={C!r} is too small")


def seed_of(random_state: Any) -> int:
    """The seed itself, or one drawn from a generator; None takes a new one from the system.

    Examples
    --------
    >>> seed_of(7)
    7
    >>> seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
    True
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(LARGEST_SEED))
    return whole("random_state", random_state, hint="a RandomState and None are allowed too")


def csr_if_sparse(X: Any) -> Any:
    """``X``, or its CSR form with checked indices: scikit-learn and SciPy do not check them."""
    return checked_csr(X, "X") if issparse(X) else X

"""Logistic regression that chooses its C by cross-validation, with scikit-learn's folds and scores.

All runs share the rows: a fold is left out by weights 0, and each C starts from the duals of the
next smaller one (`adfs.regularization`).
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from adfs.agreement import agree
from adfs.checks import flag, positive
from adfs.data.matrices import with_constant
from adfs.engine.interrupts import Interrupts
from adfs.errors import ParameterError
from adfs.estimators.classifiers import LogisticRegression
from adfs.estimators.fitting import (
    FitTask,
    Matrix,
    Objective,
    Target,
    Vector,
    progress_printers,
    without_rows,
)
from adfs.model import Model
from adfs.problem.finite_sum import Problem
from adfs.regularization import PathRuns, PathSamples, grid_of
from adfs.run import Result, RunOptions

NOT_ON_RANKS = (
    "engine='mpi' has no folds of scikit-learn, which are drawn from all rows; choose C with "
    "adfs.regularization_path(problem, Cs, cv=5)."
)


class FoldTrial(NamedTuple):
    """One C without one fold: the score on the fold, and the results of all classes."""

    score: float
    results: list[Result]


@dataclass(eq=False, repr=False)
class LogisticRegressionCV(LogisticRegression):
    """`LogisticRegression` with the C that scores best in cross-validation.

    Its folds, scores and choice are those of scikit-learn's `LogisticRegressionCV` with
    ``solver="liblinear"``, whose intercept is regularised too; of several C with the same score it
    is the first. Several classes are trained one against the rest, with one C for all of them.

    Parameters
    ----------
    Cs : int or sequence of float
        Values of C; a number of them stands for a geometric grid from 1e-4 to 1e4.
    cv : int, splitter or iterable, optional
        As in scikit-learn: by default 5 folds, stratified by class.
    scoring : str or callable, optional
        A scorer of scikit-learn; by default the accuracy.
    refit : bool
        Whether to train on all rows with the best C; otherwise coefficients are means over the
        folds, each with its own best C.
    class_weight, n_nodes, graph, tau, algorithm, tol, max_iter, fit_intercept, intercept_scaling, \
random_state, verbose
        As in `LogisticRegression`.
    engine : "local"
        On ranks, `adfs.regularization_path` and ``adfs path --engine mpi`` choose C.

    Attributes
    ----------
    C_ : array of shape (1,) or (n_classes,)
        The best C, or with ``refit=False`` the mean of those of the folds.
    Cs_ : array of shape (n_Cs,)
    scores_ : dict
        From a label to its scores, of shape (n_folds, n_Cs): of two labels the second one; of
        several all, with the same scores.
    n_iter_ : array of shape (1, n_folds, n_Cs)
        Events executed, of all classes.
    coef_, intercept_, classes_, dual_gap_, history_, result_, n_features_in_
        As in `LogisticRegression`.

    Examples
    --------
    >>> import adfs
    >>> X, y = adfs.generators.two_gaussians(200, 5, seed=0)
    >>> model = adfs.LogisticRegressionCV(Cs=[0.01, 0.1, 1.0]).fit(X, y)
    >>> model.C_, model.scores_[1.0].shape, round(model.score(X, y), 3)
    (array([0.01]), (5, 3), 0.84)
    """

    C: float = field(default=1.0, init=False)
    _: KW_ONLY
    warm_start: bool = field(default=False, init=False)
    Cs: Any = 10
    cv: Any = None
    scoring: Any = None
    refit: bool = True

    def _objective(self) -> Objective:
        flag("refit", self.refit)
        positive("intercept_scaling", self.intercept_scaling, "try 1")
        grid_of(self.Cs)
        return super()._objective()

    def _train(self, task: FitTask) -> tuple[list[Result], Sequence[Any]]:
        ranks = task.layout.ranks
        agree(ranks, ParameterError(NOT_ON_RANKS) if ranks.size > 1 else None)
        self.classes_, targets = self._targets(task)
        grid = grid_of(self.Cs)
        self.Cs_ = grid if np.ndim(self.Cs) == 0 else np.asarray(self.Cs, np.float64).ravel()
        places = np.searchsorted(grid, self.Cs_)
        folds = list(check_cv(self.cv, task.y, classifier=True).split(task.rows, task.y))
        with Interrupts() as interrupts:
            runs = self._runs(task, targets, interrupts)
            found = [[each[k] for k in places] for each in self._search(runs, task, grid, folds)]
            scores = np.array([[trial.score for trial in each] for each in found])
            if self.refit:
                best = np.array([scores.sum(axis=0).argmax()])
                chosen = [results for _, results in runs.along(self.Cs_[best])]
            else:
                best = scores.argmax(axis=1)
                chosen = [each[k].results for each, k in zip(found, best, strict=True)]
        if runs.is_over:
            raise KeyboardInterrupt
        self._keep_search(scores, [trial for each in found for trial in each], len(targets))
        self.C_ = np.full(len(targets), self.Cs_[best].mean())
        width = task.rows.shape[1]
        models = [self._models_of(results, width, self._height) for results in chosen]
        self._keep_models(task, *(np.mean(part, axis=0) for part in zip(*models, strict=True)))
        bare = [without_rows(result) for results in chosen for result in results]
        return bare, self.classes_.tolist() * len(chosen)

    def _runs(self, task: FitTask, targets: Sequence[Target], interrupts: Interrupts) -> PathRuns:
        """All runs on the task's rows, which are copied once."""
        layout, options = task.layout, task.options
        self._height = float(task.rows.dtype.type(self.intercept_scaling))
        rows = with_constant(task.rows, self._height) if self.fit_intercept else task.rows
        shards = layout.shards(rows, *targets[0])
        problem = Problem(shards, task.objective.loss, network=layout.network())

        def problem_of(number: int) -> Problem:
            labels, weights = targets[number]
            return problem.with_targets(labels[layout.order], weights[layout.order])

        samples = PathSamples(problem_of, len(targets), problem.labels, Model.from_result)
        how = RunOptions(None, "curve", progress_printers(options.verbose, 0, 1))
        return PathRuns(
            samples, options.algorithm, options.setting("tuned"), options.stopping, how, interrupts,
            None,
        )  # fmt: skip

    def _search(
        self, runs: PathRuns, task: FitTask, grid: Vector, folds: Sequence[Any]
    ) -> Iterator[list[FoldTrial]]:
        """For each fold the scores and results of all C."""
        scorer, order = get_scorer(self.scoring or "accuracy"), task.layout.order
        for train, test in folds:
            kept = np.zeros(len(order), dtype=bool)
            kept[train] = True
            weights = {} if (task.weights == 1.0).all() else {"sample_weight": task.weights[test]}
            trials = []
            for _, results in runs.along(grid, kept[order]):
                model = LogisticRegression()
                model.classes_, model.n_features_in_ = self.classes_, task.rows.shape[1]
                as_scaled = task._replace(scaler=None)  # the rows to score are scaled, too
                found = self._models_of(results, model.n_features_in_, self._height)
                model._keep_models(as_scaled, *found)
                score = float(scorer(model, task.rows[test], task.y[test], **weights))
                trials.append(FoldTrial(score, [without_rows(result) for result in results]))
            if runs.is_over:
                raise KeyboardInterrupt
            yield trials

    def _keep_search(self, scores: Matrix, trials: Sequence[FoldTrial], n_models: int) -> None:
        """Scores and events of the folds; warn where a run stopped early."""
        labels = self.classes_[-1:] if n_models == 1 else self.classes_
        self.scores_ = {label: scores.copy() for label in labels.tolist()}
        counts = [sum(result.iterations for result in trial.results) for trial in trials]
        self.n_iter_ = np.array(counts).reshape(1, *scores.shape)
        early = [r for trial in trials for r in trial.results if r.status != "converged"]
        if early:
            warnings.warn(
                f"{len(early)} of the runs without a fold stopped before tol={self.tol:g}; raise "
                "max_iter or tol, scale the features, or leave out large C.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep_results(self, results: list[Result], names: Sequence[Any]) -> None:
        counts = self.n_iter_
        super()._keep_results(results, names)
        self.n_iter_ = counts
